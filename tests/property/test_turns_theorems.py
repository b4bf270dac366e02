"""Theorem: a handler gives way after a bounded number of items, however many a request or response has."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from types import FrameType
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kustos.acl import AclBinding, AclOperation
from kustos.protocol import ADMIN_TABLE, Decided, GiveWay, Guard, Opened, RefusedFrameError
from kustos.protocol import Outcome as Concluded
from kustos.protocol.admin_table import ADMIN_OFFERED
from kustos.protocol.effects import Handler
from kustos.protocol.exchange import ITEMS_PER_TURN, Exchange
from kustos.protocol.limits import items_max
from kustos.protocol.share_sessions import ShareSession as GuardedShares
from kustos.protocol.turns import CHARACTERS_PER_ITEM, DECISION_COST
from kustos.wire import ApiKey, Message, WireError, request_codec
from testkit.protocol.cluster_model import Model
from testkit.protocol.driver import OFFERED, Driver, Outcome
from testkit.protocol.random_requests import ALL_ALLOWED, KINDS, allow, batch, frame_of
from testkit.protocol.shares import ShareSession

SHARED_NAMES = frozenset({"name", "topic", "group_id", "resource_name", "principal_name"})
OF_THE_WHOLE = 16
"""Messages made and decisions taken for a request as a whole, besides those for its items."""

PASS_WHOLE = frozenset({13, 14, 24, 35, 66, 93})
"""APIs whose lists are parsed but never inspected, in their newest version."""

RIGHTS: dict[str, list[AclBinding]] = {
    "everything": ALL_ALLOWED,
    "nothing": [],
    "half": [allow(kind, "prefixed", AclOperation.ALL) for kind in KINDS],
    "seeing": [allow(kind, "*", AclOperation.DESCRIBE) for kind in KINDS],
}


def name(number: int) -> str:
    return f"prefixed-{number}" if number % 2 else f"other-{number}"


def world(count: int) -> Model:
    made = Model()
    for number in range(count):
        made.create(name(number))
    made.groups = {name(number): [name(number)] for number in range(count)}
    return made


def element(made: type[Message], number: int, model: Model) -> Message:
    """Return an element with a unique name; half of these names exist."""
    values: dict[str, Any] = {}
    for field in made.FIELDS:
        default = getattr(made(), field)
        if field in SHARED_NAMES and "topic_id" not in made.FIELDS:
            values[field] = name(number)
        elif field == "topic_id":
            values[field] = model.topics.get(name(number), (number + 1).to_bytes(16, "big"))
        elif field in {"resource_type", "operation", "permission_type"} and isinstance(default, int):
            values[field] = 2
        elif field in {"resource_pattern_type", "pattern_type_filter", "resource_type_filter"}:
            values[field] = 3
        elif field in {"partition", "partition_index", "index"}:
            values[field] = number
        elif field in made.ELEMENTS and default == []:
            values[field] = [element(made.ELEMENTS[field], 0, model)]
        elif field == "records":
            values[field] = batch()
    if "topic_id" in values and "name" in made.NULLABLE:
        values["name"] = None
    return made(**values)


def is_list(made: type[Message], field: str) -> bool:
    """Return whether a field holds a list, and not one struct."""
    return isinstance(getattr(made(), field), list)


def filled(made: type[Message], path: tuple[str, ...], count: int, model: Model) -> Iterator[Message]:
    """Yield messages in which the list at the path has `count` items."""
    field, *below = path
    inner = made.ELEMENTS.get(field)
    if below and inner is not None:
        for one in filled(inner, tuple(below), count, model):
            yield made(**{field: [one] if is_list(made, field) else one})
    elif inner is not None:
        yield made(**{field: [element(inner, number, model) for number in range(count)]})
    else:
        yield made(**{field: [name(number) for number in range(count)]})
        yield made(**{field: list(range(count))})


OF_EVERY_REQUEST = {"group_id": name(1), "member_id": "member", "replica_id": -1, "share_session_epoch": 1}
"""Fields without which a request is refused before its lists are looked at."""


def frames(api_key: int, version: int, path: tuple[str, ...], count: int, model: Model) -> Iterator[bytes]:
    """Yield requests in which the list at the path has `count` items; none if there is no list."""
    codec = request_codec(api_key, version)
    for message in filled(codec.root, path, count, model):
        for field, value in OF_EVERY_REQUEST.items():
            if field in codec.root.FIELDS:
                setattr(message, field, value)
        try:
            frame = frame_of(api_key, version, message)
            if codec.decode(codec.encode(message)).message == message:
                yield frame
        except (WireError, TypeError, AttributeError):
            continue


def paths(made: type[Message]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of possible lists in a request: at the top level, and one level below lists."""
    for field in made.FIELDS:
        yield (field,)
        if field in made.ELEMENTS:
            inner = made.ELEMENTS[field]
            yield from ((field, below) for below in inner.FIELDS)
            if not is_list(made, field):
                yield from ((field, *below) for below in paths(inner) if len(below) > 1)


