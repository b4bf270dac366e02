"""Two distributed workers of Kafka Connect behind kustos, with the rights that the docs name."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from testkit.connect import ConnectWorker, RestError, prefixed
from testkit.guarded.cluster import GuardedCluster, Op, Type, acl
from testkit.guarded.documented import grant
from testkit.guarded.evidence import denied, unused
from testkit.kustos import KustosSettings
from testkit.waiting import wait_until

USERS = {name: f"{name}-secret" for name in ("admin", "connect")}
GROUP = "workers"
PARTITIONS = 4
LINES = 400
PAGE, SECTION = Path("docs/how-to/connect.md"), "Distributed workers of Connect"
WAIT_S = 120.0


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    settings = KustosSettings(users=USERS)
    directory = tmp_path_factory.mktemp("connect")
    with GuardedCluster(directory, settings, topics=("copied",), partitions=PARTITIONS) as made:
        made.judge_of_all.user_of = lambda client_id: "admin" if client_id == "admin" else "connect"
        yield made


def properties(scene: GuardedCluster) -> dict[str, str]:
    """Return the settings of a worker; its clients all log in as `connect`."""
    login = {key: value for key, value in scene.java("connect").items() if key != "client.id"}
    quiet = {"enable.metrics.push": "false"}
    return {
        "bootstrap.servers": scene.bootstrap,
        "group.id": GROUP,
        **{f"{kind}.storage.topic": f"{GROUP}-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "offset.storage.partitions": "2",
        "status.storage.partitions": "1",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "exactly.once.source.support": "enabled",
        "scheduled.rebalance.max.delay.ms": "0",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "offset.flush.interval.ms": "500",
        "plugin.discovery": "service_load",
        **login,
        **quiet,
        **prefixed("producer.", {**login, **quiet}),
        **prefixed("consumer.", {**login, **quiet}),
        **prefixed("admin.", {**login, **quiet}),
    }


def copied(scene: GuardedCluster) -> list[str]:
    """Return the committed values of the topic."""
    consumer = Consumer(scene.librdkafka("admin", group_id="compare", isolation_level="read_committed"))
    values: list[str] = []
    for number in range(PARTITIONS):
        partition = TopicPartition("copied", number, 0)
        # the last stable offset, as transactions have ended
        _, end = consumer.get_watermark_offsets(partition, timeout=WAIT_S)
        if end == 0:
            continue
        consumer.assign([partition])
        while consumer.position([partition])[0].offset < end:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                values.append((message.value() or b"").decode())
    consumer.close()
    return values


def append(file: Path, lines: range) -> None:
    with file.open("a") as sink:
        sink.writelines(f"line-{number}\n" for number in lines)


def start_connectors(worker: ConnectWorker, source: Path, sink: Path) -> None:
    """Copy the lines of a file into a topic, with transactions, and those of the topic into another file."""
    configs = {
        "source": {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max": "1",
            "file": str(source),
            "topic": "copied",
            "transaction.boundary": "poll",
        },
        "sink": {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "tasks.max": "2",
            "topics": "copied",
            "file": str(sink),
            "consumer.override.isolation.level": "read_committed",
        },
    }
    for name, config in configs.items():
        # workers refuse it while they rebalance, as the first connector makes them
        wait_until(
            lambda name=name, config=config: worker.ask("PUT", f"/connectors/{name}/config", config),  # type: ignore[misc]
            not_yet=RestError,
            timeout_s=WAIT_S,
            what=f"`{name}` is configured",
        )


def test_two_workers_share_the_work_and_one_that_is_killed_costs_no_record(
    world: GuardedCluster, tmp_path: Path
) -> None:
    granted = grant(world, PAGE, SECTION, tmp_path)
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    append(source, range(LINES))
    workers = [ConnectWorker(f"worker-{number}", tmp_path, properties(world)) for number in (1, 2)]
    try:
        for worker in workers:
            worker.wait_ready()
        start_connectors(workers[0], source, sink)

        def spread() -> dict[tuple[str, int], tuple[str, str]]:
            return {
                (name, number): placed
                for name in ("source", "sink")
                for number, placed in workers[0].tasks_of(name).items()
            }

        def work_is_shared(found: dict[tuple[str, int], tuple[str, str]]) -> bool:
            by_worker = {worker for state, worker in found.values() if state == "RUNNING"}
            return len(found) == 3 and len(by_worker) == 2

        tasks = wait_until(
            spread, holds=work_is_shared, not_yet=RestError, timeout_s=WAIT_S, what="both workers have tasks"
        )
        wait_until(lambda: len(copied(world)) >= LINES, timeout_s=WAIT_S, what="the first lines are copied")

        _, at = tasks["source", 0]
        (killed,) = (worker for worker in workers if worker.id == at)
        (left,) = (worker for worker in workers if worker is not killed)
        append(source, range(LINES, 2 * LINES))
        killed.server.kill()
        append(source, range(2 * LINES, 3 * LINES))

        def all_moved() -> bool:
            found = [*left.tasks_of("source").values(), *left.tasks_of("sink").values()]
            return len(found) == 3 and all(placed == ("RUNNING", left.id) for placed in found)

        wait_until(all_moved, not_yet=RestError, timeout_s=WAIT_S, what="the other worker has all tasks")
        wanted = [f"line-{number}" for number in range(3 * LINES)]
        wait_until(
            lambda: set(copied(world)) >= set(wanted), timeout_s=WAIT_S, what="all lines are in the topic"
        )
        # a source with transactions promises each record once
        assert Counter(copied(world)) == Counter(wanted)
        wait_until(
            lambda: set(sink.read_text().splitlines()) >= set(wanted),
            timeout_s=WAIT_S,
            what="all lines are in the file",
        )
        # a sink promises each record once or more, and no other one
        assert set(sink.read_text().splitlines()) == set(wanted)
    finally:
        for worker in workers:
            worker.server.kill()
    assert denied(world.kustos, "connect") == []
    never = acl("connect", Op.DELETE, Type.TOPIC, "copied")
    assert unused(world.kustos, granted) == []
    assert len(unused(world.kustos, [*granted, never])) == 1
    assert world.assert_proper(granted).forwarded
