"""The ACLs of any past moment, from their history table."""

from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kustos.metadata.inspection import Moment
from kustos.pipeline.errors import MetadataHistoryError
from kustos.pipeline.schemas import ACL_SCHEMA


def acls_as_of(history: DataFrame, moment: str | int | datetime) -> DataFrame:
    """Return the ACLs in force at a moment, as ACL_SCHEMA, from ACL_HISTORY_SCHEMA.

    `moment`: an offset (the state after its record), or a time: ISO 8601 text, UTC unless it says
    otherwise, or a datetime with a time zone. Raises `MetadataHistoryError` for an invalid moment; a moment
    before the history begins fails the query.
    """
    parsed = _parsed(moment)
    if parsed.offset is not None:
        column, bound = "offset", sql.lit(parsed.offset)
    else:
        column, bound = "time", sql.timestamp_millis(sql.lit(parsed.time_ms))
    begins, ends = sql.col(f"valid_from_{column}"), sql.col(f"valid_to_{column}")
    refusal = sql.raise_error(sql.lit(f"the history begins after {parsed.text}")).cast("boolean")
    in_force = (begins <= bound) & (ends.isNull() | (ends > bound))
    # one condition: of two, Spark may evaluate the other first and filter out the row that must raise
    is_too_early = sql.col("is_in_first_snapshot") & (begins > bound)
    return history.where(sql.when(is_too_early, refusal).otherwise(in_force)).select(*ACL_SCHEMA.fieldNames())


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
