"""The ACLs of any past moment, from their history: what `--at` is for commands, for tables."""

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kustos.metadata.inspection.timeline import Moment
from kustos.pipeline.errors import MetadataHistoryError
from kustos.pipeline.schemas import ACL_SCHEMA

_BOUND = "_first_offset_after"


def acls_as_of(history: DataFrame, moment: str | int | datetime) -> DataFrame:
    """Return the ACLs in force at a moment, as ACL_SCHEMA, from ACL_HISTORY_SCHEMA.

    `moment`: an offset (the state after its record), or a time: ISO 8601 text, UTC unless it says
    otherwise, or a datetime with a time zone. Where a clock went back, the state at a time is that before
    the first change that is later. Raises `MetadataHistoryError` for a moment that is none; a moment before
    the history begins fails the query, and nothing is answered.
    """
    parsed = _parsed(moment)
    if parsed.offset is not None:
        bound = history.sparkSession.range(1).select(sql.lit(parsed.offset + 1).alias(_BOUND))
        is_known = sql.col("valid_from_offset") <= sql.lit(parsed.offset)
    else:
        instant = sql.timestamp_millis(sql.lit(parsed.time_ms))
        points = change_points(history).where(sql.col("time") > instant)
        bound = points.agg(sql.min("offset").alias(_BOUND))
        is_known = sql.col("valid_from_time") <= instant
    refusal = sql.raise_error(sql.lit(f"the history begins after {parsed.text}")).cast("boolean")
    reaches = sql.when(sql.col("is_in_first_snapshot") & ~is_known, refusal).otherwise(sql.lit(True))
    begun = sql.col("is_in_first_snapshot") | _is_before("valid_from_offset")
    ended = sql.coalesce(_is_before("valid_to_offset"), sql.lit(False))
    joined = history.crossJoin(sql.broadcast(bound))
    return joined.where(reaches).where(begun & ~ended).select(*ACL_SCHEMA.fieldNames())


def change_points(history: DataFrame) -> DataFrame:
    """Return `offset` and `time` of every change of the ACLs that a history knows, each once."""
    begun = history.where(~sql.col("is_in_first_snapshot")).select(
        sql.col("valid_from_offset").alias("offset"), sql.col("valid_from_time").alias("time")
    )
    ended = history.where(sql.col("valid_to_offset").isNotNull()).select(
        sql.col("valid_to_offset").alias("offset"), sql.col("valid_to_time").alias("time")
    )
    return begun.union(ended).distinct()


def _is_before(column: str) -> Column:
    """Return whether an offset lies before the bound, which is null where everything does."""
    everything = sql.col(_BOUND).isNull()
    return sql.when(everything, sql.col(column).isNotNull()).otherwise(sql.col(column) < sql.col(_BOUND))


def _parsed(moment: str | int | datetime) -> Moment:
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise MetadataHistoryError(f"`{moment}` has no time zone, give one, such as UTC")
        utc = moment.astimezone(UTC)
        return Moment(utc.isoformat(), time_ms=int(utc.timestamp() * 1000))
    try:
        return Moment.parse(str(moment))
    except ValueError as error:
        raise MetadataHistoryError(str(error)) from None
