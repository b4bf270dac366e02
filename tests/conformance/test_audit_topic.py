"""Audit events in a topic of a real Kafka, read back by somebody else's consumer."""

import asyncio
import hashlib
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer import AuthorizationResult, Decision, Rule, RuleKind
from kustos.client import ClientSettings, connect
from kustos.gateway.audit import batches as audit_batches
from kustos.gateway.audit.errors import AuditSinkError
from kustos.gateway.audit.events import RequestEvents
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.topic import KafkaTopicSink, partition_of
from testkit.audit_events import AuditEvent
from testkit.gateway.audit import EVENTS, context_of, decided, lines_of, until
from testkit.kafka import KafkaNode, KafkaTools, make_topics

USERS = [f"user-{number}" for number in range(20)]
TIMEOUT_MS = 60_000
"""For an answer on a crowded machine: nothing here waits for it to pass."""

Kept = tuple[int, bytes, AuditEvent]


def make_topic(node: KafkaNode, partitions: int, **config: str) -> str:
    name = f"audit-{uuid.uuid4()}"
    settings = {key.replace("_", "."): config[key] for key in config}
    make_topics([node], NewTopic(name, partitions, 1, config=settings))
    return name


def by_acl_on(name: str) -> Decision:
    """Return what an ACL on this name decides: the one text of an event that may be so long."""
    pattern = ResourcePattern(ResourceType.TOPIC, name, PatternType.PREFIXED)
    entry = AccessControlEntry("User:alice", "*", AclOperation.ALL, AclPermissionType.ALLOW)
    rule = Rule(RuleKind.MATCHING_ACL, AclBinding(pattern, entry))
    return Decision(AuthorizationResult.ALLOWED, rule)


class ToldTopicSink(KafkaTopicSink):
    """Tells when a write has ended."""

    answered: asyncio.Event

    async def write(self, lines: bytes) -> None:
        try:
            await super().write(lines)
        finally:
            self.answered.set()


def sink_of(bootstrap: str, topic: str) -> ToldTopicSink:
    settings = ClientSettings.from_properties(bootstrap, {"request.timeout.ms": str(TIMEOUT_MS)})
    sink = ToldTopicSink(
        topic, settings.bootstrap_servers, lambda address: connect(address, settings), TIMEOUT_MS
    )
    sink.answered = asyncio.Event()
    return sink


def requests_of(count: int) -> list[RequestEvents]:
    return [
        RequestEvents(at, 1_795_235_215_000 + at, context_of(USERS[at % 20]), (decided(f"topic-{at}"),), at)
        for at in range(count)
    ]


