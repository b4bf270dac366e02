"""A stream killed between its commit and the roll-up: each answer has all events, or says what to run."""

import ast
import io
import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pyarrow.dataset as ds
import pytest
import typer
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kustos.cli.app import app
from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.records import AccessControlEntryRecord, FeatureLevelRecord
from kustos.pipeline.files import run_lock
from kustos.pipeline.run import run_pipeline
from kustos.pipeline.tables import IngestOptions, StaleRollupError, Tables, ingest, transaction
from testkit.paths import ROOT
from testkit.processes import spawn
from testkit.waiting import wait_until
from tests.pipeline.events import NOW, NOW_MS, event_line
from tests.pipeline.history.worlds import World
from tests.pipeline.tables.test_ingest import lines_of

DAY_MS = 86_400_000
KILLED_WITHIN_S = 240.0

RULE = {
    "rule__kind": "MatchingAcl", "rule__resource_type": "TOPIC", "rule__resource_name": "payments",
    "rule__pattern_type": "LITERAL", "rule__host": "*", "rule__operation": "READ",
    "rule__permission_type": "ALLOW",
}  # fmt: skip
HEAD = (
    "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=payments, patternType=LITERAL)`:\n"
)
ACL = " \t(principal=User:{}, host=*, operation=READ, permissionType=ALLOW)\n"


def read_by(name: str, number: int, days_ago: int) -> str:
    rule = RULE | {"rule__principal": f"User:{name}"}
    return event_line(number, principal_name=name, time_ms=NOW_MS - days_ago * DAY_MS, **rule)


DENIED = {"principal_name": "mallory", "decision": "DENIED", "rule__kind": "DefaultDeny"}
ROLLED_UP = [read_by("bob", number, number) for number in range(1, 31)]
KILLED = [
    *(read_by("eve", 100 + number, 1) for number in range(4)),
    *(read_by("bob", 200 + number, 2) for number in range(5)),
    event_line(300, principal_name="feed", operation="WRITE", time_ms=NOW_MS - DAY_MS),
    *(event_line(400 + n, time_ms=NOW_MS - DAY_MS, resource_name=f"t{n}", **DENIED) for n in range(60)),
]
EVENTS = len(ROLLED_UP) + len(KILLED)
USES = {"bob": len(ROLLED_UP) + 5, "eve": 4}


