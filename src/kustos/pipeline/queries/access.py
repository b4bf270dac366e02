"""Access by principal, operation and resource, counted: the sums behind the tables of the report."""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.columns.decision_counts import decision_count
from kustos.pipeline.columns.probes import LISTING, PROBE, way_of_access
from kustos.pipeline.lines.clusters import UNNAMED
from kustos.pipeline.schemas import ACCESS_COUNTS_SCHEMA, CLUSTER

EVENT_COLUMNS: Final = (
    "event_id",
    "time_ms",
    "time",
    "resource_name",
    "decision",
    "access",
    "log_if_denied",
    "decision_count",
    "source_file",
    "conflicting_file",
)
"""The columns of `audit_events` that `activity`, `days_after` and `conflicts` read."""

GRAIN: Final = ("principal", "operation", "resource_type", "resource_name", "decision")


def access_counts(events: DataFrame) -> DataFrame:
    """Return the table `access_counts` of `audit_events`, one row a distinct access and decision."""
    principal = sql.concat("principal_type", sql.lit(":"), "principal_name")
    cluster = sql.coalesce(CLUSTER, sql.lit(UNNAMED))
    count, zero = decision_count(), sql.lit(0)
    counted = (
        events.withColumns({"principal": principal, CLUSTER: cluster})
        .groupBy(CLUSTER, *GRAIN)
        .agg(
            sql.sum(count).alias("event_count"),
            sql.sum(sql.when(sql.col("access") == LISTING, count).otherwise(zero)).alias("listing_count"),
            sql.sum(sql.when(way_of_access() == PROBE, count).otherwise(zero)).alias("probe_count"),
            sql.min("time").alias("first_time"),
            sql.max("time").alias("last_time"),
        )
    )
    return counted.select(*ACCESS_COUNTS_SCHEMA.fieldNames())


def counts_of_rollup(rollup: DataFrame) -> DataFrame:
    """Return the same table from `audit_rollup`, which has the same events by day."""

    def counted_as(access: str) -> Column:
        return sql.sum(sql.when(sql.col("access") == access, sql.col("event_count")).otherwise(sql.lit(0)))

    counted = rollup.groupBy(CLUSTER, *GRAIN).agg(
        sql.sum("event_count").alias("event_count"),
        counted_as(LISTING).alias("listing_count"),
        counted_as(PROBE).alias("probe_count"),
        sql.min("first_time").alias("first_time"),
        sql.max("last_time").alias("last_time"),
    )
    return counted.select(*ACCESS_COUNTS_SCHEMA.fieldNames())


def _allowed(column: str = "event_count") -> Column:
    return sql.sum(sql.when(sql.col("decision") == "ALLOWED", sql.col(column)).otherwise(sql.lit(0)))


def _denied(column: str | Column = "event_count") -> Column:
    """Return the sum of rows that are not ALLOWED, ERROR too."""
    amount = sql.col(column) if isinstance(column, str) else column
    return sql.sum(sql.when(sql.col("decision") != "ALLOWED", amount).otherwise(sql.lit(0)))


def totals(counts: DataFrame) -> DataFrame:
    """Return one row of sums over `access_counts`; zero and null times when it is empty.

    `probes` refused nothing and are not among `denied`.
    """
    zero = sql.lit(0)
    return counts.agg(
        sql.coalesce(_allowed(), zero).alias("allowed"),
        sql.coalesce(_denied(sql.col("event_count") - sql.col("probe_count")), zero).alias("denied"),
        sql.coalesce(sql.sum("probe_count"), zero).alias("probes"),
        sql.coalesce(_denied("listing_count"), zero).alias("denied_listing"),
        sql.coalesce(sql.sum(sql.when(sql.col("decision") == "ERROR", sql.col("event_count"))), zero).alias(
            "error"
        ),
        sql.count_distinct("principal").alias("principals"),
        sql.count_distinct(sql.struct("resource_type", "resource_name")).alias("resources"),
        sql.min("first_time").alias("first_time"),
        sql.max("last_time").alias("last_time"),
        sql.count(sql.lit(1)).alias("accesses"),
    )


