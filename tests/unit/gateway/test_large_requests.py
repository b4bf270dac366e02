"""Requests with thousands of items are decided in parts, and others have their turn in between."""

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.gateway.session.large_turns import LargeTurns, QueuePlace
from kustos.protocol.exchange import ITEMS_PER_TURN
from kustos.protocol.handlers import metadata
from kustos.protocol.topic_patterns import TopicPattern
from kustos.wire import (
    Message,
    PartReader,
    PartWriter,
    converted,
)
from kustos.wire.api_keys import ApiKey
from testkit.gateway.sessions import World, deliver, heartbeat, request, request_struct
from testkit.protocol import cluster_model
from testkit.protocol.random_requests import ALL_ALLOWED, allow

MANY = [f"group-{number}" for number in range(2 * ITEMS_PER_TURN)]


def describe_groups(correlation_id: int) -> bytes:
    """A request that is decided in parts."""
    return request(ApiKey.DESCRIBE_GROUPS, 5, correlation_id, groups=MANY)


async def test_small_requests_are_answered_during_a_large_one() -> None:
    world = World([])
    other = World(ALL_ALLOWED)
    world.session.take([describe_groups(1)])
    other.session.take([heartbeat(2)])
    assert other.answer_one()
    assert (other.correlation_ids(), world.answers) == ([2], [])
    await wait_async(lambda: world.answers)
    assert world.correlation_ids() == [1]
    assert not world.forwarded


async def test_an_allowed_large_request_is_forwarded_complete() -> None:
    world = World(ALL_ALLOWED)
    frame = describe_groups(1)
    world.session.take([frame])
    await wait_async(lambda: world.forwarded)
    assert list(world.forwarded) == [frame]


async def test_a_large_request_is_read_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    worked = [0]
    monkeypatch.setattr(PartReader, "read", counting(PartReader.read, worked))
    world = World(ALL_ALLOWED)
    world.session.take([describe_groups(1)])
    while not world.forwarded:
        assert not world.closed
        await asyncio.sleep(0)
        worked.append(0)
    assert max(worked) <= ITEMS_PER_TURN
    assert sum(worked) >= len(MANY)


async def test_a_large_request_that_cannot_be_read_closes_the_connection() -> None:
    world = World(ALL_ALLOWED)
    world.session.take([describe_groups(1)[:-3]])
    await wait_async(lambda: world.closed)
    assert world.closed == ["`DescribeGroupsRequest` v5: the message ends inside a field"]
    assert not world.decided_by


async def test_a_right_revoked_while_a_large_request_yields_is_enforced() -> None:
    world = World(ALL_ALLOWED)
    world.session.take([describe_groups(1)])
    await wait_async(lambda: world.decided_by)
    world.replace_acls([])
    await wait_async(lambda: world.closed)
    assert world.closed == ["the ACLs changed while a large request was decided"]
    assert not world.forwarded


async def test_small_requests_with_large_answers_take_turns() -> None:
    """One turn of the loop works on a part of one of them, on any number of connections."""
    first = listing_all(World(ALL_ALLOWED))
    worlds = [first, *(listing_all(World(ALL_ALLOWED, large_turns=first.large_turns)) for _ in range(4))]
    decided = [sum(len(world.decided_by) for world in worlds)]
    while not all(world.answers for world in worlds):
        await asyncio.sleep(0)
        decided.append(sum(len(world.decided_by) for world in worlds))
    assert {later - earlier for earlier, later in pairwise(decided)} == {0, 1}


async def test_small_requests_with_large_answers_do_not_starve_large_requests() -> None:
    """All connections of a principal take one turn."""
    turns: list[str] = []
    queue = LargeTurns(call_later=lambda _, callback: asyncio.get_running_loop().call_soon(callback))
    small = [queue.place(KafkaPrincipal("User", "small")) for _ in range(20)]
    large = queue.place(KafkaPrincipal("User", "large"))

    def take(place: QueuePlace) -> None:
        if place.may_go_on(partial(take, place), goes_first=False):
            turns.append("small")
            take(place)

    def begin() -> None:
        if large.may_begin(begin):
            turns.append("large")

    for place in small:
        take(place)
    begin()
    await wait_async(lambda: "large" in turns)
    assert turns == ["small", "large"]
    for place in small:
        place.leave()


@pytest.mark.parametrize(
    ("api_key", "version"), [(ApiKey.LIST_GROUPS, 4), (ApiKey.CONSUMER_GROUP_DESCRIBE, 1)]
)
async def test_a_large_answer_is_read_and_written_in_turns(
    monkeypatch: pytest.MonkeyPatch, api_key: int, version: int
) -> None:
    """A list of the answer, at any depth, may have any number of items; one turn takes a thousand."""
    worked = [0]
    for part, method in ((PartReader, "read"), (PartWriter, "write")):
        monkeypatch.setattr(part, method, counting(getattr(part, method), worked))
    world = World(ALL_ALLOWED)
    names = [f"topic-{number}" for number in range(3 * ITEMS_PER_TURN)]
    for name in names:
        world.world.create(name)
    is_listing = api_key == ApiKey.LIST_GROUPS
    world.world.groups = {name: [] for name in names} if is_listing else {"group-one": names}
    fields: dict[str, object] = {} if is_listing else {"group_ids": ["group-one"]}
    world.session.take([request(api_key, version, 9, **fields)])
    assert world.answer_one()
    while not world.answers:
        assert not world.closed
        await asyncio.sleep(0)
        worked.append(0)
    assert max(worked) <= ITEMS_PER_TURN + len(fields)
    assert sum(worked) >= len(names) * (1 if is_listing else 2)
    assert world.answers[0].count(b"topic-") >= len(names)


