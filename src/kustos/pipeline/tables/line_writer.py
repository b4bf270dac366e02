"""Writes lines by their outcomes: events by day, and quarantined lines.

The driver writes few lines, a file for each day. Of more lines a task takes those of a staged file; or, if
that would be too many files, those of some days from all staged files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from kustos.pipeline.places import Place, in_parallel
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, CLUSTER, QUARANTINE_SCHEMA, SECURITY_EVENTS_SCHEMA
from kustos.pipeline.tables.deduplication.of_runs import Outcomes
from kustos.pipeline.tables.deduplication.outcomes import EVENT, QUARANTINED
from kustos.pipeline.tables.delta import NewFile, dictionary_paths, new_name, write_file
from kustos.pipeline.tables.parquet_writer import in_tasks, written_files
from kustos.pipeline.tables.staged_files import LINE, Group, StagedReader
from kustos.pipeline.tables.staging import StagedFile, StagedLines

FEW_LINES: Final = 20_000
"""So few lines the driver writes faster than Spark plans tasks, and into one file a day."""

FEW_BYTES: Final = 64 * 2**20
"""With more bytes tasks write even few lines: lines may be long, and the driver holds all of them at once."""

MAXIMUM_QUARANTINED_CHARACTERS: Final = 4_096
"""How much of a quarantined line is kept: enough to identify it, too little to fill a disk."""

PIECES_MAX: Final = 2_048
"""Files that a run writes: with more, each task takes whole days from all staged files."""

TASK_EVENTS: Final = 500_000
"""Events of the days that a task takes, unless a single day has more: as many as a staged file has."""

_EVENTS: Final = to_arrow_schema(AUDIT_EVENTS_SCHEMA, timezone="UTC")
_QUARANTINE: Final = to_arrow_schema(QUARANTINE_SCHEMA)
_SECURITY: Final = to_arrow_schema(SECURITY_EVENTS_SCHEMA, timezone="UTC")
_CONFLICT: Final = "conflicting_file"
_READ: Final = [
    name for name in dict.fromkeys((*_EVENTS.names, *_SECURITY.names, "line_key", "day")) if name != _CONFLICT
]
_LINES: Final = ("source_file", LINE, "day", CLUSTER)
_NOT_CODED: Final = ("event_id", "time_ms", "first_time_ms", "time")


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of decisions, security events and quarantined lines; `day` (ISO) is that of the latter.

    `mark` is in the names of the files. Without a `day` no table has days.
    """

    events: Place
    security: Place
    quarantine: Place
    day: str | None
    mark: str


@dataclass(frozen=True, slots=True)
class WrittenLines:
    """The files of each table."""

    events: list[NewFile]
    security: list[NewFile]
    quarantine: list[NewFile]


@dataclass(frozen=True, slots=True)
class _Piece:
    """What one task writes: of these staged files the events from the first to the last of some days.

    Without days all lines; `with_others` are those that have no day, which are no events.
    """

    numbers: tuple[int, ...]
    first: date | None = None
    last: date | None = None
    with_others: bool = True


_Written = list[tuple[str, NewFile]]


def write_lines(spark: SparkSession, staged: StagedLines, outcomes: Outcomes, places: Places) -> WrittenLines:
    """Write staged lines by their outcomes, return the files; lines without an outcome are events.

    Without lines to keep, nothing is written.
    """
    if not staged.files:
        return WrittenLines([], [], [])
    writer = _Writer(tuple(file.place for file in staged.files), outcomes, places)
    pieces = _pieces(staged)
    if staged.rows <= FEW_LINES and staged.total_bytes <= FEW_BYTES:
        found = writer.write(_Piece(tuple(range(len(staged.files)))))
        return WrittenLines(*([file for name, file in found if name == table] for table in _TABLES))
    rows = in_tasks(spark, len(pieces), lambda number: writer.write(pieces[number]))
    return WrittenLines(*(written_files(rows, name) for name in _TABLES))


_TABLES: Final = ("events", "security", "quarantine")


def _pieces(staged: StagedLines) -> list[_Piece]:
    """Return the pieces that tasks write, which together are all lines."""
    if sum(len(file.days) for file in staged.files) <= PIECES_MAX:
        return [_Piece((number,)) for number in range(len(staged.files))]
    pieces: list[_Piece] = []
    group: list[date] = []
    events = 0
    days = staged.days()
    for day in sorted(days):
        if group and events + days[day] > TASK_EVENTS:
            pieces.append(_of_days(staged.files, group, is_first=not pieces))
            group, events = [], 0
        group.append(day)
        events += days[day]
    return [*pieces, _of_days(staged.files, group, is_first=not pieces)]


def _of_days(files: Sequence[StagedFile], days: Sequence[date], *, is_first: bool) -> _Piece:
    wanted = set(days)
    numbers = [number for number, file in enumerate(files) if is_first or wanted & file.days.keys()]
    return _Piece(tuple(numbers), days[0], days[-1], with_others=is_first)


