"""A group with members of two libraries reads everything, though one is killed and a broker starts again."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from testkit.guarded.cluster import GuardedCluster
from testkit.guarded.common_settings import USERS, settings
from testkit.kafka import NodeSettings
from testkit.other_clients import Member, Orders, franz_go_member, librdkafka_member
from testkit.waiting import wait_until

pytestmark = pytest.mark.slow

TOPIC, PARTITIONS = "orders-eu", 4
AT_ONCE = 8
WAIT_S = 60.0
REPLICATED = {"offsets.topic.replication.factor": "2"}

Read = set[tuple[int, int, str]]
"""Partitions, offsets and values."""


class Writer:
    """Writes on and on as alice, and knows what was acknowledged."""

    def __init__(self, scene: GuardedCluster) -> None:
        self.acknowledged: Read = set()
        self.errors: list[str] = []
        self._producer = Producer(
            scene.librdkafka("alice", enable_idempotence=True, acks="all", message_timeout_ms=120_000)
        )
        self._number = 0

    def write(self) -> None:
        """Send records to each partition."""
        for _ in range(AT_ONCE):
            self._number += 1
            value = f"record-{self._number}"
            self._producer.produce(
                TOPIC, value.encode(), partition=self._number % PARTITIONS, on_delivery=self._delivered
            )
        self._producer.poll(0)

    def finish(self) -> None:
        """Return when all are acknowledged."""
        assert self._producer.flush(WAIT_S) == 0
        assert self.errors == []

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error.name())
            return
        value = (message.value() or b"").decode()
        self.acknowledged.add((int(message.partition() or 0), int(message.offset() or 0), value))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    with GuardedCluster(
        tmp_path_factory.mktemp("pair"),
        settings(**{"kustos.upstream.metadata.max.age.ms": "500"}),
        nodes=2,
        topics=(TOPIC,),
        partitions=PARTITIONS,
        kafka=NodeSettings(properties=REPLICATED),
    ) as scene:
        yield scene


def logs(scene: GuardedCluster) -> Read:
    """Return what a super user reads past kustos, to the end."""
    found: Read = set()
    left = set(range(PARTITIONS))
    properties = {"bootstrap.servers": scene.direct, "group.id": "past", "enable.partition.eof": True}
    with closing(Consumer(properties)) as consumer:
        consumer.assign([TopicPartition(TOPIC, number, OFFSET_BEGINNING) for number in left])
        while left:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"not read to the end: {left}"
            partition = int(message.partition() or 0)
            if message.error() is not None:
                left.discard(partition)
            else:
                found.add((partition, int(message.offset() or 0), (message.value() or b"").decode()))
    return found


def committed(scene: GuardedCluster, group: str) -> dict[int, int]:
    """Return up to where a group has read each partition."""
    with closing(Consumer({"bootstrap.servers": scene.direct, "group.id": group})) as consumer:
        asked = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        return {each.partition: each.offset for each in consumer.committed(asked, WAIT_S)}


@pytest.mark.parametrize(
    ("mortal", "survivor"),
    [(franz_go_member, librdkafka_member), (librdkafka_member, franz_go_member)],
    ids=["franz-go is killed", "librdkafka is killed"],
)
def test_a_group_reads_all_though_a_member_is_killed_and_a_broker_starts_again(
    pair: GuardedCluster,
    tmp_path: Path,
    mortal: Callable[[], tuple[str, ...]],
    survivor: Callable[[], tuple[str, ...]],
) -> None:
    orders = Orders(
        bootstrap=pair.bootstrap, users=USERS, writer="alice", topic=TOPIC, group=f"alice-{mortal.__name__}"
    )
    writer = Writer(pair)
    killed = Member(mortal(), orders, tmp_path / "killed")
    stays = Member(survivor(), orders, tmp_path / "stays")

    def both_read() -> bool:
        # all the time, so that whoever reads is amid it
        writer.write()
        return bool(killed.read) and bool(stays.read)

    wait_until(both_read, what="both members read")
    killed.server.kill()
    broker = pair.node(2)
    broker.kill()
    writer.write()
    broker.launch()
    broker.wait_ready(frozenset({1, 2}))
    writer.write()
    writer.finish()

    there = logs(pair)
    ends: dict[int, int] = defaultdict(int)
    for partition, offset, _ in there:
        ends[partition] = max(ends[partition], offset + 1)
    wait_until(
        lambda: committed(pair, orders.group),
        holds=lambda offsets: offsets == ends,
        what="the group has read to the end",
    )
    stays.server.kill()
    assert writer.acknowledged <= there
    assert killed.read | stays.read == there
    # the killed member was amid reading: the other one has read on
    begun = {partition for partition, _, _ in killed.read}
    assert {each for each in there if each[0] in begun} - killed.read
    pair.assert_proper()