def counting(work: Callable[[Any, int], int], worked: list[int]) -> Callable[[Any, int], int]:
    """Return a method that adds what it returns to the last number."""

    def counted(self: Any, elements_max: int) -> int:
        count = work(self, elements_max)
        worked[-1] += count
        return count

    return counted


@pytest.mark.parametrize("is_listed", [False, True])
@pytest.mark.parametrize("version", [1, 9])
async def test_a_topic_of_thousands_of_partitions_is_read_and_written_in_turns(
    monkeypatch: pytest.MonkeyPatch, version: int, is_listed: bool
) -> None:
    """Read, converted for an old client, and written."""
    worked = [0]
    for part, method in ((PartReader, "read"), (PartWriter, "write")):
        monkeypatch.setattr(part, method, counting(getattr(part, method), worked))
    monkeypatch.setattr(cluster_model, "PARTITIONS", 3 * ITEMS_PER_TURN)
    is_old = version < metadata.ASKS_NOT_TO_CREATE_SINCE

    def counting_conversions(message: Message, message_type: type[Message]) -> Message:
        worked[-1] += 1 + len(message.get("partitions") or ())
        return converted(message, message_type)

    monkeypatch.setattr(metadata, "converted", counting_conversions)
    world = World(ALL_ALLOWED)
    topic = request_struct(ApiKey.METADATA, version, "MetadataRequestTopic", name="alpha-topic")
    topics = None if is_listed else [topic]
    world.session.take([request(ApiKey.METADATA, version, 9, topics=topics)])
    assert world.answer_one()
    while not world.answers:
        assert not world.closed
        await asyncio.sleep(0)
        worked.append(0)
    assert max(worked) <= ITEMS_PER_TURN + len(world.world.topics)
    times = (3 if is_old else 2) * (len(world.world.topics) if is_listed else 1)
    assert sum(worked) >= times * 3 * ITEMS_PER_TURN


async def test_expressions_are_compiled_in_turns_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small heartbeat may have an expression that takes milliseconds, and dozens of them come at once."""
    compiled, compile_pattern = [0], TopicPattern.compile

    def counting_compile(text: str) -> TopicPattern:
        compiled[-1] += 1
        return compile_pattern(text)

    monkeypatch.setattr(TopicPattern, "compile", counting_compile)
    world = World([allow(ResourceType.GROUP, "group-one", AclOperation.READ)])
    fields = {"group_id": "group-one", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": []}
    beats = [
        request(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, number, **fields, subscribed_topic_regex=f"[{number}")
        for number in range(20)
    ]
    world.session.take(beats)
    while len(world.answers) < len(beats):
        assert not world.closed
        await asyncio.sleep(0)
        compiled.append(0)
    assert (max(compiled), sum(compiled)) == (1, len(beats))


async def test_a_large_answer_that_cannot_be_read_closes_the_connection() -> None:
    world = World(ALL_ALLOWED)
    world.world.groups = {f"group-{number}": [] for number in range(2 * ITEMS_PER_TURN)}
    world.session.take([request(ApiKey.LIST_GROUPS, 4, 9)])
    answer = world.world.answer(world.forwarded.popleft())
    assert answer is not None
    deliver(world.link, answer + b"\0")
    await wait_async(lambda: world.closed)
    assert world.closed == ["1 bytes follow after `ListGroupsResponse` v4"]
    assert not world.answers


async def test_a_right_revoked_while_a_large_answer_is_read_hides_its_items() -> None:
    world = World([allow(ResourceType.GROUP, "*", AclOperation.DESCRIBE)])
    world.world.groups = {f"group-{number}": [] for number in range(2 * ITEMS_PER_TURN)}
    world.session.take([request(ApiKey.LIST_GROUPS, 4, 9)])
    assert world.answer_one()
    await wait_async(lambda: len(world.decided_by) > 1)
    world.replace_acls([])
    await wait_async(lambda: world.closed)
    assert world.closed == ["the ACLs changed while a large request was decided"]
    assert not world.answers


def listing_all(world: World) -> World:
    """Let a session have the answer to a request for all topics: few bytes, and many topics."""
    for number in range(3 * ITEMS_PER_TURN):
        world.world.create(f"topic-{number}")
    world.session.take([request(ApiKey.METADATA, 1, 9, topics=None)])
    assert world.answer_one()
    return world


async def test_a_connection_that_ends_during_a_large_request_leaves_the_queue() -> None:
    world = World([])
    world.session.take([describe_groups(1)])
    world.session.close()
    await world.settle()
    assert not [*world.answers, *world.forwarded]
    other = World([], large_turns=world.large_turns)
    other.session.take([describe_groups(2)])
    await wait_async(lambda: other.answers)


async def wait_async(condition: Callable[[], object]) -> None:
    """Return once the loop has come to it; the test's own time limit holds."""
    while not condition():  # noqa: ASYNC110 (nothing else tells)
        await asyncio.sleep(0)
