"""Exports of one log that were appended to one file: where each begins, so that their lines count once.

A log that is written once and in order has no line at which time goes back, and whose next lines it holds
elsewhere; `kubectl logs --since=1h >> kafka.log` writes such. Time alone may go back, as clocks are set. So a
file is cut into parts that begin where time goes back, and their lines are compared:

| of the first four lines of a part, another part holds | they are |
|---|---|
| all four | two exports that overlap |
| the first two or three, and one of the two parts ends there | likewise |
| less, and yet they have lines in common | in doubt: busy brokers, whose logs are in one file, have some |

Times to the second settle nothing, since equal lines of a second are common.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from kustos.pipeline.run.files.beginnings import FIRST_LINES, is_stamped, line_mark
from kustos.pipeline.run.files.line_notes import SECOND_BYTES, has_second
from kustos.pipeline.run.files.logs import vouch
from kustos.pipeline.run.files.pieces import Piece, PlacedLines, Readable, lines_in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTS_MAX: Final = 1_000
"""Parts of a file that are compared, the first: an export an hour, for six weeks."""

SHARED_MAX: Final = 10_000
"""Sets of parts with lines in common that the driver takes; with more, all files are in doubt."""

_LAST: Final = FIRST_LINES
"""What `at` is for the last line of a part; its first lines have their numbers from 0, others -1."""

_Parts = tuple[int, ...]
"""Numbers of parts of a file, ascending."""


@dataclass(frozen=True, slots=True)
class Exports:
    """Where exports begin that were appended to a file; `has_doubt` if others of its parts may be exports."""

    begins: tuple[int, ...]
    has_doubt: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """Lines in the order of time: where they begin, and marks of the first ones and the last one."""

    begin: int
    first: tuple[str, ...]
    last: str
    has_milliseconds: bool


def appended_exports(spark: "SparkSession", files: Sequence[Readable]) -> dict[str, Exports]:
    """Return by place what exports are in each of these files, in which time goes back somewhere.

    Reads them once more; raises what reading them raises.
    """
    from pyspark.sql import functions as sql

    if not files:
        return {}
    schema = "place string, mark string, part bigint, begin bigint, at bigint, is_stamped boolean"
    lines = lines_in_tasks(spark, files, _lines_of_parts, schema, whole=True)
    edge = sql.when(sql.col("at") >= 0, sql.struct("part", "at", "mark", "begin", "is_stamped"))
    parts = sql.array_sort(sql.collect_set("part")).alias("parts")
    by_line = lines.groupBy("place", "mark").agg(parts, sql.collect_list(edge).alias("edges"))
    shared = sql.when(sql.size("parts") > 1, sql.col("parts")).alias("parts")
    edges = sql.flatten(sql.collect_list("edges")).alias("edges")
    most = SHARED_MAX + len(files)  # each file has a row of lines that are in one part
    rows = by_line.groupBy("place", shared).agg(edges).limit(most + 1).collect()
    if len(rows) > most:
        return {file.place: Exports((), has_doubt=True) for file in files}
    by_place: dict[str, dict[_Parts | None, list[Any]]] = {}
    for row in rows:
        held_by = None if row["parts"] is None else tuple(row["parts"])
        by_place.setdefault(row["place"], {})[held_by] = row["edges"]
    return {place: _exports(found) for place, found in by_place.items()}


def _lines_of_parts(piece: Piece, lines: PlacedLines) -> Iterator[dict[str, Any]]:
    """Yield each line that has a time, with the number of its part; equal lines on end once."""
    part, begin = 0, 0
    first: set[str] = set()
    former = second = b""

    def row(line: bytes, mark: str, at: int) -> dict[str, Any]:
        found = {"place": piece.file.place, "mark": mark, "part": part, "begin": begin, "at": at}
        return found | {"is_stamped": at >= 0 and is_stamped(line)}

    for position, line in lines:
        time = line[:SECOND_BYTES]
        if time != second:
            if not has_second(time):
                continue
            if time < second and part + 1 < PARTS_MAX:
                yield row(former, line_mark(former), _LAST)
                part, begin, first = part + 1, position, set()
            second = time
        if line == former:
            continue
        mark, former = line_mark(line), line
        is_first = len(first) < FIRST_LINES and mark not in first
        yield row(line, mark, len(first) if is_first else -1)
        if is_first:
            first.add(mark)
    if former:
        yield row(former, line_mark(former), _LAST)


def _exports(edges: Mapping[_Parts | None, Sequence[Any]]) -> Exports:
    """Return the exports of a file by the first and last lines of its parts, which parts have in common."""
    parts: list[_Part] = []
    ordered = sorted(each for found in edges.values() for each in found)
    for _, of_part in groupby(ordered, key=itemgetter("part")):
        *first, last = of_part
        marks = tuple(each["mark"] for each in first)
        has_milliseconds = all(each["is_stamped"] for each in first)
        parts.append(_Part(last["begin"], marks, last["mark"], has_milliseconds))
    shared = [numbers for numbers in edges if numbers is not None]
    holders = {each["mark"]: numbers for numbers in shared for each in edges[numbers]}
    begins: set[int] = set()
    for number, part in enumerate(parts):
        for other in holders.get(part.first[0], ()):
            begin = parts[max(number, other)].begin
            if other != number and begin not in begins and _overlap(part, parts[other], other, holders):
                begins.add(begin)
    found = tuple(sorted(begins))
    names = [bisect_right(found, part.begin) for part in parts]
    may_be_twice = any(len({names[part] for part in numbers}) < len(numbers) for numbers in shared)
    return Exports(found, may_be_twice or len(parts) == PARTS_MAX)


def _overlap(part: _Part, other: _Part, number: int, holders: Mapping[str, _Parts]) -> bool:
    """Return whether the other part, of this number, surely holds the beginning of the first one."""
    leading = tuple(takewhile(lambda mark: number in holders.get(mark, ()), part.first))
    ends = other.last in leading or leading == part.first
    return vouch(len(leading), ends=ends) and part.has_milliseconds and other.has_milliseconds