LISTS = [
    (is_admin, api_key, version, path)
    for is_admin, offered in ((False, OFFERED), (True, ADMIN_OFFERED))
    for api_key, versions in offered.items()
    if items_max(api_key) > ITEMS_PER_TURN
    for version in sorted(set(versions))
    for path in paths(request_codec(api_key, version).root)
    if any(frames(api_key, version, path, 1, Model()))
]


@dataclass
class Turn:
    """The work of a handler since it last gave way."""

    decisions: int = 0
    characters: int = 0
    messages: int = 0


def is_making(frame: FrameType | None) -> bool:
    """Return whether a stack frame makes a message; nested default messages are made inside that."""
    return (
        frame is not None
        and frame.f_code.co_name == "__init__"
        and isinstance(frame.f_locals.get("self"), Message)
    )


class Watcher(Driver):
    """Counts the work of the handlers in each turn."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.turns = [Turn()]

    def start(self, opened: Opened) -> None:
        opened.handler = self.watched(opened.handler, opened.exchange)

    def watched(self, handler: Handler, exchange: Exchange) -> Handler:
        result: Any = None
        while True:
            before = len(exchange.decided)
            try:
                with self.counting_messages():
                    effect = handler.send(result)
            except StopIteration as stop:
                self.count(exchange.decided[before:])
                return cast("Concluded", stop.value)
            self.count(exchange.decided[before:])
            if isinstance(effect, GiveWay):
                self.turns.append(Turn())
            result = yield effect

    def count(self, decided: list[Decided]) -> None:
        self.turns[-1].decisions += len(decided)
        self.turns[-1].characters += sum(len(item.action.resource_name) for item in decided)

    @contextmanager
    def counting_messages(self) -> Iterator[None]:
        def profile(frame: FrameType, event: str, _argument: Any) -> None:
            if event == "call" and is_making(frame) and not is_making(frame.f_back):
                self.turns[-1].messages += 1

        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            yield
        finally:
            sys.setprofile(before)


def watched_run(
    is_admin: bool, api_key: int, version: int, path: tuple[str, ...], count: int, rights: str
) -> list[Turn]:
    """Return the turns of requests whose list at the path has `count` items."""
    turns: list[Turn] = []
    model = world(count // 2)
    for frame in frames(api_key, version, path, count, model):
        watcher = Watcher(model, RIGHTS[rights])
        watcher.guard.share_sessions.open(GuardedShares((name(1), "member"), epoch=1))
        model.shares[name(1), "member"] = ShareSession()
        if is_admin:
            guard = watcher.guard
            watcher.guard = replace(guard, offered=ADMIN_OFFERED, table=ADMIN_TABLE)
        watcher.run(frame)
        turns += watcher.turns
    return turns


@given(
    which=st.sampled_from(LISTS),
    count=st.integers(1, 3 * ITEMS_PER_TURN),
    rights=st.sampled_from(sorted(RIGHTS)),
)
@example(which=(False, 3, 0, ("topics",)), count=460, rights="everything")
@settings(max_examples=100, deadline=None)
def test_no_turn_handles_more_than_its_share_of_items(
    which: tuple[bool, int, int, tuple[str, ...]], count: int, rights: str
) -> None:
    for turn in watched_run(*which, count, rights):
        assert turn.decisions <= ITEMS_PER_TURN // DECISION_COST + OF_THE_WHOLE
        assert turn.messages <= ITEMS_PER_TURN + OF_THE_WHOLE


@given(
    lengths=st.lists(st.sampled_from([1, 249, 1025, 32_767]), min_size=1, max_size=60),
    times=st.sampled_from([1, 5]),
)
@settings(max_examples=20, deadline=None)
def test_no_turn_handles_more_than_its_share_of_long_names(lengths: list[int], times: int) -> None:
    names = [str(number).ljust(length, "n") for number, length in enumerate(lengths * times)]
    codec = request_codec(ApiKey.FIND_COORDINATOR, 4)
    watcher = Watcher(Model(), [])
    watcher.run(frame_of(ApiKey.FIND_COORDINATOR, 4, codec.new(key_type=0, coordinator_keys=names)))
    assert sum(turn.decisions for turn in watcher.turns) == len(names)
    assert max(turn.characters for turn in watcher.turns) <= ITEMS_PER_TURN * CHARACTERS_PER_ITEM


class ReadsInTurns(Guard):
    """Opens each request as a session opens a large one."""

    def open(self, frame: bytes) -> Opened | bytes:
        return self.open_in_turns(frame)


DAMAGES = (
    st.sampled_from([b"", b"\0", b"abc"])
    | st.integers(1, 200)
    | st.tuples(st.integers(0), st.binary(min_size=1, max_size=2))
)


def damaged(frame: bytes, damage: bytes | int | tuple[int, bytes]) -> bytes:
    """Return the frame with trailing bytes, truncated, or with changed bytes."""
    match damage:
        case bytes():
            return frame + damage
        case int():
            return frame[:-damage]
        case at, other:
            return frame[: at % len(frame)] + other + frame[at % len(frame) + len(other) :]


@given(
    which=st.sampled_from(LISTS),
    count=st.integers(1, 60),
    rights=st.sampled_from(sorted(RIGHTS)),
    damage=DAMAGES,
)
@settings(max_examples=200, deadline=None)
def test_a_request_read_in_turns_is_unchanged(
    which: tuple[bool, int, int, tuple[str, ...]],
    count: int,
    rights: str,
    damage: bytes | int | tuple[int, bytes],
) -> None:
    is_admin, api_key, version, path = which
    for frame in frames(api_key, version, path, count, world(count // 2)):
        ends = []
        for kind in (Guard, ReadsInTurns):
            driver = Driver(world(count // 2), RIGHTS[rights])
            driver.guard = kind(**{each.name: getattr(driver.guard, each.name) for each in fields(Guard)})
            if is_admin:
                driver.guard = replace(driver.guard, offered=ADMIN_OFFERED, table=ADMIN_TABLE)
            try:
                outcome = driver.run(damaged(frame, damage))
                ends.append(replace(outcome, opened=None))
            except RefusedFrameError as refusal:
                ends.append(Outcome(closed=str(refusal)))
        assert ends[0] == ends[1]


@pytest.mark.parametrize("api_key", sorted({api_key for _, api_key, _, _ in LISTS}))
def test_large_requests_of_every_api_yield(api_key: int) -> None:
    """The theorem above is not vacuous: some list of the newest version takes several turns."""
    lists = [which for which in LISTS if which[1] == api_key]
    newest = [which for which in lists if which[2] == max(each[2] for each in lists)]
    turns = [len(watched_run(*which, 2 * ITEMS_PER_TURN, "half")) for which in newest]
    assert max(turns) > len(watched_run(*newest[0], 1, "half")) or api_key in PASS_WHOLE