def kept(bootstrap: str, topic: str, partitions: int) -> list[Kept]:
    """Return (partition, key, value) of everything in the topic, each partition in its order."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    found: list[tuple[int, bytes, bytes, int]] = []
    try:
        ends = {}
        for number in range(partitions):
            ends[number] = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)[1]
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        while len(found) < sum(ends.values()):
            for message in consumer.consume(1000, timeout=0.5):
                assert message.error() is None
                key, value = message.key() or b"", message.value() or b""
                found.append((message.partition() or 0, key, value, message.timestamp()[1]))
    finally:
        consumer.close()
    events = [(number, key, AuditEvent.from_json(value.decode()), at) for number, key, value, at in found]
    assert all(event.time_ms == at for _, _, event, at in events)
    return [(number, key, event) for number, key, event, _ in events]


async def test_every_event_is_kept_once_and_in_order_under_its_principal(
    kafka: KafkaNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_batches, "BATCH_MAX_BYTES", 10_000)  # so that each partition gets many batches
    topic = await asyncio.to_thread(make_topic, kafka, 3)
    sink = sink_of(kafka.bootstrap, topic)
    await sink.write(lines_of(*requests_of(1000)))
    await sink.close()
    found = await asyncio.to_thread(kept, kafka.bootstrap, topic, 3)
    assert len(found) == 1000
    for user in USERS:
        key = f"User:{user}".encode()
        mine = [(number, event) for number, found_key, event in found if found_key == key]
        assert {number for number, _ in mine} == {partition_of(key, 3)}
        assert [event.acl_offset for _, event in mine] == list(range(USERS.index(user), 1000, 20))
        assert {event.principal_name for _, event in mine} == {user}


def test_a_key_has_the_partition_that_kafkas_own_producer_gives_it(
    kafka: KafkaNode, kafka_tools: KafkaTools
) -> None:
    topic = make_topic(kafka, 7)
    keys = ["k" * length for length in range(1, 40)] + [f"User:{user}" for user in USERS] + ["Zoë", "日本"]
    kafka_tools.run(
        "ConsoleProducer",
        *("--bootstrap-server", kafka.bootstrap, "--topic", topic),
        *("--property", "parse.key=true", "--property", "key.separator=|"),
        stdin="".join(f"{key}|x\n" for key in keys),
    ).require()
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "none"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(7)])
    theirs: dict[bytes, int] = {}
    while len(theirs) < len(keys):
        theirs |= {
            message.key() or b"": message.partition() or 0 for message in consumer.consume(100, timeout=0.5)
        }
    consumer.close()
    assert theirs == {key.encode(): partition_of(key.encode(), 7) for key in keys}


async def test_an_event_that_is_larger_than_any_batch_is_kept_with_its_long_texts_cut(
    kafka: KafkaNode,
) -> None:
    topic = await asyncio.to_thread(make_topic, kafka, 1)
    sink = sink_of(kafka.bootstrap, topic)
    names = ["before", "\u20ac" * 3_000_000, "after"]
    requests = (
        RequestEvents(at, at, context_of("alice"), (decided("topic", by_acl_on(each)),), 0)
        for at, each in enumerate(names)
    )
    await sink.write(lines_of(*requests))
    assert sink.shortened_events == 1
    await sink.close()
    found = await asyncio.to_thread(kept, kafka.bootstrap, topic, 1)
    first, cut, last = [event.rule.resource_name or "" for _, _, event in found]
    assert (first, last) == ("before", "after")
    digest = hashlib.sha256(names[1].encode()).hexdigest()
    assert cut == f"{'€' * 249}… (3000000 characters, sha256 {digest})"


async def test_a_topic_of_small_batches_takes_all_that_can_be_made_small(kafka: KafkaNode) -> None:
    topic = await asyncio.to_thread(make_topic, kafka, 2, max_message_bytes="6000")
    sink = sink_of(kafka.bootstrap, topic)
    decisions = (decided("topic", by_acl_on("n" * 7000)),)
    long = [RequestEvents(1000 + at, at, context_of(USERS[at]), decisions, 1000 + at) for at in range(4)]
    requests = [*requests_of(300), *long, *requests_of(0)]
    await sink.write(lines_of(*requests))
    assert sink.shortened_events == 4
    await sink.close()
    found = await asyncio.to_thread(kept, kafka.bootstrap, topic, 2)
    for user in USERS:
        offsets = [event.acl_offset for _, key, event in found if key == f"User:{user}".encode()]
        expected = [each.acl_offset for each in requests if each.context.principal.name == user]
        assert offsets == expected


async def test_a_topic_that_takes_no_event_at_all_fails_and_says_so(kafka: KafkaNode) -> None:
    topic = await asyncio.to_thread(make_topic, kafka, 1, max_message_bytes="100")
    sink = sink_of(kafka.bootstrap, topic)
    with pytest.raises(AuditSinkError, match=r"MESSAGE_TOO_LARGE.*max\.message\.bytes"):
        await sink.write(lines_of(*requests_of(3)))
    await sink.close()


async def test_a_topic_that_does_not_exist_is_refused_and_not_made(kafka: KafkaNode) -> None:
    sink = sink_of(kafka.bootstrap, "audit-missing")
    with pytest.raises(AuditSinkError, match="cannot produce to topic `audit-missing`"):
        await sink.open()
    listed = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=30)
    assert "audit-missing" not in listed.topics


async def test_nothing_is_lost_while_the_broker_is_away(tmp_path: Path) -> None:
    node = await asyncio.to_thread(KafkaNode(tmp_path).start)
    try:
        topic = await asyncio.to_thread(make_topic, node, 1)
        sink = sink_of(node.bootstrap, topic)
        log = AuditLog(EVENTS, [sink])
        log.record(context_of("alice"), [decided("before")], 0)
        await until(sink.answered, lambda: log.writers[0].written == 1)
        await asyncio.to_thread(node.kill)
        log.record(context_of("alice"), [decided("during")], 1)
        await until(sink.answered, lambda: log.is_full)
        await asyncio.to_thread(node.start)
        await until(sink.answered, lambda: not log.is_full)
        log.record(context_of("alice"), [decided("after")], 2)
        await log.close()
        found = await asyncio.to_thread(kept, node.bootstrap, topic, 1)
    finally:
        await asyncio.to_thread(node.kill)
    ordered = list(dict.fromkeys(event.resource_name for _, _, event in found))
    assert ordered == ["before", "during", "after"]
