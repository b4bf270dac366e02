"""Writes lines by their outcomes: events by day, and quarantined lines."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, QUARANTINE_SCHEMA, SECURITY_EVENTS_SCHEMA
from kustos.pipeline.stages.classify import MAXIMUM_QUARANTINED_CHARACTERS
from kustos.pipeline.stages.dedupe import EVENT, QUARANTINED
from kustos.pipeline.stages.dedupe_outcomes import DedupeOutcome
from kustos.runtime import SystemEntropy

FEW_LINES: Final = 20_000
"""So few lines the driver writes faster than Spark plans tasks, and into one file a day."""

FEW_BYTES: Final = 64 * 2**20
"""With more bytes tasks write even few lines: lines may be long, and the driver holds all of them at once."""

_EVENTS: Final = to_arrow_schema(AUDIT_EVENTS_SCHEMA, timezone="UTC")
_QUARANTINE: Final = to_arrow_schema(QUARANTINE_SCHEMA)
_SECURITY: Final = to_arrow_schema(SECURITY_EVENTS_SCHEMA, timezone="UTC")
_READ: Final = list(dict.fromkeys((*_EVENTS.names, *_SECURITY.names)))
_NOT_CODED: Final = ("event_id", "time_ms", "first_time_ms", "time")


@dataclass(frozen=True, slots=True)
class Places:
    """The folders for decisions and security events (with a folder for each day) and quarantined lines."""

    events: Path
    security: Path
    quarantine: Path


def write_short(
    spark: SparkSession,
    files: Sequence[Path],
    verdicts: Sequence[DedupeOutcome],
    places: Places,
    *,
    are_few: bool,
) -> None:
    """Write the lines of staged files by their `verdicts`; lines without one are events.

    Without lines to keep, nothing is written.
    """
    of_file: dict[int, list[DedupeOutcome]] = {}
    for each in verdicts:
        of_file.setdefault(each.file, []).append(each)
    file_verdicts = [(file, of_file.get(number, [])) for number, file in enumerate(files)]
    if are_few:
        _write(file_verdicts, places)
        return

    aside = Places(
        places.events.with_name("_events_written"),
        places.security.with_name("_security_written"),
        places.quarantine.with_name("_lines_written"),
    )

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield pa.RecordBatch.from_arrays(
                    [pa.array([_write([file_verdicts[number]], aside)])], names=["name"]
                )

    found = (
        spark.range(0, len(file_verdicts), 1, len(file_verdicts)).mapInArrow(write, "name string").collect()
    )
    names = {row["name"] for row in found}
    _take(aside.events, places.events, names)
    _take(aside.security, places.security, names)
    _take(aside.quarantine, places.quarantine, names)


def _take(aside: Path, place: Path, names: set[str]) -> None:
    """Move the files of reported tasks into place; of a repeated task only the reported attempt counts.

    Another attempt may still be running, and its files are not moved.
    """
    for file in sorted(aside.rglob("*.parquet")):
        if file.name in names:
            target = place / file.relative_to(aside)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.rename(target)
    shutil.rmtree(aside, ignore_errors=True)


def _write(file_verdicts: Sequence[tuple[Path, Sequence[DedupeOutcome]]], places: Places) -> str:
    """Write the lines of these files by their outcomes; return the name of the written files."""
    name = f"part-{SystemEntropy().uuid().hex}.parquet"
    events = pa.concat_tables([_events(file, verdicts) for file, verdicts in file_verdicts])
    is_decision = events["event_type"].is_null()
    if pc.all(is_decision).as_py():
        _write_by_day(events, _EVENTS, places.events, name)
    else:
        _write_by_day(events.filter(is_decision), _EVENTS, places.events, name)
        _write_by_day(events.filter(pc.invert(is_decision)), _SECURITY, places.security, name)
    lines = pa.concat_tables([_quarantined(file, verdicts) for file, verdicts in file_verdicts])
    if lines.num_rows:
        places.quarantine.mkdir(parents=True, exist_ok=True)
        parquet.write_table(lines, places.quarantine / name)
    return name


def _write_by_day(events: pa.Table, schema: pa.Schema, place: Path, name: str) -> None:
    coded = [each for each in schema.names if each not in _NOT_CODED]
    for day in pc.unique(events["day"]).to_pylist():
        is_of = pc.equal(events["day"], day)
        rows = events if pc.all(is_of).as_py() else events.filter(is_of)
        folder = place / f"day={day.isoformat()}"
        folder.mkdir(parents=True, exist_ok=True)
        parquet.write_table(rows.select(schema.names), folder / name, use_dictionary=coded)


def _events(file: Path, verdicts: Sequence[DedupeOutcome]) -> pa.Table:
    """Return the events of a staged file, with `day`."""
    table = parquet.read_table(file, columns=[*_READ, "line_key", "day"], partitioning=None)
    if table["event_id"].null_count:
        occurrences = np.ones(table.num_rows, dtype=np.int64)
        for each in verdicts:
            occurrences[each.row] = each.occurrence
        numbers = pa.array(occurrences).cast(pa.string())
        generated = pc.binary_join_element_wise(table["line_key"], numbers, "-")
        place = table.schema.get_field_index("event_id")
        table = table.set_column(place, "event_id", pc.coalesce(table["event_id"], generated))
    others = [each.row for each in verdicts if each.outcome != EVENT]
    if others:
        is_event = np.ones(table.num_rows, dtype=bool)
        is_event[others] = False
        table = table.filter(pa.array(is_event))
    return table.drop_columns("line_key")


def _quarantined(file: Path, verdicts: Sequence[DedupeOutcome]) -> pa.Table:
    """Return the rows of `quarantine` from a staged file."""
    held = [each for each in verdicts if each.outcome == QUARANTINED]
    if not held:
        return _QUARANTINE.empty_table()
    rows = [each.row for each in held]
    table = parquet.read_table(file, columns=["source_file", "line"], partitioning=None).take(rows)
    lines = [each.decode(errors="replace") for each in table["line"].cast(pa.binary()).to_pylist()]
    columns = {
        "file": table["source_file"].to_pylist(),
        "reason": [each.reason for each in held],
        "line": [line[:MAXIMUM_QUARANTINED_CHARACTERS] for line in lines],
        "line_length": [len(line) for line in lines],
        "line_id": [each.line_id for each in held],
    }
    return pa.table(columns, schema=_QUARANTINE)
