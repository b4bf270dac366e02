"""A driver killed -9, Spark and all, and run again: the tables are those of an undisturbed run."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.run import run_pipeline
from kustos.pipeline.tables import Tables
from kustos.pipeline.tables.transaction import data_files
from testkit.paths import ROOT
from testkit.processes import spawn
from tests.pipeline.events import event_line, kafka_line
from tests.pipeline.tables.driver import BEGUN
from tests.pipeline.tables.filling import folder_of
from tests.pipeline.tables.reviewing import acls_for, principals, review
from tests.pipeline.tables.test_runs import contents

KILLS = int(os.environ.get("KUSTOS_KILLS", "1"))
"""How many kills at random moments are tried; the protocol alone dies at every step elsewhere."""

LONGEST_RUN_S = 240.0
SOON_S = 4.0
"""Within this a run on a quiet machine has done all its steps."""

POINTS = ("writing audit_rollup", "committing two tables")
"""Before the commit and within it; the protocol alone dies at every step elsewhere."""


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    lines = [event_line(number, time_ms=1_795_233_600_123 + number * 40_000_000) for number in range(12)]
    (folder / "a").write_text("\n".join([*lines[:8], "junk", kafka_line(), kafka_line(), ""]))
    return folder


@pytest.fixture(scope="module")
def first(spark: SparkSession, audit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return tables after a first run, and give a second run something to do."""
    tables = Tables(tmp_path_factory.mktemp("first") / "tables")
    run_pipeline(spark, tables=tables, audit=audit)
    lines = [event_line(number, time_ms=1_795_233_600_123 + number * 40_000_000) for number in range(4, 12)]
    (audit / "b").write_text(
        "\n".join([*lines, "junk of another file", kafka_line(principal="User:eve"), ""])
    )
    return folder_of(tables)


@pytest.fixture(scope="module")
def wanted(
    spark: SparkSession, audit: Path, first: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("wanted") / "tables"
    shutil.copytree(first, folder)
    summary = run_pipeline(spark, tables=Tables(folder), audit=audit)
    assert (summary.new_files, summary.events, summary.duplicates) == (1, 5, 4)
    return contents(spark, Tables(folder))


def drive(audit: Path, tables: Path, point: str) -> subprocess.Popen[bytes]:
    """Start a run in a process of its own and wait until it is about to begin."""
    command = [sys.executable, "-m", "tests.pipeline.tables.driver", str(audit), str(tables), point]
    driver = spawn(command, stdout=subprocess.PIPE, cwd=ROOT)
    assert driver.stdout is not None
    assert driver.stdout.readline().decode().strip() == BEGUN
    return driver


def check_again(spark: SparkSession, audit: Path, tables: Tables, wanted: dict[str, list[str]]) -> None:
    """Run again; what is there then is what is wanted, and nothing of the killed run is left."""
    run_pipeline(spark, tables=tables, audit=audit)
    assert contents(spark, tables) == wanted
    assert run_pipeline(spark, tables=tables, audit=audit).new_files == 0
    assert {path.name for path in folder_of(tables).iterdir() if path.is_dir()} == {
        "audit_events",
        "audit_rollup",
        "inputs",
        "quarantine",
        "runs",
    }


@pytest.mark.parametrize("point", POINTS)
def test_killed_between_two_steps(
    spark: SparkSession, tmp_path: Path, audit: Path, first: Path, wanted: dict[str, list[str]], point: str
) -> None:
    tables = Tables(tmp_path / "tables")
    shutil.copytree(first, folder_of(tables))
    before = contents(spark, tables)
    driver = drive(audit, folder_of(tables), point)
    assert driver.wait(LONGEST_RUN_S) == -signal.SIGKILL
    assert len(data_files(folder_of(tables) / "audit_events")) >= len(before)
    # a reader who comes before the next run sees nothing of one that was not committed to the end
    assert contents(spark, tables) == before
    check_again(spark, audit, tables, wanted)


@pytest.mark.parametrize("nth", range(KILLS))
def test_killed_at_any_moment(
    spark: SparkSession,
    tmp_path: Path,
    audit: Path,
    first: Path,
    wanted: dict[str, list[str]],
    seed: int,
    nth: int,
) -> None:
    tables = Tables(tmp_path / "tables")
    shutil.copytree(first, folder_of(tables))
    driver = drive(audit, folder_of(tables), "never")
    try:
        driver.wait(Random(seed + nth).uniform(0, SOON_S))
    except subprocess.TimeoutExpired:
        driver.kill()
    driver.wait(LONGEST_RUN_S)
    check_again(spark, audit, tables, wanted)


def test_a_review_killed_between_its_tables_leaves_the_former_one_whole(
    spark: SparkSession, tmp_path: Path, first: Path
) -> None:
    tables = Tables(tmp_path / "tables")
    shutil.copytree(first, folder_of(tables))
    review(spark, tables, acls_for(tmp_path / "first.txt", "alice"))
    before = principals(spark, tables)
    acls = acls_for(tmp_path / "second.txt", "zoe")
    command = [sys.executable, "-m", "tests.pipeline.tables.reviewing", str(folder_of(tables)), str(acls)]
    process = spawn(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    assert process.wait(LONGEST_RUN_S) == -signal.SIGKILL
    assert principals(spark, tables) == before
    review(spark, tables, acls)
    assert all("User:zoe" in found for found in principals(spark, tables).values())
