"""The thorough check finds what opening tables does not, and says table, file and run."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import parquet
from pyspark.sql import SparkSession

from kustos.pipeline.tables import (
    IngestOptions,
    Retention,
    Tables,
    TablesCheck,
    check_tables,
    drop_expired,
    ingest,
)
from kustos.pipeline.tables.check import CHECK_STEPS
from kustos.pipeline.tables.delta import files_of
from tests.pipeline.events import event_line, login_line
from tests.pipeline.tables.damage import (
    a_file_gone,
    a_file_replaced,
    a_foreign_vacuum,
    a_gap_in_the_log,
    a_table_gone,
    an_add_removed,
    an_older_state,
    forget,
    some_file,
)
from tests.pipeline.tables.filling import folder_of
from tests.pipeline.tables.test_ingest import DAY_MS, TIME_MS, StoppedClock, lines_of

NOW = StoppedClock(TIME_MS)
BATCHES = (
    [
        *(event_line(number, time_ms=TIME_MS - number % 3 * DAY_MS) for number in range(9)),
        "junk",
        login_line(1),
    ],
    [
        event_line(number, principal_name="eve", time_ms=TIME_MS - number % 2 * DAY_MS)
        for number in range(9, 14)
    ],
)
RUNS_OF_BATCHES = {f"run-{number}" for number in range(len(BATCHES))}


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checked") / "tables"
    for number, batch in enumerate(BATCHES):
        ingest(spark, lines_of(spark, *batch), Tables(folder), f"run-{number}", clock=NOW)
    Tables(folder).replace("spans", spark.range(2))
    return folder


@pytest.fixture
def tables(filled: Path, tmp_path: Path) -> Iterator[Tables]:
    forget()
    yield Tables(Path(shutil.copytree(filled, tmp_path / "tables")))
    forget()


def test_whole_tables_are_whole(spark: SparkSession, tables: Tables) -> None:
    steps: list[str] = []
    found = check_tables(spark, tables, steps.append)
    assert steps == list(CHECK_STEPS)
    assert found.faults == ()
    assert found.is_whole
    rows = {each.table: each.rows for each in found.tables}
    assert rows == {
        "audit_events": 14,
        "audit_rollup": 5,
        "quarantine": 1,
        "runs": 3,
        "security_events": 1,
        "spans": 2,
    }
    assert found.days == 3
    assert not [each for each in found.tables if each.orphans]


def test_days_without_a_roll_up_and_without_events_are_whole(spark: SparkSession, tables: Tables) -> None:
    drop_expired(tables, Retention(days=1), clock=NOW)
    streamed = IngestOptions(with_rollup=False)
    ingest(spark, lines_of(spark, event_line(77, time_ms=TIME_MS)), tables, "s@2", options=streamed)
    found = check_tables(spark, tables)
    assert (found.faults, found.days, found.stale_days) == ((), 1, ("2026-11-21",))
    assert check_tables(spark, Tables(folder_of(tables) / "nowhere")) == TablesCheck()


@pytest.mark.parametrize("table", ["audit_events", "audit_rollup", "quarantine", "spans"])
@pytest.mark.parametrize(
    "damage", [an_add_removed, a_file_gone, a_file_replaced, a_foreign_vacuum, a_table_gone]
)
def test_what_opening_a_table_finds_is_found(
    spark: SparkSession, tables: Tables, damage: Callable[[Path], str], table: str
) -> None:
    said = damage(folder_of(tables) / table)
    found = check_tables(spark, tables)  # also of files that this process has checked before
    assert {each.table for each in found.faults} >= {table}
    assert said in " ".join(f"{each.file} {each.what}" for each in found.faults)
    assert not [each for each in found.faults if not each.run or not each.remedy]


def two_older_states(table: Path) -> None:
    """Take away two commits: without the last one alone, `runs` is as before a run that was killed."""
    for _ in range(2):
        an_older_state(table)


@pytest.mark.parametrize("damage", [two_older_states, a_gap_in_the_log])
@pytest.mark.parametrize("table", ["audit_events", "runs"])
def test_a_log_that_ends_early_or_has_a_gap_is_found(
    spark: SparkSession, tables: Tables, damage: Callable[[Path], object], table: str
) -> None:
    damage(folder_of(tables) / table)
    forget()
    assert table in " ".join(each.what for each in check_tables(spark, tables).faults)


def rewritten(file: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Replace a file by one of other rows and the same size."""
    size, missing = file.stat().st_size, 1
    rows = change(parquet.ParquetFile(file).read())
    for _ in range(8):
        with parquet.ParquetWriter(file, rows.schema, **SMALL) as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata({"padding": "x" * missing})
        if file.stat().st_size == size:
            return
        missing += size - file.stat().st_size
        assert missing > 0
    raise AssertionError("no file of this size")


