"""Audit files as lines: every line once, with its log; errors name the damaged file."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from zoneinfo import ZoneInfo

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.files import AuditFiles
from kustos.pipeline.inputs.packing import Packing
from kustos.pipeline.inputs.pieces import DamagedFileError, Readable, read_pieces
from kustos.pipeline.jobs.inputs import FoundFile, places_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def read_lines(spark: "SparkSession", found: AuditFiles) -> "DataFrame":
    """Return every line of the files as LINES_SCHEMA, half ones too; packed files are unpacked."""
    files = [
        Readable(place, place.removeprefix(f"{found.root}/"), None, packing, *_sizes(path, packing))
        for path in found.files
        for place, packing in places_of(path)
    ]
    return read_pieces(spark, files).select("file", "line")


def _sizes(path: Path, packing: Packing) -> tuple[int | None, int]:
    size = path.stat().st_size
    return size if packing is Packing.PLAIN else None, size


def read_located_lines(spark: "SparkSession", files: Sequence[FoundFile]) -> "DataFrame":
    """Return every line of these files, and one with a `fault` for each damaged file: INPUT_LINES_SCHEMA."""
    from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA

    faults = [(file.name, None, file.fault_log, None, file.fault, None) for file in files if file.fault]
    lines = read_pieces(spark, [file.readable() for file in files if not file.fault])
    return lines.unionByName(spark.createDataFrame(faults, INPUT_LINES_SCHEMA)) if faults else lines


def check_time_zone(name: str) -> None:
    """Raise `AuditInputError` unless it is the IANA name of a time zone."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:  # what zoneinfo raises for an unknown key
        raise AuditInputError(
            f"unknown time zone `{name}`, give an IANA name like `Europe/Berlin`"
        ) from error


def reading(
    action: Callable[_Arguments, _Result], *args: _Arguments.args, **more: _Arguments.kwargs
) -> _Result:
    """Return the result of an action over lines; raise `AuditInputError` with a file that it cannot read."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return action(*args, **more)
    except (Py4JJavaError, PySparkException) as error:
        text = str(error)
        damaged = re.search(r"DamagedFileError: cannot read `(.*?)` to its end", text, re.DOTALL)
        if damaged is not None:
            raise DamagedFileError(damaged[1]) from error
        gone = re.search(r"AuditInputError: (`.*?` went away while it was read, run again)", text, re.DOTALL)
        if gone is not None:
            raise AuditInputError(gone[1]) from error
        raise
