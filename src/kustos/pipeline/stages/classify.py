"""Each line of input becomes an event, a duplicate or a quarantined line; none is lost."""

from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, QUARANTINE_SCHEMA, SECURITY_EVENTS_SCHEMA
from kustos.pipeline.stages.by_batch import by_batch
from kustos.pipeline.stages.dedupe import DUPLICATE, EVENT, QUARANTINED, deduplicate
from kustos.pipeline.stages.line_columns import MAXIMUM_LINE_CHARACTERS, PARSED_SCHEMA, read_lines

MAXIMUM_QUARANTINED_CHARACTERS: Final = 4_096
"""How much of a quarantined line is kept: enough to identify it, too little to fill a disk."""

__all__ = [
    "DUPLICATE",
    "EVENT",
    "MAXIMUM_LINE_CHARACTERS",
    "MAXIMUM_QUARANTINED_CHARACTERS",
    "QUARANTINED",
    "audit_events",
    "classify",
    "deduplicate",
    "parse_lines",
    "quarantine",
    "security_events",
    "tally",
]


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


def classify(lines: DataFrame, *, time_zone: str = "UTC") -> DataFrame:
    """Return every line of `lines` once, with its fields, `day`, `outcome`, `reason`, `line` and `line_id`.

    `lines` is of INPUT_LINES_SCHEMA, or of LINES_SCHEMA: each file is then a log, its `.gz` a copy of it.
    """
    return lines.transform(parse_lines, time_zone=time_zone).transform(deduplicate)


def audit_events(classified: DataFrame) -> DataFrame:
    """Return the table `audit_events`: decisions."""
    is_decision = (sql.col("outcome") == EVENT) & sql.col("event_type").isNull()
    return classified.filter(is_decision).select(*AUDIT_EVENTS_SCHEMA.fieldNames())


def security_events(classified: DataFrame) -> DataFrame:
    """Return the table `security_events`: logins and changes."""
    is_security = (sql.col("outcome") == EVENT) & sql.col("event_type").isNotNull()
    return classified.filter(is_security).select(*SECURITY_EVENTS_SCHEMA.fieldNames())


def quarantine(classified: DataFrame) -> DataFrame:
    """Return the table `quarantine`: file, reason, the beginning of the line, its whole length."""
    line = sql.make_valid_utf8("line")
    values = {
        "file": sql.col("source_file"),
        "line": sql.substring(line, 1, MAXIMUM_QUARANTINED_CHARACTERS),
        "line_length": sql.length(line),
    }
    columns = [values.get(name, sql.col(name)).alias(name) for name in QUARANTINE_SCHEMA.fieldNames()]
    return classified.filter(sql.col("outcome") == QUARANTINED).select(*columns)


def tally(classified: DataFrame) -> DataFrame:
    """Return how many lines had each outcome: `outcome`, `line_count`."""
    return classified.groupBy("outcome").agg(sql.count(sql.lit(1)).alias("line_count"))


__all__ = ["MAXIMUM_LINE_CHARACTERS", "PARSED_SCHEMA", "parse_lines"]
