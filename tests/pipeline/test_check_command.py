"""`kustos pipeline check`, and what the other commands say about tables that another program has damaged."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.cli.failures import ExitCode
from tests.pipeline.events import event_line
from tests.pipeline.tables.damage import (
    a_file_gone,
    a_file_replaced,
    a_table_gone,
    an_add_removed,
    forget,
)
from tests.pipeline.test_stale_rollup import ACL, HEAD, command


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("check") / "first"
    (place / "audit").mkdir(parents=True)
    (place / "acls.txt").write_text(HEAD + ACL.format("bob"))
    (place / "pipeline.yml").write_text(
        "version: 1\ntables: {path: tables}\ninputs:\n  - files: audit\nacls: {source: acls.txt}\n"
    )
    (place / "audit" / "a.jsonl").write_text("".join(f"{event_line(number)}\n" for number in range(5)))
    assert command(place, "run")[0] == ExitCode.OK
    assert command(place, "review")[0] == ExitCode.OK
    return place


@pytest.fixture
def place(filled: Path, tmp_path: Path) -> Iterator[Path]:
    forget()
    yield Path(shutil.copytree(filled, tmp_path / "place"))
    forget()


def test_whole_tables(place: Path) -> None:
    code, out, err = command(place, "check")
    assert (code, err) == (ExitCode.OK, "")
    assert "the roll-up of 1 day compared with the events" in out
    assert "whole" in out
    found = json.loads(command(place, "check", "--output", "json")[1])
    assert (found["whole"], found["damage"], found["compared_days"]) == (True, [], 1)
    assert {"audit_events", "audit_rollup", "entitlements", "inputs", "runs"} <= {
        each["table"] for each in found["checked"]
    }


def test_each_fault_has_table_file_run_and_remedy(place: Path) -> None:
    name = a_file_gone(place / "tables" / "audit_events")
    an_add_removed(place / "tables" / "inputs")
    forget()
    code, out, _ = command(place, "check", "--output", "json")
    assert code == ExitCode.FAILED
    found = json.loads(out)
    assert not found["whole"]
    events, inputs = found["damage"]
    assert (events["table"], Path(events["file"]).name) == ("audit_events", name)
    assert events["run"].startswith("run-")
    assert events["what"].startswith("is gone: run `run-")
    assert (
        events["remedy"]
        == inputs["remedy"]
        == "restore it from a backup, or read the audit into a new folder"
    )
    assert (inputs["table"], inputs["file"]) == ("inputs", None)
    code, out, _ = command(place, "check")
    assert code == ExitCode.FAILED
    words = " ".join(out.split())
    assert f"damaged: `audit_events/day=2026-11-21/{name}` (run `run-" in words
    assert "remedy: `inputs`: restore it from a backup" in words
    assert "2 faults found" in words


def test_without_tables_it_is_a_usage_error(place: Path) -> None:
    shutil.rmtree(place / "tables")
    code, _, err = command(place, "check")
    assert code == ExitCode.USAGE
    assert "there are no tables in" in err


def test_a_command_rebuilds_the_roll_up_and_says_so(
    spark: SparkSession, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    replay = ("replay", str(place / "acls.txt"), "--output", "json")
    wanted = command(place, *replay)[1]
    a_file_replaced(place / "tables" / "audit_rollup")
    forget()
    code, out, err = command(place, *replay)
    assert (code, out) == (ExitCode.OK, wanted), err
    [note] = [each.getMessage() for each in caplog.records if each.name == "kustos.pipeline.tables"]
    assert "the roll-up was rebuilt from the events of 2026-11-21" in note
    forget()
    assert command(place, "check")[0] == ExitCode.OK


def test_lost_events_stop_each_command(spark: SparkSession, place: Path) -> None:
    name = a_file_gone(place / "tables" / "audit_events")
    for words in (
        ("replay", str(place / "acls.txt")),
        ("review",),
        ("run",),
        ("report", "--out", "page.html"),
    ):
        forget()
        code, out, err = command(place, *words)
        assert (code, out) == (ExitCode.FAILED, "")
        assert name in err
        assert "wrote 5 rows into it" in err
        assert "restore it from a backup" in err


def test_a_damaged_answer_is_replaced_by_its_command(spark: SparkSession, place: Path) -> None:
    a_table_gone(place / "tables" / "findings")
    for table in ("entitlements", "access_review"):
        a_file_replaced(place / "tables" / table)
    forget()
    code, _, err = command(place, "report", "--out", str(place / "page.html"))
    assert code == ExitCode.FAILED
    assert "the command that writes this table replaces it when it runs again" in err
    assert command(place, "review")[0] == ExitCode.OK
    forget()
    assert command(place, "report", "--out", str(place / "page.html"))[0] == ExitCode.OK
    assert command(place, "check")[0] == ExitCode.OK
