"""No single frame, and no long run of small ones, makes the guard hold or do more than a named limit."""

import pytest

from kustos.acl import AclOperation, ResourceType
from kustos.protocol import RefusedFrameError
from kustos.protocol.fetch_sessions import (
    PARTITIONS_PER_CONNECTION,
    SESSIONS_PER_CONNECTION,
    FetchSession,
    FetchSessions,
)
from kustos.protocol.guard import FRAME_WITHOUT_RECORDS_BYTES_MAX, ITEMS_PER_REQUEST_MAX
from kustos.wire import MalformedMessageError, Message, request_codec
from tests.property.protocol_requests import ALL_ALLOWED, allow, batch, frame_of
from tests.unit.protocol_requests import ask, connection, forwarded

PARTITION = request_codec(1, 12).struct("FetchPartition")


@pytest.mark.parametrize(
    ("count", "passes"), [(ITEMS_PER_REQUEST_MAX, True), (ITEMS_PER_REQUEST_MAX + 1, False)]
)
def test_a_request_has_only_so_many_items(count: int, passes: bool) -> None:
    frame = frame_of(15, 5, request_codec(15, 5).root(groups=[""] * count))
    guard = connection().guard
    if passes:
        guard.open(frame)
    else:
        with pytest.raises(RefusedFrameError):
            guard.open(frame)


def test_items_count_at_all_depths() -> None:
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


def session(session_id: int, count: int) -> FetchSession:
    item = PARTITION(partition=0)
    partitions: dict[tuple[str | bytes, int], Message] = {("t", index): item for index in range(count)}
    return FetchSession(session_id, False, 1, partitions)


def test_a_connection_has_only_so_many_fetch_sessions() -> None:
    sessions = FetchSessions()
    for number in range(SESSIONS_PER_CONNECTION + 3):
        sessions.open(session(number + 1, 1))
    assert list(sessions.by_id) == list(range(4, SESSIONS_PER_CONNECTION + 4))


def test_sessions_that_grow_make_room_at_last_of_themselves() -> None:
    sessions = FetchSessions()
    small, large = session(1, 1), session(2, PARTITIONS_PER_CONNECTION)
    sessions.open(small)
    sessions.open(large)
    assert list(sessions.by_id) == [2]
    large.partitions["t", -1] = PARTITION(partition=-1)
    sessions.make_room()
    assert not sessions.by_id, "what is too large alone is not kept either"


def test_a_session_that_outgrew_the_limit_is_not_found_and_begins_anew() -> None:
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
