"""`frame-<API>`: how long the event loop works on the largest frame of each API, and how long at a time.

The guard, the authorizer and the codecs as they are in a node, without sockets: a frame is opened, decided
and refused, or written again for upstream. For each list of a request there are frames that are filled with
distinct names up to the limit of the API (`kustos.protocol.limits`), with and without something in each
element, all of it in one element, too; of a user without ACLs and of one who may do everything. What is
printed is the longest turn of all, and the whole of the costliest, in milliseconds of processor time, the
least of some rounds, since the machine may be shared. Writing down the decisions comes besides: a
handler leaves as much time for it as for deciding.

`python -m benchmarks.frames [API ...]`: of these APIs only, by Kafka's names.
"""

import gc
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from itertools import pairwise
from typing import Any

from benchmarks.figures import QUICK, progress, rounded
from kustos.acl import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer import AuthorizableRequestContext, StandardAuthorizer
from kustos.protocol import (
    TABLE,
    Ask,
    GiveWay,
    Guard,
    ListTopics,
    Relay,
    Reply,
    ResolveTopicIds,
    common_versions,
    items_max,
)
from kustos.wire import Message, WireError, api_name, request_codec, request_frame

FLOOR_MS = 40.0
"""No turn may take longer."""

ROUNDS = 1 if QUICK else 5
ALICE = KafkaPrincipal("User", "alice")
CONTEXT = AuthorizableRequestContext(ALICE, "10.0.0.1", "CLIENTS", "SASL_PLAINTEXT")
NAMES = frozenset({"name", "topic", "key", "group_id", "resource_name", "principal_name"})
ASKERS = {"group_id": "group", "member_id": "member"}
"""Without them a request is refused before its lists are looked at."""
OFFERED = {key: versions for key, row in TABLE.items() if (versions := common_versions(row, None))}
SPARE = 8
"""Elements left for what stands around a list."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Keeps the addresses of upstream, and learns no brokers."""

    known = None

    def advertised(self, _node_id: int, host: str, port: int) -> tuple[str, int]:
        """Return what it was given."""
        return host, port

    def learn(self, _brokers: object) -> None:
        """Do nothing."""


def element(made: type[Message], number: int, *, filled: bool) -> Message:
    """Return an element that names something of its own; `filled` with one element in each of its lists."""
    values: dict[str, Any] = {}
    default = made()
    for field in made.FIELDS:
        value = getattr(default, field)
        if field in NAMES and isinstance(value, str):
            values[field] = f"name-{number}"
        elif field in {"resource_type", "resource_pattern_type", "operation", "permission_type"}:
            values[field] = 3 if field == "resource_pattern_type" else 2
        elif field.endswith("_filter") and isinstance(value, int):
            values[field] = 3
        elif value == bytes(16):
            values[field] = (number + 1).to_bytes(16, "big")
        elif filled and value == [] and field in made.ELEMENTS:
            values[field] = [made.ELEMENTS[field]()]
    return made(**values)


def overfull(made: type[Message], count: int) -> Iterator[Message]:
    """Yield an element for each of its lists, in which that one has all that a request may have."""
    for field in made.FIELDS:
        if getattr(made(), field) == []:
            inner = made.ELEMENTS.get(field)
            items = range(count) if inner is None else [element(inner, n, filled=False) for n in range(count)]
            for values in (list(items), [str(each) for each in items]):
                one = element(made, 0, filled=False)
                setattr(one, field, values)
                yield one


