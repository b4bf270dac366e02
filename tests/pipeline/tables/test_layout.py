"""What is on disk: small files become few, tables of older and newer versions are read."""

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.schemas import LINES_SCHEMA
from kustos.pipeline.tables import SchemaConflictError, Tables, TablesDamagedError, compact_tables, ingest
from kustos.pipeline.tables.delta import new_name, write_file
from kustos.pipeline.tables.layout import stored_schema
from kustos.pipeline.tables.runs import UPKEEP
from kustos.pipeline.tables.transaction import Write
from tests.pipeline.events import event_line
from tests.pipeline.tables.dying import deaths
from tests.pipeline.tables.filling import fill, folder_of

DAY = "2026-11-21"


def take(spark: SparkSession, tables: Tables, run_id: str, *lines: str) -> None:
    ingest(spark, spark.createDataFrame([("f", line) for line in lines], LINES_SCHEMA), tables, run_id)


def rewrite(tables: Tables, **changes: Any) -> None:
    """Put other columns in place of those of a day's only file, as another version had written it."""
    (path,) = tables.files("audit_events")
    table = pyarrow.parquet.ParquetFile(path).read()
    schema = stored_schema("audit_events")
    for column, values in changes.items():
        if column in table.column_names:
            table = table.drop_columns([column])
        if values is not None:
            table = table.append_column(column, values)
        if column not in schema.names:
            schema = schema.append(pyarrow.field(column, values.type))
    with tables.transaction() as change:
        place, name = change.place("audit_events"), new_name(change.mark, DAY)
        change.add(
            "audit_events", [write_file(place, name, table, DAY, use_deprecated_int96_timestamps=True)]
        )
        change.commit("other", UPKEEP, [Write(table="audit_events", schema=schema, replaces=(DAY,))])


def test_texts_of_events_are_codes_also_within_the_rule(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    take(spark, tables, "run", event_line(1), event_line(1, host="10.0.0.8"), event_line(2))
    (path,) = tables.files("audit_events")
    content = pyarrow.parquet.ParquetFile(path)
    columns = [content.metadata.row_group(0).column(n) for n in range(content.metadata.num_columns)]
    texts = [column for column in columns if column.physical_type == "BYTE_ARRAY"]
    assert [c.path_in_schema for c in texts if "RLE_DICTIONARY" not in c.encodings] == ["event_id"]
    found = (
        content.schema_arrow.field("rule").type.field("kind").type,
        content.schema_arrow.field("host").type,
    )
    assert found == (pyarrow.string(), pyarrow.string())


def identifiers(rows: DataFrame) -> list[str]:
    return sorted(row["event_id"][-1] for row in rows.collect())


def test_older_and_newer_tables_are_read_compacted_and_go_on(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    take(spark, tables, "old", event_line(1))
    rewrite(tables, forwarded_by=None, rule=pyarrow.array([{"kind": "SuperUser"}]))
    rewrite(tables, added_later=pyarrow.array([7]), api_key=pyarrow.array([1], pyarrow.int16()))
    take(spark, tables, "new", event_line(2, forwarded_by="User:gate"), event_line(3))
    rows = tables.read(spark, "audit_events")
    assert identifiers(rows) == ["1", "2", "3"]
    assert "added_later" not in rows.columns
    assert identifiers(rows.filter("forwarded_by is null and rule.host is null")) == ["1", "3"]
    before = sorted(map(repr, rows.collect()))
    assert compact_tables(tables, most_files=1) == (f"audit_events/day={DAY}",)
    assert sorted(map(repr, tables.read(spark, "audit_events").collect())) == before
    assert sorted(map(repr, rows.collect())) == before, "who began to read before reads to the end"
    (path,) = tables.files("audit_events")
    kept = pyarrow.parquet.read_table(path, partitioning=None)
    assert sorted(kept["added_later"].to_pylist(), key=str) == [7, None, None]


def lines_by_file(tables: Tables) -> list[list[str]]:
    """Return the quarantined lines of each file, in order."""
    files = [pyarrow.parquet.ParquetFile(path).read(["line"]) for path in tables.files("quarantine")]
    return sorted(file["line"].to_pylist() for file in files)


def test_dead_anywhere_days_are_compacted_or_not_and_no_row_changes(tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables")
    for number in range(6):
        line = pyarrow.table({"line": [f"junk {number}"]})
        fill(tables, "quarantine", {("2026-11-20", DAY)[number % 2]: line})
    before = lines_by_file(tables)
    after = [[f"junk {number}" for number in numbers] for numbers in ((0, 2, 4), (1, 3, 5))]
    seen = []
    for folder in deaths(folder_of(tables), lambda folder: compact_tables(Tables(folder), most_files=2)):
        found = [sorted(lines) for lines in lines_by_file(Tables(folder))]
        assert found in (before, after)
        seen.append(found)
        compact_tables(Tables(folder), most_files=2)
        assert [sorted(lines) for lines in lines_by_file(Tables(folder))] == after
    assert before in seen
    assert after in seen[:-1], "it also died after the commit"


def test_a_type_that_cannot_be_read_as_ours_is_named(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    take(spark, tables, "a", event_line(1))
    rewrite(tables, time_ms=pyarrow.array(["soon"]))
    with pytest.raises(SchemaConflictError, match=r"column `time_ms` of `.*parquet` is string, not bigint"):
        tables.read(spark, "audit_events")
    with pytest.raises(SchemaConflictError, match="column `time_ms`"):
        take(spark, tables, "b", event_line(2))
    (file,) = tables.snapshot("audit_events")
    (tmp_path / "audit_events" / file.name).write_bytes(b"PAR1")
    with pytest.raises(TablesDamagedError, match="is not a readable Parquet file"):
        tables.read(spark, "audit_events")


def test_a_day_without_its_roll_up_is_rolled_up_from_its_events(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    take(spark, tables, "a", event_line(1))
    with tables.transaction() as change:
        write = Write(table="audit_rollup", schema=stored_schema("audit_rollup"), replaces=(DAY,))
        change.commit("drop", UPKEEP, [write])
    take(spark, tables, "b", event_line(2))
    assert tables.read(spark, "audit_rollup").agg(sql.sum("event_count")).collect()[0][0] == 2
