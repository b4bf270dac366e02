"""Exports of one log that were appended to one file: where each begins, so that their lines count once.

A log that is written once and in order has no line at which time goes back, and whose next lines it holds
elsewhere; `kubectl logs --since=1h >> kafka.log` writes such. Time alone may go back, as clocks are set. So a
file is parts that begin where time goes back, and their lines are compared:

| of the first four lines of a part, another part holds | they are |
|---|---|
| all four | two exports that overlap |
| the first two or three, and one of the two parts ends there | likewise |
| less, and yet they have lines in common | a doubt: busy brokers, whose logs are in one file, have some |

Times to the second settle nothing, since equal lines of a second are common.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from kustos.pipeline.run.files.beginnings import FIRST_LINES, is_stamped, line_mark
from kustos.pipeline.run.files.line_notes import SECOND_BYTES, WantedMarks, has_second
from kustos.pipeline.run.files.logs import vouch
from kustos.pipeline.run.files.pieces import Piece, PlacedLines, Readable, lines_in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTS_MAX: Final = 1_000
"""Parts of a file that are compared, the first: an export an hour, for six weeks."""

SHARED_MAX: Final = 10_000
"""Sets of parts with lines in common that the driver takes; with more, all files are in doubt."""

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

    Reads them twice; raises what reading them raises.
    """
    parts: dict[str, list[_Part]] = {}
    schema = "place string, begin bigint, first array<string>, last string, has_milliseconds boolean"
    for row in lines_in_tasks(spark, files, _parts, schema, whole=True).collect() if files else ():
        part = _Part(row["begin"], tuple(row["first"]), row["last"], row["has_milliseconds"])
        parts.setdefault(row["place"], []).append(part)
    several = {place: sorted(found, key=lambda part: part.begin) for place, found in parts.items()}
    several = {place: found for place, found in several.items() if len(found) > 1}
    shared = _shared(spark, [file for file in files if file.place in several], several)
    found = {place: _exports(found, shared.get(place, {})) for place, found in several.items()}
    is_more = sum(map(len, shared.values())) > SHARED_MAX
    return {place: replace(exports, has_doubt=True) for place, exports in found.items()} if is_more else found


def _parts(piece: Piece, lines: PlacedLines) -> Iterator[dict[str, Any]]:
    begin, count = 0, 1
    first: dict[str, None] = {}
    has_milliseconds = True
    last = second = b""

    def part() -> dict[str, Any]:
        found = {
            "begin": begin,
            "first": [*first],
            "last": line_mark(last),
            "has_milliseconds": has_milliseconds,
        }
        return {"place": piece.file.place, **found}

    for position, line in lines:
        at = line[:SECOND_BYTES]
        if at != second:
            if not has_second(at):
                continue
            if at < second and count < PARTS_MAX:
                yield part()
                begin, count, first, has_milliseconds = position, count + 1, {}, True
            second = at
        if len(first) < FIRST_LINES:
            first[line_mark(line)] = None
            has_milliseconds = has_milliseconds and is_stamped(line)
        last = line
    if first:
        yield part()


def _shared(
    spark: "SparkSession", files: Sequence[Readable], parts: Mapping[str, Sequence[_Part]]
) -> dict[str, dict[_Parts, frozenset[str]]]:
    """Return by place which parts have lines in common, and of these the marks of first lines."""
    from pyspark.sql import functions as sql

    if not files:
        return {}
    by_place = {
        place: (WantedMarks(mark for part in found for mark in part.first), [part.begin for part in found])
        for place, found in parts.items()
    }

    def marks(piece: Piece, lines: PlacedLines) -> Iterator[dict[str, Any]]:
        wanted, begins = by_place[piece.file.place]
        place, former = piece.file.place, b""
        for position, line in lines:
            if line != former and has_second(line[:SECOND_BYTES]):
                mark, part = line_mark(line), bisect_right(begins, position) - 1
                yield {"place": place, "mark": mark, "part": part, "is_first": mark in wanted}
            former = line

    schema = "place string, mark string, part bigint, is_first boolean"
    holders = sql.array_sort(sql.collect_set("part")).alias("parts")
    lines = lines_in_tasks(spark, files, marks, schema).groupBy("place", "mark", "is_first").agg(holders)
    first = sql.collect_list(sql.when(sql.col("is_first"), sql.col("mark"))).alias("first")
    rows = lines.where(sql.size("parts") > 1).groupBy("place", "parts").agg(first).limit(SHARED_MAX + 1)
    shared: dict[str, dict[_Parts, frozenset[str]]] = {}
    for row in rows.collect():
        shared.setdefault(row["place"], {})[tuple(row["parts"])] = frozenset(row["first"])
    return shared


def _exports(parts: Sequence[_Part], shared: Mapping[_Parts, frozenset[str]]) -> Exports:
    holders = {mark: numbers for numbers, first in shared.items() for mark in first}
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
