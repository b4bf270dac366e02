"""Which lines are copies of one another: the same answer however the input was cut into runs.

Theory of operation. An event that brings an id is the same event wherever the id comes again with the same
content on the same day. A line without one (Kafka's text, and whatever is quarantined) is known by its log
and its text: the n-th equal line of a log is the n-th, in each copy of the log. So a log that grew, was
renamed, moved or packed brings no line twice, real repetitions within a millisecond count, and equal lines
of two brokers are two events. Lines of a topic have a position instead.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.schemas import EVENT_SCHEMA

EVENT, DUPLICATE, QUARANTINED = "event", "duplicate", "quarantined"
CONFLICT: Final = "event_id_conflict"

MILLISECONDS_OF_A_DAY: Final = 86_400_000


def day_of(time_ms: Column) -> Column:
    """Return the date in UTC, whatever the session's time zone is."""
    return sql.date_from_unix_date(sql.floor(time_ms / MILLISECONDS_OF_A_DAY).cast("int"))


def content() -> Column:
    """Return all that an event says, to be compared."""
    return sql.struct(*EVENT_SCHEMA.fieldNames())


def settle_duplicates(parsed: DataFrame) -> DataFrame:
    """Return `parse_lines` output with `outcome`, `day`, `line_id`, and an event id for every event.

    An event id that comes again on its day with another content is quarantined: one of the two is a forgery
    or a fault, and dropping it would hide that.
    """
    brings_id = sql.col("event_id").isNotNull()
    identified = parsed.withColumns(
        {
            "day": day_of(sql.col("time_ms")),
            "key": sql.coalesce("event_id", _digest("kafka-")),
        }
    )
    in_one_file = Window.partitionBy("key", "source_file").orderBy("line")
    is_counted = ~brings_id & sql.col("position").isNull()
    numbered = identified.repartition("key").withColumn(
        "occurrence", sql.when(is_counted, sql.row_number().over(in_one_file)).otherwise(sql.lit(1))
    )
    copies = Window.partitionBy("key", "day", "occurrence").orderBy("line", "source_file")
    first = sql.first(content()).over(copies.rowsBetween(Window.unboundedPreceding, 0))
    ranked = numbered.withColumns({"copy": sql.row_number().over(copies), "first": first})
    is_event = sql.col("reason").isNull()
    outcome = (
        sql.when(sql.col("copy") == 1, sql.when(is_event, sql.lit(EVENT)).otherwise(sql.lit(QUARANTINED)))
        .when(content().eqNullSafe(sql.col("first")), sql.lit(DUPLICATE))
        .otherwise(sql.lit(QUARANTINED))
    )
    line_id = sql.concat_ws("-", "key", sql.col("occurrence").cast("string"))
    return (
        ranked.withColumn("outcome", outcome)
        .withColumns(
            {
                "reason": sql.when(
                    is_event & (sql.col("outcome") == QUARANTINED), sql.lit(CONFLICT)
                ).otherwise(sql.col("reason")),
                "event_id": sql.when(is_event, sql.coalesce("event_id", line_id)),
                "line_id": sql.when(brings_id, _digest("line-")).otherwise(line_id),
            }
        )
        .drop("key", "occurrence", "copy", "first", "log", "position")
    )


def _digest(prefix: str) -> Column:
    # bytes, not characters: what is no text in UTF-8 must not become equal by being read as such
    line = sql.rtrim(sql.coalesce("line", sql.lit("")), sql.lit("\r"))
    place = sql.coalesce(sql.col("position").cast("string"), sql.lit(""))
    parts = (part.cast("binary") for part in (sql.col("log"), sql.lit("\n"), place, sql.lit("\n"), line))
    return sql.concat(sql.lit(prefix), sql.sha2(sql.concat(*parts), 256).substr(1, 32))
