"""A Kafka Streams program that counts words exactly once through kustos, with the rights that it needs.

It is in a group of consumers, or in a streams group (KIP-1071).
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kustos.wire import read_request_header, request_codec
from testkit.guarded.cluster import PREFIXED, GuardedCluster, Op, Type, acl
from testkit.jars import KAFKA_STREAMS
from testkit.kafka.compiled import java_program
from testkit.kafka.tools import write_properties
from testkit.kustos import KustosSettings
from testkit.processes import Server
from testkit.tap import Exchange
from testkit.waiting import wait_until

USERS = {name: f"{name}-secret" for name in ("admin", "alice", "bob", "carol")}
PROGRAM = "words-of-alice"
CAROLS = "words-of-carol"
ACLS = (
    acl("alice", Op.READ, Type.TOPIC, "lines"),
    acl("alice", Op.WRITE, Type.TOPIC, "counts"),
    acl("alice", Op.READ, Type.GROUP, PROGRAM, PREFIXED),
    acl("alice", Op.WRITE, Type.TRANSACTIONAL_ID, PROGRAM, PREFIXED),
    # the topics that the program makes for itself
    *[
        acl("alice", operation, Type.TOPIC, f"{PROGRAM}-", PREFIXED)
        for operation in (Op.CREATE, Op.READ, Op.WRITE, Op.DESCRIBE_CONFIGS)
    ],
    # bob may do all of it but write in a transaction
    acl("bob", Op.ALL, Type.TOPIC, "*"),
    acl("bob", Op.READ, Type.GROUP, "*"),
    # carol may do all of it but make topics
    acl("carol", Op.READ, Type.TOPIC, "lines"),
    acl("carol", Op.WRITE, Type.TOPIC, "counts"),
    acl("carol", Op.READ, Type.GROUP, "*"),
    acl("carol", Op.ALL, Type.TRANSACTIONAL_ID, "*"),
    *[
        acl("carol", operation, Type.TOPIC, f"{CAROLS}-", PREFIXED)
        for operation in (Op.READ, Op.WRITE, Op.DESCRIBE_CONFIGS)
    ],
)
WAIT_S = 90.0
INIT_PRODUCER_ID, TXN_OFFSET_COMMIT, END_TXN, STREAMS_HEARTBEAT = 22, 28, 26, 88
CLASSIC_ONLY = ("session.timeout.ms", "heartbeat.interval.ms")
"""Settings that the broker has for a streams group."""
LINES = ("to be or not to be", "that is the question", "to be", "not to be")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    """One broker with the topics that the program reads and writes."""
    settings = KustosSettings(users=USERS, acls=ACLS)
    directory = tmp_path_factory.mktemp("streams")
    with GuardedCluster(directory, settings, topics=("lines", "counts")) as made:
        # a program's clients add what they are to its own name
        made.judge_of_all.user_of = lambda client_id: client_id.partition("-")[0]
        yield made


def started(scene: GuardedCluster, directory: Path, user: str, name: str = "program", **more: str) -> Server:
    """Start the program as a user; its state is in the directory. `_` in `more` stands for a dot."""
    settings = {
        **scene.java(user),
        "bootstrap.servers": scene.bootstrap,
        "application.id": PROGRAM,
        "processing.guarantee": "exactly_once_v2",
        "state.dir": str(directory / "state"),
        "auto.offset.reset": "earliest",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "enable.metrics.push": "false",
    } | {setting.replace("_", "."): value for setting, value in more.items()}
    if settings.get("group.protocol") == "streams":
        settings = {setting: value for setting, value in settings.items() if setting not in CLASSIC_ONLY}
    file = directory / f"{name}.properties"
    write_properties(file, settings)
    source = Path(__file__).with_name("WordCount.java")
    line = java_program(source, str(file), "lines", "counts", heap="256m", more_jars=[KAFKA_STREAMS])
    return Server(name, line, directory / f"{name}.log")


def write_lines(scene: GuardedCluster) -> None:
    """Write the lines, past kustos."""
    producer = Producer({"bootstrap.servers": scene.direct})
    for line in LINES:
        producer.produce("lines", line.encode())
    assert producer.flush(WAIT_S) == 0


def lines_written(scene: GuardedCluster) -> int:
    """Return how often the lines were written."""
    consumer = Consumer({"bootstrap.servers": scene.direct, "group.id": "lines"})
    with closing(consumer):
        _, end = consumer.get_watermark_offsets(TopicPartition("lines", 0), WAIT_S)
    return int(end) // len(LINES)


def topics(scene: GuardedCluster) -> set[str]:
    """Return the topics that there are."""
    return set(AdminClient({"bootstrap.servers": scene.direct}).list_topics(timeout=WAIT_S).topics)


class Counts:
    """What the program wrote and committed, as alice's administrator reads it."""

    def __init__(self, scene: GuardedCluster) -> None:
        settings = scene.librdkafka("admin", group_id="counts", isolation_level="read_committed")
        self.consumer = Consumer(settings)
        self.consumer.assign([TopicPartition("counts", 0, 0)])
        self.said: list[tuple[str, int]] = []

    def close(self) -> None:
        self.consumer.close()

    def await_word(self, word: str, count: int, program: Server) -> None:
        """Return once the program said that a word was so frequent."""

        def is_said() -> bool:
            message = self.consumer.poll(0)
            if message is not None and message.error() is None:
                self.said.append(((message.key() or b"").decode(), int(message.value() or b"0")))
            return (word, count) in self.said

        wait_until(is_said, timeout_s=WAIT_S, what=f"`{word}` was counted {count} times\n{program.tail()}")


