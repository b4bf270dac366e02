"""Answers rebuild a roll-up that another program damaged, and say so; lost events stop every answer."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession

from kustos.pipeline.run import run_pipeline
from kustos.pipeline.tables import (
    IngestOptions,
    Retention,
    StaleRollupError,
    Tables,
    TablesDamagedError,
    drop_expired,
    ingest,
    refresh_rollup,
)
from kustos.pipeline.tables.delta import files_of
from tests.pipeline.events import event_line
from tests.pipeline.tables.damage import (
    a_commit_emptied,
    a_file_gone,
    a_file_replaced,
    a_foreign_vacuum,
    a_gap_in_the_log,
    a_table_gone,
    an_add_removed,
    an_older_state,
    forget,
    some_file,
    unreadable_log,
)
from tests.pipeline.tables.filling import folder_of
from tests.pipeline.tables.test_ingest import DAY_MS, TIME_MS, StoppedClock, lines_of

NOW = StoppedClock(TIME_MS)
BATCHES = (
    [event_line(number, time_ms=TIME_MS - number % 3 * DAY_MS) for number in range(9)],
    [
        event_line(number, principal_name="eve", time_ms=TIME_MS - number % 2 * DAY_MS)
        for number in range(9, 14)
    ],
)


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged") / "tables"
    for number, batch in enumerate(BATCHES):
        ingest(spark, lines_of(spark, *batch), Tables(folder), f"s@{number}", clock=NOW)
    return folder


@pytest.fixture
def tables(filled: Path, tmp_path: Path) -> Iterator[Tables]:
    forget()
    yield Tables(Path(shutil.copytree(filled, tmp_path / "tables")))
    forget()


def rolled_up(spark: SparkSession, tables: Tables) -> list[Any]:
    return sorted(map(repr, tables.read(spark, "audit_rollup").collect()))


def notes(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == "kustos.pipeline.tables"]


@pytest.mark.parametrize(
    "damage",
    [
        an_add_removed,
        a_file_gone,
        a_file_replaced,
        a_foreign_vacuum,
        an_older_state,
        a_commit_emptied,
        a_gap_in_the_log,
        a_table_gone,
        unreadable_log,
    ],
)
def test_an_answer_rebuilds_a_damaged_roll_up_and_says_so_once(
    spark: SparkSession, tables: Tables, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], str]
) -> None:
    wanted = rolled_up(spark, tables)
    damage(folder_of(tables) / "audit_rollup")
    forget()
    assert tables.of_cluster().chosen_cluster.name == ""
    assert rolled_up(spark, tables) == wanted
    [said] = notes(caplog)
    assert "audit_rollup" in said
    assert said.endswith("; the roll-up was rebuilt from the events of 2026-11-19 to 2026-11-21")
    forget()
    assert rolled_up(spark, tables) == wanted
    assert len(notes(caplog)) == 1
    ingest(spark, lines_of(spark, event_line(77, time_ms=TIME_MS)), tables, "s@2", clock=NOW)
    assert sum(row["event_count"] for row in tables.read(spark, "audit_rollup").collect()) == 15


@pytest.mark.parametrize("has_new", [True, False])
def test_a_run_rebuilds_it(
    spark: SparkSession, tables: Tables, tmp_path: Path, caplog: pytest.LogCaptureFixture, has_new: bool
) -> None:
    audit = tmp_path / "audit"
    audit.mkdir()
    (audit / "a.jsonl").write_text(event_line(77, time_ms=TIME_MS) + "\n")
    if not has_new:
        run_pipeline(spark, tables=tables, audit=audit)
    a_file_gone(folder_of(tables) / "audit_rollup")
    forget()
    assert run_pipeline(spark, tables=tables, audit=audit).events == has_new
    assert "rebuilt from the events" in notes(caplog)[0]
    caplog.clear()
    assert sum(row["event_count"] for row in tables.read(spark, "audit_rollup").collect()) == 15
    assert notes(caplog) == []


def test_a_stream_takes_batches_and_its_upkeep_rebuilds_it(spark: SparkSession, tables: Tables) -> None:
    a_file_gone(folder_of(tables) / "audit_rollup")
    forget()
    options = IngestOptions(with_rollup=False)
    ingest(spark, lines_of(spark, event_line(77, time_ms=TIME_MS)), tables, "s@2", options=options)
    assert len(refresh_rollup(spark, tables)) == 3
    assert sum(row["event_count"] for row in tables.read(spark, "audit_rollup").collect()) == 15


@pytest.mark.usefixtures("no_locks")
def test_where_it_cannot_be_written_it_is_refused(spark: SparkSession, tables: Tables) -> None:
    a_file_gone(folder_of(tables) / "audit_rollup")
    forget()
    with pytest.raises(
        StaleRollupError, match=r"is damaged and cannot be refreshed here .*`kustos pipeline run`"
    ):
        tables.read(spark, "audit_rollup")
    with pytest.raises(TablesDamagedError, match=r"is gone: .*; `kustos pipeline run` rebuilds it"):
        tables.files("audit_rollup")


@pytest.mark.parametrize(
    "damage", [an_add_removed, a_file_gone, a_file_replaced, a_foreign_vacuum, an_older_state]
)
def test_lost_events_stop_answers_and_runs_and_leave_the_roll_up(
    spark: SparkSession, tables: Tables, tmp_path: Path, damage: Callable[[Path], str]
) -> None:
    said = damage(folder_of(tables) / "audit_events")
    a_file_gone(folder_of(tables) / "audit_rollup")
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "a.jsonl").write_text(event_line(77, time_ms=TIME_MS) + "\n")
    forget()
    number = tables.state().number
    for ask in (
        lambda: tables.read(spark, "audit_rollup"),
        lambda: tables.read(spark, "audit_events"),
        lambda: tables.of_cluster(),
        lambda: refresh_rollup(spark, tables),
        lambda: run_pipeline(spark, tables=tables, audit=tmp_path / "audit"),
        lambda: ingest(
            spark,
            lines_of(spark, event_line(78, time_ms=TIME_MS)),
            tables,
            "s@2",
            options=IngestOptions(with_rollup=False),
        ),
    ):
        with pytest.raises(TablesDamagedError, match="audit_events") as caught:
            ask()
        assert said in str(caught.value)
        assert "; restore it from a backup, or read the audit into a new folder" in str(caught.value)
    assert tables.state().number == number


KEPT = Retention(days=1)


def day_of(back: int) -> str:
    return f"2026-11-{21 - back}"


def rollup_file(tables: Tables, back: int) -> Path:
    place = folder_of(tables) / "audit_rollup"
    [name] = [file.name for file in files_of(DeltaTable(str(place))) if file.day == day_of(back)]
    return place / name


def test_days_whose_events_were_dropped_keep_their_rows(spark: SparkSession, tables: Tables) -> None:
    wanted = rolled_up(spark, tables)
    assert drop_expired(tables, KEPT, clock=NOW).event_days == (day_of(2),)
    rollup_file(tables, 0).unlink()
    forget()
    assert rolled_up(spark, tables) == wanted
    assert rolled_up(spark, tables) == wanted


def test_it_is_refused_where_rows_of_dropped_days_are_gone(spark: SparkSession, tables: Tables) -> None:
    drop_expired(tables, KEPT, clock=NOW)
    copy = replace(tables, folder=folder_of(tables).parent / "copy")
    shutil.copytree(folder_of(tables), folder_of(copy))
    rollup_file(tables, 2).unlink()
    a_table_gone(folder_of(copy) / "audit_rollup")
    forget()
    said = f"dropped the events of days of {day_of(2)}: restore the table from a backup"
    with pytest.raises(TablesDamagedError, match=said):
        tables.read(spark, "audit_rollup")
    with pytest.raises(TablesDamagedError, match=f"is gone; .* days before {day_of(1)}: restore"):
        copy.read(spark, "audit_rollup")
    assert not list(folder_of(copy).glob("audit_rollup/day*/*")), "what was written on trial is removed"


@pytest.mark.parametrize("is_whole", [True, False])
def test_rows_of_dropped_days_are_counted_also_where_other_days_are_stale(
    spark: SparkSession, tables: Tables, is_whole: bool
) -> None:
    """An entry was taken out of the log: which days lack rows is not known, only how many rows there were."""
    drop_expired(tables, KEPT, clock=NOW)
    ingest(
        spark,
        lines_of(spark, event_line(77, principal_name="new", time_ms=TIME_MS)),
        tables,
        "s@2",
        options=IngestOptions(with_rollup=False),
    )
    place = folder_of(tables) / "audit_rollup"
    lost = rollup_file(tables, 1 if is_whole else 2).name
    for commit in (place / "_delta_log").glob("*.json"):
        lines = commit.read_text().splitlines()
        commit.write_text("\n".join(line for line in lines if lost not in line) + "\n")
    forget()
    if not is_whole:
        with pytest.raises(TablesDamagedError, match=f"{lost}.* days before {day_of(1)}: restore"):
            tables.read(spark, "audit_rollup")
        return
    assert sum(row["event_count"] for row in tables.read(spark, "audit_rollup").collect()) == 15


def test_a_damaged_answer_on_several_clusters_loses_those_of_others_and_says_so(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables = Tables(tmp_path / "tables")
    lines = [event_line(number, cluster_id=name) for number, name in enumerate(("east", "west"))]
    ingest(spark, lines_of(spark, *lines), tables, "s@1")
    for name in ("east", "west"):
        tables.of_cluster(name).replace("spans", spark.range(2))
    a_file_gone(folder_of(tables) / "spans")
    forget()
    with pytest.raises(TablesDamagedError, match=r"spans.*the command that writes this table replaces it"):
        tables.read(spark, "spans")
    tables.of_cluster("east").replace("spans", spark.range(3))
    assert "rows of other clusters in it are gone" in notes(caplog)[0]
    assert [row["cluster"] for row in tables.read(spark, "spans").collect()] == ["east"] * 3


def test_an_answer_of_the_same_size_without_content_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables").of_cluster("east")
    tables.replace("spans", spark.range(2))
    file = some_file(folder_of(tables) / "spans")
    file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(TablesDamagedError, match=r"not a readable Parquet .*; the command that writes this"):
        tables.read(spark, "spans")
    tables.replace("spans", spark.range(3))
    assert tables.read(spark, "spans").count() == 3


def test_what_cannot_be_found_again_is_not_replaced(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables").of_cluster("east")

    def found(_: Tables) -> dict[str, DataFrame]:
        return {"anomalies": spark.createDataFrame([Row(principal="User:eve")], "principal string")}

    for number in range(2):
        tables.update(f"found-{number}", found, is_kept=True)
    a_file_gone(folder_of(tables) / "anomalies")
    forget()
    with pytest.raises(TablesDamagedError, match=r"anomalies.*restore it from a backup"):
        tables.update("found-2", found, is_kept=True)
