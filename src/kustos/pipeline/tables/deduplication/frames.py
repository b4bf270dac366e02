"""Lines of a frame become events, duplicates or quarantined lines, none is lost: for pipelines of your own.

Runs have their lines in files and do the same without a shuffle, see `of_runs`.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kustos.pipeline.lines.clusters import UNDECLARED, DeclaredCluster
from kustos.pipeline.lines.line_columns import PARSED_SCHEMA, read_lines
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, QUARANTINE_SCHEMA, SECURITY_EVENTS_SCHEMA
from kustos.pipeline.tables.deduplication.keys import IDENTIFIED_SCHEMA, identified, suspects
from kustos.pipeline.tables.deduplication.outcomes import (
    EVENT,
    QUARANTINED,
    SECRET_CHARACTERS,
    outcomes,
)
from kustos.runtime import SystemEntropy

MAXIMUM_QUARANTINED_CHARACTERS: Final = 4_096
"""How much of a quarantined line is kept: enough to identify it, too little to fill a disk."""

_KEY_COLUMNS: Final = ("line_key", "is_counted", "log", "position")

_FOUND_SCHEMA: Final = StructType(
    [
        StructField("outcome", StringType()),
        StructField("occurrence", LongType()),
        StructField("reason", StringType()),
        StructField("line_id", StringType()),
    ]
)
_FOUND: Final = _FOUND_SCHEMA.fieldNames()
_RESULT: Final = "_result"
_OUTCOME: Final = "_outcome"

_KEPT: Final = tuple(name for name in IDENTIFIED_SCHEMA.fieldNames() if name not in _KEY_COLUMNS)


def parse_lines(
    lines: DataFrame, *, time_zone: str = "UTC", cluster: DeclaredCluster = UNDECLARED
) -> DataFrame:
    """Return each line parsed as PARSED_SCHEMA: the fields of `audit_events` and `security_events`, `reason`,
    `line`, `log`, `position`.

    `reason` is null for an event. `lines` is of INPUT_LINES_SCHEMA, or of LINES_SCHEMA: a file is then a log
    of its own, and its `.gz` is the same log. `time_zone` (an IANA name) is that of the brokers whose log
    lines have none, `cluster` that of the lines. The workers' Python, which must have kustos, parses the
    lines in Arrow batches.
    """

    def read(batch: pa.RecordBatch) -> pa.RecordBatch:
        return read_lines(batch, time_zone, cluster)

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


def identify(parsed: DataFrame) -> DataFrame:
    """Return `parse_lines` output with the key of each line, as IDENTIFIED_SCHEMA."""
    return by_batch(parsed, identified, IDENTIFIED_SCHEMA)


def deduplicate(parsed: DataFrame) -> DataFrame:
    """Return `parse_lines` output with `outcome`, `day`, `line_id`, and an event id for every event.

    Lines with equal keys come into one task, which holds their keys in memory.
    """
    secret = SystemEntropy().uuid().hex[:SECRET_CHARACTERS]

    def judge(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        parts = [
            suspects(pa.RecordBatch.from_struct_array(batch), number, secret)
            for number, batch in enumerate(batches)
        ]
        if not parts:
            return
        found = outcomes(pa.Table.from_batches(parts)).select(_FOUND).combine_chunks()
        start = 0
        for part in parts:
            yield found.slice(start, part.num_rows).to_struct_array().combine_chunks()
            start += part.num_rows

    judged = parsed.transform(identify).repartition(sql.coalesce("event_id", "line_key"))
    udf: Any = arrow_udf
    found = udf(judge, _FOUND_SCHEMA).asNondeterministic()(sql.struct("*"))
    rows = judged.withColumn(_OUTCOME, found)
    values = {name: sql.col(_OUTCOME).getField(name) for name in _FOUND}
    numbered = sql.concat("line_key", sql.lit("-"), values["occurrence"].cast("string"))
    values["event_id"] = sql.when(sql.col("reason").isNull(), sql.coalesce("event_id", numbered))
    names = [*_KEPT, "outcome", "line_id"]
    return rows.select(*[values.get(name, sql.col(name)).alias(name) for name in names])


def by_batch(
    rows: DataFrame, function: Callable[[pa.RecordBatch], pa.RecordBatch], schema: StructType
) -> DataFrame:
    """Return the function's results on batches of rows, of this schema: one row for each row.

    Like `mapInArrow`, which analyses the columns at once: Declarative Pipelines refuse that for tables that
    are declared but do not exist yet.
    """

    def make(batch: pa.Array) -> pa.Array:
        return function(pa.RecordBatch.from_struct_array(batch)).to_struct_array()

    udf: Any = arrow_udf
    result = udf(make, schema).asNondeterministic()(sql.struct("*"))  # else a filter on it evaluates it twice
    return rows.select(result.alias(_RESULT)).select(f"{_RESULT}.*")