@dataclass(frozen=True, slots=True)
class _Writer:
    """The lines of a run and where they go, as a task has it."""

    files: tuple[Place, ...]
    outcomes: Outcomes
    places: Places

    def write(self, piece: _Piece) -> _Written:
        """Write the lines of a piece; return the written files."""
        of_file = [(number, self.outcomes.of_file(number)) for number in piece.numbers]
        events = pa.concat_tables([self._events(*each, piece) for each in of_file])
        decisions, others = _decisions_and_others(events)
        places = self.places
        written = [("events", file) for file in self._write_by_day(decisions, _EVENTS, places.events)]
        written += [("security", file) for file in self._write_by_day(others, _SECURITY, places.security)]
        lines = pa.concat_tables([self._quarantined(*each, piece) for each in of_file])
        if lines.num_rows:
            name = new_name(places.mark, places.day)
            file = write_file(places.quarantine, name, lines, places.day)
            written.append(("quarantine", file))
        return written

    def _write_by_day(self, events: pa.Table, schema: pa.Schema, place: Place) -> list[NewFile]:
        mark = self.places.mark
        if self.places.day is None:
            return [_write_events(place, new_name(mark), events, schema)] if events.num_rows else []

        def write(part: tuple[date, pa.Table]) -> NewFile:
            day = part[0].isoformat()
            return _write_events(place, new_name(mark, day), part[1], schema, day)

        return in_parallel(list(parts_by_day(events)), write)

    def _read(self, number: int, columns: Sequence[str], piece: _Piece) -> pa.Table:
        """Return columns of the lines of a staged file that the piece has, and their `row`.

        Columns of text come as codes, but for those with nearly no equal values.
        """
        with StagedReader.of(self.files[number]) as content:
            groups = [group for group in content.groups if _may_have(group, piece)]
            # without one, any group has the columns
            found = [_of_piece(content.read(group, columns), piece) for group in groups]
            return pa.concat_tables(found or [content.read(content.groups[0], columns).slice(0, 0)])

    def _events(self, number: int, outcomes: pa.Table, piece: _Piece) -> pa.Table:
        """Return the events of a staged file, with `day`."""
        table = self._read(number, _READ, piece)
        places = pc.index_in(table["row"], value_set=outcomes["row"].combine_chunks())
        if table["event_id"].null_count:
            occurrences = outcomes["occurrence"].take(places).fill_null(1).cast(pa.string())
            generated = pc.binary_join_element_wise(table["line_key"], occurrences, "-")
            at = table.schema.get_field_index("event_id")
            table = table.set_column(at, "event_id", pc.coalesce(table["event_id"], generated))
        table = table.append_column(_CONFLICT, outcomes[_CONFLICT].take(places))
        if outcomes.num_rows:
            is_event = pc.equal(outcomes["outcome"].take(places), EVENT).fill_null(True)
            table = table.filter(is_event)
        return table.drop_columns(["line_key", "row"])

    def _quarantined(self, number: int, outcomes: pa.Table, piece: _Piece) -> pa.Table:
        """Return the rows of `quarantine` from a staged file."""
        held = outcomes.filter(pc.equal(outcomes["outcome"], QUARANTINED))
        if not held.num_rows:
            return _QUARANTINE.empty_table()
        table = self._read(number, _LINES, piece)
        places = pc.index_in(table["row"], value_set=held["row"].combine_chunks())
        table, held = table.filter(places.is_valid()), held.take(places.drop_null())
        lines = [each.decode(errors="replace") for each in table[LINE].cast(pa.binary()).to_pylist()]
        columns = {
            "file": table["source_file"].cast(pa.string()),
            "reason": held["reason"],
            "line": [line[:MAXIMUM_QUARANTINED_CHARACTERS] for line in lines],
            "line_length": [len(line) for line in lines],
            "line_id": held["line_id"],
            CLUSTER: table[CLUSTER].cast(pa.string()),
        }
        return pa.table(columns, schema=_QUARANTINE)


def _decisions_and_others(events: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the decisions among events, which nearly always are all of them, and the others."""
    types = events["event_type"]
    if types.null_count == len(types):
        return events, events.slice(0, 0)
    is_decision = types.is_null()
    return events.filter(is_decision), events.filter(pc.invert(is_decision))


def _write_events(
    place: Place, name: str, events: pa.Table, schema: pa.Schema, day: str | None = None
) -> NewFile:
    """Write events, whose columns may be codes, as columns of text."""
    # of several dictionaries Arrow writes the first one only, and text from there on
    rows = events.select(schema.names).unify_dictionaries()
    coded = dictionary_paths(schema, _NOT_CODED)
    # without Arrow's own schema, which would have readers take codes for the type of a column
    return write_file(place, name, rows, day, use_dictionary=coded, store_schema=False)


def parts_by_day(rows: pa.Table) -> Iterator[tuple[date, pa.Table]]:
    """Yield the rows of each day, in their order."""
    days = rows["day"].cast(pa.int32()).combine_chunks().to_numpy()
    found, counts = np.unique(days, return_counts=True)
    ordered = rows if len(found) < 2 else rows.take(pa.array(np.argsort(days, kind="stable")))
    start = 0
    for day, count in zip(found.tolist(), counts.tolist(), strict=True):
        yield date.fromordinal(date(1970, 1, 1).toordinal() + day), ordered.slice(start, count)
        start += count


def _may_have(group: Group, piece: _Piece) -> bool:
    """Return whether a group of rows of a staged file may have lines of the piece."""
    if piece.first is None or piece.last is None or piece.with_others:
        return True
    if group.first_day is None or group.last_day is None:
        return False
    return bool(group.first_day <= piece.last and piece.first <= group.last_day)


def _of_piece(table: pa.Table, piece: _Piece) -> pa.Table:
    if piece.first is None or piece.last is None:
        return table
    day = table["day"]
    is_of = pc.and_(pc.greater_equal(day, piece.first), pc.less_equal(day, piece.last))
    return table.filter(is_of.fill_null(piece.with_others))
