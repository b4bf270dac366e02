"""Data flows: producers, topics, consumers and their groups as vertices and edges; paths of data.

An edge follows the data: principal to topic for a recorded WRITE, topic to principal for a READ; the READ of
a group links the consumer to the group. No event records which group read which topic.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kustos.pipeline.errors import ReviewError

PRINCIPAL: Final = "PRINCIPAL"
TOPIC: Final = "TOPIC"
GROUP: Final = "GROUP"

EDGE_SCHEMA: Final = StructType(
    [
        StructField("source_kind", StringType()),
        StructField("source", StringType()),
        StructField("kind", StringType()),
        StructField("target_kind", StringType()),
        StructField("target", StringType()),
        StructField("event_count", LongType()),
        StructField("first_time", TimestampType()),
        StructField("last_time", TimestampType()),
    ]
)
"""`kind`: PRODUCES (principal to topic), CONSUMES (topic to principal), MEMBER_OF (principal to group)."""

VERTEX_SCHEMA: Final = StructType(
    [
        StructField("kind", StringType()),
        StructField("name", StringType()),
        StructField("edges_in", LongType()),
        StructField("edges_out", LongType()),
        StructField("event_count", LongType()),
    ]
)

PATH_SCHEMA: Final = StructType(
    [
        StructField("source", StringType()),
        StructField("target", StringType()),
        StructField("hops", IntegerType()),
        StructField("path", ArrayType(StringType())),
    ]
)
"""A shortest way of data from one principal to another: `path` is principal, topic, principal, ..."""

HOPS_MAX: Final = 8
"""Hops (principal, topic, principal) of a path: each is one join more over all pairs reached."""


def edges(rollup: DataFrame) -> DataFrame:
    """Return the edges of recorded use (allowed, no listings), as EDGE_SCHEMA."""
    kinds = {
        ("TOPIC", "WRITE"): (PRINCIPAL, "principal", "PRODUCES", TOPIC, "resource_name"),
        ("TOPIC", "READ"): (TOPIC, "resource_name", "CONSUMES", PRINCIPAL, "principal"),
        ("GROUP", "READ"): (PRINCIPAL, "principal", "MEMBER_OF", GROUP, "resource_name"),
    }
    edge = sql.lit(None).cast(StructType(EDGE_SCHEMA.fields[:5]))
    for (resource_type, operation), (source_kind, source, kind, target_kind, target) in kinds.items():
        is_its = (sql.col("resource_type") == resource_type) & (sql.col("operation") == operation)
        fields = sql.struct(
            sql.lit(source_kind).alias("source_kind"),
            sql.col(source).alias("source"),
            sql.lit(kind).alias("kind"),
            sql.lit(target_kind).alias("target_kind"),
            sql.col(target).alias("target"),
        )
        edge = sql.when(is_its, fields).otherwise(edge)
    return (
        rollup.filter(
            (sql.col("decision") == "ALLOWED")
            & (sql.col("access") == "ACCESS")
            & sql.col("resource_name").isNotNull()
        )
        .withColumn("edge", edge)
        .filter(sql.col("edge").isNotNull())
        .groupBy("edge")
        .agg(
            sql.sum("event_count").alias("event_count"),
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
        )
        .select("edge.*", "event_count", "first_time", "last_time")
    )


def vertices(found: DataFrame) -> DataFrame:
    """Return the vertices of edges with how many come in and go out, as VERTEX_SCHEMA."""
    zero, one = sql.lit(0).cast("long"), sql.lit(1).cast("long")

    def end(name: str, into: Column, out: Column) -> DataFrame:
        return found.select(
            sql.col(f"{name}_kind").alias("kind"),
            sql.col(name).alias("name"),
            into.alias("edges_in"),
            out.alias("edges_out"),
            "event_count",
        )

    ends = end("source", zero, one).unionByName(end("target", one, zero))
    return ends.groupBy("kind", "name").agg(
        *[sql.sum(name).alias(name) for name in ("edges_in", "edges_out", "event_count")]
    )


def flow_hops(found: DataFrame) -> DataFrame:
    """Return which principal feeds which other directly: `source`, `topic`, `target`."""
    produced = found.filter(sql.col("kind") == "PRODUCES")
    consumed = found.filter(sql.col("kind") == "CONSUMES")
    return (
        produced.select("source", sql.col("target").alias("topic"))
        .join(consumed.select(sql.col("source").alias("topic"), "target"), "topic")
        .filter(sql.col("source") != sql.col("target"))
        .select("source", "topic", "target")
    )


def flow_paths(found: DataFrame, *, hops_max: int, sources: list[str] | None = None) -> DataFrame:
    """Return a shortest way of data between each two principals, of at most `hops_max` hops, as PATH_SCHEMA.

    Of several equally short ones the first in order is returned. `sources` are the first principals, None for
    all. A read of a topic does not prove that the data was written on: it could have been. `found` is read
    once for each hop, so persist it if it is large. Raises `ReviewError` for more than HOPS_MAX hops.
    """
    if not 1 <= hops_max <= HOPS_MAX:
        raise ReviewError(f"paths have 1 to {HOPS_MAX} hops, not {hops_max}")
    hops = flow_hops(found)
    begun = hops if sources is None else hops.filter(sql.col("source").isin(sources))
    direct = begun.select(
        "source", "target", sql.lit(1).alias("hops"), sql.array("source", "topic", "target").alias("path")
    )
    further = hops.select(
        sql.col("source").alias("_through"),
        sql.col("topic").alias("_topic"),
        sql.col("target").alias("_target"),
    )
    reached = _shortest(direct)
    for _ in range(1, hops_max):
        # a shortest path is direct, or one hop longer than a shortest path to its last but one principal
        longer = (
            reached.join(further, sql.col("target") == sql.col("_through"))
            .filter(sql.col("_target") != sql.col("source"))
            .select(
                "source",
                sql.col("_target").alias("target"),
                (sql.col("hops") + 1).alias("hops"),
                sql.concat("path", sql.array("_topic", "_target")).alias("path"),
            )
        )
        reached = _shortest(direct.unionByName(longer))
    return reached.select(*PATH_SCHEMA.fieldNames())


def _shortest(paths: DataFrame) -> DataFrame:
    best = sql.min(sql.struct("hops", "path")).alias("best")
    return paths.groupBy("source", "target").agg(best).select("source", "target", "best.*")
