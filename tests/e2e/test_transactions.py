"""No client begins a transaction through kustos: each is told so, and `read_committed` consumers go on."""

from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import TransactionalIdAuthorizationFailed
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from testkit.guarded.cluster import GuardedCluster
from testkit.kafka import KafkaTools
from testkit.kafka.tools import write_properties

TRANSACTION = "alice-payments"
"""An id that its user may WRITE."""

WAIT_S = 60.0


def assert_that_committed_records_are_read(scene: GuardedCluster, value: str) -> None:
    """Write a record as an idempotent producer and read it back with `read_committed`."""
    errors: list[KafkaError | None] = []
    producer = Producer(scene.librdkafka("alice", enable_idempotence=True))
    producer.produce(
        "orders-eu", value.encode(), partition=0, on_delivery=lambda error, _: errors.append(error)
    )
    assert producer.flush(WAIT_S) == 0
    assert errors == [None]
    consumer = Consumer(
        scene.librdkafka("alice", group_id="alice-committed", isolation_level="read_committed")
        | {"auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe(["orders-eu"])
        # records before it are those of other tests
        for message in iter(lambda: consumer.poll(WAIT_S), None):
            assert message.error() is None
            if message.value() == value.encode():
                break
        else:
            pytest.fail("the record is held back by a transaction that does not end")
    finally:
        consumer.close()


def test_a_java_producer_is_told_at_once(scene: GuardedCluster, kafka_tools: KafkaTools) -> None:
    outcome = kafka_tools.run(
        "ProducerPerformance",
        *("--bootstrap-server", scene.bootstrap, "--topic", "orders-eu"),
        *("--num-records", "10", "--record-size", "10", "--throughput", "-1"),
        *("--transactional-id", TRANSACTION, "--transaction-duration-ms", "100"),
        client_properties=scene.java("alice"),
    )
    assert outcome.exit_code != 0
    assert "TransactionalIdAuthorizationException" in outcome.stderr + outcome.stdout
    assert_that_committed_records_are_read(scene, "after Java")


def test_librdkafka_is_told_at_once_and_for_good(scene: GuardedCluster) -> None:
    producer = Producer(scene.librdkafka("alice", transactional_id=TRANSACTION))
    with pytest.raises(KafkaException) as failure:
        producer.init_transactions(WAIT_S)
    error = failure.value.args[0]
    assert error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert error.fatal()
    assert_that_committed_records_are_read(scene, "after librdkafka")


async def test_aiokafka_is_told_at_once(scene: GuardedCluster) -> None:
    producer = AIOKafkaProducer(**scene.python("alice"), transactional_id=TRANSACTION)
    with pytest.raises(TransactionalIdAuthorizationFailed):
        await producer.start()
    await producer.stop()


def test_clients_are_not_told_of_the_feature(
    scene: GuardedCluster, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    write_properties(tmp_path / "alice.properties", scene.java("alice"))
    arguments = ("--command-config", str(tmp_path / "alice.properties"), "describe")
    through = kafka_tools.run("FeatureCommand", "--bootstrap-server", scene.bootstrap, *arguments).require()
    past = kafka_tools.run("FeatureCommand", "--bootstrap-server", scene.direct, "describe").require()
    assert names_of(past) - names_of(through) == {"transaction.version"}
    assert names_of(through) < names_of(past)


def names_of(listing: str) -> set[str]:
    """Return the features of a listing: the second word of each line."""
    return {line.split()[1] for line in listing.splitlines()}