def frames(api_key: int, version: int) -> Iterator[bytes]:
    """Yield a frame for each list of the request, full of distinct elements."""
    codec = request_codec(api_key, version)
    count = items_max(api_key) - SPARE
    for field in codec.root.FIELDS:
        made = codec.root.ELEMENTS.get(field)
        plain: list[list[Any]] = [[f"name-{n}" for n in range(count)], list(range(count))]
        lists = plain
        if made is not None:
            lists = [
                [element(made, number, filled=filled) for number in range(count // (3 if filled else 1))]
                for filled in (False, True)
            ]
            # half as many where each of them has a tagged field, which counts too
            lists += [[each] for share in (1, 2) for each in overfull(made, count // share)]
        for items in lists:
            try:
                who = {name: value for name, value in ASKERS.items() if name in codec.root.FIELDS}
                body = codec.encode(codec.root(**who | {field: items}))
                if codec.read(body, 0, items_max(api_key))[0].get(field) == items:
                    yield request_frame(codec, api_key, 1, "client", body)[4:]
            except WireError:
                continue


@dataclass(frozen=True, slots=True)
class Cost:
    """What one frame cost up to where upstream would be asked, in milliseconds of processor time."""

    whole_ms: float
    longest_turn_ms: float
    """The longest time for which others had no turn."""
    reading_ms: float
    writing_ms: float
    """What cannot be cut into turns: reading the frame, and writing the answer or what goes upstream."""


def cost(guard: Guard, frame: bytes) -> Cost:
    """Return what one frame costs."""
    turns_s = [time.process_time()]
    opened = guard.open(frame)
    read_s = time.process_time()
    if isinstance(opened, bytes):
        took_ms = (read_s - turns_s[0]) * 1000
        return Cost(took_ms, took_ms, took_ms, 0)
    result: object = None
    is_done = False
    written_from_s = 0.0
    while not is_done:
        is_done = True
        try:
            effect: object = opened.handler.send(result)
        except StopIteration as stop:
            effect = stop.value
        match effect:
            case ResolveTopicIds(topic_ids):
                # what a connection resolved before comes at once; making it up here takes no time of its own
                asked_s = time.process_time()
                result, is_done = {topic_id: topic_id.hex() for topic_id in topic_ids}, False
                turns_s[-1] += time.process_time() - asked_s
            case ListTopics():
                result, is_done = {}, False
            case GiveWay():
                turns_s.append(time.process_time())
                result, is_done = None, False
            case _:
                # as a session does for a request that gave way
                assert len(turns_s) == 1 or opened.exchange.is_still_allowed()
                written_from_s = time.process_time()
                match effect:
                    case Reply(content):
                        opened.client_frame(content)
                    case Ask(message, api_version, api_key):
                        opened.upstream_frame(message, api_version, api_key)
                    case Relay(message):
                        opened.upstream_frame(message)
    ended_s = time.process_time()
    turns_s.append(ended_s)
    longest_s = max(end - start for start, end in pairwise(turns_s))
    seconds = (ended_s - turns_s[0], longest_s, read_s - turns_s[0], ended_s - written_from_s)
    return Cost(*(each * 1000 for each in seconds))


def least(costs: list[Cost]) -> Cost:
    """Return the least of each, since the machine may be shared."""
    return Cost(*(min(values) for values in zip(*map(astuple, costs), strict=True)))


def costliest(api_key: int, authorizers: list[StandardAuthorizer]) -> tuple[Cost, Cost]:
    """Return the costs of the frame that is the costliest, and of the one with the longest turn."""
    lowest, highest = OFFERED[api_key]
    costs: list[Cost] = []
    for version in sorted({lowest, (lowest + highest) // 2, highest}):
        for frame in frames(api_key, version):
            # what made the frame is none of the node's, and no matter for its collector
            gc.collect()
            gc.freeze()
            for authorizer in authorizers:
                rounds: list[Cost] = []
                for _ in range(ROUNDS):
                    guard = Guard(
                        authorizer.session(ALICE, "10.0.0.1"), lambda _: CONTEXT, Addresses(), OFFERED
                    )
                    rounds.append(cost(guard, frame))
                costs.append(least(rounds))
    nothing = Cost(0, 0, 0, 0)
    return (
        max(costs, key=lambda each: each.whole_ms, default=nothing),
        max(costs, key=lambda each: each.longest_turn_ms, default=nothing),
    )


def main() -> None:
    nobody = StandardAuthorizer.of([])
    everybody = StandardAuthorizer.of(
        AclBinding(
            ResourcePattern(resource_type, CLUSTER_NAME if resource_type is ResourceType.CLUSTER else "*"),
            AccessControlEntry(str(ALICE), "*", AclOperation.ALL, AclPermissionType.ALLOW),
        )
        for resource_type in SUPPORTED_OPERATIONS
    )
    asked = sys.argv[1:]
    for api_key in sorted(OFFERED):
        if asked and api_name(api_key) not in asked:
            continue
        whole, longest = costliest(api_key, [nobody, everybody])
        name, size = f"frame-{api_name(api_key)}", items_max(api_key)
        progress(
            f"{name}: {whole.whole_ms:.1f} ms, {longest.longest_turn_ms:.1f} ms in one turn "
            f"(reading takes {longest.reading_ms:.1f}, writing {longest.writing_ms:.1f}), {size} items"
        )
        figure: dict[str, object] = {"name": name, "unit": "ms", "ours": rounded(longest.longest_turn_ms)}
        figure |= {"whole": rounded(whole.whole_ms), "reading": rounded(longest.reading_ms)}
        figure |= {"writing": rounded(longest.writing_ms), "size": size}
        figure |= {"floor": FLOOR_MS, "holds": longest.longest_turn_ms <= FLOOR_MS}
        print(json.dumps(figure | ({"quick": True} if QUICK else {})), flush=True)


if __name__ == "__main__":
    main()
