"""Neither a single frame nor a series of small ones exceeds the guard's limits of memory and work."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from kustos.acl import AclOperation, ResourceType
from kustos.protocol import ADMIN_TABLE, TABLE, RefusedFrameError
from kustos.protocol.fetch_sessions import (
    PARTITIONS_PER_CONNECTION,
    SESSIONS_PER_CONNECTION,
    FetchSession,
    FetchSessions,
)
from kustos.protocol.limits import (
    BATCHES,
    FEW,
    FRAME_WITHOUT_RECORDS_BYTES_MAX,
    ITEMS_MAX,
    TOKEN_FRAME_BYTES_MAX,
    items_max,
)
from kustos.wire import ZERO_UUID, MalformedMessageError, Message, WireError, request_codec
from kustos.wire.primitives import uvarint
from testkit.protocol.driver import EVERY_VERSION
from testkit.protocol.random_requests import ALL_ALLOWED, allow, batch, frame_of
from tests.unit.protocol.protocol_requests import ask, connection, forwarded

PARTITION = request_codec(1, 12).struct("FetchPartition")


def lists_of(made: type[Message], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each field, at all depths, that may be a list."""
    for name in made.FIELDS:
        yield (*path, name)
        if name in made.ELEMENTS:
            yield from lists_of(made.ELEMENTS[name], (*path, name))


def with_list(made: type[Message], path: tuple[str, ...], element: object, count: int) -> Message:
    name, *below = path
    inner = made.ELEMENTS.get(name)
    if below:
        assert inner is not None
        return made(**{name: [with_list(inner, tuple(below), element, count)]})
    return made(**{name: [element if inner is None else inner()] * count})


def filled(api_key: int, version: int, count: int) -> Iterator[Message]:
    """Yield a request for each list at any depth, with the given number of elements in that list."""
    codec = request_codec(api_key, version)
    for path in lists_of(codec.root):
        for element in ("", 0, ZERO_UUID):
            one = with_list(codec.root, path, element, 1)
            try:
                is_list = codec.decode(codec.encode(one)).message == one
            except WireError:
                continue
            if is_list:
                yield with_list(codec.root, path, element, count)
                break


@pytest.mark.parametrize(("api_key", "version"), EVERY_VERSION)
def test_the_items_of_a_request_are_limited(api_key: int, version: int) -> None:
    """The limit applies to any list; unknown fields count too."""
    guard, limit = connection().guard, items_max(api_key)
    codec = request_codec(api_key, version)
    frames = [frame_of(api_key, version, message) for message in filled(api_key, version, limit + 1)]
    if codec.flexible:
        tags = b"".join(uvarint(tag) + b"\0" for tag in range(100, 100 + limit + 1))
        frames.append(frame_of(api_key, version, codec.root())[:-1] + uvarint(limit + 1) + tags)
    for frame in frames:
        with pytest.raises(RefusedFrameError, match=f"has more than {limit} elements"):
            guard.open(frame)


@pytest.mark.parametrize(("api_key", "version"), EVERY_VERSION)
def test_a_request_at_the_item_limit_is_read(api_key: int, version: int) -> None:
    depth = 5
    limit = items_max(api_key)
    codec = request_codec(api_key, version)
    for message in filled(api_key, version, limit - depth):
        codec.read(codec.encode(message), element_limit=limit)


def test_an_api_without_its_own_limit_has_the_default_item_limit() -> None:
    assert {items_max(key) for key in TABLE.keys() | ADMIN_TABLE.keys() if key not in ITEMS_MAX} == {FEW}


def test_items_are_counted_at_all_depths() -> None:
    codec = request_codec(9, 8)
    group = codec.root.ELEMENTS["groups"]
    topic = group.ELEMENTS["topics"]
    topics = [topic(name="a", partition_indexes=[1, 2, 3]), topic(name="b", partition_indexes=[])]
    data = codec.encode(codec.root(groups=[group(topics=topics), group(topics=None)]))
    codec.read(data, element_limit=2 + 2 + 3)
    with pytest.raises(MalformedMessageError):
        codec.read(data, element_limit=2 + 2 + 3 - 1)


