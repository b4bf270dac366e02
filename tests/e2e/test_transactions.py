"""Exactly-once producers of each client library through kustos, and Kafka's tool for transactions."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import TransactionalIdAuthorizationFailed
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from kustos.wire import ApiKey, request_codec
from kustos.wire.record_batch import Record, RecordBatch
from testkit.equality.stories import message_of
from testkit.guarded.cluster import GuardedCluster, Op, Type, acl
from testkit.guarded.common_settings import ACLS
from testkit.guarded.raw_client import RawClient, request_bytes
from testkit.kafka import KafkaTools
from testkit.kafka.tools import ToolResult, write_properties
from testkit.waiting import wait_until

TRANSACTION, STRANGE = "alice-payments", "bob-payments"
"""An id that alice may WRITE, and one that she may not."""

WAIT_S = 60.0
TRANSACTION_TIMEOUT_MS = 600_000
"""Of a transaction that stays open; the broker allows 900 s (`transaction.max.timeout.ms`)."""

END_TXN, ADD_PARTITIONS_TO_TXN, WRITE_TXN_MARKERS = 26, 24, 27
HANGING_PRODUCER, TRANSACTIONAL = 987_654, 0x10
PRODUCE_WITHOUT_COORDINATOR = 11
"""The last version of Produce in which brokers do not add partitions to a transaction (KIP-890)."""

GRANTED = acl("alice", Op.WRITE, Type.TOPIC, "public-news")
"""She may read this topic from the beginning."""


@pytest.fixture
def scene(world: GuardedCluster) -> Iterator[GuardedCluster]:
    """The common world, judged by the ACLs before and after a test's change."""
    yield world
    try:
        world.assert_proper(ACLS, (*ACLS, GRANTED))
    finally:
        world.begin_anew()


def produced(producer: Producer, topic: str, *values: str) -> list[str | None]:
    """Return the name of each record's error, None for those that were taken."""
    errors: list[str | None] = []
    for value in values:
        producer.produce(
            topic,
            value.encode(),
            partition=0,
            on_delivery=lambda error, _: errors.append(None if error is None else error.name()),
        )
    assert producer.flush(WAIT_S) == 0
    return errors


def read(consumer: Consumer, count: int) -> list[str]:
    """Return the values of the next records."""
    values: list[str] = []
    while len(values) < count:
        message = consumer.poll(WAIT_S)
        assert message is not None, f"only {values}"
        assert message.error() is None
        values.append((message.value() or b"").decode())
    return values


def end_of(scene: GuardedCluster, topic: str) -> int:
    """Return the offset after the last record of a topic, past kustos."""
    with closing(Consumer({"bootstrap.servers": scene.direct, "group.id": "ends"})) as consumer:
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S)
        return int(high)


def reader(scene: GuardedCluster, topic: str, offset: int) -> Consumer:
    """Return a consumer of alice's that is shown committed records only, from this offset on."""
    consumer = Consumer(
        scene.librdkafka("alice", group_id="alice-committed", isolation_level="read_committed")
    )
    consumer.assign([TopicPartition(topic, 0, offset)])
    return consumer


def transactional(scene: GuardedCluster, name: str = TRANSACTION, **properties: Any) -> Producer:
    """Return a producer of alice's in a transaction of this id."""
    producer = Producer(scene.librdkafka("alice", transactional_id=name, **properties))
    producer.init_transactions(WAIT_S)
    return producer


@pytest.mark.behaviour("B143")
def test_a_java_producer_commits_one_transaction_after_the_other(
    scene: GuardedCluster, kafka_tools: KafkaTools
) -> None:
    start = end_of(scene, "orders-eu")
    outcome = kafka_tools.run(
        "ProducerPerformance",
        *("--bootstrap-server", scene.bootstrap, "--topic", "orders-eu"),
        *("--num-records", "1000", "--record-size", "20", "--throughput", "2000"),
        *("--transactional-id", TRANSACTION, "--transaction-duration-ms", "100"),
        client_properties=scene.java("alice"),
    )
    assert "1000 records sent" in outcome.require()
    ends = [each for each in scene.upstream.exchanges if each.api_key == END_TXN]
    assert len(ends) > 1
    assert {each.api_version for each in ends} == {5}, "its broker adds partitions by itself (KIP-890)"
    assert ADD_PARTITIONS_TO_TXN not in {each.api_key for each in scene.upstream.exchanges}
    with closing(reader(scene, "orders-eu", start)) as consumer:
        assert len(read(consumer, 1000)) == 1000


