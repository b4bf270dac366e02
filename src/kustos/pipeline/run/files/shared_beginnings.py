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

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import SparkSession

from kustos.pipeline.run.files.beginnings import FIRST_LINES, Beginning, is_stamped, line_mark
from kustos.pipeline.run.files.logs import VOUCHING_LINES, are_apart, family_of
from kustos.pipeline.run.files.new_files import FoundFile
from kustos.pipeline.run.files.pieces import Piece, lines_in_tasks

if TYPE_CHECKING:
    from kustos.pipeline.tables import InputFile


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
        is_sure = leading == FIRST_LINES or ends or is_one_source
    elif leading and ends:
        is_sure = is_one_source
    else:
        return None
    return Overlap(file.path, file.log, other.log, other.path, is_sure)


def heads_of(files: "Iterable[InputFile]") -> list[Head]:
    """Return the heads of the logs of files, each once; logs of JSON, or without times, have none."""
    heads: dict[tuple[str, ...], Head] = {}
    for file in files:
        if file.beginning is not None:
            beginning = Beginning.from_text(file.beginning)
            marks = tuple(dict.fromkeys(beginning.first_lines))  # versions before repeated equal lines
            if marks:
                heads.setdefault((*marks, file.log), Head(marks, beginning.at_once, file.log, file))
    return list(heads.values())


def overlaps_within(
    spark: SparkSession, files: Sequence[FoundFile], heads: Sequence[Head]
) -> Iterator[Overlap]:
    """Yield where new files hold the beginning of another log; read these files once."""
    by_first: dict[str, list[Head]] = {}
    for head in heads:
        by_first.setdefault(head.marks[0], []).append(head)
    by_place = {file.identity.path: file.identity for file in files}
    for place, (held, end) in _held(spark, files, heads).items():
        own = by_place[place]
        for head in (head for mark in held for head in by_first.get(mark, ())):
            if head.log == own.log or are_apart(own, head.file):
                continue
            leading = next((at for at, mark in enumerate(head.marks) if mark not in held), len(head.marks))
            ends = end in head.marks[:leading]
            found = overlap_of(own, head.file, leading, at_once=head.at_once, ends=ends)
            if found is not None:
                yield found


def _held(
    spark: SparkSession, files: Sequence[FoundFile], heads: Sequence[Head]
) -> dict[str, tuple[set[str], str]]:
    """Return the marks that each file holds, and that of its last line with a time; "" if it is another."""
    marks = frozenset(mark for head in heads for mark in head.marks)
    sums = frozenset(int(mark[:8], 16) for mark in marks)

    def search(piece: Piece, lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
        found: set[str] = set()
        end: str | None = None  # no line with a time yet
        for line in lines:
            # a checksum first: a digest of each line would cost as much as a fourth of parsing it
            if zlib.crc32(line.rstrip(b"\r")) in sums and (mark := line_mark(line)) in marks:
                found.add(mark)
                end = mark
            elif end != "" and is_stamped(line):
                end = ""
        place, start = piece.file.place, piece.start
        yield from ({"place": place, "start": start, "mark": mark, "is_end": mark == end} for mark in found)
        if end == "":
            yield {"place": place, "start": start, "mark": end, "is_end": True}

    readable = [file.readable() for file in files if not file.fault]
    schema = "place string, start bigint, mark string, is_end boolean"
    holds: dict[str, set[str]] = {}
    ends: dict[str, tuple[int, str]] = {}
    for row in lines_in_tasks(spark, readable, search, schema).collect():
        holds.setdefault(row["place"], set()).add(row["mark"])
        if row["is_end"]:  # of the last piece that has a line with a time
            ends[row["place"]] = max(ends.get(row["place"], (-1, "")), (row["start"], row["mark"]))
    return {place: (held, ends[place][1]) for place, held in holds.items()}
