"""Tables and logs in a store, work on a cluster that shares no folder with its drivers, which are killed."""

import json
import os
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kustos.pipeline.tables import Tables
from kustos.runtime import SystemClock
from testkit.kafka import KafkaNode
from testkit.object_store import ObjectStore
from testkit.paths import ROOT
from testkit.processes import Server
from testkit.spark_cluster import SUBMIT_S, StandaloneCluster, standalone_cluster, submit, submitted
from testkit.spark_quick import INTERPRETED
from testkit.waiting import wait_until
from tests.pipeline.events import event_line, kafka_line, login_line
from tests.pipeline.run.topics import fill, make_topic

PROGRAM = ROOT / "examples" / "submit.py"
DAY_MS = 86_400_000
BEGAN_MS = (SystemClock().wall_ms() // DAY_MS - 9) * DAY_MS
"""A review asks about now, and events come before."""

EACH = """
import json
import os
import runpy
import sys

import pandas

from kustos.pipeline.session import open_session

program, commands = sys.argv[1:]

def look(places):
    def said(batches):
        import kustos

        for batch in batches:
            seen = {
                "devices": [os.stat(place).st_dev for place in places],
                "names": [name for place in places for name in os.listdir(place)],
                "code": kustos.__file__,
            }
            yield pandas.DataFrame({"said": [json.dumps(seen)] * len(batch)})
    return said

with open_session("each") as spark:
    for words in json.loads(commands):
        if words[0] == "look":
            # tasks of a barrier run at once, so on different executors, which have a core each
            rows = spark.range(0, 2, 1, 2).mapInPandas(look(words[1:]), "said string", barrier=True).collect()
            print(json.dumps([json.loads(row.said) for row in rows]), flush=True)
            continue
        sys.argv = [program, *words]
        try:
            runpy.run_path(program, run_name="__main__")
        except SystemExit as ended:
            if ended.code:
                raise
"""
"""Runs the program with each command in one session; `look` says what workers see of some folders."""

ACLS = """Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=payments, patternType=LITERAL)`:
 \t(principal=User:u0, host=*, operation=READ, permissionType=ALLOW)
"""
SETTINGS = {
    **INTERPRETED,
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # of them: a driver waits for both executors
    "spark.shuffle.readHostLocalDisk": "false",  # the executors have one address, but no disk in common
}
RUN_PUTS = 20
"""So many files at least a first run over these logs puts into the store before its last commit."""

BATCH_PUTS = 5
"""And a later batch of the stream."""


def decision_line(number: int) -> str:
    told = {"decision": "DENIED", "rule__kind": "DefaultDeny"} if number % 10 == 0 else {}
    time_ms = BEGAN_MS + number * DAY_MS // 40
    return event_line(
        number, time_ms=time_ms, principal_name=f"u{number % 3}", host=f"10.0.0.{number % 4}", **told
    )


def text_line(hour: int) -> str:
    time = datetime.fromtimestamp(BEGAN_MS / 1000, UTC).replace(hour=hour)
    return kafka_line(time=f"{time:%Y-%m-%d %H:%M:%S},000", principal="User:old")


def decisions(*numbers: int) -> list[str]:
    return [decision_line(number) for number in numbers]


LOGS = {
    "a.jsonl": [*decisions(*range(60)), login_line(1), login_line(2)],
    "b.jsonl": decisions(*range(60, 100), *range(40, 60)),
    "broker-1/server.log": [*(text_line(hour) for hour in (3, 4, 4, 5)), "junk"],
}
TOPIC = (
    [*decisions(*range(100, 140), *range(10)), login_line(1)],
    [*decisions(*range(140, 180), *range(100, 105)), "junk of the topic"],
)
FILE_EVENTS = 100 + 4
"""Numbers of decisions, and the lines of Kafka's text: equal ones in a log are events of their own."""


@dataclass(frozen=True)
class Told:
    """What plain Python counts in lines: decisions by day, principal and outcome."""

    ids: frozenset[str]
    by_day: Counter[tuple[str, str, str]]

    def of(self, decision: str) -> Counter[str]:
        """Count by principal."""
        counted: Counter[str] = Counter()
        for (_, principal, found), count in self.by_day.items():
            counted[principal] += count if found == decision else 0
        return counted


def told_by_python(lines: Iterable[str]) -> Told:
    events = {}
    by_day: Counter[tuple[str, str, str]] = Counter()
    for line in lines:
        if line.startswith("{"):
            event = json.loads(line)
            if "decision" in event:
                events[event["event_id"]] = event
        elif line.startswith("["):
            by_day[line[1:11], "User:old", "ALLOWED"] += 1
    for event in events.values():
        day = datetime.fromtimestamp(event["time_ms"] / 1000, UTC).date().isoformat()
        by_day[day, f"User:{event['principal_name']}", event["decision"]] += 1
    return Told(frozenset(events), by_day)


@dataclass(frozen=True)
class Lake:
    """A cluster and a store; `place` is the folder of the drivers, which workers do not see."""

    cluster: StandaloneCluster
    store: ObjectStore
    place: Path
    options: tuple[str, ...]

    @property
    def tables(self) -> Tables:
        return Tables.at(self.store.address("apart/access"))

    def puts(self) -> int:
        """Return how many files of tables were put into the store."""
        lines = self.store.log.read_text().splitlines()
        return sum("| PUT | /lake/apart/access/" in line for line in lines)

    def has_runs(self, number: int) -> bool:
        """Return whether so many runs and batches were committed."""
        log = self.store.folder / "apart" / "access" / "runs" / "_delta_log"
        return (log / f"{number:020d}.json").exists()

    def events(self) -> int:
        """Return how many decisions there are as of the last run."""
        return sum(file.rows for file in self.tables.snapshot("audit_events"))

    def rows(self, table: str, *columns: str) -> list[dict[str, Any]]:
        """Return what `deltalake` reads of a table."""
        address = str(self.tables.place(table))
        found = DeltaTable(address, storage_options=self.store.environment)
        return pa.table(found.to_pyarrow_table(columns=list(columns))).to_pylist()  # type: ignore[no-any-return]

    def said(self, commands: list[list[str]]) -> list[Any]:
        """Run commands in a driver; return the documents that they print."""
        found = submit(
            self.cluster.url,
            self.place / "each.py",
            [str(PROGRAM), json.dumps(commands)],
            options=self.options,
            environment=self.store.environment,
            cwd=self.place,
        )
        self.check_no_secret(found)
        decoder, documents = json.JSONDecoder(), []
        while found := found.lstrip():
            document, end = decoder.raw_decode(found)
            documents.append(document)
            found = found[end:]
        return documents

    def check_no_secret(self, said: str) -> None:
        outputs = [worker.outputs() for worker in self.cluster.workers]
        assert all(outputs), "what executors say was found"
        assert self.store.secret not in "".join([said, *outputs])


@pytest.fixture(scope="module")
def lake(
    archive: Path, store: ObjectStore, kafka: KafkaNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lake]:
    place, folder = tmp_path_factory.mktemp("driver"), tmp_path_factory.mktemp("cluster")
    (place / "each.py").write_text(EACH)
    (place / "acls.txt").write_text(ACLS)
    topic = make_topic(kafka)
    (place / "topic").write_text(topic)
    (place / "client.properties").write_text(f"bootstrap.servers={kafka.bootstrap}\n")
    inputs = {
        "files": f"{{files: {store.address('apart/logs')}}}",
        "topic": f"{{topic: {topic}, command_config: client.properties}}",
    }
    for name, one in inputs.items():
        (place / f"{name}.yml").write_text(
            f"version: 1\ntables: {{path: {store.address('apart/access')}, checkpoints: streams}}\n"
            f"inputs: [{one}]\nacls: {{source: acls.txt}}\n"
        )
    for name, lines in LOGS.items():
        log = store.folder / "apart" / "logs" / name
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("".join(f"{line}\n" for line in lines))
    options = [f"--py-files={archive}"]
    options += [f"--conf={key}={value}" for key, value in SETTINGS.items()]
    hidden = (tmp_path_factory.getbasetemp(), *(ROOT / name for name in ("src", "testkit", "tests")))
    with standalone_cluster(folder, 2, environment=store.environment, hidden=hidden) as cluster:
        yield Lake(cluster, store, place, tuple(options))


def kill(driver: Server) -> int:
    """Kill a driver with its JVM, as when its machine fails; return its exit code."""
    with suppress(ProcessLookupError):  # it has ended, and so have all of its group
        os.killpg(driver.pid, signal.SIGKILL)
    return driver.wait(timeout_s=SUBMIT_S)


def test_drivers_are_killed_and_every_event_is_there_once_and_answers_are_right(
    lake: Lake, kafka: KafkaNode, seed: int
) -> None:
    random, topic = Random(seed), (lake.place / "topic").read_text()
    files, stream = ([f"--config={lake.place / name}.yml", "--output=json"] for name in ("files", "topic"))

    # a run over the logs is killed before its last commit
    last = random.randrange(1, RUN_PUTS)
    command = ["pipeline", "run", *files]
    with submitted(
        lake.cluster.url, PROGRAM, command, options=lake.options, environment=lake.store.environment,
        cwd=lake.place, output=lake.place / "killed.log",
    ) as driver:  # fmt: skip
        wait_until(
            lambda: lake.puts() >= last or not driver.running,
            timeout_s=SUBMIT_S,
            what=f"the run puts {last} files",
        )
        # between the look at the store and the kill it may have come to its end
        assert kill(driver) in {0, -signal.SIGKILL}, driver.tail()
    # all of the run or nothing
    assert lake.events() in {0, FILE_EVENTS}, f"after {last} puts"

    # it is run again, and a stream, which is killed between its commits
    fill(kafka, topic, TOPIC[0])
    commands = [command, ["pipeline", "run", "--follow", *stream]]
    with submitted(
        lake.cluster.url, lake.place / "each.py", [str(PROGRAM), json.dumps(commands)], options=lake.options,
        environment=lake.store.environment, cwd=lake.place, output=lake.place / "streaming.log",
    ) as driver:  # fmt: skip
        driver.wait_ready(lambda: lake.has_runs(2), timeout_s=SUBMIT_S)
        more = lake.puts() + random.randrange(1, BATCH_PUTS)
        fill(kafka, topic, TOPIC[1])
        driver.wait_ready(lambda: lake.puts() >= more, timeout_s=SUBMIT_S)
        assert kill(driver) == -signal.SIGKILL, driver.tail()
        lake.check_no_secret(driver.output.read_text())
    before = lake.events()
    assert before >= FILE_EVENTS

    # the stream goes on, and answers are about all of it
    seen, streamed, again, replayed, reviewed, reported = lake.said(
        [
            ["look", str(lake.place.parent), str(ROOT / "tests")],
            ["pipeline", "run", *stream],
            command,
            ["pipeline", "replay", str(lake.place / "acls.txt"), *files],
            ["pipeline", "review", *files],
            ["pipeline", "report", f"--out={lake.place / 'report.html'}", *files],
        ]
    )
    check_nothing_is_shared(lake, seen)
    wanted = told_by_python([*(line for lines in LOGS.values() for line in lines), *TOPIC[0], *TOPIC[1]])
    total = wanted.by_day.total()
    assert (before + streamed["inputs"][0]["events"], again["inputs"][0]["new_files"]) == (total, 0)
    check_tables(lake, wanted)
    check_answers(wanted, replayed, reviewed, reported)
    assert "<html" in (lake.place / "report.html").read_text()


def check_nothing_is_shared(lake: Lake, seen: list[dict[str, Any]]) -> None:
    devices = [device for one in seen for device in one["devices"]]
    assert len(set(devices)) == len(devices) == 4, "each worker has folders of its own"
    assert lake.place.stat().st_dev not in devices
    names = {name for one in seen for name in one["names"]}
    assert names == {lake.cluster.workers[0].folder.parent.name}, "of its own work alone"
    assert all("kustos.zip" in one["code"] for one in seen), seen


def check_tables(lake: Lake, wanted: Told) -> None:
    rows = lake.rows("audit_events", "event_id", "day", "principal_type", "principal_name", "decision")
    ids = Counter(row["event_id"] for row in rows)
    assert max(ids.values()) == 1
    assert {each for each in ids if not each.startswith("kafka-")} == wanted.ids
    by_day = Counter(
        (row["day"].isoformat(), f"{row['principal_type']}:{row['principal_name']}", row["decision"])
        for row in rows
    )
    assert by_day == wanted.by_day
    rolled_up: Counter[tuple[str, str, str]] = Counter()
    for row in lake.rows("audit_rollup", "day", "principal", "decision", "event_count"):
        rolled_up[row["day"].isoformat(), row["principal"], row["decision"]] += row["event_count"]
    assert rolled_up == wanted.by_day
    lines = [row["line"] for row in lake.rows("quarantine", "line")]
    assert sorted(lines) == ["junk", "junk of the topic"]
    assert len(lake.rows("security_events", "event_id")) == 2


def check_answers(wanted: Told, replayed: Any, reviewed: Any, reported: Any) -> None:
    allowed, denied = wanted.of("ALLOWED"), wanted.of("DENIED")
    lost = {principal: count for principal, count in allowed.items() if principal != "User:u0"}
    assert replayed["lost"] == sum(lost.values())
    flips: dict[str, Counter[str]] = {"LOST": Counter(), "GAINED": Counter()}
    for row in replayed["flips"]:
        flips[row["kind"]][row["principal"]] += row["event_count"]
    assert flips == {"LOST": Counter(lost), "GAINED": Counter({"User:u0": denied["User:u0"]})}
    uses = {row["operation"]: row["use_count"] for row in reviewed["rows"] if row["principal"] == "User:u0"}
    assert uses["READ"] == allowed["User:u0"]
    numbers = ("events", "allowed", "denied", "principals", "quarantined")
    assert [reported[name] for name in numbers] == [
        wanted.by_day.total(),
        allowed.total(),
        denied.total(),
        4,
        2,
    ]
