"""Audit files as lines: every line once, with its log; errors name the damaged file."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.files import AuditFiles

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from kustos.pipeline.jobs.inputs import FoundFile

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class DamagedFileError(AuditInputError):
    """A compressed file cannot be unpacked to its end."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"cannot read `{path}` to its end: it is damaged, or no gzip file in spite of its name; "
            "repair it or take it out of the folder"
        )
        self.path = path


def read_lines(spark: "SparkSession", found: AuditFiles) -> "DataFrame":
    """Return every line of the files as LINES_SCHEMA; `.gz` files are unpacked."""
    from pyspark.sql import functions as sql

    raw = _raw(spark, [str(path) for path in found.files])
    relative = sql.substring(raw["path"], len(f"{found.root}/") + 1, 2**31 - 1)
    return raw.select(relative.alias("file"), raw["value"].alias("line"))


def read_located_lines(spark: "SparkSession", files: "Sequence[FoundFile]") -> "DataFrame":
    """Return every line of these files, and one with a `fault` for each damaged file: INPUT_LINES_SCHEMA."""
    from pyspark.sql import functions as sql

    from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA

    faults = [(file.name, None, file.fault_log, None, file.fault) for file in files if file.fault]
    faulty = spark.createDataFrame(faults, INPUT_LINES_SCHEMA)
    whole = [file for file in files if not file.fault]
    if not whole:
        return faulty
    places = spark.createDataFrame(
        [(file.identity.path, file.name, file.identity.log) for file in whole],
        "path string, file string, log string",
    )
    raw = _raw(spark, [file.identity.path for file in whole])
    placed = raw.join(sql.broadcast(places), "path", "left").select(
        sql.coalesce("file", "path").alias("file"),
        sql.col("value").alias("line"),
        "log",
        sql.lit(None).cast("long").alias("position"),
        sql.lit(None).cast("string").alias("fault"),
    )
    return placed.unionByName(faulty) if faults else placed


def _raw(spark: "SparkSession", files: Sequence[str]) -> "DataFrame":
    paths = [re.sub(r"([\\*?\[\]{}])", r"\\\1", file) for file in files]  # no globbing
    raw = spark.read.option("recursiveFileLookup", "true").option("lineSep", "\n").text(paths)
    return raw.select(_path().alias("path"), "value")


def _path() -> "Column":
    from pyspark.sql import functions as sql

    plain = sql.url_decode(sql.replace("_metadata.file_path", sql.lit("+"), sql.lit("%2B")))
    return sql.regexp_replace(plain, "^file:/+", "/")


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
        match = re.search(r"reading file (?:file:/*)?(/?\S+?)\.\s", text)
        if "FAILED_READ_FILE" not in text or match is None or match[1].endswith(".parquet"):
            raise
        name = unquote("/" + match[1].lstrip("/"))
        if "FILE_NOT_EXIST" in text or not Path(name).exists():
            raise AuditInputError(f"`{name}` went away while it was read, run again") from error
        raise DamagedFileError(name) from error