def command(place: Path, *words: str) -> tuple[int, str, str]:
    """Run a command of the pipeline; return its exit code and what it said."""
    out, err = io.StringIO(), io.StringIO()
    config = ["--config", str(place / "pipeline.yml")]
    with redirect_stdout(out), redirect_stderr(err):
        code = run(["pipeline", *words, *config])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def killed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of a run over files, a review that revokes what eve has, and then the batch that is killed."""
    place = tmp_path_factory.mktemp("stale") / "first"
    (place / "audit").mkdir(parents=True)
    (place / "acls.txt").write_text(HEAD + ACL.format("bob") + ACL.format("eve"))
    (place / "less.txt").write_text(HEAD + ACL.format("bob"))
    (place / "pipeline.yml").write_text(
        "version: 1\ntables: {path: tables}\ninputs:\n  - files: audit\n"
        "acls: {source: acls.txt}\nmetadata: log\n"
    )
    level = (FeatureLevelRecord("metadata.version", 30),)
    grants = tuple(
        AccessControlEntryRecord(UUID(int=n), 2, "payments", 3, f"User:{name}", "*", 3, 3)
        for n, name in enumerate(USES, 1)
    )
    World((level, grants), (NOW_MS - 40 * DAY_MS, NOW_MS - 39 * DAY_MS)).write(place / "log")
    (place / "audit" / "a.jsonl").write_text("\n".join(ROLLED_UP))
    assert command(place, "run")[0] == ExitCode.OK
    assert command(place, "review", "--sign-off", str(place / "review.json"))[0] == ExitCode.OK
    decide = ["signoff", "decide", str(place / "review.json"), "revoke", "--by", "a", "--reason", "unused"]
    assert run(["pipeline", *decide, "--principal", "User:eve", "--yes"]) == ExitCode.OK
    (place / "batch.jsonl").write_text("\n".join(KILLED))
    child = [sys.executable, "-m", "tests.pipeline.killed_batch", str(place / "batch.jsonl")]
    process = spawn([*child, str(place / "tables")], stdout=subprocess.DEVNULL, cwd=ROOT)
    assert process.wait(KILLED_WITHIN_S) == -signal.SIGKILL
    assert counted(place / "tables", "audit_events") == EVENTS
    assert counted(place / "tables", "audit_rollup") == len(ROLLED_UP)
    return place


def counted(tables: Path, name: str) -> int:
    """Return how many events a table has, without kustos."""
    table = ds.dataset(DeltaTable(str(tables / name)).file_uris()).to_table()
    return sum(table["event_count"].to_pylist()) if name == "audit_rollup" else table.num_rows


@pytest.fixture
def place(killed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed, tmp_path / "place"))


@dataclass(frozen=True)
class Asked:
    """What a command is asked, and what its answer must say of the events of the killed batch."""

    words: tuple[str, ...]
    tells: Callable[[Any], bool]
    code: int = ExitCode.OK
    is_document: bool = field(default=True)


def entitled(found: Any) -> dict[str, int]:
    return {
        row["principal"].removeprefix("User:"): row["use_count"]
        for row in found["rows"]
        if row["operation"] == "READ"
    }


ANSWERS: dict[str, Asked] = {
    "run": Asked((), lambda found: found["inputs"][0]["duplicates"] == len(ROLLED_UP)),
    "replay": Asked(("less.txt",), lambda found: found["lost"] == USES["eve"] + 1),
    "review": Asked((), lambda found: entitled(found) == USES),
    "signoff changes": Asked(
        ("review.json", "--replay", "--exit-code"),
        lambda said: "lost: User:eve READ TOPIC payments" in said,
        ExitCode.NO,
        is_document=False,
    ),
    "judge": Asked(("--by-rollup",), lambda found: sum(one["events"] for one in found["verdicts"]) == EVENTS),
    "recommend": Asked((), lambda found: found["needed_events"] == sum(USES.values())),
    "anomalies find": Asked(
        ("--until", f"{NOW:%F}"),
        lambda found: any(one["principal"] == "User:mallory" for one in found["anomalies"]),
    ),
    "flows": Asked(("--from", "User:feed"), lambda found: len(found["paths"]) == len(USES)),
    "report": Asked(("--out", "page.html"), lambda found: found["events"] == EVENTS),
}
"""Every command that reads what was recorded."""

OTHERS = {
    "anomalies list": "shows what searches stored",
    "anomalies acknowledge": "changes what searches stored",
    "signoff check": "reads a document",
    "signoff decide": "writes a document",
    "signoff close": "likewise",
    "check": "compares tables, and counts the days that are stale",
}
"""The commands that read no recorded event, and why."""


def commands() -> Iterator[str]:
    """Yield the commands of the pipeline, as the command line has them."""
    tree: Any = typer.main.get_command(app)
    for name, one in tree.commands["pipeline"].commands.items():
        yield from (f"{name} {inner}" for inner in one.commands) if hasattr(one, "commands") else (name,)


def test_each_command_is_asked_or_reads_no_recorded_event() -> None:
    assert not ANSWERS.keys() & OTHERS.keys()
    assert set(commands()) == ANSWERS.keys() | OTHERS.keys()


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_has_the_events_of_the_killed_batch(
    spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(place)
    asked = ANSWERS[name]
    shape = ["--output", "json"] if asked.is_document else []
    code, out, err = command(place, *name.split(), *asked.words, *shape)
    assert code == asked.code, err
    assert asked.tells(json.loads(out) if asked.is_document else out + err), out + err
    assert counted(place / "tables", "audit_rollup") == EVENTS


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_an_answer_that_may_not_write_says_what_to_run(
    spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch, no_locks: None, name: str
) -> None:
    monkeypatch.chdir(place)
    asked = ANSWERS[name]
    code, out, err = command(place, *name.split(), *asked.words)
    assert code == ExitCode.FAILED
    assert out == ""
    if name != "run":
        assert "the roll-up in" in err
        assert "lacks events of" in err
        assert "run `kustos pipeline run` where it can be written" in err


def test_only_the_tables_give_away_files_of_the_roll_up() -> None:
    """What reads the roll-up elsewhere gets it by `Tables.read` or `Tables.files`, which look at its age."""
    found = [
        (path.name, node.func.attr)
        for path in (ROOT / "src" / "kustos").rglob("*.py")
        if path.parent.name not in ("tables", "rollup")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("snapshot", "chosen")
        and any(isinstance(one, ast.Constant | ast.Name) for one in node.args[:1])
    ]
    assert found == []


def total(spark: SparkSession, tables: Tables) -> int:
    return int(tables.read(spark, "audit_rollup").selectExpr("sum(event_count)").collect()[0][0])


def test_files_of_a_stale_roll_up_are_refused_and_rows_are_whole(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables")
    streamed = IngestOptions(with_rollup=False)
    ingest(spark, lines_of(spark, event_line(1)), tables, "a@1")
    ingest(spark, lines_of(spark, event_line(2)), tables, "s@1", options=streamed)
    with pytest.raises(StaleRollupError, match="lacks events of 2026-11-21 and its files are stale"):
        tables.files("audit_rollup")
    pinned = tables.rolled_up(spark)
    assert len(pinned.files("audit_rollup")) == 1
    # what a stream commits meanwhile is not in an answer that began before: its tables are of one run
    ingest(spark, lines_of(spark, event_line(3)), tables, "s@2", options=streamed)
    assert total(spark, pinned) == pinned.read(spark, "audit_events").count() == 2
    assert pinned.rolled_up(spark) is pinned
    assert total(spark, tables) == 3
    assert not tables.state().stale_days


def test_a_reader_waits_for_a_run_that_writes_but_not_for_ever(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, taken, tried = Tables(tmp_path / "tables"), threading.Event(), threading.Event()
    ingest(spark, lines_of(spark, event_line(1)), tables, "s@1", options=IngestOptions(with_rollup=False))
    monkeypatch.setattr(transaction, "FREE_TIMEOUT_MS", 0)
    with run_lock(tables.folder), pytest.raises(StaleRollupError, match="another run is writing"):
        tables.read(spark, "audit_rollup")
    monkeypatch.undo()

    def hold() -> None:
        with run_lock(tables.folder):
            taken.set()
            tried.wait()

    class Pause:
        def wait(self, _seconds: float) -> None:
            tried.set()
            holder.join()

    monkeypatch.setattr(transaction, "threading", SimpleNamespace(Event=Pause))
    holder = threading.Thread(target=hold)
    holder.start()
    wait_until(taken.is_set, what="the lock")
    assert total(spark, tables) == 1
    holder.join()


def test_a_run_without_new_files_rolls_up_what_a_stream_left(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables")
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "a.jsonl").write_text(event_line(1))
    run_pipeline(spark, tables=tables, audit=tmp_path / "audit")
    ingest(spark, lines_of(spark, event_line(2)), tables, "s@1", options=IngestOptions(with_rollup=False))
    assert run_pipeline(spark, tables=tables, audit=tmp_path / "audit").new_files == 0
    assert not tables.state().stale_days
    assert counted(tmp_path / "tables", "audit_rollup") == 2