def _without_probes(counts: DataFrame) -> DataFrame:
    """Return `access_counts` of what was allowed, refused or left out of lists."""
    counted = sql.col("event_count") - sql.col("probe_count")
    return counts.withColumn("event_count", counted).filter(sql.col("event_count") > 0).drop("probe_count")


def top_denials(counts: DataFrame, limit: int) -> DataFrame:
    """Return the `limit` most frequent denied accesses, most frequent first.

    A name that was only left out of a list is not an attempt and does not count, nor does a probe.
    """
    attempts = sql.col("event_count") - sql.col("listing_count")
    return (
        _without_probes(counts)
        .filter((sql.col("decision") != "ALLOWED") & (attempts > 0))
        .withColumn("attempts", attempts)
        .orderBy(sql.desc("attempts"), *GRAIN)
        .limit(limit)
    )


def access_matrix(counts: DataFrame, principals: int, resources: int) -> DataFrame:
    """Return allowed and denied sums for the busiest principals and resources, and for all others.

    At most (`principals` + 1) x (`resources` + 1) rows. `other_principal` and `other_resource` mark the sums
    over those not named, whose name columns are null. Probes are neither allowed nor denied.
    """
    counts = _without_probes(counts)
    busiest_principals = (
        counts.groupBy("principal").agg(sql.sum("event_count").alias("n")).orderBy(sql.desc("n"), "principal")
    ).limit(principals)
    resource = ("resource_type", "resource_name")
    busiest_resources = (
        counts.groupBy(*resource).agg(sql.sum("event_count").alias("n")).orderBy(sql.desc("n"), *resource)
    ).limit(resources)
    left = sql.broadcast(busiest_principals.select(sql.col("principal").alias("p")))
    right = sql.broadcast(
        busiest_resources.select(sql.col("resource_type").alias("t"), sql.col("resource_name").alias("r"))
    )
    joined = counts.join(left, sql.col("principal") == sql.col("p"), "left").join(
        right,
        (sql.col("resource_type") == sql.col("t")) & sql.col("resource_name").eqNullSafe(sql.col("r")),
        "left",
    )
    return (
        joined.withColumns(
            {"other_principal": sql.col("p").isNull(), "other_resource": sql.col("t").isNull()}
        )
        .groupBy(
            sql.col("p").alias("principal"),
            sql.col("t").alias("resource_type"),
            sql.col("r").alias("resource_name"),
            "other_principal",
            "other_resource",
        )
        .agg(_allowed().alias("allowed"), _denied().alias("denied"))
    )


def new_accesses(counts: DataFrame, since: datetime, limit: int) -> DataFrame:
    """Return the `limit` accesses first seen after `since`, denied ones first; probes are left out."""
    return (
        _without_probes(counts)
        .filter(sql.col("first_time") > sql.lit(since))
        .orderBy(sql.col("decision") == "ALLOWED", sql.desc("event_count"), *GRAIN)
        .limit(limit)
    )


def news_totals(counts: DataFrame, since: datetime) -> DataFrame:
    """Return one row on what was first or last seen around `since`.

    `allowed` and `denied` are accesses first seen after it, probes and names in lists left out; `principals`
    were never seen before, `silent_principals` not after it.
    """
    is_new = sql.col("first_time") > sql.lit(since)
    is_access = sql.col("event_count") > sql.col("listing_count") + sql.col("probe_count")
    is_allowed = sql.col("decision") == "ALLOWED"
    return (
        counts.groupBy("principal")
        .agg(
            sql.count_if(is_new & is_access & is_allowed).alias("allowed"),
            sql.count_if(is_new & is_access & ~is_allowed).alias("denied"),
            sql.min(is_new).alias("is_new"),
            sql.max(sql.col("last_time") > sql.lit(since)).alias("is_seen"),
        )
        .agg(
            sql.coalesce(sql.sum("allowed"), sql.lit(0)).alias("allowed"),
            sql.coalesce(sql.sum("denied"), sql.lit(0)).alias("denied"),
            sql.count_if("is_new").alias("principals"),
            sql.count_if(~sql.col("is_seen")).alias("silent_principals"),
        )
    )


