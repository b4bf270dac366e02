"""Fetch sessions (KIP-227) over a real broker: whose they are, and what a change of ACLs does to them."""

import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kio.schema.create_acls.v3.request import AclCreation
from kio.schema.delete_acls.v3.request import DeleteAclsFilter
from kio.schema.fetch.v12.request import FetchPartition as NamedPartition
from kio.schema.fetch.v12.request import FetchTopic as NamedTopic
from kio.schema.metadata.v12.request import MetadataRequestTopic
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64

from kustos.acl import AclBinding
from testkit.guarded.cluster import GuardedCluster, Op, Type, acl
from testkit.guarded.common_settings import ACLS
from testkit.guarded.raw_client import Connect, RawClient, body_of, request_bytes
from testkit.tap import Exchange
from testkit.tap.frames import code
from testkit.waiting import wait_until

METADATA, FETCH, CREATE_ACLS, DELETE_ACLS = 3, 1, 30, 31
FIND_COORDINATOR, HEARTBEAT, DESCRIBE_CLUSTER = 10, 12, 60
FETCH_VERSION = 12
"""The last version that names topics: the frames are easier to read, the rules are the same."""

TOPIC_AUTHORIZATION_FAILED, FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH = 29, 70, 71
READ, ALLOW, TOPIC, LITERAL = 3, 3, 2, 3
WAIT_S = 60.0


@pytest.fixture
def connect(world: GuardedCluster) -> Iterator[Connect]:
    with ExitStack() as stack:

        def login(user: str) -> RawClient:
            client = stack.enter_context(RawClient(world.bootstrap, user))
            return client.log_in(user, world.settings.users[user])

        yield login


@pytest.fixture
def changing(world: GuardedCluster) -> Iterator[GuardedCluster]:
    """The common world for a test that judges for itself, since it changes ACLs."""
    yield world
    world.begin_anew()


def partition(topic: str, offset: int = 0) -> NamedTopic:
    return NamedTopic(
        topic=TopicName(topic),
        partitions=(
            NamedPartition(
                partition=i32(0),
                current_leader_epoch=i32(-1),
                fetch_offset=i64(offset),
                last_fetched_epoch=i32(-1),
                log_start_offset=i64(-1),
                partition_max_bytes=i32(1 << 20),
            ),
        ),
    )


def fetch_fields(session_id: int, epoch: int, topics: list[str], offset: int) -> dict[str, Any]:
    return {
        "cluster_id": None,
        "replica_id": i32(-1),
        "max_wait": i32Timedelta.parse(timedelta(milliseconds=1)),
        "min_bytes": i32(0),
        "max_bytes": i32(1 << 20),
        "isolation_level": i8(0),
        "session_id": i32(session_id),
        "session_epoch": i32(epoch),
        "topics": tuple(partition(topic, offset) for topic in topics),
        "forgotten_topics_data": (),
        "rack_id": "",
    }


def fetch(client: RawClient, session_id: int, epoch: int, *topics: str, offset: int = 0) -> Any:
    fields = fetch_fields(session_id, epoch, list(topics), offset)
    return client.ask(FETCH, FETCH_VERSION, **fields)


def outcomes(answer: Any) -> dict[str, int]:
    return {str(topic.topic): code(each) for topic in answer.responses for each in topic.partitions}


def grant(admin: RawClient, user: str, topic: str) -> None:
    creation = AclCreation(
        resource_type=i8(TOPIC),
        resource_name=topic,
        resource_pattern_type=i8(LITERAL),
        principal=f"User:{user}",
        host="*",
        operation=i8(READ),
        permission_type=i8(ALLOW),
    )
    answer = admin.ask(CREATE_ACLS, 3, creations=(creation,))
    assert [code(result) for result in answer.results] == [0]


def revoke(admin: RawClient, user: str, topic: str) -> None:
    chosen = DeleteAclsFilter(
        resource_type_filter=i8(TOPIC),
        resource_name_filter=topic,
        pattern_type_filter=i8(LITERAL),
        principal_filter=f"User:{user}",
        host_filter=None,
        operation=i8(READ),
        permission_type=i8(ALLOW),
    )
    answer = admin.ask(DELETE_ACLS, 3, filters=(chosen,))
    assert len(answer.filter_results[0].matching_acls) == 1