@pytest.mark.behaviour("B143")
def test_a_java_producer_without_the_right_is_told_so(scene: GuardedCluster, kafka_tools: KafkaTools) -> None:
    outcome = kafka_tools.run(
        "ProducerPerformance",
        *("--bootstrap-server", scene.bootstrap, "--topic", "orders-eu"),
        *("--num-records", "10", "--record-size", "10", "--throughput", "-1"),
        *("--transactional-id", STRANGE, "--transaction-duration-ms", "100"),
        client_properties=scene.java("alice"),
    )
    assert outcome.exit_code != 0
    assert "TransactionalIdAuthorizationException" in outcome.stderr + outcome.stdout


def test_librdkafka_consumes_transforms_and_produces(scene: GuardedCluster) -> None:
    source, target = end_of(scene, "orders-us"), end_of(scene, "orders-eu")
    feeder = Producer(scene.librdkafka("alice"))
    assert produced(feeder, "orders-us", *(f"order {number}" for number in range(4))) == [None] * 4
    producer = transactional(scene)
    settings = scene.librdkafka("alice", group_id="alice-transform", isolation_level="read_committed")
    with closing(Consumer(settings | {"enable.auto.commit": False})) as consumer:
        consumer.assign([TopicPartition("orders-us", 0, source)])
        for committed in (False, True):
            consumer.seek(TopicPartition("orders-us", 0, source))
            producer.begin_transaction()
            taken = read(consumer, 4)
            word = "kept" if committed else "dropped"
            assert produced(producer, "orders-eu", *(f"{value} {word}" for value in taken)) == [None] * 4
            producer.send_offsets_to_transaction(
                consumer.position([TopicPartition("orders-us", 0)]),
                consumer.consumer_group_metadata(),
                WAIT_S,
            )
            if committed:
                producer.commit_transaction(WAIT_S)
            else:
                producer.abort_transaction(WAIT_S)
        [reached] = consumer.committed([TopicPartition("orders-us", 0)], timeout=WAIT_S)
        assert reached.offset == source + 4
    with closing(reader(scene, "orders-eu", target)) as consumer:
        assert read(consumer, 4) == [f"order {number} kept" for number in range(4)]


@pytest.mark.behaviour("B144")
def test_offsets_of_a_group_that_may_not_be_read_are_refused(scene: GuardedCluster) -> None:
    producer = transactional(scene)
    with closing(Consumer(scene.librdkafka("alice", group_id="carol-group"))) as consumer:
        producer.begin_transaction()
        with pytest.raises(KafkaException) as failure:
            producer.send_offsets_to_transaction(
                [TopicPartition("orders-us", 0, 1)], consumer.consumer_group_metadata(), WAIT_S
            )
    error = failure.value.args[0]
    assert error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    assert error.txn_requires_abort()
    producer.abort_transaction(WAIT_S)


def test_librdkafka_is_told_at_once_and_for_good(scene: GuardedCluster) -> None:
    producer = Producer(scene.librdkafka("alice", transactional_id=STRANGE))
    with pytest.raises(KafkaException) as failure:
        producer.init_transactions(WAIT_S)
    error = failure.value.args[0]
    assert error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert error.fatal()


