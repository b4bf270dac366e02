"""The roll-up of a frame of events by day, access and rule; that of table files is made by column."""

from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.columns.probes import way_of_access
from kustos.pipeline.lines.clusters import UNNAMED
from kustos.pipeline.schemas import AUDIT_ROLLUP_SCHEMA, CLUSTER, ROLLUP_GRAIN
from kustos.pipeline.tables.deduplication.keys import day_of

MILLISECONDS_OF_AN_HOUR = 3_600_000
HOURS_OF_A_DAY = 24


def rollup(events: DataFrame) -> DataFrame:
    """Return the table `audit_rollup` of `audit_events`, one row for each distinct ROLLUP_GRAIN."""
    time_ms = sql.col("time_ms")
    special = {"access": way_of_access(), CLUSTER: sql.coalesce(CLUSTER, sql.lit(UNNAMED))}
    hour = (sql.floor(time_ms / MILLISECONDS_OF_AN_HOUR) % HOURS_OF_A_DAY).cast("int")
    keyed = events.select(
        day_of(time_ms).alias("day"),
        sql.concat("principal_type", sql.lit(":"), "principal_name").alias("principal"),
        *[special.get(name, sql.col(name)).alias(name) for name in ROLLUP_GRAIN[2:]],
        "time_ms",
        "reference_count",
        "event_id",
        sql.call_function("shiftleft", sql.lit(1), hour).alias("hour_bit"),
    )
    counted = keyed.groupBy(*ROLLUP_GRAIN).agg(
        sql.count(sql.lit(1)).alias("event_count"),
        sql.coalesce(sql.sum("reference_count"), sql.lit(0)).alias("reference_count"),
        sql.timestamp_millis(sql.min("time_ms")).alias("first_time"),
        sql.timestamp_millis(sql.max("time_ms")).alias("last_time"),
        sql.bit_or("hour_bit").alias("hours"),
        sql.min("event_id").alias("sample_event_id"),
    )
    return counted.select(*_typed())


def _typed() -> list[Column]:
    return [
        sql.col(field.name).cast(field.dataType).alias(field.name) for field in AUDIT_ROLLUP_SCHEMA.fields
    ]


def within_days(rows: DataFrame, first_day: date | None, last_day: date | None) -> DataFrame:
    """Return the rows from the first to the last day, both included; None leaves that end open."""
    if first_day is not None:
        rows = rows.filter(sql.col("day") >= sql.lit(first_day))
    return rows if last_day is None else rows.filter(sql.col("day") <= sql.lit(last_day))
