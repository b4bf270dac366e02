"""Lines of a folder of audit files."""

from pathlib import Path
from typing import TYPE_CHECKING

from kustos.pipeline.files import list_audit_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_files(spark: "SparkSession", folder: Path) -> "DataFrame":
    """Return every line of the files below a folder as LINES_SCHEMA: plain, rotated and gzip files.

    Raises `AuditInputError` if the folder is missing, empty, or has a file that cannot be opened; a damaged
    file fails the action that reads it.
    """
    from kustos.pipeline.jobs import read_lines

    return read_lines(spark, list_audit_files(folder))
