"""Lines of a run that the tables already hold: their copies are duplicates, at any time."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.stages.dedupe import CONFLICT, DUPLICATE, EVENT, QUARANTINED, content

TOO_LATE: Final = "too_late"


def known_events(classified: DataFrame, stored: DataFrame) -> DataFrame:
    """Return `day`, `event_id`, `brings_id` of the events in `classified` whose ids are in `stored`."""
    events = classified.filter(sql.col("outcome") == EVENT)
    keys = events.select("day", "event_id", "brings_id")
    return keys.join(stored.select("day", "event_id"), ["day", "event_id"], "left_semi")


def conflicting_events(classified: DataFrame, stored: DataFrame, known: DataFrame) -> DataFrame:
    """Return `day`, `event_id` of the `known` events that `stored` has with another content.

    Only an id in the line can be forged: one generated from the content always agrees with it.
    """
    names = ["day", "event_id"]
    wanted = known.filter("brings_id").select(*names)
    new = classified.filter(sql.col("outcome") == EVENT).join(wanted, names, "left_semi")
    old = stored.join(wanted, names, "left_semi")
    pairs = new.select(*names, content().alias("new")).join(old.select(*names, content().alias("old")), names)
    return pairs.filter(~sql.col("new").eqNullSafe(sql.col("old"))).select(*names).distinct()


def judge(
    classified: DataFrame,
    *,
    known: DataFrame | None = None,
    conflicting: DataFrame | None = None,
    known_lines: DataFrame | None = None,
    oldest_time_ms: int | None = None,
) -> DataFrame:
    """Return `classified` with the outcome of each line, compared with the stored rows.

    `known` and `conflicting` come from the functions above; `known_lines` has the `line_id` of quarantined
    lines. An event before `oldest_time_ms` that is not known is too late.
    """
    is_event = sql.col("outcome") == EVENT
    marked = _marked(_marked(classified, known, "is_known"), conflicting, "is_conflict")
    late = sql.lit(False) if oldest_time_ms is None else sql.col("time_ms") < oldest_time_ms
    found = (
        sql.when(is_event & sql.col("is_conflict"), sql.lit(CONFLICT))
        .when(is_event & ~sql.col("is_known") & late, sql.lit(TOO_LATE))
        .otherwise(sql.col("reason"))
    )
    outcome = (
        sql.when(is_event & found.isNotNull(), sql.lit(QUARANTINED))
        .when(is_event & sql.col("is_known"), sql.lit(DUPLICATE))
        .otherwise(sql.col("outcome"))
    )
    judged = marked.withColumns({"outcome": outcome, "reason": found}).drop("is_known", "is_conflict")
    if known_lines is None:
        return judged
    copies = known_lines.select("line_id").distinct().withColumn("is_known", sql.lit(True))
    again = (sql.col("outcome") == QUARANTINED) & sql.col("is_known").isNotNull()
    return (
        judged.join(copies, "line_id", "left")
        .withColumn("outcome", sql.when(again, sql.lit(DUPLICATE)).otherwise(sql.col("outcome")))
        .drop("is_known")
    )


def _marked(rows: DataFrame, marks: DataFrame | None, name: str) -> DataFrame:
    if marks is None:
        return rows.withColumn(name, sql.lit(False))
    names = ["day", "event_id"]
    joined = rows.join(marks.select(*names).distinct().withColumn(name, sql.lit(True)), names, "left")
    return joined.withColumn(name, sql.coalesce(name, sql.lit(False)))
