"""Tables of versions before Delta, as those wrote them, become Delta tables with the same rows.

The archive holds tables that the last of those versions wrote: two runs over files, two batches of a stream,
an answer, and a run that was killed while it moved its files into place; and what that version read from
them.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.schemas import LINES_SCHEMA
from kustos.pipeline.tables import (
    IngestOptions,
    Tables,
    TablesDamagedError,
    TablesError,
    compact_tables,
    convert_tables,
    ingest,
)
from tests.pipeline.events import event_line
from tests.pipeline.tables.dying import died_at

ARCHIVE = Path(__file__).parents[1] / "data" / "tables-before-delta.tar.gz"


@pytest.fixture
def former(tmp_path: Path) -> Path:
    shutil.unpack_archive(ARCHIVE, tmp_path)
    return tmp_path / "tables"


def read(spark: SparkSession, tables: Tables, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return all rows, without the columns that came later, which are null, or an empty text."""
    found: dict[str, Any] = {}
    for name, rows in wanted.items():
        if name != "state":
            table = tables.read(spark, name)
            later = [column for column in table.columns if rows and f"{column}=" not in rows[0]]
            unnamed = None if name == "audit_raw" else ""
            assert {row["cluster"] for row in table.select("cluster").collect()} <= {unnamed}
            nulls = [column for column in later if column != "cluster"]
            assert table.dropna("all", subset=nulls).isEmpty() if nulls else True
            found[name] = sorted(map(repr, table.drop(*later).collect()))
    return found | {"state": state_of(tables)}


def state_of(tables: Tables) -> dict[str, Any]:
    state = tables.state()
    return {
        "runs": sorted(state.runs),
        "batches": {name: number for name, (number, _) in state.batches.items()},
        "newest_time_ms": state.newest_time_ms,
        "stale_days": sorted(state.stale_days),
        "closed_before": state.closed_before,
        "inputs": sorted(Path(path).name for path in tables.inputs()),
    }


def test_what_the_former_version_read_is_read_and_goes_on(spark: SparkSession, former: Path) -> None:
    tables = Tables(former)
    with pytest.raises(TablesError, match="convert them with `kustos pipeline convert`"):
        tables.read(spark, "audit_events")
    wanted = json.loads((former.parent / "wanted.json").read_text())
    converted = {one.table: one.rows for one in convert_tables(former)}
    assert converted == {name: len(rows) for name, rows in wanted.items() if name != "state"}
    assert read(spark, tables, wanted) == wanted
    with pytest.raises(TablesError, match="not of an earlier version"):
        convert_tables(former)
    again = {
        name: value
        for name, value in json.loads(event_line(20)).items()
        if f"{name}=" in wanted["audit_events"][0]
    }
    again["distinct_names"] = 0  # as the stored event has it
    lines = spark.createDataFrame([("f", json.dumps(again)), ("f", event_line(99))], LINES_SCHEMA)
    assert ingest(spark, lines, tables, "stream-1@4").is_repeat
    run = ingest(spark, lines, tables, "stream-1@5", options=IngestOptions(keep_raw=True))
    assert (run.events, run.duplicates) == (1, 1)
    before = sorted(map(repr, tables.read(spark, "audit_events").collect()))
    assert compact_tables(tables, most_files=1)
    assert sorted(map(repr, tables.read(spark, "audit_events").collect())) == before


def test_dead_at_every_step_it_begins_again(former: Path) -> None:
    wanted = json.loads((former.parent / "wanted.json").read_text())
    steps = 0
    while died_at(steps, lambda: convert_tables(former)):
        if not (former / "_ledger").is_dir():
            break
        with pytest.raises(TablesError, match="convert them"):
            Tables(former).state()
        steps += 5  # each attempt does all of it again
    assert state_of(Tables(former)) == wanted["state"]
    tables = Tables(former)
    for name in ("audit_events", "quarantine", "spans"):
        assert sum(file.rows for file in tables.snapshot(name)) == len(wanted[name])
    assert {file.day for file in tables.snapshot("quarantine")} == {"2026-11-22", "2026-11-23"}
    assert steps > 20


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"form": "delta"}, TablesError, "were kept as delta"),
        ({"sequence": None}, TablesDamagedError, "cannot be read"),
        ({"moves": [["x/y", "audit_events/gone"]]}, TablesDamagedError, "audit_events/gone` was committed"),
    ],
)
def test_what_cannot_be_converted_stays_as_it_is(
    former: Path, change: dict[str, Any], error: type[Exception], said: str
) -> None:
    (path,) = (former / "_ledger").glob("*5.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(error, match=said):
        convert_tables(former)
    assert path.exists()
