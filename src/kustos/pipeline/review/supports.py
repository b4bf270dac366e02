"""Which recorded access depends on each ACL: which ACLs can be removed alone, and which together.

Exact for one ACL, by one pass over the distinct questions: it can be removed alone if no question *needs* it
(see `review.matching`). Of two that replace each other each can be removed alone, but not both. So candidates
are removed largest first, and each only while every set that a decision rests on keeps a member. The result
flips no decision, as a replay shows; a still larger choice may exist.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BooleanType, IntegerType, StructField, StructType

TOGETHER_SCHEMA: Final = StructType(
    [StructField("number", IntegerType()), StructField("is_safe_together", BooleanType())]
)


def carried(questions: DataFrame) -> DataFrame:
    """Return for each ACL (`number`) that matched anything the events that depend on it.

    It matches `matching_event_count` events; for `needed_event_count` of them the decision flips without it,
    the last at `needed_last_time`; `needed_sample_event_id` is one of them.
    """

    def parts(numbers: Column, *, is_needed: bool) -> Column:
        return sql.transform(
            numbers, lambda one: sql.struct(one.alias("number"), sql.lit(is_needed).alias("is_needed"))
        )

    matched = parts(sql.concat("allows", "denies"), is_needed=False)
    each = questions.select(
        sql.explode(sql.concat(matched, parts(sql.col("needed"), is_needed=True))).alias("part"),
        "event_count",
        "last_time",
        "sample_event_id",
    )
    is_needed, zero = sql.col("part.is_needed"), sql.lit(0).cast("long")
    count = sql.col("event_count")
    return each.groupBy(sql.col("part.number").alias("number")).agg(
        sql.sum(sql.when(~is_needed, count).otherwise(zero)).alias("matching_event_count"),
        sql.sum(sql.when(is_needed, count).otherwise(zero)).alias("needed_event_count"),
        sql.max(sql.when(is_needed, sql.col("last_time"))).alias("needed_last_time"),
        sql.min(sql.when(is_needed, sql.col("sample_event_id"))).alias("needed_sample_event_id"),
    )


def safe_together(questions: DataFrame, candidates: DataFrame) -> DataFrame:
    """Return which candidates can be removed at once, as TOGETHER_SCHEMA.

    `candidates` are distinct `number`s with a `rank`: lower ones are tried first. One worker holds all sets,
    some 100 bytes each: one for each combination of ACLs that ever decided something.
    """
    sets = (
        questions.select(sql.explode("resting").alias("resting"))
        .distinct()
        .select(sql.lit(None).cast("int").alias("number"), sql.lit(None).cast("int").alias("rank"), "resting")
    )
    tried = candidates.select("number", "rank", sql.lit(None).cast("array<int>").alias("resting"))
    schema = TOGETHER_SCHEMA.simpleString().removeprefix("struct<").removesuffix(">").replace(":", " ")
    return sets.unionByName(tried).groupBy().applyInArrow(_choose, schema)


def _choose(table: pa.Table) -> pa.Table:
    rows = table.to_pylist()
    ranked = sorted((row["rank"], row["number"]) for row in rows if row["number"] is not None)
    candidates = [number for _, number in ranked]
    chosen = chosen_together(candidates, [row["resting"] for row in rows if row["resting"] is not None])
    return pa.table(
        {
            "number": pa.array(candidates, pa.int32()),
            "is_safe_together": pa.array([number in chosen for number in candidates], pa.bool_()),
        }
    )


def chosen_together(candidates: Sequence[int], resting: Iterable[Sequence[int]]) -> set[int]:
    """Return those candidates, the first ones first, without which each resting set keeps a member."""
    removable = set(candidates)
    left: list[int] = []
    member_of: dict[int, list[int]] = {}
    for some in resting:
        if removable.issuperset(some):
            for number in some:
                member_of.setdefault(number, []).append(len(left))
            left.append(len(some))
    chosen: set[int] = set()
    for number in candidates:
        sets = member_of.get(number, ())
        if all(left[position] > 1 for position in sets):
            chosen.add(number)
            for position in sets:
                left[position] -= 1
    return chosen