def test_words_are_counted_exactly_once_also_by_a_program_that_was_killed(
    world: GuardedCluster, tmp_path: Path
) -> None:
    expected = Counter(" ".join(LINES).split())
    program = started(world, tmp_path, "alice")
    try:
        with closing(Counts(world)) as counts:
            write_lines(world)
            for word in expected:
                counts.await_word(word, expected[word], program)
            program.kill()
            write_lines(world)
            program = started(world, tmp_path, "alice", "again")
            for word in expected:
                counts.await_word(word, 2 * expected[word], program)
            # each count was said once: nothing was counted twice, or committed twice
            assert max(Counter(counts.said).values()) == 1
    finally:
        program.terminate(timeout_s=WAIT_S)
    assert {INIT_PRODUCER_ID, TXN_OFFSET_COMMIT, END_TXN} <= {
        each.api_key for each in world.upstream.exchanges
    }
    world.assert_proper()
    world.begin_anew()


def test_a_program_that_may_not_write_in_a_transaction_is_told_so(
    world: GuardedCluster, tmp_path: Path
) -> None:
    program = started(world, tmp_path, "bob")
    try:
        wait_until(
            lambda: "TransactionalIdAuthorizationException" in program.output.read_text(),
            timeout_s=WAIT_S,
            what="the program is told why it ends",
        )
    finally:
        program.kill()
    assert not [each for each in world.upstream.exchanges if each.api_key == INIT_PRODUCER_ID]
    world.assert_proper()
    world.begin_anew()


def test_words_are_counted_by_a_streams_group(world: GuardedCluster, tmp_path: Path) -> None:
    group = {"group_protocol": "streams", "application_id": f"{PROGRAM}-in-a-streams-group"}
    before = lines_written(world)
    write_lines(world)
    program = started(world, tmp_path, "alice", **group)
    try:
        with closing(Counts(world)) as counts:
            for word, count in Counter(" ".join(LINES).split()).items():
                counts.await_word(word, count * (before + 1), program)
    finally:
        program.terminate(timeout_s=WAIT_S)
    beats = [each for each in world.upstream.exchanges if each.api_key == STREAMS_HEARTBEAT]
    assert len(beats) > 1
    made = {f"{PROGRAM}-in-a-streams-group-{kind}" for kind in ("counts-changelog", "words-repartition")}
    assert made <= topics(world)
    world.assert_proper()
    world.begin_anew()


def topology_of(exchange: Exchange) -> object:
    codec = request_codec(exchange.api_key, exchange.api_version)
    header = read_request_header(exchange.request, codec.flexible)
    return codec.decode(exchange.request, header.body_offset).message.topology


def test_a_streams_group_makes_no_topics_for_who_may_not(world: GuardedCluster, tmp_path: Path) -> None:
    program = started(world, tmp_path, "carol", application_id=CAROLS, group_protocol="streams")
    try:
        wait_until(
            lambda: "Unauthorized to CREATE on topics" in program.output.read_text(),
            timeout_s=WAIT_S,
            what=f"the program is told what is missing\n{program.tail()}",
        )
    finally:
        program.kill()
    # a program that has read the refusal before it is killed leaves the group, which makes no topics
    beats = [each for each in world.upstream.exchanges if each.api_key == STREAMS_HEARTBEAT]
    assert not [each for each in beats if topology_of(each) is not None]
    assert not [name for name in topics(world) if name.startswith(CAROLS)]
    world.assert_proper()
    world.begin_anew()