def days_after(events: DataFrame, since: datetime) -> int:
    """Return on how many days (UTC) `audit_events` has an event after a time with its zone; an action."""
    later = events.filter(sql.col("time") > sql.lit(since))
    return later.select(sql.to_date("time")).distinct().count()


def activity(events: DataFrame, bucket_seconds: int) -> DataFrame:
    """Return allowed and denied of each bucket that has events, by `bucket_start` (Unix seconds), unordered.

    Probes are neither.
    """
    bucket = sql.floor(sql.col("time_ms") / (bucket_seconds * 1000)) * bucket_seconds
    count = decision_count()
    return (
        events.filter(~way_of_access().eqNullSafe(PROBE))
        .withColumn("bucket_start", bucket)
        .groupBy("bucket_start")
        .agg(
            sql.sum(sql.when(sql.col("decision") == "ALLOWED", count).otherwise(sql.lit(0))).alias("allowed"),
            _denied(count).alias("denied"),
        )
    )


def activity_by_day(rollup: DataFrame, bucket_seconds: int) -> DataFrame:
    """Return the same of `audit_rollup`, for buckets of whole days."""
    second = sql.unix_seconds(sql.col("day").cast("timestamp"))
    return (
        rollup.filter(~sql.col("access").eqNullSafe(PROBE))
        .withColumn("bucket_start", sql.floor(second / bucket_seconds) * bucket_seconds)
        .groupBy("bucket_start")
        .agg(_allowed().alias("allowed"), _denied().alias("denied"))
    )


def busiest_by_principal(counts: DataFrame, principals: Collection[str], limit: int) -> DataFrame:
    """Return each of the `principals`' first `limit` accesses, with `place`: denied ones, then by count.

    Probes are left out.
    """
    order = Window.partitionBy("principal").orderBy(
        sql.col("decision") == "ALLOWED", sql.desc("event_count"), *GRAIN[1:]
    )
    return (
        _without_probes(counts)
        .filter(sql.col("principal").isin(*principals))
        .withColumn("place", sql.row_number().over(order))
        .filter(sql.col("place") <= limit)
    )


def access_by_team(counts: DataFrame, limit: int) -> DataFrame:
    """Return `team`, `principals`, `allowed` and `denied` of `access_counts` with a column `team`.

    The `limit` teams with the most events, the most first; a null team stands for principals without one.
    """
    return (
        _without_probes(counts)
        .groupBy("team")
        .agg(
            sql.count_distinct("principal").alias("principals"),
            _allowed().alias("allowed"),
            _denied().alias("denied"),
        )
        .orderBy(sql.desc(sql.col("allowed") + sql.col("denied")), "team")
        .limit(limit)
    )


def conflicts(events: DataFrame) -> DataFrame:
    """Return where events have the id of another event with other content, by the files of both.

    `events` has `event_id`, `source_file` and `conflicting_file`. Columns: these files, `event_count` and one
    `event_id`; the pairs with the most events first.
    """
    return (
        events.filter(sql.col("conflicting_file").isNotNull())
        .groupBy("source_file", "conflicting_file")
        .agg(sql.count(sql.lit(1)).alias("event_count"), sql.min("event_id").alias("event_id"))
        .orderBy(sql.desc("event_count"), "source_file", "conflicting_file")
    )


def quarantine_reasons(quarantined: DataFrame) -> DataFrame:
    """Return `reason`, `line_count` and one `sample` line for each reason, most frequent first."""
    kind = sql.substring_index("reason", ":", 1)
    return (
        quarantined.groupBy(kind.alias("reason"))
        .agg(
            sql.count(sql.lit(1)).alias("line_count"),
            sql.min("file").alias("file"),
            sql.min("line").alias("sample"),
        )
        .orderBy(sql.desc("line_count"), "reason")
    )
