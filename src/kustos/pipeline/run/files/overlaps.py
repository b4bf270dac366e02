"""Files that hold lines of each other: logs put together, and exports of one log that overlap.

Theory of operation. A file that holds the beginning of another log in its middle is that log and more:
`cat b1 b2`, or an export that began earlier. So all new files are searched for the beginnings of all logs,
and the beginnings of new logs are looked up among the stored events, whose files may be gone. Logs found to
overlap are read as one, by which each line of them counts once. If they were read as two before, a file that
holds both cannot be right in either: it is refused.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession

from kustos.pipeline.lines.generated_ids import is_generated
from kustos.pipeline.lines.kafka_columns import read_lines
from kustos.pipeline.places import Place, source_of
from kustos.pipeline.run.files.beginnings import FIRST_LINES, Beginning, first_texts, line_mark
from kustos.pipeline.run.files.logs import VOUCHING_LINES, are_apart
from kustos.pipeline.run.files.new_files import FoundFile, FoundFiles
from kustos.pipeline.run.files.packing import unpacked
from kustos.pipeline.run.files.pieces import Readable, lines_in_tasks

if TYPE_CHECKING:
    from kustos.pipeline.tables import InputFile, Tables

_FIELDS: Final = (
    "time_ms", "principal_type", "principal_name", "host", "api_name", "resource_type", "resource_name",
    "operation", "decision", "reference_count",
)  # fmt: skip
"""What tells two events of Kafka's text apart."""

_AUDIT_EVENTS: Final = "audit_events"


@dataclass(frozen=True, slots=True)
class _Overlap:
    """A new file, the log that it is of, and another log whose beginning it holds, or that holds its own."""

    place: str
    own_log: str
    log: str
    other_place: str


def settle_overlaps(
    spark: SparkSession, found: FoundFiles, tables: "Tables", *, time_zone: str = "UTC"
) -> FoundFiles:
    """Return the files with one log for those that overlap, without those that hold two known logs.

    Reads the new files once, if there is more than one log; raises what reading them raises.
    """
    known = list(tables.inputs().values())
    new = [file.identity for file in found.new if not file.fault]
    heads = _heads([*known, *new])
    if len({log for log, _, _ in heads.values()}) < 2:
        return found
    overlaps = [*_within(spark, found.new, heads), *_stored(found.new, known, tables, time_zone)]
    known_logs = {one.log for one in known}
    said: list[str] = []
    refused: set[str] = set()
    names = _joined(overlaps)
    for one in overlaps:
        if len({log for log, name in names.items() if name == names[one.own_log] and log in known_logs}) > 1:
            refused.add(one.place)
            said.append(
                f"`{one.place}` holds the beginning of `{one.other_place}`, which was read as another log: "
                "not read, since its lines would count twice; take it out of the folder"
            )
    names = _joined([one for one in overlaps if one.place not in refused], known_logs)
    said += [
        f"`{one.place}` and `{one.other_place}` overlap: read as one log, each line once"
        for one in overlaps
        if one.place not in refused
    ]
    kept = [
        replace(file, identity=replace(file.identity, log=names.get(file.identity.log, file.identity.log)))
        for file in found.new
        if file.identity.path not in refused
    ]
    return replace(
        found,
        new=tuple(kept),
        said=(*found.said, *dict.fromkeys(said)),
        refused_files=len(refused),
        overlapping_files=len({one.place for one in overlaps} - refused),
    )


_Heads = Mapping[tuple[str, ...], tuple[str, "InputFile", str]]


def _heads(files: "Iterable[InputFile]") -> _Heads:
    """Return log, file and path by the marks of the first lines; logs without several have no head."""
    heads: dict[tuple[str, ...], tuple[str, InputFile, str]] = {}
    for file in files:
        if file.beginning is not None:
            marks = Beginning.from_text(file.beginning).first_lines
            if len(marks) >= VOUCHING_LINES:
                heads.setdefault((*marks, file.log), (file.log, file, file.path))
    return heads


