"""What became of anomalies over runs.

Theory of operation. The table `anomalies` has a row for each anomaly and day. A run finds those of its days
once more: its rows take the place of those of the same kind, principal and day, and all others stay. So a run
that is done again changes nothing, and one of a single day forgets nothing. `anomaly_states` sums the rows
up, and adds what people said. The first of these rules that holds gives the state:

1. SUPPRESSED: a rule suppresses it on each of its days.
2. OPEN: nobody acknowledged it, and it is HIGH: an attacker would only have to wait.
3. OPEN: it is HIGH, and was seen on a later day than those known when somebody acknowledged it.
4. RESOLVED: the judged days go a week beyond its last one, and the record covers this week.
5. ACKNOWLEDGED: somebody acknowledged it.
6. OPEN.

An anomaly that comes back after it was resolved is open again, whoever acknowledged it before.
"""

from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.queries.record import RecordCoverage
from kustos.pipeline.schemas import ANOMALY_STATES_SCHEMA

STATES: Final = ("OPEN", "ACKNOWLEDGED", "SUPPRESSED", "RESOLVED")

RESOLVED_AFTER_DAYS: Final = 7
"""What happens on weekdays only, or each Sunday, is not over before a week without it."""

KEPT_DAYS: Final = 400
"""Days for which anomalies are kept, a year and a review of it: an unauthenticated client can add some."""

ACKNOWLEDGEMENT: Final = (
    "acknowledged_by",
    "acknowledged_at",
    "acknowledged_reason",
    "acknowledged_day",
)
LATEST: Final = (
    "kind",
    "severity",
    "score",
    "principal",
    "resource_type",
    "resource_name",
    "reason",
    "evidence",
)
"""Columns of which a state has those of the last day."""


def of_cluster(found: DataFrame, cluster: str) -> DataFrame:
    """Return anomalies with ids of their own for each cluster: one is acknowledged where it was seen."""
    if not cluster:
        return found
    return found.withColumn("anomaly_id", sql.sha2(sql.concat(sql.lit(f"{cluster} "), "anomaly_id"), 256))


def merged(former: DataFrame, found: DataFrame) -> DataFrame:
    """Return the rows of `anomalies` after a run that found these.

    A found row replaces those of its kind, principal and day; rows that are too old are left out.
    """
    keys = ("kind", "principal", "day")
    again = found.select(*(sql.col(name).alias(f"found_{name}") for name in keys)).distinct()
    is_again = sql.lit(True)
    for name in keys:
        is_again &= sql.col(name).eqNullSafe(sql.col(f"found_{name}"))
    together = former.join(again, is_again, "left_anti").unionByName(found)
    newest = together.agg(sql.max("day").alias("newest_day"))
    return (
        together.crossJoin(sql.broadcast(newest))
        .filter(sql.date_diff("newest_day", "day") < KEPT_DAYS)
        .drop("newest_day")
    )


def states_of(
    rows: DataFrame, former: DataFrame, *, judged_until: date, recorded: Collection[date], now: datetime
) -> DataFrame:
    """Return `anomaly_states` of rows of `anomalies`, with what the former states say of people.

    `judged_until` is the last judged day, `recorded` the days with a record, `now` the time of the run.
    """
    end = datetime.combine(judged_until + timedelta(days=1), time(), UTC)
    is_covered = RecordCoverage.of(recorded, end, RESOLVED_AFTER_DAYS).is_enough
    is_suppressed = sql.col("suppressed_by").isNotNull()
    seen = rows.groupBy("anomaly_id").agg(
        *(sql.max_by(name, "day").alias(name) for name in LATEST),
        sql.min("first_time").alias("first_time"),
        sql.max("last_time").alias("last_time"),
        sql.min("day").alias("first_day"),
        sql.max("day").alias("last_day"),
        sql.count_distinct("day").alias("day_count"),
        sql.sum("event_count").alias("event_count"),
        sql.count_if(is_suppressed).alias("suppressed_days"),
        sql.max_by("suppressed_by", "day").alias("suppressed_by"),
        sql.max(sql.when(~is_suppressed, sql.col("day"))).alias("open_day"),
    )
    known = former.select(
        "anomaly_id",
        "recorded_at",
        *ACKNOWLEDGEMENT,
        sql.col("state").alias("former_state"),
        sql.col("last_day").alias("former_day"),
    )
    both = seen.join(known, "anomaly_id", "left")
    was_resolved = sql.coalesce(sql.col("former_state") == "RESOLVED", sql.lit(False))
    is_back = was_resolved & (sql.col("open_day") > sql.col("former_day"))
    said = {name: sql.when(~sql.coalesce(is_back, sql.lit(False)), sql.col(name)) for name in ACKNOWLEDGEMENT}
    stays = was_resolved & ~sql.coalesce(is_back, sql.lit(False))
    return (
        both.withColumn("stays_resolved", stays)
        .withColumns(said)
        .withColumn("recorded_at", sql.coalesce("recorded_at", sql.lit(now)))
        .withColumns(_unseen(judged_until, recorded, is_covered=is_covered))
        .withColumn("state", _state())
        .select(*ANOMALY_STATES_SCHEMA.fieldNames())
    )


def _unseen(judged_until: date, recorded: Collection[date], *, is_covered: bool) -> dict[str, Column]:
    """Return the columns about the days after an anomaly's last one."""
    until = sql.lit(judged_until)
    unseen = sql.greatest(sql.date_diff(until, "last_day"), sql.lit(0))
    days = sql.array(*(sql.lit(day) for day in sorted(recorded))).cast("array<date>")
    is_week = unseen >= RESOLVED_AFTER_DAYS
    return {
        "unseen_days": unseen.cast("long"),
        "recorded_days": sql.size(
            sql.filter(days, lambda day: (day > sql.col("last_day")) & (day <= until))
        ).cast("long"),
        "is_over": sql.when(~is_week, sql.lit(False)).when(sql.lit(is_covered), sql.lit(True)),
    }


def _state() -> Column:
    is_high = sql.col("severity") == "HIGH"
    is_acknowledged = sql.col("acknowledged_at").isNotNull()
    is_over = sql.coalesce("is_over", sql.lit(False))
    return (
        sql.when(sql.col("open_day").isNull(), sql.lit("SUPPRESSED"))
        .when(is_high & ~is_acknowledged, sql.lit("OPEN"))
        .when(is_high & (sql.col("open_day") > sql.col("acknowledged_day")), sql.lit("OPEN"))
        .when(sql.col("stays_resolved") | is_over, sql.lit("RESOLVED"))
        .when(is_acknowledged, sql.lit("ACKNOWLEDGED"))
        .otherwise(sql.lit("OPEN"))
    )
