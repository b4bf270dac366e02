"""The recorded rows and the ACLs of a past moment, and the team that answers for each principal."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType

from kustos.acl import AclBinding, AclValueError
from kustos.acl.forms import binding_of_texts
from kustos.pipeline.deciding import evaluated_once
from kustos.pipeline.errors import ReviewError
from kustos.pipeline.schemas import ACL_SCHEMA

ACL_COLUMNS: Final = tuple(ACL_SCHEMA.fieldNames())


def moment(as_of: datetime) -> Column:
    """Return a point in time as a column; raise `ReviewError` if it has no time zone."""
    if as_of.tzinfo is None:
        raise ReviewError(f"`{as_of.isoformat()}` has no time zone, give one such as `+00:00`")
    return sql.lit(as_of)


def until(rollup: DataFrame, as_of: datetime) -> DataFrame:
    """Return the rows of a roll-up up to and including `as_of`.

    A row that continues beyond it counts as its first event alone, since a day's row proves no more; at
    midnight UTC there is no such row.
    """
    end = moment(as_of)
    goes_on = sql.col("last_time") > end
    return rollup.filter(sql.col("first_time") <= end).withColumns(
        {
            "event_count": sql.when(goes_on, sql.lit(1).cast("long")).otherwise(sql.col("event_count")),
            "last_time": sql.when(goes_on, sql.col("first_time")).otherwise(sql.col("last_time")),
        }
    )


def in_force(history: DataFrame, as_of: datetime) -> DataFrame:
    """Return the rows of an `acl_history` that held at `as_of`: from its record's time, up to its end's."""
    at = moment(as_of)
    ended = sql.col("valid_to_time")
    return history.filter((sql.col("valid_from_time") <= at) & (ended.isNull() | (ended > at)))


def with_grant_time(acls: DataFrame, history: DataFrame | None, as_of: datetime) -> DataFrame:
    """Return ACLs (structs in the column `acl`) with `granted_since`: since when each is in force at `as_of`.

    It is null for an ACL that `history` does not have in force then, and without a history.
    """
    if history is None:
        return acls.withColumn("granted_since", sql.lit(None).cast("timestamp"))
    since = in_force(history, as_of).groupBy(sql.struct(*ACL_COLUMNS).alias("acl"))
    return acls.join(since.agg(sql.min("valid_from_time").alias("granted_since")), "acl", "left")


def bindings_of(acls: DataFrame) -> tuple[AclBinding, ...]:
    """Collect rows that have the columns of ACL_SCHEMA as ACLs, each once.

    Raises `ReviewError` for a row that is not an ACL.
    """
    found: dict[AclBinding, None] = {}
    for row in acls.select(*ACL_COLUMNS).distinct().toLocalIterator():
        try:
            binding = binding_of_texts(row.asDict())
        except AclValueError as error:
            raise ReviewError(f"a row of the ACLs is none: {error}, write Kafka's names") from error
        found[binding] = None
    return tuple(found)


def with_team(rows: DataFrame, teams: Mapping[str, str]) -> DataFrame:
    """Return rows with the `team` that answers for their `principal`, null if none does.

    `teams` maps `User:name`, or `User:prefix*` for all that begin so, to a team; a name goes before a
    prefix, a longer prefix before a shorter one.
    """
    if not teams:
        return rows.withColumn("team", sql.lit(None).cast(StringType()))
    known = dict(teams)

    def of_each(principal: pa.Array) -> pa.Array:
        found: dict[str | None, str | None] = {}
        names = principal.to_pylist()
        for name in names:
            if name not in found:
                found[name] = None if name is None else team_of(name, known)
        return pa.array([found[name] for name in names], pa.string())

    return rows.withColumn("team", evaluated_once(of_each, StringType(), "principal"))


def team_of(principal: str, teams: Mapping[str, str]) -> str | None:
    """Return the team that answers for a principal, as `with_team`."""
    if principal in teams:
        return teams[principal]
    for length in range(len(principal), -1, -1):
        team = teams.get(f"{principal[:length]}*")
        if team is not None:
            return team
    return None