@pytest.mark.behaviour("B145", "B149")
def test_after_a_refusal_a_transaction_is_aborted_and_the_producer_goes_on(scene: GuardedCluster) -> None:
    start = end_of(scene, "public-news")
    producer = transactional(scene)
    producer.begin_transaction()
    assert produced(producer, "orders-eu", "in vain") == [None]
    assert produced(producer, "public-news", "refused") != [None]
    with pytest.raises(KafkaException) as failure:
        producer.commit_transaction(WAIT_S)
    error = failure.value.args[0]
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert error.txn_requires_abort()
    producer.abort_transaction(WAIT_S)
    assert end_of(scene, "public-news") == start
    admin = AdminClient(scene.librdkafka("admin"))
    granted = AclBinding(
        ResourceType.TOPIC,
        "public-news",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    for future in admin.create_acls([granted]).values():
        future.result(WAIT_S)
    producer.begin_transaction()
    assert produced(producer, "public-news", "allowed") == [None]
    producer.commit_transaction(WAIT_S)
    # the record, and the end of the transaction
    wait_until(lambda: end_of(scene, "public-news") == start + 2, what="the transaction is committed")


async def test_aiokafka_writes_in_a_transaction(scene: GuardedCluster) -> None:
    start = end_of(scene, "orders-eu")
    producer = AIOKafkaProducer(**scene.python("alice"), transactional_id=TRANSACTION)
    await producer.start()
    try:
        async with producer.transaction():
            await producer.send_and_wait("orders-eu", b"of aiokafka", partition=0)
    finally:
        await producer.stop()
    asked = {each.api_key for each in scene.upstream.exchanges}
    assert ADD_PARTITIONS_TO_TXN in asked, "it adds partitions itself"
    with closing(reader(scene, "orders-eu", start)) as consumer:
        assert read(consumer, 1) == ["of aiokafka"]


async def test_aiokafka_without_the_right_is_told_so(scene: GuardedCluster) -> None:
    producer = AIOKafkaProducer(**scene.python("alice"), transactional_id=STRANGE)
    with pytest.raises(TransactionalIdAuthorizationFailed):
        await producer.start()
    await producer.stop()


class Transactions:
    """Kafka's tool for transactions, run against kustos."""

    def __init__(self, scene: GuardedCluster, tools: KafkaTools, directory: Path) -> None:
        self.scene = scene
        self.tools = tools
        self.directory = directory

    def __call__(self, user: str, *arguments: str) -> ToolResult:
        settings = self.directory / f"{user}.properties"
        write_properties(settings, self.scene.java(user))
        common = ("--bootstrap-server", self.scene.bootstrap, "--command-config", str(settings))
        return self.tools.run("TransactionsCommand", *common, *arguments)

    def rows(self, user: str, *arguments: str) -> list[list[str]]:
        """Return the words of each line below the heading."""
        return [line.split() for line in self(user, *arguments).require().splitlines()[1:]]


@pytest.mark.behaviour("B150")
def test_an_open_transaction_is_shown_to_who_may_see_it(
    scene: GuardedCluster, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    tool = Transactions(scene, kafka_tools, tmp_path)
    # by default its coordinator aborts it after a minute, and seven runs of a tool may take longer
    producer = transactional(scene, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
    producer.begin_transaction()
    assert produced(producer, "orders-eu", "open") == [None]
    try:
        listed = tool.rows("alice", "list")
        assert [row[0] for row in listed if "Ongoing" in row] == [TRANSACTION]
        assert tool.rows("bob", "list") == []
        [described] = tool.rows("alice", "describe", "--transactional-id", TRANSACTION)
        assert described[-1] == "orders-eu-0"
        refused = tool("bob", "describe", "--transactional-id", TRANSACTION)
        assert "failed due to authorization failure" in refused.stderr + refused.stdout
        partition = ("--topic", "orders-eu", "--partition", "0")
        writing = tool.rows("alice", "describe-producers", *partition)
        [start] = {row[-1] for row in writing} - {"None"}
        refused = tool("dave", "describe-producers", *partition)
        assert "TopicAuthorizationException" in refused.stderr + refused.stdout
        refused = tool("alice", "abort", *partition, "--start-offset", start)
        assert "cluster authorization error" in refused.stderr + refused.stdout
        assert WRITE_TXN_MARKERS in {each.api_key for each in scene.clients.exchanges}
        assert WRITE_TXN_MARKERS not in {each.api_key for each in scene.upstream.exchanges}
    finally:
        producer.abort_transaction(WAIT_S)


def verify_transactions(scene: GuardedCluster, value: str | None) -> None:
    """Let the broker verify at their coordinator that transactions are open, or take any (KIP-890)."""
    kind = AlterConfigOpType.SET if value is not None else AlterConfigOpType.DELETE
    entry = ConfigEntry("transaction.partition.verification.enable", value, incremental_operation=kind)
    broker = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": scene.direct})
    admin.incremental_alter_configs([broker])[broker].result(WAIT_S)


def hanging(scene: GuardedCluster, topic: str) -> int:
    """Begin a transaction that no coordinator knows, past kustos; return the offset of its record."""
    batch = RecordBatch(
        base_offset=0,
        partition_leader_epoch=-1,
        records=(Record(0, b"hanging"),),
        attributes=TRANSACTIONAL,
        last_offset_delta=0,
        base_timestamp_ms=1_700_000_000_000,
        max_timestamp_ms=1_700_000_000_000,
        producer_id=HANGING_PRODUCER,
        producer_epoch=0,
        base_sequence=0,
    )
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch.encode()}]}]
    fields = {"transactional_id": "forgotten", "acks": -1, "timeout": 5000, "topic_data": data}
    codec = request_codec(ApiKey.PRODUCE, PRODUCE_WITHOUT_COORDINATOR)
    body = codec.encode(message_of(codec.root, fields, lambda value: value))
    with RawClient(scene.direct, "past kustos") as client:
        version = PRODUCE_WITHOUT_COORDINATOR
        frame = request_bytes(ApiKey.PRODUCE, version, 1, client.client_id, body)

        def begun() -> tuple[int, int]:
            answer = client.ask_frame(frame, ApiKey.PRODUCE, version)
            partition = answer.responses[0].partition_responses[0]
            return int(partition.error_code), int(partition.base_offset)

        what = "the broker takes a transaction that no coordinator knows"
        return wait_until(begun, what=what, holds=lambda answered: answered[0] == 0)[1]


