"""What a task stages is read again, group by group, and only as far as it is wanted."""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kustos.pipeline.columns.codes import CODED
from kustos.pipeline.tables.staged_files import StagedReader, staged_writer

SCHEMA = pa.schema(
    [
        ("name", CODED),
        ("rule", pa.struct([("kind", CODED), ("count", pa.int32())])),
        ("line", pa.string()),
        ("day", pa.date32()),
    ]
)
GROUPS: list[list[dict[str, Any]]] = [
    [
        {"name": "a", "rule": {"kind": "x", "count": 1}, "line": "first", "day": date(2026, 11, 2)},
        {"name": None, "rule": None, "line": "second", "day": date(2026, 11, 1)},
    ],
    [{"name": "b", "rule": {"kind": None, "count": None}, "line": "third", "day": None}],
    [{"name": "b", "rule": {"kind": "y", "count": 2}, "line": "", "day": date(2026, 11, 3)}] * 3,
]


@pytest.fixture
def staged(tmp_path: Path) -> Path:
    place = tmp_path / "folder" / "staged.lines"
    with staged_writer(place) as writer:
        for rows in GROUPS:
            columns = [pa.array([row[field.name] for row in rows], field.type) for field in SCHEMA]
            writer.write(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
    return place


def test_groups_are_read_as_they_were_written(staged: Path) -> None:
    with StagedReader.of(staged) as content:
        found = [content.read(group, SCHEMA.names) for group in content.groups]
    rows = [row for group in GROUPS for row in group]
    assert [row for table in found for row in table.to_pylist()] == [
        {**row, "row": number} for number, row in enumerate(rows)
    ]
    together = pa.concat_tables(found)
    assert together.schema.field("name").type == CODED
    assert together.unify_dictionaries().drop_columns("row").to_pylist() == rows


def test_groups_say_which_days_they_have(staged: Path) -> None:
    with StagedReader.of(staged) as content:
        days = [(group.first_day, group.last_day) for group in content.groups]
    assert days == [
        (date(2026, 11, 1), date(2026, 11, 2)),
        (None, None),
        (date(2026, 11, 3), date(2026, 11, 3)),
    ]


@pytest.mark.parametrize("columns", [["day"], ["line"], ["line", "name"], ["rule", "line"]])
def test_only_the_columns_that_are_wanted_are_read(staged: Path, columns: list[str]) -> None:
    with StagedReader.of(staged) as content:
        last = content.read(content.groups[-1], columns)
    assert last.column_names == [*columns, "row"]
    assert last.to_pylist() == [
        {**{name: GROUPS[-1][0][name] for name in columns}, "row": row} for row in (3, 4, 5)
    ]


def test_a_file_that_was_not_ended_is_not_read(staged: Path) -> None:
    staged.write_bytes(staged.read_bytes()[:-20])
    with pytest.raises((OSError, pa.ArrowInvalid)), StagedReader.of(staged):
        pass
