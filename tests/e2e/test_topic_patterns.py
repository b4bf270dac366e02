"""A Java consumer that subscribes by regular expression (KIP-848) gets the topics that its user may see."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from kustos.wire import request_codec
from kustos.wire.api_keys import ApiKey
from testkit.equality.requests import ask
from testkit.equality.sides import Side
from testkit.equality.stories import message_of
from testkit.guarded.cluster import PREFIXED, GuardedCluster, Op, Type, acl
from testkit.kafka import make_topics
from testkit.kafka.compiled import java_program
from testkit.kafka.tools import write_properties
from testkit.kustos import KustosSettings
from testkit.processes import Server
from testkit.waiting import wait_until

USERS = {name: f"{name}-secret" for name in ("admin", "alice", "bob")}
ALL_BUT_ONE = (
    acl("alice", Op.READ, Type.GROUP, "alice"),
    acl("alice", Op.READ, Type.TOPIC, "eu-", PREFIXED),
    acl("bob", Op.READ, Type.TOPIC, "eu-", PREFIXED),
)
LATER = acl("alice", Op.READ, Type.TOPIC, "us-orders")
WAIT_S = 90.0
HEARTBEAT, REGEX_SINCE = 68, 1


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    """One broker, three topics, and users who may read one of them."""
    settings = KustosSettings(users=USERS, acls=ALL_BUT_ONE)
    topics = ("eu-orders", "us-orders", "eu-news")
    with GuardedCluster(tmp_path_factory.mktemp("patterns"), settings, topics=topics) as made:
        write(made, *topics)
        yield made


def write(world: GuardedCluster, *topics: str) -> None:
    """Write a record to each topic, past kustos."""
    producer = Producer({"bootstrap.servers": world.direct})
    for topic in topics:
        producer.produce(topic, f"of {topic}".encode())
    assert producer.flush(WAIT_S) == 0


@contextmanager
def consumer(world: GuardedCluster, directory: Path, user: str, expression: str) -> Iterator[Server]:
    """Start a consumer in the user's group; end it properly."""
    file = directory / f"{user}.properties"
    settings = {"group.id": "alice", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    own = {
        "bootstrap.servers": world.bootstrap,
        "enable.metrics.push": "false",
        "metadata.max.age.ms": "1000",
    }
    write_properties(file, {**world.java(user), **settings, **own})
    source = Path(__file__).with_name("PatternConsumer.java")
    server = Server(user, java_program(source, str(file), expression, heap="128m"), directory / f"{user}.log")
    try:
        yield server
    finally:
        server.terminate(timeout_s=WAIT_S)


def await_line(server: Server, line: str) -> None:
    """Return once a program has said a line."""
    wait_until(
        lambda: line in server.output.read_text().splitlines(),
        timeout_s=WAIT_S,
        what=f"`{line}` was said\n{server.tail()}",
    )


GRANT = {
    "resource_type": Type.TOPIC,
    "resource_name": LATER.pattern.name,
    "resource_pattern_type": LATER.pattern.pattern_type,
    "principal": LATER.entry.principal,
    "host": LATER.entry.host,
    "operation": LATER.entry.operation,
    "permission_type": LATER.entry.permission_type,
}
REVOCATION = {
    "resource_type_filter": Type.TOPIC,
    "resource_name_filter": LATER.pattern.name,
    "pattern_type_filter": LATER.pattern.pattern_type,
    "principal_filter": None,
    "host_filter": None,
    "operation": LATER.entry.operation,
    "permission_type": LATER.entry.permission_type,
}


def administer(world: GuardedCluster, api: ApiKey, **fields: Any) -> None:
    """Change ACLs as the administrator, past the tap."""
    with Side("kustos", world.kustos.bootstrap, dict(world.settings.users)) as side:
        answer = ask(side, "admin", api, 3, **fields)
    results = answer.results if api == ApiKey.CREATE_ACLS else answer.filter_results
    assert [each.error_code for each in results] == [0]


@pytest.mark.behaviour("B157", "B158")
def test_a_consumer_follows_the_topics_that_its_user_may_see(world: GuardedCluster, tmp_path: Path) -> None:
    with consumer(world, tmp_path, "alice", ".*-orders|.*-more|__.*") as alice:
        await_line(alice, "assigned [eu-orders]")
        await_line(alice, "read eu-orders of eu-orders")
        administer(world, ApiKey.CREATE_ACLS, creations=[GRANT])
        await_line(alice, "assigned [eu-orders, us-orders]")
        await_line(alice, "read us-orders of us-orders")
        # kustos knows nothing of its members any more, and a client that connects again says nothing
        world.kustos.stop()
        world.kustos.start()
        make_topics(world.cluster.nodes, NewTopic("eu-more", 1, 1))
        await_line(alice, "assigned [eu-more, eu-orders, us-orders]")
        write(world, "eu-more")
        await_line(alice, "read eu-more of eu-more")
        said = alice.output.read_text()
        administer(world, ApiKey.DELETE_ACLS, filters=[REVOCATION])
        await_line(alice, "revoked us-orders")
    assert "eu-news" not in said
    assert "__" not in said
    assert "failed" not in said
    beats = [each for each in world.clients.exchanges if each.api_key == HEARTBEAT]
    assert {each.api_version for each in beats} == {REGEX_SINCE}
    world.assert_proper(ALL_BUT_ONE, (*ALL_BUT_ONE, LATER))
    world.begin_anew()


class Member:
    """A member of the group `alice` with a connection for each heartbeat."""

    def __init__(self, world: GuardedCluster, name: str) -> None:
        self.world = world
        self.epoch = 0
        self.owned: list[dict[str, Any]] = []
        self.fields = {"group_id": "alice", "member_id": name.ljust(22, "A"), "rebalance_timeout": 60_000}

    def beat(self, **said: Any) -> set[bytes]:
        """Send a heartbeat; return the ids of the topics that the member owns then."""
        silent = {"subscribed_topic_names": None, "subscribed_topic_regex": None}
        fields = {**self.fields, "member_epoch": self.epoch, "topic_partitions": self.owned, **silent, **said}
        codec = request_codec(HEARTBEAT, REGEX_SINCE)
        with Side("kustos", self.world.bootstrap, dict(self.world.settings.users)) as side:
            side.send("alice", HEARTBEAT, codec, message_of(codec.root, fields, lambda value: value), "alice")
            answer = side.answer("alice", HEARTBEAT, REGEX_SINCE)
        assert answer is not None
        assert answer.error_code == 0
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = [each.to_dict() for each in answer.assignment.topic_partitions]
        return {each["topic_id"] for each in self.owned}


def test_a_member_with_a_connection_for_each_heartbeat_goes_on(world: GuardedCluster) -> None:
    first, second = Member(world, "first"), Member(world, "second")
    first.beat(subscribed_topic_names=["eu-orders"])
    wait_until(first.beat, what="the first member owns the topic")
    second.beat(subscribed_topic_names=["eu-orders"])
    joined = second.epoch
    wait_until(lambda: first.beat() and first.epoch >= joined, what="it follows its group")
    for member in (first, second):
        member.epoch = -1
        member.beat()
    world.assert_proper(ALL_BUT_ONE)
    world.begin_anew()


def test_so_does_the_expression_of_such_a_member(world: GuardedCluster) -> None:
    member = Member(world, "third")
    member.beat(subscribed_topic_regex="(eu|us)-orders")
    wait_until(member.beat, what="it owns a topic", holds=lambda topics: len(topics) == 1)
    administer(world, ApiKey.CREATE_ACLS, creations=[GRANT])
    wait_until(member.beat, what="it owns what was granted", holds=lambda topics: len(topics) == 2)
    administer(world, ApiKey.DELETE_ACLS, filters=[REVOCATION])
    wait_until(member.beat, what="it loses what was revoked", holds=lambda topics: len(topics) == 1)
    member.epoch = -1
    member.beat()
    world.assert_proper(ALL_BUT_ONE, (*ALL_BUT_ONE, LATER))
    world.begin_anew()


def test_without_the_group_nothing_is_matched(world: GuardedCluster, tmp_path: Path) -> None:
    with consumer(world, tmp_path, "bob", ".*") as bob:
        wait_until(lambda: "failed" in bob.output.read_text(), timeout_s=WAIT_S, what="bob is told")
    assert "GroupAuthorizationException" in bob.output.read_text()
    world.assert_proper()
    world.begin_anew()


def test_what_is_no_expression_is_told_to_the_client(world: GuardedCluster, tmp_path: Path) -> None:
    with consumer(world, tmp_path, "alice", "[") as alice:
        wait_until(lambda: "failed" in alice.output.read_text(), timeout_s=WAIT_S, what="alice is told")
    assert "SubscribedTopicRegex `[` is not a valid regular expression" in alice.output.read_text()
    world.assert_proper()
    world.begin_anew()
