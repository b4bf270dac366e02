"""The stage that parses lines of input."""

import pyarrow as pa
from pyspark.sql import DataFrame

from kustos.pipeline.stages.by_batch import by_batch
from kustos.pipeline.stages.line_columns import MAXIMUM_LINE_CHARACTERS, PARSED_SCHEMA, read_lines

__all__ = ["MAXIMUM_LINE_CHARACTERS", "PARSED_SCHEMA", "parse_lines"]


def parse_lines(lines: DataFrame, *, time_zone: str = "UTC") -> DataFrame:
    """Return each line parsed as PARSED_SCHEMA: the fields of `audit_events` and `security_events`, `reason`,
    `line`, `log`, `position`.

    `reason` is null for an event. `lines` is of INPUT_LINES_SCHEMA, or of LINES_SCHEMA: a file is then a log
    of its own, and its `.gz` is the same log. `time_zone` (an IANA name) is that of the brokers whose log
    lines have none. The workers' Python, which must have kustos, parses the lines in Arrow batches.
    """

    def read(batch: pa.RecordBatch) -> pa.RecordBatch:
        return read_lines(batch, time_zone)

    return by_batch(lines, read, PARSED_SCHEMA)
