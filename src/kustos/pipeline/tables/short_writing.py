"""Writes lines by their outcomes: events by day, and quarantined lines."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from kustos.pipeline.places import Place, source_of
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, QUARANTINE_SCHEMA, SECURITY_EVENTS_SCHEMA
from kustos.pipeline.stages.classify import MAXIMUM_QUARANTINED_CHARACTERS
from kustos.pipeline.stages.dedupe import EVENT, QUARANTINED
from kustos.pipeline.stages.dedupe_outcomes import DedupeOutcome
from kustos.pipeline.tables.delta import NewFile, new_name, write_file
from kustos.pipeline.tables.writing import WRITTEN_SCHEMA, files_told, told

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
    """The folders of decisions, security events and quarantined lines; `day` (ISO) is that of the latter.

    `mark` is in the names of the files.
    """

    events: Place
    security: Place
    quarantine: Place
    day: str
    mark: str


_Written = list[tuple[str, NewFile]]


@dataclass(frozen=True, slots=True)
class ShortlyWritten:
    """The files of each table."""

    events: list[NewFile]
    security: list[NewFile]
    quarantine: list[NewFile]


def write_short(
    spark: SparkSession,
    files: Sequence[Place],
    verdicts: Sequence[DedupeOutcome],
    places: Places,
    *,
    are_few: bool,
) -> ShortlyWritten:
    """Write the lines of staged files by their `verdicts`, return the files; lines without one are events.

    Without lines to keep, nothing is written.
    """
    of_file: dict[int, list[DedupeOutcome]] = {}
    for each in verdicts:
        of_file.setdefault(each.file, []).append(each)
    file_verdicts = [(file, of_file.get(number, [])) for number, file in enumerate(files)]

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield told(_write([file_verdicts[number]], places))

    if are_few:
        rows = told(_write(file_verdicts, places)).to_pylist()
    else:
        tasks = spark.range(0, len(file_verdicts), 1, len(file_verdicts))
        rows = tasks.mapInArrow(write, WRITTEN_SCHEMA).collect()
    return ShortlyWritten(*(files_told(rows, name) for name in ("events", "security", "quarantine")))


def _write(file_verdicts: Sequence[tuple[Place, Sequence[DedupeOutcome]]], places: Places) -> _Written:
    """Write the lines of these files by their outcomes; return the written files."""
    written: _Written = []
    events = pa.concat_tables([_events(file, verdicts) for file, verdicts in file_verdicts])
    is_decision = events["event_type"].is_null()
    decisions, others = events, events.slice(0, 0)
    if not pc.all(is_decision).as_py():
        decisions, others = events.filter(is_decision), events.filter(pc.invert(is_decision))
    day_files = _write_by_day(decisions, _EVENTS, places.events, places.mark)
    written += [("events", file) for file in day_files]
    day_files = _write_by_day(others, _SECURITY, places.security, places.mark)
    written += [("security", file) for file in day_files]
    lines = pa.concat_tables([_quarantined(file, verdicts) for file, verdicts in file_verdicts])
    if lines.num_rows:
        name = new_name(places.mark, places.day)
        written.append(("quarantine", write_file(places.quarantine, name, lines, places.day)))
    return written


def _write_by_day(events: pa.Table, schema: pa.Schema, place: Place, mark: str) -> Iterator[NewFile]:
    coded = [each for each in schema.names if each not in _NOT_CODED]
    for day in pc.unique(events["day"]).to_pylist():
        is_of = pc.equal(events["day"], day)
        rows = events if pc.all(is_of).as_py() else events.filter(is_of)
        name = new_name(mark, day.isoformat())
        yield write_file(place, name, rows.select(schema.names), day.isoformat(), use_dictionary=coded)


def _events(file: Place, verdicts: Sequence[DedupeOutcome]) -> pa.Table:
    """Return the events of a staged file, with `day`."""
    table = parquet.read_table(source_of(file), columns=[*_READ, "line_key", "day"], partitioning=None)
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


def _quarantined(file: Place, verdicts: Sequence[DedupeOutcome]) -> pa.Table:
    """Return the rows of `quarantine` from a staged file."""
    held = [each for each in verdicts if each.outcome == QUARANTINED]
    if not held:
        return _QUARANTINE.empty_table()
    rows = [each.row for each in held]
    table = parquet.read_table(source_of(file), columns=["source_file", "line"], partitioning=None).take(rows)
    lines = [each.decode(errors="replace") for each in table["line"].cast(pa.binary()).to_pylist()]
    columns = {
        "file": table["source_file"].to_pylist(),
        "reason": [each.reason for each in held],
        "line": [line[:MAXIMUM_QUARANTINED_CHARACTERS] for line in lines],
        "line_length": [len(line) for line in lines],
        "line_id": [each.line_id for each in held],
    }
    return pa.table(columns, schema=_QUARANTINE)