def test_only_produce_may_be_large() -> None:
    guard = connection().guard
    token = request_codec(38, 3).root
    renewer = token.ELEMENTS["renewers"](principal_name="r" * (TOKEN_FRAME_BYTES_MAX // 4))
    for renewers, passes in (([renewer] * 3, True), ([renewer] * 4, False)):
        with nullcontext() if passes else pytest.raises(RefusedFrameError, match="too large"):
            guard.open(frame_of(38, 3, token(renewers=renewers)))
    request = request_codec(14, 5).root(group_id="g", member_id="m" * 10)
    request.assignments = [
        request_codec(14, 5).root.ELEMENTS["assignments"](assignment=bytes(FRAME_WITHOUT_RECORDS_BYTES_MAX))
    ]
    with pytest.raises(RefusedFrameError):
        guard.open(frame_of(14, 5, request))
    root = request_codec(0, 9).root
    topic = root.ELEMENTS["topic_data"]
    records = batch(length=49 + FRAME_WITHOUT_RECORDS_BYTES_MAX) + bytes(FRAME_WITHOUT_RECORDS_BYTES_MAX)
    data = [topic(name="a", partition_data=[topic.ELEMENTS["partition_data"](records=records)])]
    guard.open(frame_of(0, 9, root(topic_data=data)))


@pytest.mark.parametrize(("count", "code"), [(BATCHES, 0), (BATCHES + 1, 87)])
def test_the_number_of_examined_record_batches_is_limited(count: int, code: int) -> None:
    """A payload is large, and the least batch is 61 bytes."""
    partition = {"index": 0, "records": batch() * count}
    topics = [{"name": "alpha-topic", "partition_data": [partition]}]
    outcome, answer = ask(connection(*ALL_ALLOWED), 0, 9, acks=1, timeout=1000, topic_data=topics)
    assert answer["responses"][0]["partition_responses"][0]["error_code"] == code
    assert len(outcome.forwarded) == (code == 0)


def session(session_id: int, count: int) -> FetchSession:
    item = PARTITION(partition=0)
    partitions: dict[tuple[str | bytes, int], Message] = {("t", index): item for index in range(count)}
    return FetchSession(session_id, False, 1, partitions)


def test_the_fetch_sessions_of_a_connection_are_limited() -> None:
    sessions = FetchSessions()
    for number in range(SESSIONS_PER_CONNECTION + 3):
        sessions.open(session(number + 1, 1))
    assert list(sessions.by_id) == list(range(4, SESSIONS_PER_CONNECTION + 4))


def test_a_growing_session_is_evicted_last() -> None:
    sessions = FetchSessions()
    small, large = session(1, 1), session(2, PARTITIONS_PER_CONNECTION)
    sessions.open(small)
    sessions.open(large)
    assert list(sessions.by_id) == [2]
    large.partitions["t", -1] = PARTITION(partition=-1)
    sessions.evict_oldest()
    assert not sessions.by_id, "a session over the limit by itself is not kept"


def test_a_session_over_the_limit_is_not_found_and_starts_again() -> None:
    driver = connection(*ALL_ALLOWED)
    topics = [{"topic": "alpha-topic", "partitions": [{"partition": 0}]}]
    fields = {"replica_id": -1, "topics": topics}
    _, answer = ask(driver, 1, 12, **fields, session_id=0, session_epoch=0)
    kept = driver.guard.fetch_sessions.find(answer["session_id"])
    assert kept is not None
    kept.partitions |= session(0, PARTITIONS_PER_CONNECTION).partitions
    ask(driver, 1, 12, **fields, session_id=answer["session_id"], session_epoch=1)
    outcome, after = ask(driver, 1, 12, **fields, session_id=answer["session_id"], session_epoch=2)
    assert (after["error_code"], outcome.forwarded) == (70, [])


def test_a_session_may_change_its_version() -> None:
    driver = connection(*ALL_ALLOWED)
    topics = [{"topic": name, "partitions": [{"partition": 0}]} for name in ("alpha-topic", "hidden-gamma")]
    _, answer = ask(driver, 1, 7, replica_id=-1, topics=topics, session_id=0, session_epoch=0)
    number = answer["session_id"]
    driver.replace_acls([allow(ResourceType.TOPIC, "alpha-topic", AclOperation.READ)])
    ask(driver, 1, 7, replica_id=-1, topics=[], session_id=number, session_epoch=1)
    driver.replace_acls(ALL_ALLOWED)
    # the partition that comes back was given in version 7, which lacks fields of version 11
    outcome, answer = ask(driver, 1, 11, replica_id=-1, topics=[], session_id=number, session_epoch=2)
    assert [topic["topic"] for topic in forwarded(outcome)["topics"]] == ["hidden-gamma"]
    assert {topic["topic"] for topic in answer["responses"]} == {"alpha-topic", "hidden-gamma"}
