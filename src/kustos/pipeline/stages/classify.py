"""Each line of input becomes an event, a duplicate or a quarantined line; none vanishes."""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, QUARANTINE_SCHEMA
from kustos.pipeline.stages.parsing import MAXIMUM_LINE_CHARACTERS, parse_lines

MAXIMUM_QUARANTINED_CHARACTERS: Final = 4_096
"""How much of a quarantined line is kept: enough to see what it was, too little to fill a disk."""

EVENT, DUPLICATE, QUARANTINED = "event", "duplicate", "quarantined"

__all__ = [
    "DUPLICATE",
    "EVENT",
    "MAXIMUM_LINE_CHARACTERS",
    "MAXIMUM_QUARANTINED_CHARACTERS",
    "QUARANTINED",
    "audit_events",
    "classify",
    "parse_lines",
    "quarantine",
    "settle_duplicates",
    "tally",
]


def settle_duplicates(parsed: DataFrame) -> DataFrame:
    """Return `parse_lines` output with an `outcome` and an event id for every event.

    The n-th equal Kafka line of a file is the n-th event, so that real repetitions within a millisecond
    count, and only copies of a file are duplicates. An event id that comes again with another content is
    quarantined: one of the two is a forgery or a fault, and dropping it would hide that.
    """
    is_event = sql.col("reason").isNull()
    same_file = Window.partitionBy("key", "source_file").orderBy("line")
    numbered = parsed.repartition("key").withColumn(
        "occurrence",
        sql.when(sql.col("source_format") == "kafka", sql.row_number().over(same_file)).otherwise(sql.lit(1)),
    )
    content = sql.rtrim("line", sql.lit("\r"))
    copies = Window.partitionBy("key", "occurrence").orderBy(
        sql.col("reason").isNotNull(), "line", "source_file"
    )
    ranked = numbered.withColumns(
        {
            "copy": sql.row_number().over(copies),
            "first_line": sql.first(content).over(copies.rowsBetween(Window.unboundedPreceding, 0)),
        }
    )
    outcome = (
        sql.when(~is_event, sql.lit(QUARANTINED))
        .when(sql.col("copy") == 1, sql.lit(EVENT))
        .when(content == sql.col("first_line"), sql.lit(DUPLICATE))
        .otherwise(sql.lit(QUARANTINED))
    )
    event_id = sql.when(
        sql.col("source_format") == "kafka",
        sql.concat("key", sql.lit("-"), sql.col("occurrence").cast("string")),
    ).otherwise(sql.col("event_id"))
    conflict = is_event & (sql.col("outcome") == QUARANTINED)
    return (
        ranked.withColumn("outcome", outcome)
        .withColumn("reason", sql.when(conflict, sql.lit("event_id_conflict")).otherwise(sql.col("reason")))
        .withColumn("event_id", event_id)
        .drop("key", "occurrence", "copy", "first_line")
    )


def classify(lines: DataFrame, *, time_zone: str = "UTC") -> DataFrame:
    """Return every line of `lines` (LINES_SCHEMA) once, with its fields, `outcome`, `reason` and `line`."""
    return lines.transform(parse_lines, time_zone=time_zone).transform(settle_duplicates)


def audit_events(classified: DataFrame) -> DataFrame:
    """Return the table `audit_events`."""
    return classified.filter(sql.col("outcome") == EVENT).select(*AUDIT_EVENTS_SCHEMA.fieldNames())


def quarantine(classified: DataFrame) -> DataFrame:
    """Return the table `quarantine`: file, reason, the beginning of the line, its whole length."""
    line = sql.make_valid_utf8("line")
    return (
        classified.filter(sql.col("outcome") == QUARANTINED)
        .select(
            sql.col("source_file").alias("file"),
            "reason",
            sql.substring(line, 1, MAXIMUM_QUARANTINED_CHARACTERS).alias("line"),
            sql.length(line).alias("line_length"),
        )
        .to(QUARANTINE_SCHEMA)
    )


def tally(classified: DataFrame) -> DataFrame:
    """Return how many lines had each outcome: `outcome`, `line_count`."""
    return classified.groupBy("outcome").agg(sql.count(sql.lit(1)).alias("line_count"))
