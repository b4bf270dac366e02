"""Runs of few lines: deduplicated by the driver in columns, without a Spark plan.

Theory of operation. Nearly every line of a run is a new event. A few columns show which lines may be
something else: no event, a repeated key, a stored id, a time too long ago. `verdicts` judges these suspects
one by one; all others are events. Then each staged file is written again with its lines' outcomes: by the
driver if the lines are very few, else by a task each. In Spark this would be a join and a window, with
seconds of planning for each micro-batch; here it is a lookup in two columns, within the limits of the
driver's memory.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from kustos.pipeline.places import Place, source_of
from kustos.pipeline.stages.dedupe_outcomes import DedupeOutcome, Stored, Suspect, verdicts
from kustos.pipeline.stages.generated_ids import LINE_ID_BEGIN, line_digest, numbered
from kustos.pipeline.tables.staging import StagedLines
from kustos.pipeline.tables.stored import (
    contents,
    event_ids,
    events_by_id,
    files_of_time,
    line_ids,
    read_contents,
    rows_of,
)

SHORT_LINES_MAX: Final = 2_000_000
"""The keys of so many lines take the driver nearly a gigabyte while it compares them, 400 bytes each."""

SHORT_KEY_BYTES_MAX: Final = 512 * 2**20
"""Keys with more text are no common run: an id may be as long as a line."""

STORED_ROWS_MAX: Final = 8_000_000
"""With more stored events Spark deduplicates the run: reading their ids takes a second or two here."""

SUSPECTS_MAX: Final = 100_000
"""Lines judged one by one, with up to 4 kB of text each; with more suspects nearly all lines are copies."""

_KEYS: Final = [name for name in Suspect._fields if name not in ("file", "row")]


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """Files of the tables to compare a run with, and the span of time."""

    events: tuple[Place, ...]
    quarantine: tuple[Place, ...]
    first_time_ms: int
    last_time_ms: int

    @classmethod
    def of(
        cls, events: Sequence[Place], quarantine: Sequence[Place], around: tuple[int, int]
    ) -> "StoredFiles | None":
        """Return those of these files within the span; None for more than `STORED_ROWS_MAX` rows."""
        files, rows = files_of_time(events, *around)
        if rows + rows_of(quarantine) > STORED_ROWS_MAX:
            return None
        return cls(tuple(files), tuple(quarantine), *around)


def deduplicate_short(
    staged: StagedLines, stored: StoredFiles, oldest_time_ms: int | None
) -> list[DedupeOutcome] | None:
    """Return the verdicts on all lines that may be no new event; every other line is one.

    None if these are more than `SUSPECTS_MAX`.
    """
    if not staged.files:
        return []
    keys = pa.concat_tables([_keys_of(file, number) for number, file in enumerate(staged.files)])
    marked = _marked(keys, stored, oldest_time_ms)
    if marked.num_rows > SUSPECTS_MAX:
        return None
    found = [Suspect(*values) for values in zip(*marked.to_pydict().values(), strict=True)]
    if not found:
        return []
    beside = Stored(
        events=events_by_id(stored.events, _possible_ids(found), stored.first_time_ms, stored.last_time_ms),
        line_ids=_LineIds(stored.quarantine),
        oldest_time_ms=oldest_time_ms,
    )
    return list(verdicts(found, _Texts(staged.files, found), beside))


def _keys_of(file: Place, number: int) -> pa.Table:
    """Return the columns that identify suspects, with each line's file and row."""
    table = parquet.read_table(source_of(file), columns=_KEYS, partitioning=None)
    table = table.append_column("file", pa.repeat(number, table.num_rows))
    return table.append_column("row", pa.array(np.arange(table.num_rows)))


def _marked(keys: pa.Table, stored: StoredFiles, oldest_time_ms: int | None) -> pa.Table:
    """Return, as columns of `Suspect`, the lines that may be no new event, and all lines with their keys."""
    key = pc.coalesce(keys["event_id"], keys["line_key"])
    counts = pc.value_counts(key)
    values, numbers = counts.field("values"), counts.field("counts")
    conditions = (
        [pc.is_in(key, value_set=values.filter(pc.greater(numbers, 1)))] if len(values) < len(key) else []
    )
    if keys["reason"].null_count < len(key):
        conditions.append(keys["reason"].is_valid())
    if stored.events:
        # of equal lines of a log the first one is stored before the others
        named = pc.coalesce(keys["event_id"], pc.binary_join_element_wise(keys["line_key"], "1", "-"))
        ids = event_ids(stored.events, stored.first_time_ms, stored.last_time_ms)
        if len(ids) > len(named):  # build the hash table from the smaller set
            ids = ids.filter(pc.is_in(ids, value_set=named))
        conditions.append(pc.is_in(named, value_set=ids))
    if oldest_time_ms is not None:
        conditions.append(pc.less(keys["time_ms"], oldest_time_ms).fill_null(False))
    rows = keys.select(list(Suspect._fields))
    return rows.filter(reduce(pc.or_, conditions)) if conditions else rows.schema.empty_table()


def _possible_ids(suspects: Sequence[Suspect]) -> set[str]:
    """Return all ids that these lines may have as events."""
    repeated = Counter(each.line_key for each in suspects if each.event_id is None)
    generated = {numbered(key, number) for key, count in repeated.items() for number in range(1, count + 1)}
    return generated | {each.event_id for each in suspects if each.event_id is not None}


class _LineIds:
    """The ids of stored quarantined lines, read on first use."""

    def __init__(self, files: Sequence[Place]) -> None:
        self._files: Final = files
        self._found: frozenset[str] | None = None

    def __contains__(self, line_id: object) -> bool:
        if self._found is None:
            self._found = line_ids(self._files)
        return line_id in self._found


class _Texts:
    """The fields of suspects in the staged files; on first use, those of all suspects of a file are read."""

    def __init__(self, files: Sequence[Place], suspects: Sequence[Suspect]) -> None:
        self._files: Final = files
        self._rows: Final[dict[int, list[int]]] = {}
        for each in suspects:
            self._rows.setdefault(each.file, []).append(each.row)
        self._contents: Final[dict[int, dict[int, Any]]] = {}
        self._lines: Final[dict[int, dict[int, tuple[str, int | None, bytes]]]] = {}

    def content(self, suspect: Suspect) -> Any:
        """Return all fields of the event, for comparison."""
        if suspect.file not in self._contents:
            rows = self._rows[suspect.file]
            found = contents(read_contents(self._files[suspect.file]).take(rows))
            self._contents[suspect.file] = dict(zip(rows, found, strict=True))
        return self._contents[suspect.file][suspect.row]

    def order(self, suspect: Suspect) -> tuple[bytes, str, int]:
        """Return the sort key of copies in one file: line, log, and position there if known."""
        log, position, line = self._line(suspect)
        return line, log, -1 if position is None else position

    def line_id(self, suspect: Suspect) -> str:
        """Return the line id of a line with an event id of its own."""
        return LINE_ID_BEGIN + line_digest(*self._line(suspect))

    def _line(self, suspect: Suspect) -> tuple[str, int | None, bytes]:
        if suspect.file not in self._lines:
            rows, file = self._rows[suspect.file], self._files[suspect.file]
            table = parquet.read_table(
                source_of(file), columns=["log", "position", "line"], partitioning=None
            ).take(rows)
            lines = table["line"].cast(pa.binary()).to_pylist()
            found = zip(table["log"].to_pylist(), table["position"].to_pylist(), lines, strict=True)
            self._lines[suspect.file] = dict(zip(rows, found, strict=True))
        return self._lines[suspect.file][suspect.row]