def test_a_session_of_another_connection_is_not_found_and_never_forwarded(
    scene: GuardedCluster, connect: Connect
) -> None:
    alice = connect("alice")
    opened = fetch(alice, 0, 0, "orders-eu")
    assert opened.session_id > 0
    for other in (connect("bob"), connect("dave"), connect("alice")):
        for epoch in (1, 2, 7):
            assert code(fetch(other, opened.session_id, epoch)) == FETCH_SESSION_ID_NOT_FOUND
        asked = [each for each in scene.upstream.exchanges if each.api_key == FETCH]
        assert len(asked) == 1
    # closing or replacing it is not possible either: only the full fetch itself goes on, without the id
    assert code(fetch(connect("bob"), opened.session_id, 0, "orders-eu")) == 0
    assert code(fetch(alice, opened.session_id, 1)) == 0


def test_an_epoch_out_of_turn_ends_nothing_but_the_request(scene: GuardedCluster, connect: Connect) -> None:
    alice = connect("alice")
    opened = fetch(alice, 0, 0, "orders-eu")
    assert code(fetch(alice, opened.session_id, 5)) == INVALID_FETCH_SESSION_EPOCH
    assert code(fetch(alice, opened.session_id, 1)) == 0
    assert code(fetch(alice, opened.session_id, 1)) == INVALID_FETCH_SESSION_EPOCH
    assert code(fetch(alice, opened.session_id, 2)) == 0


def test_what_is_denied_stays_denied_in_every_fetch_of_the_session(
    scene: GuardedCluster, connect: Connect
) -> None:
    alice = connect("alice")
    opened = fetch(alice, 0, 0, "orders-eu", "orders-secret")
    assert outcomes(opened) == {"orders-eu": 0, "orders-secret": TOPIC_AUTHORIZATION_FAILED}
    for epoch in (1, 2):
        again = outcomes(fetch(alice, opened.session_id, epoch))
        assert again.get("orders-secret") == TOPIC_AUTHORIZATION_FAILED


def test_a_change_is_in_force_at_the_next_fetch_of_an_open_session(
    changing: GuardedCluster, connect: Connect
) -> None:
    world = changing
    admin, dave = connect("admin"), connect("dave")
    opened = fetch(dave, 0, 0, "invoices", "public-news")
    assert outcomes(opened)["invoices"] == TOPIC_AUTHORIZATION_FAILED
    epoch = 1
    for _ in range(5):
        grant(admin, "dave", "invoices")
        seen = outcomes(fetch(dave, opened.session_id, epoch))
        assert seen.get("invoices", 0) == 0
        revoke(admin, "dave", "invoices")
        seen = outcomes(fetch(dave, opened.session_id, epoch + 1))
        assert seen["invoices"] == TOPIC_AUTHORIZATION_FAILED
        epoch += 2
    # what upstream holds of the session ends without the partition, so nothing of it can come back
    last = [each for each in world.upstream.exchanges if each.api_key == FETCH][-1]
    assert b"invoices" in last.request
    assert world.judge(ACLS).violations
    with_grant = (*ACLS, *granted("dave", "invoices"))
    world.assert_proper(ACLS, with_grant)


def granted(user: str, topic: str) -> tuple[AclBinding]:
    return (acl(user, Op.READ, Type.TOPIC, topic),)


def test_a_running_consumer_loses_and_regains_its_topic(changing: GuardedCluster, connect: Connect) -> None:
    """Records are written all the while; none asked for after the answer to DeleteAcls comes through."""
    world = changing
    admin = connect("admin")
    grant(admin, "bob", "invoices")
    stopped = threading.Event()
    producer = Producer({"bootstrap.servers": world.direct, "linger.ms": 0})
    consumer = Consumer(
        world.librdkafka(
            "bob",
            group_id="bob-runs",
            auto_offset_reset="earliest",
            topic_metadata_refresh_interval_ms=300_000,
        )
    )

    def write() -> None:
        number = 0
        while not stopped.is_set():
            producer.produce("invoices", str(number).encode())
            producer.flush(WAIT_S)
            number += 1

    def sees(error: str | None) -> bool:
        # many at once: what was written meanwhile may be thousands of records
        found = [message.error() for message in consumer.consume(1_000, 0.1)]
        return error in [None if failure is None else failure.name() for failure in found]

    writer = threading.Thread(target=write)
    writer.start()
    try:
        consumer.subscribe(["invoices"])
        wait_until(lambda: sees(None), what="records come")
        revoke(admin, "bob", "invoices")
        deleted_s = admin_answered_s(world)
        wait_until(lambda: sees("TOPIC_AUTHORIZATION_FAILED"), what="access is lost")
        # the fetch that told so may have been under way; one that was asked later must come, too
        wait_until(
            lambda: any(deleted_s < each.asked_s for each in answered_fetches(world)),
            what="a fetch asked after the change is answered",
        )
        grant(admin, "bob", "invoices")
        granted_s = admin_answered_s(world)
        wait_until(lambda: sees(None), what="records come again")
    finally:
        stopped.set()
        writer.join()
        consumer.close()
        revoke(admin, "bob", "invoices")
    after = [
        each
        for each in answered_fetches(world)
        if deleted_s < each.asked_s and (each.answered_s or 0) < granted_s
    ]
    assert after
    for each in after:
        assert each.answer is not None
        assert struct.pack(">h", TOPIC_AUTHORIZATION_FAILED) in each.answer
    world.assert_proper(ACLS, (*ACLS, *granted("bob", "invoices")))


