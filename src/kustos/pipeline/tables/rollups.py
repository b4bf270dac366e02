"""The roll-up of some days: what stands, with what is new; made of the events anew where nothing stands."""

from collections.abc import Collection
from datetime import date
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.stages.rollup import merge_rollups, rollup
from kustos.pipeline.tables.ledger import UPKEEP, State
from kustos.pipeline.tables.store import AUDIT_EVENTS, AUDIT_ROLLUP, Tables
from kustos.pipeline.tables.writing import replace_days, stage_by_day


def days_to_rebuild(tables: Tables, state: State, days: Collection[str]) -> frozenset[str]:
    """Return those of the days whose roll-up does not stand for all their committed events."""
    rolled = tables.days(AUDIT_ROLLUP)
    return frozenset(day for day in days if day in state.stale_days or day not in rolled)


def rolled_up(
    spark: SparkSession,
    tables: Tables,
    new_events: DataFrame | None,
    days: Collection[str],
    rebuilt: Collection[str],
) -> DataFrame:
    """Return the roll-up of these days with the new events, `rebuilt` ones from their events."""
    parts: list[DataFrame] = []
    if new_events is not None:
        parts.append(rollup(new_events))
    merged = [day for day in days if day not in rebuilt]
    if merged:
        parts.append(tables.read(spark, AUDIT_ROLLUP).filter(is_of(merged)))
    if set(rebuilt) & tables.days(AUDIT_EVENTS):
        parts.append(rollup(tables.read(spark, AUDIT_EVENTS).filter(is_of(rebuilt))))
    return reduce(merge_rollups, parts)


def refresh_rollup(spark: SparkSession, tables: Tables) -> tuple[str, ...]:
    """Roll up anew the days that runs without a roll-up marked; return them.

    Raises `TablesInUseError` if a run is at work.
    """
    with tables.transaction(spark) as change:
        days = sorted(change.state.stale_days)
        if not days:
            return ()
        rows = rolled_up(spark, tables, None, days, days)
        stage_by_day(rows, change, AUDIT_ROLLUP)
        changes = replace_days(tables, change, AUDIT_ROLLUP, days)
        change.commit("refresh-rollup", UPKEEP, **changes.as_fields(), fresh_days=tuple(days))
    return tuple(days)


def is_of(days: Collection[str]) -> Column:
    """Return whether a row is of one of these days."""
    return sql.col("day").isin([date.fromisoformat(day) for day in days])
