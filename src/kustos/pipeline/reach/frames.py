"""Reach as rows: regions of rights, the existing resources in them, and their recorded use."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kustos.acl import ResourceType
from kustos.analysis import Region
from kustos.pipeline.errors import ReviewError
from kustos.pipeline.reach.escalation import BlastRadius, Escalation

REACH_SCHEMA: Final = StructType(
    [
        StructField("principal", StringType()),
        StructField("identity", StringType()),
        StructField("steps", ArrayType(StringType())),
        StructField("everything", BooleanType()),
        StructField("resource_type", StringType()),
        StructField("operations", ArrayType(StringType())),
        StructField("names", StringType()),
        StructField("hosts", StringType()),
    ]
)
"""A row for each region of rights: of `principal`, as the `identity` that it takes by `steps` (as texts).

`everything`: that identity has a way to all rights; its `steps` end with that way."""

REACHED_RESOURCE_SCHEMA: Final = StructType(
    [
        StructField("principal", StringType()),
        StructField("identity", StringType()),
        StructField("step_count", IntegerType()),
        StructField("resource_type", StringType()),
        StructField("resource_name", StringType()),
        StructField("operations", ArrayType(StringType())),
        StructField("use_count", LongType()),
        StructField("last_used", TimestampType()),
    ]
)
"""A row for each existing resource that `principal` reaches as `identity`: with which operations, from any
host; and how often the principal itself used it. Names with the fewest steps come first."""

_EXISTING_SCHEMA: Final = StructType(REACHED_RESOURCE_SCHEMA.fields[:6])

REACHED_ROWS_MAX: Final = 5_000_000
"""Rows built in the driver: some 2 GB; for more, use fewer principals or fewer names."""


def reach(spark: SparkSession, escalation: Escalation, principals: Iterable[str]) -> DataFrame:
    """Return what each of some principals can reach, as REACH_SCHEMA; raises what `Escalation.of` raises."""
    rows = [row for principal in principals for row in _rows(escalation.of(principal))]
    return spark.createDataFrame(rows, REACH_SCHEMA)


def _rows(radius: BlastRadius) -> Iterator[tuple[object, ...]]:
    for identity in radius.identities:
        way = () if radius.everything is None else radius.everything
        # the way to everything goes over this identity, if it goes on from it
        reaches_all = bool(way) and way[-1].identity == identity.principal
        steps = [step.text() for step in (way if reaches_all else identity.path)]
        for region in identity.regions or (None,):
            yield (radius.principal, identity.principal, steps, reaches_all, *_words(region))


def _words(region: Region | None) -> tuple[object, ...]:
    if region is None:
        return None, [], "nothing", "nowhere"
    return (
        region.resource_type.name,
        [operation.name for operation in region.operations],
        region.names.text(region.resource_type),
        region.hosts.text(),
    )


def reached_resources(
    spark: SparkSession,
    escalation: Escalation,
    principals: Iterable[str],
    listing: Mapping[ResourceType, frozenset[str]],
    rollup: DataFrame,
) -> DataFrame:
    """Return which existing resources each principal reaches and what it used of them.

    `listing` has the existing names by type. As REACHED_RESOURCE_SCHEMA; each resource is one row for each
    principal, with the first identity that reaches it. A principal that reaches everything reaches the whole
    listing. Raises `ReviewError`, `AnalysisError`.
    """
    rows: list[tuple[object, ...]] = []
    for principal in principals:
        rows += _existing(escalation.of(principal), listing)
        _check(len(rows))
    used = (
        rollup.filter((sql.col("decision") == "ALLOWED") & (sql.col("access") == "ACCESS"))
        .groupBy("principal", "resource_type", "resource_name")
        .agg(sql.sum("event_count").alias("use_count"), sql.max("last_time").alias("last_used"))
    )
    joined = spark.createDataFrame(rows, _EXISTING_SCHEMA).join(
        used, ["principal", "resource_type", "resource_name"], "left"
    )
    counted = joined.withColumn("use_count", sql.coalesce("use_count", sql.lit(0).cast("long")))
    return counted.select(*REACHED_RESOURCE_SCHEMA.fieldNames())


def _check(count: int) -> None:
    if count > REACHED_ROWS_MAX:
        raise ReviewError(f"more than {REACHED_ROWS_MAX} resources are reached, ask about fewer principals")


def _existing(
    radius: BlastRadius, listing: Mapping[ResourceType, frozenset[str]]
) -> Iterator[tuple[object, ...]]:
    seen: set[tuple[ResourceType, str]] = set()
    for identity in radius.identities:
        found: dict[tuple[ResourceType, str], dict[str, None]] = {}
        for region in identity.regions:
            for name in sorted(listing.get(region.resource_type, ())):
                if name in region.names:
                    held = found.setdefault((region.resource_type, name), {})
                    held |= dict.fromkeys(operation.name for operation in region.operations)
        for (kind, name), operations in found.items():
            if (kind, name) not in seen:
                seen.add((kind, name))
                yield _reached(radius, identity.principal, len(identity.path), kind, name, sorted(operations))
    if radius.everything is not None:
        way = radius.everything
        for kind, names in listing.items():
            for name in sorted(names):
                if (kind, name) not in seen:
                    yield _reached(radius, way[-1].identity, len(way), kind, name, ["ALL"])


def _reached(radius: BlastRadius, identity: str, steps: int, *rest: Any) -> tuple[object, ...]:
    kind, name, operations = rest
    return radius.principal, identity, steps, kind.name, name, operations


def reach_by_principal(reached: DataFrame) -> DataFrame:
    """Return for each principal and type how many existing resources it reaches and how many it used."""
    return reached.groupBy("principal", "resource_type").agg(
        sql.count(sql.lit(1)).alias("reached_count"),
        sql.count_if(sql.col("use_count") > 0).alias("used_count"),
        sql.max("last_used").alias("last_used"),
    )
