"""The rows for each principal's workers: its accesses, and counts of known names by prefix.

A principal is one group. One with more accesses than `GROUP_ACCESSES` is split by the first prefix of names,
which changes nothing for prefixes: names of two parts share none. But such a principal gets no wildcard.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.privilege.options import CUTS_MAX, PREFIXABLE, PrivilegeOptions
from kustos.pipeline.schemas import QUESTION_COLUMNS

GROUP_ACCESSES: Final = 200_000
"""Accesses of a group: some 200 MB of a worker's memory."""

PARTS_MAX: Final = 1_024
"""Parts of one principal: two hundred million accesses."""

USE: Final = 0
DENIAL: Final = 1
KNOWN: Final = 2
"""Kinds of rows: an access to allow, one to deny, a prefix with its count of known names."""

GROUP: Final = ("principal", "part")
COLUMNS: Final = (
    *GROUP,
    "parts",
    "kind",
    "host",
    "operation",
    "resource_type",
    "resource_name",
    "event_count",
)


def grouped_rows(
    accesses: DataFrame, names: DataFrame, options: PrivilegeOptions, *, group_accesses: int = GROUP_ACCESSES
) -> DataFrame:
    """Return rows of `COLUMNS`, to be grouped by `GROUP`.

    `accesses` are those of `distinct_accesses`, `names` the known ones. Denied questions for any resource of
    a type are in every part of a principal, since each part must keep them denied.
    """
    relevant = accesses.filter("is_need or is_denied or is_excluded").withColumn(
        "kind", sql.when(sql.col("is_need"), sql.lit(USE)).otherwise(sql.lit(DENIAL))
    )
    sizes = relevant.groupBy("principal").agg(
        sql.least(
            sql.ceil(sql.count(sql.lit(1)) / sql.lit(group_accesses)).cast("int"), sql.lit(PARTS_MAX)
        ).alias("parts")
    )
    parted = relevant.join(sql.broadcast(sizes.filter("parts > 1")), "principal", "left").withColumn(
        "parts", sql.coalesce(sql.col("parts"), sql.lit(1))
    )
    first = sql.get(_beginnings(options), sql.lit(1))
    by_name = sql.pmod(sql.xxhash64("resource_type", sql.coalesce(first, sql.col("resource_name"))), "parts")
    is_everywhere = sql.col("resource_name").isNull() & (sql.col("kind") == DENIAL)
    part = (
        sql.when(sql.col("parts") == 1, sql.array(sql.lit(0)))
        .when(is_everywhere, sql.sequence(sql.lit(0), sql.col("parts") - 1))
        .otherwise(sql.array(sql.coalesce(by_name.cast("int"), sql.lit(0))))
    )
    rows = parted.withColumn("part", sql.explode(part))
    if not options.has_prefixes:
        return rows.select(*COLUMNS)
    return rows.select(*COLUMNS).unionByName(_known(rows, names, options).select(*COLUMNS))


def _is_prefixable() -> Column:
    return sql.col("resource_type").isin(*sorted(kind.name for kind in PREFIXABLE))


def _beginnings(options: PrivilegeOptions) -> Column:
    """Return the empty text and the possible prefixes of `resource_name`, as `names.cutter` cuts it."""
    if not options.separators or not options.has_prefixes:
        return sql.array(sql.lit(""))
    one_of = "".join(f"\\x{{{ord(separator):x}}}" for separator in options.separators)
    pieces = sql.split("resource_name", f"(?<=[{one_of}])", CUTS_MAX + 1)
    ends_at_separator = sql.col("resource_name").rlike(f"[{one_of}]\\z")
    # the last piece is not a prefix unless the name ends with a separator
    count = sql.least(
        sql.size(pieces) - sql.when(ends_at_separator, sql.lit(0)).otherwise(sql.lit(1)), sql.lit(CUTS_MAX)
    )
    cuts = sql.transform(
        sql.sequence(sql.lit(1), sql.greatest(count, sql.lit(1))),
        lambda end: sql.array_join(sql.slice(pieces, sql.lit(1), end), ""),
    )
    long_enough = sql.filter(cuts, lambda cut: sql.length(cut) >= sql.lit(options.prefix_length_min))
    cuts = sql.when((count > 0) & _is_prefixable(), sql.array_distinct(long_enough)).otherwise(
        sql.array().cast("array<string>")
    )
    return sql.concat(sql.array(sql.lit("")), cuts)


def _known(rows: DataFrame, names: DataFrame, options: PrivilegeOptions) -> DataFrame:
    """Return the counts of known names for the prefixes that enough of a principal's accesses have."""
    # the condition is part of the array expression: a filter would be pushed below the step that makes the
    # accesses distinct, and Spark would compute them once more
    is_wanted = (sql.col("kind") == USE) & _is_prefixable() & sql.col("resource_name").isNotNull()
    kind, nothing = sql.col("resource_type"), sql.lit(None).cast("string")
    pairs = sql.transform(
        sql.when(is_wanted, _beginnings(options)).otherwise(sql.array().cast("array<string>")),
        lambda text: sql.struct(kind.alias("resource_type"), text.alias("resource_name")),
    )
    wanted = (
        rows.select(*GROUP, "parts", sql.explode(pairs).alias("pair"))
        .select(*GROUP, "parts", "pair.resource_type", "pair.resource_name")
        .groupBy(*GROUP, "parts", "resource_type", "resource_name")
        .agg(sql.count(sql.lit(1)).alias("accesses"))
        .filter(sql.col("accesses") >= options.prefix_members_min)
        .drop("accesses")
    )
    counts = (
        names.filter(_is_prefixable())
        .select("resource_type", sql.explode(_beginnings(options)).alias("resource_name"))
        .groupBy("resource_type", "resource_name")
        .agg(sql.count(sql.lit(1)).alias("event_count"))
        .filter(sql.col("event_count") >= options.prefix_members_min)
    )
    return wanted.join(counts, ["resource_type", "resource_name"]).withColumns(
        {"kind": sql.lit(KNOWN), "host": nothing, "operation": nothing}
    )


assert set(QUESTION_COLUMNS) < set(COLUMNS)
