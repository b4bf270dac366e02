"""MirrorMaker 2 copies a topic and the offsets of a group through kustos, with the rights of two users."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from testkit.connect import jvm, prefixed
from testkit.guarded.cluster import GuardedCluster
from testkit.guarded.documented import grant
from testkit.guarded.evidence import denied, unused
from testkit.kustos import KustosSettings
from testkit.processes import Server
from testkit.waiting import wait_until

USERS = {name: f"{name}-secret" for name in ("admin", "reader", "writer")}
TOPIC, GROUP, COPY = "orders", "billing", "west.orders"
PARTITIONS = 3
RECORDS = 300
PAGE, SECTION = Path("docs/how-to/connect.md"), "MirrorMaker 2"
WAIT_S = 180.0


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    """One cluster, which is both: two users show who needs what where."""
    settings = KustosSettings(users=USERS)
    directory = tmp_path_factory.mktemp("mirror")
    with GuardedCluster(directory, settings, topics=(TOPIC,), partitions=PARTITIONS) as made:
        yield made


def properties(scene: GuardedCluster) -> dict[str, str]:
    """Return the settings of MirrorMaker from `west` to `east`."""
    clients: dict[str, str] = {}
    for alias, user in (("west", "reader"), ("east", "writer")):
        login = {key: value for key, value in scene.java(user).items() if key != "client.id"}
        own = {"bootstrap.servers": scene.bootstrap, "enable.metrics.push": "false", **login}
        clients |= prefixed(f"{alias}.", own)
    return {
        "clusters": "west,east",
        **clients,
        "west->east.enabled": "true",
        "west->east.topics": TOPIC,
        "west->east.groups": GROUP,
        "east->west.enabled": "false",
        "east->west.emit.heartbeats.enabled": "false",
        # nothing is written at the cluster that is copied
        "offset-syncs.topic.location": "target",
        "sync.topic.acls.enabled": "false",
        "sync.topic.configs.enabled": "true",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "refresh.topics.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "sync.topic.configs.interval.seconds": "1",
        # MirrorMaker takes settings of its workers from the cluster that they write to
        "east.offset.flush.interval.ms": "500",
        "east.plugin.discovery": "service_load",
        "offset.lag.max": "0",
        "replication.factor": "1",
        **dict.fromkeys(
            (
                "checkpoints.topic.replication.factor",
                "heartbeats.topic.replication.factor",
                "offset-syncs.topic.replication.factor",
                "config.storage.replication.factor",
                "offset.storage.replication.factor",
                "status.storage.replication.factor",
            ),
            "1",
        ),
        "offset.storage.partitions": "2",
        "status.storage.partitions": "1",
        "tasks.max": "2",
    }


def write(scene: GuardedCluster, numbers: range) -> None:
    """Write records past kustos."""
    producer = Producer({"bootstrap.servers": scene.direct})
    for number in numbers:
        producer.produce(
            TOPIC, f"order-{number}".encode(), key=str(number).encode(), partition=number % PARTITIONS
        )
    assert producer.flush(WAIT_S) == 0


def records_of(scene: GuardedCluster, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return partition, key and value of all records, as an administrator reads them through kustos."""
    found = []
    with closing(Consumer(scene.librdkafka("admin", group_id="compare"))) as consumer:
        for number in range(PARTITIONS):
            partition = TopicPartition(topic, number, 0)
            _, end = consumer.get_watermark_offsets(partition, timeout=WAIT_S)
            consumer.assign([partition])
            left = end
            while left:
                message = consumer.poll(1.0)
                if message is not None and message.error() is None:
                    found.append((number, message.key(), message.value()))
                    left -= 1
    return found


def ends(scene: GuardedCluster, topic: str) -> dict[int, int]:
    """Return where each partition of a topic ends."""
    consumer = Consumer(scene.librdkafka("admin", group_id="compare"))
    asked = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found = {each.partition: consumer.get_watermark_offsets(each, timeout=WAIT_S)[1] for each in asked}
    consumer.close()
    return found


def committed(scene: GuardedCluster, topic: str) -> dict[int, int]:
    """Return the offsets of the group in a topic."""
    consumer = Consumer(scene.librdkafka("admin", group_id=GROUP))
    asked = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found = {each.partition: each.offset for each in consumer.committed(asked, timeout=WAIT_S)}
    consumer.close()
    return found


def read_all(scene: GuardedCluster, mirror: Server) -> None:
    """Let the group have read the whole topic, and wait until it has read the whole copy.

    MirrorMaker translates only offsets of records that it copied since it started, and never beyond.
    """
    consumer = Consumer(scene.librdkafka("admin", group_id=GROUP))
    offsets = [TopicPartition(TOPIC, number, end) for number, end in ends(scene, TOPIC).items()]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    wait_until(
        lambda: committed(scene, COPY),
        holds=lambda found: found == ends(scene, COPY),
        timeout_s=WAIT_S,
        what=f"the group has its offsets in the copy\n{mirror.tail()}",
    )


def started(scene: GuardedCluster, directory: Path, name: str) -> Server:
    return jvm(name, "org.apache.kafka.connect.mirror.MirrorMaker", directory, properties(scene))


def await_copy(
    scene: GuardedCluster, count: int, mirror: Server
) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return the copy once it has so many different records."""

    def look() -> list[tuple[int, bytes | None, bytes | None]]:
        assert mirror.running, mirror.tail()
        topics = AdminClient(scene.librdkafka("admin")).list_topics(timeout=WAIT_S).topics
        return records_of(scene, COPY) if COPY in topics else []

    return wait_until(
        look,
        holds=lambda found: len(set(found)) >= count,
        # a broker lists a partition a moment before it has it
        not_yet=KafkaException,
        timeout_s=WAIT_S,
        what=f"{count} records are copied",
    )


def test_a_topic_and_a_groups_offsets_are_copied_also_by_a_mirror_that_was_killed(
    world: GuardedCluster, tmp_path: Path
) -> None:
    granted = grant(world, PAGE, SECTION, tmp_path)
    write(world, range(RECORDS))
    mirror = started(world, tmp_path, "mirror")
    try:
        copy = await_copy(world, RECORDS, mirror)
        # one that was not disturbed copies each record once, into its own partition
        assert Counter(copy) == Counter(records_of(world, TOPIC))
        read_all(world, mirror)
        write(world, range(RECORDS, 2 * RECORDS))
        mirror.kill()
        write(world, range(2 * RECORDS, 3 * RECORDS))
        mirror = started(world, tmp_path, "again")
        copy = await_copy(world, 3 * RECORDS, mirror)
        # it promises each record once or more, and no other one
        assert set(copy) == set(records_of(world, TOPIC))
        read_all(world, mirror)
    finally:
        mirror.kill()
    assert [denied(world.kustos, user) for user in ("reader", "writer")] == [[], []]
    assert unused(world.kustos, granted) == []
    assert world.leaks() == []