SMALL: Any = {
    "store_schema": False,
    "write_statistics": False,
    "use_dictionary": False,
    "compression": "zstd",
}


def with_text(column: str, text: str) -> Callable[[pa.Table], pa.Table]:
    def change(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index(column)
        return rows.set_column(place, column, pa.array([text] * rows.num_rows))

    return change


def only_the_first_row(rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows.slice(0, 1)] * len(rows))


def on_opening(tables: Tables) -> list[Any]:
    return [tables.snapshot(name) for name in tables.state().versions]


@pytest.mark.parametrize(
    ("table", "change", "said"),
    [
        ("audit_events", with_text("principal_name", "mallory"), "the roll-up of 2026-11-19 has"),
        ("audit_rollup", with_text("principal", "User:mallory"), "the roll-up of 2026-11-19 has"),
        ("audit_events", lambda rows: rows.slice(1), "rows by its footer, but"),
        (
            "quarantine",
            lambda rows: pa.concat_tables([rows, rows]),
            "has 2 rows by its footer, but 1 by the log",
        ),
        ("audit_events", with_text("time_ms", "soon"), "cannot be compared with other files of its day"),
        ("audit_events", only_the_first_row, "occurs a second time, first"),
    ],
)
def test_a_file_of_the_same_size_with_other_rows_is_found(
    spark: SparkSession, tables: Tables, table: str, change: Callable[[pa.Table], pa.Table], said: str
) -> None:
    file = some_file(folder_of(tables) / table)
    rewritten(file, change)
    forget()
    on_opening(tables)
    found = check_tables(spark, tables)
    assert not found.is_whole
    named = [each for each in found.faults if said in each.what]
    assert named
    assert named[0].file is not None
    if table != "audit_events" or "roll-up" not in said:
        assert {each.file for each in named} == {str(file.relative_to(folder_of(tables) / table))}
    assert {each.run for each in named} <= RUNS_OF_BATCHES | {tables.state().run_id}
    if table == "audit_rollup":
        wanted = sorted(map(repr, Tables(folder_of(tables)).read(spark, "audit_rollup").collect()))
        file.unlink()
        forget()
        assert sorted(map(repr, tables.read(spark, "audit_rollup").collect())) != wanted
        assert check_tables(spark, tables).is_whole


def test_a_page_that_cannot_be_read_is_found(spark: SparkSession, tables: Tables) -> None:
    file = some_file(folder_of(tables) / "audit_events")
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    file.write_bytes(content)
    forget()
    on_opening(tables)
    [fault] = check_tables(spark, tables).faults
    assert (fault.table, fault.run) == ("audit_events", "run-0")
    assert file.name in (fault.file or "")
    assert fault.what.startswith("cannot be read: ")


def test_ids_that_occur_twice_in_two_files_are_found(spark: SparkSession, tables: Tables) -> None:
    place = folder_of(tables) / "audit_events"
    days = [file for file in files_of(DeltaTable(str(place))) if file.day == "2026-11-21"]
    assert len(days) == 2
    row = parquet.ParquetFile(place / days[0].name).read().slice(0, 1)
    for file in days:
        rewritten(place / file.name, lambda table: pa.concat_tables([row] * len(table)))
    forget()
    found = [each for each in check_tables(spark, tables).faults if "event id" in each.what]
    assert len(found) > 2
    assert {each.file for each in found} == {file.name for file in days}


def test_events_that_share_an_id_but_not_their_content_are_no_fault(
    spark: SparkSession, tables: Tables
) -> None:
    ingest(spark, lines_of(spark, event_line(3, principal_name="mallory", time_ms=TIME_MS)), tables, "forged")
    found = check_tables(spark, tables)
    assert found.faults == ()


def test_files_that_no_commit_names_are_listed_and_stay(spark: SparkSession, tables: Tables) -> None:
    orphan = folder_of(tables) / "audit_events" / "day=2026-11-21" / "part-of-a-killed-run.parquet"
    orphan.write_bytes(b"half")
    DeltaTable(str(folder_of(tables) / "audit_rollup")).optimize.compact()
    found = check_tables(spark, tables)
    assert found.is_whole
    assert {each.table: each.orphans for each in found.tables if each.orphans} == {
        "audit_events": ("day=2026-11-21/part-of-a-killed-run.parquet",)
    }
    assert orphan.exists()
