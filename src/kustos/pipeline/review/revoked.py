"""Uses of what was revoked since a former review, as today's record has them.

An event may be read long after it happened, so a former review did not know all uses of its ACLs. A row that
is gone counts each recorded use up to the end of its ACL: by the metadata log, and without one up to the
former review, when it still held. Later events of the same access were allowed by something else.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import IntegerType, StructField, StructType, TimestampType

from kustos.acl import AclBinding
from kustos.acl.forms import Place, binding_of_fields
from kustos.pipeline.deciding import AclsInForce, ship
from kustos.pipeline.review.entitled import sums_of_uses
from kustos.pipeline.review.period import ACL_COLUMNS, moment, until
from kustos.pipeline.review.recorded_questions import numbered, numbered_acls, with_matching
from kustos.pipeline.session import frame_of_rows
from kustos.signoff import instant_text

_COUNTS: Final = ("use_count", "used_by_count", "used_name_count")
_ENDS_SCHEMA: Final = StructType([StructField("number", IntegerType()), StructField("end", TimestampType())])


def with_uses_until_revoked(
    spark: SparkSession,
    rollup: DataFrame,
    gone: Iterable[Mapping[str, Any]],
    *,
    super_users: Iterable[str],
    former_as_of: datetime,
    as_of: datetime,
    history: DataFrame | None = None,
) -> list[dict[str, Any]]:
    """Return rows of a former review that are gone, in its JSON types, with their uses counted again.

    `history` (ACL_HISTORY_SCHEMA) has the end of each ACL. Rows of super users and of the default stay as
    they were. Raises `ReviewError` for a time without a zone.
    """
    rows = [dict(row) for row in gone]
    bindings = numbered({binding for row in rows for binding in _acl_of(row)})
    if not bindings:
        return rows
    ends = _ends(spark, bindings, history, former_as_of, as_of)
    acls = AclsInForce.of("revoked ACLs", bindings, super_users=super_users)
    at = {number: row["end"] for number, row in enumerate(ends)}
    used = until(rollup, as_of).filter("access = 'ACCESS' and decision = 'ALLOWED'")
    each = with_matching(used, ship(spark, acls)).select("*", sql.explode("allows").alias("number"))
    ended = [(number, end.astimezone(UTC)) for number, end in at.items()]
    held = each.join(sql.broadcast(frame_of_rows(spark, ended, _ENDS_SCHEMA)), "number").filter(
        sql.col("first_time") <= sql.col("end")
    )
    goes_on = sql.col("last_time") > sql.col("end")
    uses = held.withColumns(
        {
            # as in `until`: a day's row that goes on proves its first event alone
            "use_count": sql.when(goes_on, sql.lit(1).cast("long")).otherwise(sql.col("event_count")),
            "last_used": sql.when(goes_on, sql.col("first_time")).otherwise(sql.col("last_time")),
        }
    )
    found = {
        (row["number"], row["operation"]): row
        for row in uses.groupBy("number", "operation").agg(*sums_of_uses()).collect()
    }
    numbers = {binding: number for number, binding in enumerate(bindings)}
    for row in rows:
        for binding in _acl_of(row):
            sums = found.get((numbers[binding], row["operation"]))
            row |= {name: 0 if sums is None else sums[name] for name in _COUNTS}
            row["last_used"] = None if sums is None else instant_text(sums["last_used"])
    return rows


def _acl_of(row: Mapping[str, Any]) -> list[AclBinding]:
    return [binding_of_fields(one, Place("the former review", 1)) for one in row["granted_by"][:1]]


def _ends(
    spark: SparkSession,
    bindings: Iterable[AclBinding],
    history: DataFrame | None,
    former_as_of: datetime,
    as_of: datetime,
) -> list[Any]:
    """Return a row for each ACL, in order, with the last time at which it is known to have held."""
    held = numbered_acls(spark, bindings)
    known = moment(former_as_of)
    if history is None:
        return held.select("number", known.alias("end")).orderBy("number").collect()
    ended = (
        history.filter(sql.col("valid_to_time") <= moment(as_of))
        .groupBy(sql.struct(*ACL_COLUMNS).alias("acl"))
        .agg(sql.max("valid_to_time").alias("_ended"))
    )
    end = sql.greatest(sql.coalesce("_ended", known), known).alias("end")
    return held.join(ended, "acl", "left").select("number", end).orderBy("number").collect()
