"""A run beside files that others wrote, and beside ids that somebody forged; no Spark is needed for it."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kustos.pipeline.lines.generated_ids import line_digest
from kustos.pipeline.tables.deduplication.of_runs import deduplicate_lines
from kustos.pipeline.tables.deduplication.outcomes import EVENT
from kustos.pipeline.tables.line_writer import Places, write_lines
from kustos.pipeline.tables.staging import _staged, staged_of
from kustos.pipeline.tables.stored import StoredFile, StoredFiles
from tests.pipeline.events import event_line, kafka_line

TIME_MS = 1_795_233_600_123
HOUR_MS = 3_600_000
ID = "00000000-0000-0000-0000-000000000001"
NO_SPARK: Any = None


def taken(folder: Path, *runs: Sequence[str]) -> list[str]:
    """Take runs of lines of one file; return of each what its lines became, in letters and in their order."""
    places = Places(folder / "events", folder / "security", folder / "quarantine", "2026-11-23", "test")
    told = []
    for lines in runs:
        stored = [sorted((folder / name).rglob("*.parquet")) for name in ("events", "quarantine")]
        batch = pa.RecordBatch.from_pydict({"file": ["f"] * len(lines), "line": list(lines)})
        staging = folder / f"staged{len(list(folder.glob('staged*')))}"
        staging.mkdir(parents=True)
        found = [row for each in _staged([batch], staging, "UTC") for row in each.to_pylist()]
        staged = staged_of(found, staging)
        files = StoredFiles(
            tuple(StoredFile(path, 1, date.fromisoformat(path.parent.name[4:])) for path in stored[0]),
            tuple(StoredFile(path, 1) for path in stored[1]),
            *staged.around(HOUR_MS),
        )
        judged = deduplicate_lines(NO_SPARK, staged, files, staging / "outcomes")
        write_lines(NO_SPARK, staged, judged, places)
        outcomes = {row["row"]: row["outcome"] for row in judged.of_file(0).to_pylist()}
        told.append("".join(outcomes.get(row, EVENT)[0] for row in range(len(lines))))
    return told


def test_an_empty_id_is_an_id(tmp_path: Path) -> None:
    line = event_line().replace(ID, "")
    assert taken(tmp_path, [line, line], [line]) == ["ed", "d"]


@pytest.mark.parametrize("end", ["", "-1", "-2"])
def test_nobody_brings_the_id_that_another_line_gets(tmp_path: Path, end: str) -> None:
    honest = kafka_line()
    forged = event_line().replace(ID, f"kafka-{line_digest('f', None, honest.encode())}{end}")
    assert taken(tmp_path, [forged], [honest, honest, forged], [honest, forged, honest]) == [
        "q",
        "eed",
        "ddd",
    ]
    (file,) = (tmp_path / "quarantine").rglob("*.parquet")
    assert parquet.read_table(file, partitioning=None)["reason"].to_pylist() == ["event_id_reserved"]


def test_of_two_stored_events_of_an_id_each_is_known_again(tmp_path: Path) -> None:
    early, late = event_line(), event_line(time_ms=TIME_MS + 3 * HOUR_MS)
    runs = [[early], [late], [early], [late], [early, late, event_line(2)], [early, late]]
    assert taken(tmp_path, *runs) == ["e", "e", "d", "d", "dde", "dd"]


@pytest.mark.parametrize("lacking", [set(), {"client_id", "rule.host"}])
def test_a_copy_is_known_beside_files_of_other_versions(tmp_path: Path, lacking: set[str]) -> None:
    assert taken(tmp_path, [event_line()]) == ["e"]
    (file,) = (tmp_path / "events").rglob("*.parquet")
    table = parquet.read_table(file, partitioning=None)
    rule = {name: value for name, value in table["rule"][0].as_py().items() if f"rule.{name}" not in lacking}
    kept = [name for name in table.column_names if name not in {"rule", "event_id"} | lacking]
    table = (
        table.select(kept)
        .append_column("rule", pa.array([rule | {"of_tomorrow": "x"}]))
        .append_column("event_id", table["event_id"].cast(pa.large_string()))
    )
    parquet.write_table(table, file, write_statistics=False)
    assert taken(tmp_path, [event_line()], [event_line(principal_name="eve")]) == ["d", "e"]


def test_a_file_without_rows_hinders_no_run(tmp_path: Path) -> None:
    assert taken(tmp_path, [event_line()]) == ["e"]
    (file,) = (tmp_path / "events").rglob("*.parquet")
    # as Spark writes it for a first task that has nothing: without a group of rows
    empty = file.with_name("part-0.parquet")
    parquet.ParquetWriter(empty, parquet.read_schema(file)).close()
    assert parquet.read_metadata(empty).num_row_groups == 0
    assert taken(tmp_path, [event_line(), event_line(2)]) == ["de"]


def test_a_folder_may_be_called_as_one_likes(tmp_path: Path) -> None:
    lines = [event_line(), kafka_line(), "junk"]
    runs = [lines, [*lines, event_line(2)]]
    assert taken(tmp_path / "[1] a%20b=c {x}é #", *runs) == ["eeq", "ddde"]


def test_staged_lines_tell_how_much_text_they_are_known_by(tmp_path: Path) -> None:
    lines = [event_line().replace(ID, "x" * 200_000), event_line(2), kafka_line(), "junk"]
    halves = [
        pa.RecordBatch.from_pydict({"file": ["f"] * 2, "line": part}) for part in (lines[:2], lines[2:])
    ]
    ((row,),) = (each.to_pylist() for each in _staged(halves, tmp_path, "UTC"))
    assert 200_000 < row["key_bytes"] < 201_000
    assert 2 * 200_000 < row["total_bytes"] < 2 * 200_000 + 20_000
