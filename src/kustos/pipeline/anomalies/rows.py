"""A detector's surprising rows as rows of the table `anomalies`."""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kustos.acl import PatternType
from kustos.pipeline.anomalies.parameters import Suppression
from kustos.pipeline.anomalies.tails import score
from kustos.pipeline.schemas import FOUND_ANOMALIES_SCHEMA

NAMES_MAX: Final = 20
"""Names that an anomaly shows; the rest is in the events."""
QUOTED_MAX: Final = 3
"""Names that its `reason` shows."""
NAME_LENGTH_MAX: Final = 249
"""The longest topic name; longer ones could fill the page."""

HIGH_SCORE: Final = 0.75
MEDIUM_SCORE: Final = 0.6

ALWAYS_HIGH: Final = (
    "BRUTE_FORCE",
    "SWEEP",
    "PRIVILEGE_PROBING",
    "TOPIC_ENUMERATION",
    "PASSWORD_SPRAYING",
    "LOGIN_AFTER_FAILURES",
)
"""Kinds that suggest intent: never less than HIGH."""
NEVER_HIGH: Final = ("MISSING_RIGHT",)
"""Kinds that need a repair and no alarm, however many events they have: at most MEDIUM."""


def plain(text: Column) -> Column:
    """Return a name for a sentence: without control characters and backticks, cut to a limit."""
    return sql.left(
        sql.regexp_replace(text, r"[\p{Cntrl}`\u2028\u2029\u202a-\u202e]", "?"), sql.lit(NAME_LENGTH_MAX)
    )


def quoted(names: Column) -> Column:
    """Return the first names of an array for a sentence."""
    shown = sql.transform(
        sql.slice(names, 1, QUOTED_MAX), lambda name: sql.concat(sql.lit("`"), plain(name), sql.lit("`"))
    )
    return sql.concat(
        sql.array_join(shown, ", "),
        sql.when(sql.size(names) > QUOTED_MAX, sql.lit(", ...")).otherwise(sql.lit("")),
    )


def candidate(
    found: DataFrame,
    kind: str,
    threshold: float,
    reason: Column,
    evidence: Mapping[str, Column],
    *,
    pattern: Sequence[str] = (),
    is_grave: Column | None = None,
) -> DataFrame:
    """Return anomalies of a kind, in the schema of `anomalies`.

    `found` has principal, resource_type, resource_name, day, first_time, last_time, event_count and surprise
    (in nats). The id is a digest of the kind, the principal and the `pattern` columns, which say what the
    anomaly is about: on each day of each run it is the same. Anomalies for which `is_grave` holds are HIGH,
    whatever their score.
    """
    gravest = "MEDIUM" if kind in NEVER_HIGH else "HIGH"
    points = score(sql.col("surprise"), threshold)
    is_high = sql.lit(kind in ALWAYS_HIGH) if is_grave is None else is_grave
    severity = (
        sql.when(is_high | (points >= HIGH_SCORE), sql.lit(gravest))
        .when(points >= MEDIUM_SCORE, sql.lit("MEDIUM"))
        .otherwise(sql.lit("LOW"))
    )
    identified = sql.to_json(sql.struct(sql.lit(kind).alias("kind"), "principal", *pattern))
    facts = [value.alias(name) for name, value in evidence.items()]
    columns = {
        "anomaly_id": sql.sha2(identified, 256),
        "kind": sql.lit(kind),
        "severity": severity,
        "score": points,
        "reason": reason,
        "evidence": sql.to_json(sql.struct(sql.round("surprise", 3).alias("surprise"), *facts)),
    }
    completed = found.withColumns(columns)
    fields = FOUND_ANOMALIES_SCHEMA.fields
    return completed.select(*(sql.col(each.name).cast(each.dataType).alias(each.name) for each in fields))


def suppressed_by(suppressions: Sequence[Suppression]) -> Column:
    """Return the reason of the first suppression that covers an anomaly, null if none does."""
    reason = sql.lit(None).cast("string")
    for suppression in reversed(suppressions):
        reason = sql.when(_is_covered(suppression), sql.lit(suppression.reason)).otherwise(reason)
    return reason


def _is_covered(suppression: Suppression) -> Column:
    covered = sql.lit(True)
    if suppression.kind is not None:
        covered &= sql.col("kind") == sql.lit(suppression.kind)
    if suppression.principal is not None:
        covered &= _has_name("principal", suppression.principal)
    pattern = suppression.resource
    if pattern is not None:
        covered &= sql.col("resource_type").eqNullSafe(sql.lit(pattern.resource_type.name))
        tail = "*" if pattern.pattern_type is PatternType.PREFIXED else ""
        covered &= _has_name("resource_name", pattern.name + tail)
    if suppression.since is not None:
        covered &= sql.col("first_time") >= sql.lit(suppression.since)
    if suppression.until is not None:
        covered &= sql.col("last_time") < sql.lit(suppression.until)
    return covered


def _has_name(column: str, name: str) -> Column:
    """Return whether a column has a name, or a prefix that ends in `*`; a missing one has none."""
    if name.endswith("*"):
        return sql.coalesce(sql.col(column).startswith(name[:-1]), sql.lit(False))
    return sql.col(column).eqNullSafe(sql.lit(name))


def without(anomalies: DataFrame, suppressions: Sequence[Suppression]) -> DataFrame:
    """Return the anomalies that no suppression covers."""
    return anomalies.filter(suppressed_by(suppressions).isNull()) if suppressions else anomalies
