"""A node that is told to stop while producers write, and one that takes over: nothing is lost or doubled."""

import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.cimpl import KafkaError

from kustos.wire.api_keys import ApiKey
from testkit.guarded.cluster import GuardedCluster
from testkit.guarded.common_settings import TOPICS, settings
from testkit.guarded.workers import worker_settings
from testkit.processes import frozen
from testkit.waiting import PATIENCE_S, wait_until

TOPIC = "orders-eu"
PRODUCERS = 4
RECORDS = 200
"""Of each producer, before the signal and after it."""
STOPS = 2


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two workers"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuardedCluster]:
    made = settings()
    if request.param > 1:
        made = replace(made, properties=worker_settings())
    # a broker that stands still for a while on a busy machine must not end the drain
    patient = {"kustos.shutdown.drain.timeout.ms": "120000"}
    made = replace(made, properties=dict(made.properties) | patient)
    with GuardedCluster(tmp_path_factory.mktemp("cluster"), made, topics=TOPICS) as scene:
        yield scene


class Writers:
    """Producers without idempotence: what is sent twice is written twice."""

    def __init__(self, world: GuardedCluster) -> None:
        properties = {
            "enable.idempotence": False,
            "acks": "all",
            "linger.ms": 0,
            "message.timeout.ms": 300_000,
        }
        self.producers = [Producer(world.librdkafka("alice") | properties) for _ in range(PRODUCERS)]
        self.acknowledged: Counter[bytes] = Counter()
        self.sent = 0

    def _told(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        self.acknowledged[message.value() or b""] += 1

    def send(self, count: int) -> None:
        for producer in self.producers:
            for _ in range(count):
                self.sent += 1
                producer.produce(TOPIC, str(self.sent).encode(), on_delivery=self._told)
                producer.poll(0)

    def flush(self) -> None:
        for producer in self.producers:
            assert producer.flush(PATIENCE_S * 5) == 0


def written(world: GuardedCluster) -> Counter[bytes]:
    """Return what is in the topic, read past kustos."""
    consumer = Consumer({"bootstrap.servers": world.direct, "group.id": "reader", "log_level": 0})
    partition = TopicPartition(TOPIC, 0, 0)
    try:
        _, end = consumer.get_watermark_offsets(partition, timeout=PATIENCE_S)
        consumer.assign([partition])
        values: Counter[bytes] = Counter()
        while values.total() < end:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            assert message.error() is None
            values[message.value() or b""] += 1
        return values
    finally:
        consumer.close()


def unanswered(world: GuardedCluster) -> int:
    """Return how many Produces upstream has not answered."""
    asked = [each for each in world.upstream.exchanges if each.api_key == ApiKey.PRODUCE]
    return sum(each.answer is None for each in asked)


def answers(exchanges: list[object]) -> int:
    return sum(each.api_key == ApiKey.PRODUCE and each.answer is not None for each in exchanges)  # type: ignore[attr-defined]


def test_what_the_broker_acknowledges_is_answered_and_written_once(world: GuardedCluster) -> None:
    writers = Writers(world)
    writers.send(RECORDS)
    writers.flush()
    for _ in range(STOPS):
        server = world.kustos.server
        assert server is not None
        with frozen(world.node(1).pid):
            writers.send(RECORDS)
            wait_until(lambda: unanswered(world) >= PRODUCERS, what="every producer waits for the broker")
            server._process.send_signal(signal.SIGTERM)
            wait_until(lambda: not world.kustos.is_ready(), what="the node stops")
            assert server.running
        assert server.wait(timeout_s=PATIENCE_S) == 0
        assert unanswered(world) == 0, "the node waited for each of them"
        # the tap reads the last answers while the node ends, or after it
        wait_until(
            lambda: answers(list(world.clients.exchanges)) == answers(list(world.upstream.exchanges)),
            what="each answer of the broker came to its client",
        )
        world.kustos.start()
        writers.send(RECORDS)
        writers.flush()
    found = written(world)
    assert writers.acknowledged.total() == writers.sent
    assert found == writers.acknowledged
