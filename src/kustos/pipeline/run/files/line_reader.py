"""Audit files as lines: every line once, with its log; errors name the damaged file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.files import AuditFiles
from kustos.pipeline.run.files.logs import Logs
from kustos.pipeline.run.files.new_files import FoundFile, described, layout_at, places_of
from kustos.pipeline.run.files.pieces import Readable, Watch, read_pieces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kustos.pipeline.tables import LineTasks


@dataclass(frozen=True, slots=True)
class ReadableFiles:
    """Files to read, with their logs and layouts; `said` has a sentence for each log that is in doubt."""

    files: tuple[Readable, ...]
    said: tuple[str, ...]


def readable_files(
    found: AuditFiles,
    layout: str | None = None,
    *,
    on_unknown_format: Literal["stop", "quarantine"] = "stop",
) -> ReadableFiles:
    """Return all files, each with its layout, log4j's pattern, and the log that it is a copy of.

    The layout is found in the first lines of a file unless it is given. Raises `AuditInputError` if no file
    is in the given one, `UnknownFormatError` for one in no known format unless such are quarantined, and
    `ConfigurationError` for what is not a pattern.
    """
    may_be_unknown = on_unknown_format == "quarantine"
    logs = Logs(())
    files: list[Readable] = []
    said: list[str] = []
    for path, state in found.states.items():
        for place, packing in places_of(path):
            identity = described(place, packing, state, is_closed=True)
            choice = logs.choose(identity)
            said += [] if choice.said is None else [choice.said]
            # the given layout if the file is in it, else the one of its first lines
            of_file = layout and layout_at(place, packing, layout, may_be_unknown=True)
            of_file = of_file or layout_at(place, packing, None, may_be_unknown=may_be_unknown)
            name = place.removeprefix(f"{found.root}/")
            file = FoundFile(name, replace(identity, log=choice.log), packing=packing, layout=of_file)
            files.append(file.readable())
    if layout is not None and layout not in {file.layout for file in files}:
        raise AuditInputError(f"no file below `{found.root}` is in the layout `{layout}`, see its lines")
    return ReadableFiles(tuple(files), tuple(said))


def read_located_lines(
    spark: "SparkSession", files: Sequence[FoundFile], watch: Watch | None = None
) -> "LineTasks":
    """Return every line of these files, and one with a `fault` for each damaged file."""
    import pyarrow as pa

    damaged = [
        {"file": file.name, "line": None, "log": file.fault_log, "fault": file.fault, "cluster": file.cluster}
        for file in files
        if file.fault
    ]
    readable = [file.readable() for file in files if not file.fault]
    return read_pieces(spark, readable, [pa.RecordBatch.from_pylist(damaged)] if damaged else [], watch)


def check_time_zone(name: str) -> None:
    """Raise `AuditInputError` unless it is the IANA name of a time zone."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:  # what zoneinfo raises for an unknown key
        raise AuditInputError(
            f"unknown time zone `{name}`, give an IANA name like `Europe/Berlin`"
        ) from error
