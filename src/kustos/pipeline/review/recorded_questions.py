"""Recorded questions, each once, with the ACLs that match them: a stage that review and findings share."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from kustos.acl import AclBinding
from kustos.acl.forms import texts_of
from kustos.analysis import Rules
from kustos.pipeline.columns.probes import ACCESS
from kustos.pipeline.deciding import ShippedAcls, evaluated_once
from kustos.pipeline.deciding.acl_set import authorizer_of_content
from kustos.pipeline.review.matcher import Matcher, Question
from kustos.pipeline.review.period import until
from kustos.pipeline.schemas import ACL_SCHEMA, QUESTION_COLUMNS
from kustos.pipeline.session import frame_of_rows
from kustos.pipeline.worker_cache import kept_in_worker

_NUMBERS: Final = ArrayType(IntegerType())

MATCHING_SCHEMA: Final = StructType(
    [
        StructField("basis", StringType()),
        StructField("allows", _NUMBERS),
        StructField("denies", _NUMBERS),
        StructField("needed", _NUMBERS),
        StructField("resting", ArrayType(_NUMBERS)),
    ]
)
"""The fields of `Matching`; ACLs by their numbers in `numbered`."""

NUMBERED_ACL_SCHEMA: Final = StructType(
    [StructField("number", IntegerType()), StructField("acl", ACL_SCHEMA)]
)

MATCHERS_MAX: Final = 2
"""Kept in a process: one for 100,000 ACLs takes some 150 MB."""


def numbered(bindings: Iterable[AclBinding]) -> tuple[AclBinding, ...]:
    """Return distinct ACLs in the order that gives each its number, the same in driver and workers."""
    return tuple(sorted(set(bindings), key=lambda binding: tuple(texts_of(binding).values())))


def numbered_acls(spark: SparkSession, bindings: Iterable[AclBinding]) -> DataFrame:
    """Return the ACLs with their numbers as NUMBERED_ACL_SCHEMA."""
    rows = [(number, tuple(texts_of(acl).values())) for number, acl in enumerate(numbered(bindings))]
    return frame_of_rows(spark, rows, NUMBERED_ACL_SCHEMA)


@kept_in_worker(MATCHERS_MAX, key=lambda shipped: shipped.digest)
def matcher_of(shipped: ShippedAcls) -> Matcher:
    """Return this process's matcher of a set, its ACLs in the order of `numbered`."""
    authorizer = authorizer_of_content(shipped.name, shipped.content(), shipped.digest)
    rules = Rules(
        super_users=authorizer.super_users,
        allow_everyone_if_no_acl_found=authorizer.allow_everyone_if_no_acl_found,
    )
    return Matcher(numbered(authorizer.acls()), rules)


_INT_LIST: Final = pa.list_(pa.int32())
_ARROW: Final = pa.struct(
    {"basis": pa.string()}
    | dict.fromkeys(("allows", "denies", "needed"), _INT_LIST)
    | {"resting": pa.list_(_INT_LIST)}
)


def matching(shipped: ShippedAcls) -> Column:
    """Return what matches each row's question (`QUESTION_COLUMNS`) as MATCHING_SCHEMA."""

    def match(
        principal: pa.Array, host: pa.Array, operation: pa.Array, resource_type: pa.Array, name: pa.Array
    ) -> pa.Array:
        matcher = matcher_of(shipped)
        columns = (principal, host, operation, resource_type, name)
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        found = [matcher.matching(Question.of_texts(*texts)) for texts in rows]
        return pa.array([{name: getattr(one, name) for name in _ARROW.names} for one in found], _ARROW)

    return evaluated_once(match, MATCHING_SCHEMA, *QUESTION_COLUMNS)


def review_questions(rollup: DataFrame, shipped: ShippedAcls, as_of: datetime) -> DataFrame:
    """Return each question recorded up to `as_of` once, uses and listings, with the ACLs that match it.

    Columns: QUESTION_COLUMNS, those of MATCHING_SCHEMA, and sums: `use_count`, `denied_count` and `last_used`
    of uses; `event_count`, `last_time` and `sample_event_id` of all.
    """
    is_use, is_allowed = sql.col("access") == ACCESS, sql.col("decision") == "ALLOWED"
    count, zero = sql.col("event_count"), sql.lit(0).cast("long")
    questions = (
        until(rollup, as_of)
        .groupBy(*QUESTION_COLUMNS)
        .agg(
            sql.sum(sql.when(is_use & is_allowed, count).otherwise(zero)).alias("use_count"),
            sql.sum(sql.when(is_use & ~is_allowed, count).otherwise(zero)).alias("denied_count"),
            sql.max(sql.when(is_use & is_allowed, sql.col("last_time"))).alias("last_used"),
            sql.sum("event_count").alias("event_count"),
            sql.max("last_time").alias("last_time"),
            sql.min("sample_event_id").alias("sample_event_id"),
        )
    )
    return with_matching(questions, shipped)


def with_matching(questions: DataFrame, shipped: ShippedAcls) -> DataFrame:
    """Return distinct questions with the columns of MATCHING_SCHEMA."""
    matched = questions.withColumn("_matching", matching(shipped))
    return matched.select(
        *questions.columns,
        *[sql.col("_matching").getField(name).alias(name) for name in MATCHING_SCHEMA.fieldNames()],
    )
