"""Where the beginning of a log is found in another file, and whether that makes them one log.

| of the first four lines of a log, the other file holds | they are |
|---|---|
| all four | one log |
| the first two or more, and it ends there | one log: an export that ended within these lines |
| the first two or three, and goes on with others | a doubt: busy brokers have some in common by chance |
| the first one, and it ends there | a doubt |
| the first ones, of one millisecond, ends there, and was rotated | two: log4j may go on with equal lines |

A log that has just begun has less than four, so all that it has are no more than the first two or three. One
`source` of both files settles each doubt: one broker wrote them.
"""

import re
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from kustos.pipeline.places import Place, names_in, sink_of, source_of
from kustos.pipeline.run.files.beginnings import (
    FIRST_LINES,
    LINE_BYTES_MAX,
    Beginning,
    is_stamped,
    line_mark,
)
from kustos.pipeline.run.files.logs import VOUCHING_LINES, are_apart, are_declared_apart, family_of
from kustos.pipeline.run.files.new_files import FoundFile
from kustos.pipeline.run.files.pieces import Piece, PlacedLines, Readable
from kustos.runtime import SystemEntropy

if TYPE_CHECKING:
    from kustos.pipeline.tables import InputFile


HEADS_MAX: Final = 100_000
"""Logs whose beginnings are looked for, the latest: 3 MB for a task, which needs 40 MB for them."""

SECOND_BYTES: Final = len("[2026-11-21 04:00:00")
"""Of the beginning of a line, which has its time to the second."""

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
_SECOND: Final = re.compile(rb"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class Overlap:
    """A new file, the log that it is of, and another log whose beginning it holds, or that holds its own.

    `is_sure` if that makes them one log.
    """

    place: str
    own_log: str
    log: str
    other_place: str
    is_sure: bool


class Head(NamedTuple):
    """The marks of the different first lines of a log, how many are of the first's moment, and their file."""

    marks: tuple[str, ...]
    at_once: int
    log: str
    file: "InputFile"


def overlap_of(
    file: "InputFile", other: "InputFile", leading: int, *, at_once: int, ends: bool
) -> Overlap | None:
    """Return what it means that one of two files holds the first `leading` lines of the other.

    The logs that they are of differ. `at_once` of these lines are of one moment. `ends`: the one that holds
    them goes on with no other line with a time.
    """
    if ends and leading <= at_once and family_of(file.path) == family_of(other.path):
        return None
    is_one_source = file.source is not None and file.source == other.source
    if leading >= VOUCHING_LINES:
        is_sure = vouch(leading, ends=ends or is_one_source)
    elif leading and ends:
        is_sure = is_one_source
    else:
        return None
    return Overlap(file.path, file.log, other.log, other.path, is_sure)


def vouch(leading: int, *, ends: bool) -> bool:
    """Return whether so many first lines in common, behind which one log ends or not, make two logs one."""
    return leading == FIRST_LINES or (leading >= VOUCHING_LINES and ends)


class WantedMarks:
    """Marks to look for in lines, as tasks get them: eight bytes each, since there may be 400,000.

    A mark is known by its checksum and as much of its digest; who takes a found one for one of these compares
    it as a whole.
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


def heads_of(files: "Iterable[InputFile]") -> list[Head]:
    """Return the heads of the logs of files, each once; logs of JSON, or without times, have none."""
    heads: dict[tuple[str, ...], Head] = {}
    for file in files:
        beginning = Beginning.from_text(file.beginning)
        if marks := beginning.first_lines:
            heads.setdefault((*marks, file.log), Head(marks, beginning.at_once, file.log, file))
    return list(heads.values())


def heads_to_look_for(heads: Sequence[Head], files: "Iterable[InputFile]") -> list[Head]:
    """Return the heads that files may hold: not those of other sources and clusters."""
    declared = {(file.source, file.cluster): file for file in files}.values()
    return [head for head in heads if not all(are_declared_apart(head.file, file) for file in declared)]


@dataclass(slots=True)
class Held:
    """The marks that a file holds of those that were looked for, and that of its last line with a time.

    The last one is "" if it was not looked for. `goes_back`: it has a line at which time goes back, which no
    log has that is written once and in order.
    """

    marks: set[str] = field(default_factory=set)
    end: str = ""
    goes_back: bool = False


def overlaps_within(
    files: Sequence[FoundFile], heads: Sequence[Head], held: Mapping[str, Held]
) -> Iterator[Overlap]:
    """Yield where files hold the beginning of another log."""
    by_first: dict[str, list[Head]] = {}
    for head in heads:
        by_first.setdefault(head.marks[0], []).append(head)
    by_place = {file.identity.path: file.identity for file in files}
    for place, of_file in held.items():
        own = by_place[place]
        for head in (head for mark in of_file.marks for head in by_first.get(mark, ())):
            if head.log == own.log or are_apart(own, head.file):
                continue
            found = (at for at, mark in enumerate(head.marks) if mark not in of_file.marks)
            leading = next(found, len(head.marks))
            ends = of_file.end in head.marks[:leading]
            overlap = overlap_of(own, head.file, leading, at_once=head.at_once, ends=ends)
            if overlap is not None:
                yield overlap


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


def readable(files: Sequence[FoundFile]) -> list[Readable]:
    """Return what tasks need to read the files, those without a fault."""
    return [file.readable() for file in files if not file.fault]


def has_second(begin: bytes) -> bool:
    """Return whether the first `SECOND_BYTES` of a line are a time; such times compare as text."""
    return _SECOND.match(begin) is not None


def checksum(line: bytes) -> int:
    """Return what a mark of this line begins with, as `WantedMarks.sums` has it."""
    return zlib.crc32(line[:LINE_BYTES_MAX].rstrip(b"\r"))