def _within(spark: SparkSession, files: Sequence[FoundFile], heads: _Heads) -> Iterator[_Overlap]:
    """Yield the new files that hold the beginning of another log."""
    by_place = {file.identity.path: file.identity for file in files}
    marks = frozenset(mark for key in heads for mark in key[:-1])
    sums = frozenset(int(mark[:8], 16) for mark in marks)
    readable = [file.readable() for file in files if not file.fault]

    def search(file: Readable, lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
        # a checksum first: a digest of each line would cost as much as a fourth of parsing it
        found = {line_mark(line) for line in lines if zlib.crc32(line.rstrip(b"\r")) in sums}
        yield from ({"place": file.place, "mark": mark} for mark in found & marks)

    holds: dict[str, set[str]] = {}
    for row in lines_in_tasks(spark, readable, search, "place string, mark string").collect():
        holds.setdefault(row["place"], set()).add(row["mark"])
    for place, held in holds.items():
        own = by_place[place]
        for key, (log, other, path) in heads.items():
            if log != own.log and held.issuperset(key[:-1]) and not are_apart(own, other):
                yield _Overlap(place, own.log, log, path)


def _stored(
    files: Sequence[FoundFile], known: "Sequence[InputFile]", tables: "Tables", time_zone: str
) -> Iterator[_Overlap]:
    """Yield the new files of new logs whose first lines are stored events, of a file that was read before."""
    known_logs = {one.log for one in known}
    for file in files:
        if file.fault or file.identity.log in known_logs:
            continue
        texts = _first_texts(file)
        parsed = read_lines(pa.array(texts, pa.string()), time_zone).to_pylist() if texts else []
        events = [one for one in parsed if one["time_ms"] is not None]
        if len(events) < VOUCHING_LINES:
            continue
        for name in sorted(_files_with(events, tables)):
            for one in known:
                if one.path.endswith(f"/{name}") and not are_apart(file.identity, one):
                    yield _Overlap(file.identity.path, file.identity.log, one.log, one.path)


def _first_texts(file: FoundFile) -> list[str]:
    with unpacked(file.identity.path, file.packing) as content:
        return [line.decode("utf-8", "replace") for line in first_texts(content, FIRST_LINES)]


def _files_with(events: Sequence[Mapping[str, Any]], tables: "Tables") -> set[str]:
    """Return the names of the files of which all these events were stored, with an id that kustos made."""
    times = sorted({one["time_ms"] for one in events})
    days = [datetime.fromtimestamp(time / 1000, UTC).date() for time in (times[0], times[-1])]
    stored: dict[tuple[Any, ...], set[str]] = {}
    for path in tables.files(_AUDIT_EVENTS, *days):
        for row in _rows_at(path, times):
            if is_generated(row["event_id"]):
                stored.setdefault(tuple(row[name] for name in _FIELDS), set()).add(row["source_file"])
    held = [stored.get(tuple(one[name] for name in _FIELDS), set()) for one in events]
    return set.intersection(*held)


def _rows_at(path: Place, times: Sequence[int]) -> list[dict[str, Any]]:
    columns = [*_FIELDS, "event_id", "source_file"]
    found = parquet.read_table(
        source_of(path), columns=columns, filters=[("time_ms", "in", times)], partitioning=None
    )
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def _joined(overlaps: Iterable[_Overlap], preferred: Iterable[str] = ()) -> dict[str, str]:
    """Return a common name for the logs that overlap, by each of their names: a `preferred` one if any is."""
    groups: dict[str, set[str]] = {}
    for one in overlaps:
        group = groups.get(one.own_log, {one.own_log}) | groups.get(one.log, {one.log})
        groups |= dict.fromkeys(group, group)
    wanted = set(preferred)
    return {log: min(group & wanted or group) for log, group in groups.items()}
