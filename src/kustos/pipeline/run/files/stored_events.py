"""The first events of a new log, looked up among those that are stored: their files may be gone.

A stored event without an id of its own has one that kustos made from its log and its line. So it is known
whether it is this very line of a log, without reading the log again.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from pyarrow import dataset, fs, parquet

from kustos.pipeline.lines.generated_ids import (
    DIGEST_CHARACTERS,
    EVENT_ID_BEGIN,
    is_generated,
    line_digest,
)
from kustos.pipeline.lines.kafka_grammar import ParsedLine, read_line
from kustos.pipeline.lines.layouts import compiled
from kustos.pipeline.places import Place, in_parallel, source_of
from kustos.pipeline.run.files.beginnings import (
    BEGINNING_BYTES_MAX,
    FIRST_LINES,
    LINE_BYTES_MAX,
    is_stamped,
)
from kustos.pipeline.run.files.compression import DAMAGE, unpacked
from kustos.pipeline.run.files.content import FIRST_BYTES
from kustos.pipeline.run.files.logs import Overlap, are_apart, overlap_of
from kustos.pipeline.run.files.new_files import FoundFile
from kustos.pipeline.run.files.pieces import file_of

if TYPE_CHECKING:
    import pyarrow as pa

    from kustos.pipeline.tables import InputFile, Tables

_AUDIT_EVENTS: Final = "audit_events"

_QUIET_DAYS: Final = 1
"""A file without an event up to so many days after another has ended before it."""

_IN_AUDIT: Final = b"Principal = "
"""What each line of an event has; a look for it saves parsing the others."""


class _Event(NamedTuple):
    line: bytes
    time_ms: int


def overlaps_stored(
    files: Sequence[FoundFile], known: "Sequence[InputFile]", tables: "Tables", time_zone: str
) -> Iterator[Overlap]:
    """Yield the new files of new logs whose first lines are stored events of a log that was read before."""
    if not known:
        return
    known_logs = {one.log for one in known}
    new = [file for file in files if not file.fault and file.identity.log not in known_logs]
    events = in_parallel(new, lambda file: _first_events(file, ZoneInfo(time_zone)))
    stored = _stored_at({event.time_ms for each in events for event in each}, tables)
    by_name: dict[str, list[InputFile]] = {}
    for one in known:
        by_name.setdefault(one.path.rpartition("/")[2], []).append(one)
    for file, each in zip(new, events, strict=True):
        names = {key: name for event in each for key, name in stored.get(event.time_ms, {}).items()}
        logs: dict[str, InputFile] = {}
        for name in sorted(set(names.values())):
            place = file_of(name)
            for one in by_name.get(place.rpartition("/")[2], ()):
                if f"/{one.path}".endswith(f"/{place}") and not are_apart(file.identity, one):
                    logs.setdefault(one.log, one)
        for one in logs.values():
            found = _met(file, one, each, names, tables)
            if found is not None:
                yield found


def _met(
    file: FoundFile,
    other: "InputFile",
    events: Sequence[_Event],
    stored: Mapping[str, str],
    tables: "Tables",
) -> Overlap | None:
    """Return what it means how many of the first events are stored as lines of the other file's log."""
    keys = (EVENT_ID_BEGIN + line_digest(other.log, None, event.line) for event in events)
    names = [stored.get(key) for key in keys]
    leading = names.index(None) if None in names else len(names)
    if not leading:
        return None
    at_once = sum(event.time_ms == events[0].time_ms for event in events)
    goes_on = False
    if leading < FIRST_LINES or leading <= at_once:  # else it does not matter
        after = events[min(leading, len(events) - 1)].time_ms
        goes_on = _is_stored_after(after, str(names[leading - 1]), tables)
    return overlap_of(file.identity, other, leading, at_once=at_once, ends=not goes_on)


def _first_events(file: FoundFile, time_zone: ZoneInfo) -> list[_Event]:
    """Return the first different lines that are events, with a time that other logs hardly share."""
    layout = None if file.layout is None else compiled(file.layout)
    found: dict[bytes, _Event] = {}
    left = BEGINNING_BYTES_MAX
    # reading a damaged file fails later, with its name
    with suppress(*DAMAGE), unpacked(file.identity.path, file.packing, FIRST_BYTES) as content:
        while left > 0 and len(found) < FIRST_LINES:
            line = content.readline(min(left, LINE_BYTES_MAX))
            if not line:
                break
            left -= len(line)
            if not line.endswith(b"\n") or _IN_AUDIT not in line or not is_stamped(line):
                continue
            line = line.rstrip(b"\r\n")
            text = line.decode("utf-8", "replace")
            text = text if layout is None else layout.as_kafkas(text) or text
            parsed = read_line(text, time_zone)
            if isinstance(parsed, ParsedLine):
                found.setdefault(line, _Event(line, parsed.time_ms))
    return list(found.values())


def _stored_at(times: Collection[int], tables: "Tables") -> dict[int, dict[str, str]]:
    """Return by time the keys of the lines that are events of these times, and the names of their files.

    Each file of the days is read once, for however many new files.
    """
    stored: dict[int, dict[str, str]] = {}
    days: dict[date, list[int]] = {}
    for time_ms in times:
        days.setdefault(_day(time_ms), []).append(time_ms)
    for day, of_day in sorted(days.items()):
        for path in tables.files(_AUDIT_EVENTS, day, day):
            columns = ("time_ms", "event_id", "source_file")
            for row in _rows(path, columns, [("time_ms", "in", of_day)]).to_pylist():
                if is_generated(row["event_id"]):
                    key = row["event_id"][: len(EVENT_ID_BEGIN) + DIGEST_CHARACTERS]
                    stored.setdefault(row["time_ms"], {})[key] = row["source_file"]
    return stored


def _is_stored_after(time_ms: int, name: str, tables: "Tables") -> bool:
    """Return whether the file of this name has an event after a time: within days, as a log has them."""
    first = _day(time_ms)
    wanted = parquet.filters_to_expression([("time_ms", ">", time_ms), ("source_file", "==", name)])
    paths = tables.files(_AUDIT_EVENTS, first, first + timedelta(days=_QUIET_DAYS))
    return any(_has_row(path, wanted) for path in paths)


def _has_row(path: Place, wanted: "dataset.Expression") -> bool:
    """Return whether a file has a wanted row; the first ends the search: millions of a day may be wanted."""
    source = source_of(path)
    system = fs.LocalFileSystem() if isinstance(source, str) else None
    file = dataset.ParquetFileFormat().make_fragment(source, system)
    return bool(file.head(1, columns=["time_ms"], filter=wanted).num_rows)


def _day(time_ms: int) -> date:
    return datetime.fromtimestamp(time_ms / 1000, UTC).date()


def _rows(path: Place, columns: Sequence[str], filters: list[tuple[str, str, Any]]) -> "pa.Table":
    return parquet.read_table(source_of(path), columns=[*columns], filters=filters, partitioning=None)