def test_a_hanging_transaction_is_aborted_by_who_may_alter_the_cluster(
    scene: GuardedCluster, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    tool = Transactions(scene, kafka_tools, tmp_path)
    verify_transactions(scene, "false")
    try:
        start = hanging(scene, "orders-eu")
    finally:
        verify_transactions(scene, None)
    after = Producer(scene.librdkafka("alice"))
    assert produced(after, "orders-eu", "behind it") == [None]
    partition = ("--topic", "orders-eu", "--partition", "0")
    refused = tool("alice", "abort", *partition, "--start-offset", str(start))
    assert "cluster authorization error" in refused.stderr + refused.stdout
    tool("admin", "abort", *partition, "--start-offset", str(start)).require()
    [ended] = [each for each in scene.upstream.exchanges if each.api_key == WRITE_TXN_MARKERS]
    assert ended.client_id == "admin"
    # a reader of committed records gets past it, and never sees its record
    with closing(reader(scene, "orders-eu", start)) as consumer:
        assert read(consumer, 1) == ["behind it"]

    def written() -> set[tuple[str, str, str]]:
        return {
            (each["principal_name"], each["operation"], each["decision"])
            for each in scene.kustos.audit_events()
            if each["api_name"] == "WriteTxnMarkers"
        }

    expected = {("admin", "ALTER", "ALLOWED"), ("alice", "CLUSTER_ACTION", "DENIED")}
    wait_until(lambda: expected <= written(), what="both decisions are in the audit log")


def test_clients_are_told_of_every_feature(
    scene: GuardedCluster, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    write_properties(tmp_path / "alice.properties", scene.java("alice"))
    arguments = ("--command-config", str(tmp_path / "alice.properties"), "describe")
    through = kafka_tools.run("FeatureCommand", "--bootstrap-server", scene.bootstrap, *arguments).require()
    past = kafka_tools.run("FeatureCommand", "--bootstrap-server", scene.direct, "describe").require()
    assert names_of(past) == names_of(through)
    assert "transaction.version" in names_of(through)


def names_of(listing: str) -> set[str]:
    """Return the features of a listing: the second word of each line."""
    return {line.split()[1] for line in listing.splitlines()}
