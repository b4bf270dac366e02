"""What tasks note while they read new files: which beginnings of logs lines hold, and times that go back.

Each task leaves a file of notes in the folder of the run; the driver puts them together once all were read.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from kustos.pipeline.places import Place, names_in, sink_of, source_of
from kustos.pipeline.run.files.beginnings import checksum, is_stamped, line_mark
from kustos.pipeline.run.files.pieces import Piece, PlacedLines
from kustos.runtime import SystemEntropy

SECOND_BYTES: Final = len("[2026-11-21 04:00:00")
"""Of the beginning of a line, which has its time to the second."""

_SECOND: Final = re.compile(rb"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_NUMBER_CHARACTERS: Final = 16
_NOTES: Final = pa.schema(
    [
        ("place", pa.string()),
        ("start", pa.int64()),
        ("held", pa.list_(pa.string())),
        ("end", pa.string()),
        ("goes_back", pa.bool_()),
        ("first", pa.string()),
        ("last", pa.string()),
    ]
)
"""A piece of a file: marks that it holds, that of its last line with a time (as `Held` has it), and times."""


def has_second(begin: bytes) -> bool:
    """Return whether the first `SECOND_BYTES` of a line are a time; such times compare as text."""
    return _SECOND.match(begin) is not None


class WantedMarks:
    """Marks to look for in lines, as tasks get them: eight bytes each, since there may be 400,000.

    A mark is known by its checksum and part of its digest; the driver compares found marks as a whole.
    """

    def __init__(self, marks: Iterable[str]) -> None:
        self._numbers: Final = array("Q", sorted({_number(mark) for mark in marks}))

    @cached_property
    def sums(self) -> frozenset[int]:
        """The checksums: made by each task for itself, as they take ten times the room."""
        return frozenset(number >> 32 for number in self._numbers)

    def __contains__(self, mark: str) -> bool:
        number = _number(mark)
        at = bisect_left(self._numbers, number)
        return at < len(self._numbers) and self._numbers[at] == number


def _number(mark: str) -> int:
    return int(mark[:_NUMBER_CHARACTERS], 16)


@dataclass(slots=True)
class Held:
    """The marks that a file holds of those that were looked for, and that of its last line with a time.

    The last one is "" if it was not looked for. `goes_back`: it has a line at which time goes back, which no
    log has that is written once and in order.
    """

    marks: set[str] = field(default_factory=set)
    end: str = ""
    goes_back: bool = False


@dataclass(frozen=True, slots=True)
class HeadWatch:
    """Looks at lines on their way to the tables: for which marks, and the folder of the notes."""

    marks: WantedMarks
    folder: Place

    def watched(self, piece: Piece, lines: PlacedLines, notes: list[dict[str, Any]]) -> PlacedLines:
        """Yield the lines of a piece; once all were taken, append a row of `_NOTES`."""
        sums, marks = self.marks.sums, self.marks
        held: dict[str, None] = {}
        goes_back = False
        end: str | None = None  # no line with a time yet
        first = last = b""
        for place, line in lines:
            begin = line[:SECOND_BYTES]
            if begin != last and has_second(begin):
                goes_back |= begin < last
                first, last = first or begin, begin
            # a checksum first: a digest of each line would cost as much as a fourth of parsing it
            if checksum(line) in sums and (mark := line_mark(line)) in marks:
                held[mark] = None
                end = mark
            elif end != "" and is_stamped(line):
                end = ""
            yield place, line
        values = (piece.file.place, piece.start, [*held], end, goes_back, first.decode(), last.decode())
        notes.append(dict(zip(_NOTES.names, values, strict=True)))

    def write(self, notes: list[dict[str, Any]]) -> None:
        """Write the notes of a task; raise OSError."""
        if notes:
            with sink_of(self.folder / f"{SystemEntropy().uuid().hex}.parquet", is_lasting=False) as sink:
                parquet.write_table(pa.Table.from_pylist(notes, _NOTES), sink)

    def held(self) -> dict[str, Held]:
        """Return what each new file holds of the marks, by the notes of all tasks; raise OSError."""
        held: dict[str, Held] = {}
        lasts: dict[str, str] = {}
        # Spark may run a task again, whose notes are then there twice
        notes = {(note["place"], note["start"]): note for note in self._notes()}
        for note in sorted(notes.values(), key=itemgetter("start")):
            place = note["place"]
            of_file = held.setdefault(place, Held())
            of_file.marks.update(note["held"])
            of_file.goes_back |= note["goes_back"]
            if note["end"] is not None:
                of_file.end = note["end"]  # of the last piece that has a line with a time
            if note["first"]:
                of_file.goes_back |= note["first"] < lasts.get(place, "")
                lasts[place] = note["last"]
        return held

    def _notes(self) -> Iterator[dict[str, Any]]:
        for name in names_in(self.folder):
            yield from parquet.read_table(source_of(self.folder / name), partitioning=None).to_pylist()