def answered_fetches(world: GuardedCluster) -> list[Exchange]:
    return [each for each in world.clients.exchanges if each.api_key == FETCH and each.answer]


def admin_answered_s(world: GuardedCluster) -> float:
    """Return when the last change of ACLs was answered."""
    changes = [each for each in world.clients.exchanges if each.api_key in {CREATE_ACLS, DELETE_ACLS}]
    assert changes[-1].answered_s is not None
    return changes[-1].answered_s


def metadata_body(*topics: str) -> bytes:
    asked = tuple(MetadataRequestTopic(topic_id=None, name=TopicName(topic)) for topic in topics)
    return body_of(
        METADATA,
        12,
        topics=asked,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )


SAFE_REQUESTS = {
    "Metadata": (METADATA, 12, metadata_body("orders-eu")),
    "DescribeCluster": (
        DESCRIBE_CLUSTER,
        0,
        body_of(DESCRIBE_CLUSTER, 0, include_cluster_authorized_operations=False),
    ),
    "FindCoordinator": (
        FIND_COORDINATOR,
        4,
        body_of(FIND_COORDINATOR, 4, key_type=i8(0), coordinator_keys=("alice-group",)),
    ),
    "Heartbeat": (
        HEARTBEAT,
        4,
        body_of(
            HEARTBEAT,
            4,
            group_id=GroupId("alice-group"),
            generation_id=i32(1),
            member_id="nobody",
            group_instance_id=None,
        ),
    ),
}


@pytest.mark.parametrize("name", SAFE_REQUESTS)
def test_trailing_bytes_and_unknown_tags_never_go_upstream(
    scene: GuardedCluster, connect: Connect, name: str
) -> None:
    api_key, version, body = SAFE_REQUESTS[name]
    alice = connect("alice")
    tagged = b"\x01\x50\x03abc"
    frames = (
        request_bytes(api_key, version, 1, "alice", body),
        request_bytes(api_key, version, 2, "alice", body + b"orders-secret"),
        request_bytes(api_key, version, 3, "alice", body, header_tags=tagged),
        request_bytes(api_key, version, 4, "alice", body[:-1] + tagged),
    )
    answers = [alice.ask_frame(frame, api_key, version) for frame in frames]
    assert answers == [answers[0]] * len(frames)
    asked = [each.request for each in scene.upstream.exchanges if each.client_id == "alice"]
    assert [frame[8:] for frame in asked] == [frames[0][8:]] * len(frames)
    # the lower tap's record is of what a client may not send; there is nothing more to judge in it
    scene.clients.connections.clear()


def test_an_overlong_number_closes_the_connection(scene: GuardedCluster, connect: Connect) -> None:
    body = metadata_body("orders-eu")
    assert body[0] == 2
    frames = [
        # an array of one element, written in two bytes and in six
        request_bytes(METADATA, 12, 1, "alice", b"\x82\x00" + body[1:]),
        request_bytes(METADATA, 12, 1, "alice", b"\x82\x80\x80\x80\x80\x00" + body[1:]),
        # a length that goes past the end
        request_bytes(METADATA, 12, 1, "alice", b"\xff\xff\xff\xff\x07" + body[1:]),
        request_bytes(METADATA, 12, 1, "alice", body[:-3]),
    ]
    for frame in frames:
        alice = connect("alice")
        alice.send(frame)
        assert alice.is_closed()
    assert not [each for each in scene.upstream.exchanges if each.client_id == "alice"]
    scene.clients.connections.clear()
