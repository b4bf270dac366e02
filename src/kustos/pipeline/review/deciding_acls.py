"""Recorded decisions whose events do not name the whole rule, each with the ACLs that decided it.

They are worked out once for each distinct question, in the workers (`deciders`): by the ACLs in force at the
time where there is a history, else by those given. A row of a roll-up covers a day, in which several ACLs may
have decided one question: each has the row.
"""

import json
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, IntegerType

from kustos.acl import AclBinding, AclValueError
from kustos.acl.forms import binding_of_texts
from kustos.pipeline.deciding import AclsInForce, ShippedAcls, evaluated_once, ship
from kustos.pipeline.errors import ReviewError
from kustos.pipeline.history.judgement import TOLERANCE_MS
from kustos.pipeline.review.deciders import ALWAYS, Deciders, Life, RecordedDecision
from kustos.pipeline.review.matcher import Question
from kustos.pipeline.review.period import ACL_COLUMNS
from kustos.pipeline.review.recorded_questions import matcher_of, numbered
from kustos.pipeline.schemas import QUESTION_COLUMNS
from kustos.pipeline.worker_cache import kept_in_worker

MATCHING_ACL: Final = "MatchingAcl"

LIVES_MAX: Final = 1_000_000
"""Lives of ACLs that every worker holds, some 200 bytes each."""

DECIDERS_MAX: Final = 2
"""Kept in a process, as matchers are."""

_BEGINNING, _END = ALWAYS[0]


def names_acl() -> Column:
    """Return whether a recorded `rule` is an ACL, named whole."""
    rule = sql.col("rule")
    whole = sql.coalesce(rule.getField("kind") == MATCHING_ACL, sql.lit(False))
    for name in ACL_COLUMNS:
        whole = whole & rule.getField(name).isNotNull()
    return whole


def lacks_rule() -> Column:
    """Return whether a recorded decision may be that of an ACL that its event does not name, or not whole."""
    kind = sql.col("rule").getField("kind")
    is_decision = sql.col("decision").isin("ALLOWED", "DENIED")
    return is_decision & (kind.isNull() | (kind == MATCHING_ACL)) & ~names_acl()


def with_deciding_acls(
    spark: SparkSession, recorded: DataFrame, acls: AclsInForce, history: DataFrame | None = None
) -> DataFrame:
    """Return the rows of a roll-up that lack their rule, for each of `acls` that decided them (`number`).

    The columns of the roll-up's questions, `access`, `decision`, `event_count`, `first_time`, `last_time`; a
    row that no ACL decided is left out. `history` is of ACL_HISTORY_SCHEMA. Raises `ReviewError` for one of
    more than LIVES_MAX lives.
    """
    lacking = recorded.filter(lacks_rule())
    held = numbered(acls.bindings)
    if history is None or lacking.isEmpty():
        shipped, lives = ship(spark, acls), _Lives.of_today(len(held))
        keys: tuple[str, ...] = ()
    else:
        shipped, lives = _with_past(spark, acls, history)
        keys = ("first_time", "last_time")
    rule = sql.col("rule")
    grouped = lacking.groupBy(
        *QUESTION_COLUMNS,
        "access",
        "decision",
        *[rule.getField(name).alias(f"_{name}") for name in ACL_COLUMNS],
        *[sql.col(name).alias(f"_{name}") for name in keys],
    ).agg(
        sql.sum("event_count").alias("event_count"),
        sql.min("first_time").alias("first_time"),
        sql.max("last_time").alias("last_time"),
    )
    counted = (*QUESTION_COLUMNS, "access", "decision", "event_count", "first_time", "last_time")
    return grouped.withColumn("number", sql.explode(_decided_by(shipped, lives))).select(*counted, "number")


class _Lives:
    """As bytes, for each ACL of the shipped set: its number among today's ACLs, and its life."""

    def __init__(self, numbers: Sequence[int | None], lives: Sequence[Life] | None) -> None:
        plain = json.dumps([list(numbers), lives], separators=(",", ":")).encode("ascii")
        self.content: Final = zlib.compress(plain, 1)

    @classmethod
    def of_today(cls, count: int) -> "_Lives":
        """Return those of ACLs without a history."""
        return cls(range(count), None)


def _with_past(spark: SparkSession, acls: AclsInForce, history: DataFrame) -> tuple[ShippedAcls, _Lives]:
    """Return today's ACLs with all that ever were, and their lives."""
    rows = history.select(*ACL_COLUMNS, "valid_from_time", "valid_to_time", "is_in_first_snapshot")
    lived: dict[AclBinding, list[tuple[int, int]]] = {}
    for place, row in enumerate(rows.toLocalIterator()):
        if place >= LIVES_MAX:
            raise ReviewError(f"the history has more than {LIVES_MAX:,} lives of ACLs, review without it")
        begin, end = _life(row)
        if begin < end:
            lived.setdefault(_binding(row), []).append((begin, end))
    every = numbered([*acls.bindings, *lived])
    today = {binding: number for number, binding in enumerate(numbered(acls.bindings))}
    numbers = [today.get(binding) for binding in every]
    # an ACL that the history does not have is from elsewhere: it always was
    lives = [tuple(lived.get(binding, ALWAYS)) for binding in every]
    return ship(spark, acls.with_bindings(f"{acls.name} and its past", every)), _Lives(numbers, lives)


def _binding(row: Row) -> AclBinding:
    try:
        return binding_of_texts(row.asDict())
    except AclValueError as error:
        raise ReviewError(f"a row of the history is not an ACL: {error}") from error


def _life(row: Row) -> tuple[int, int]:
    begin = _BEGINNING if row.is_in_first_snapshot else _microseconds(row.valid_from_time)
    return begin, _END if row.valid_to_time is None else _microseconds(row.valid_to_time)


def _microseconds(time: datetime) -> int:
    # rows have the driver's local time, without a zone
    since = time.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _decided_by(shipped: ShippedAcls, lives: _Lives) -> Column:
    """Return the numbers of today's ACLs that decided each row."""
    content = lives.content
    slack_us = TOLERANCE_MS * 1_000

    def decide(*columns: pa.Array) -> pa.Array:
        deciders, numbers = _deciders_of(shipped, content)
        found = []
        for values in zip(*(column.to_pylist() for column in columns), strict=True):
            decision, first, last, *rest = values
            recorded = RecordedDecision(
                Question.of_texts(*rest[: len(QUESTION_COLUMNS)]),
                decision == "ALLOWED",
                (first or 0) - slack_us,
                (last or 0) + slack_us,
                dict(zip(ACL_COLUMNS, rest[len(QUESTION_COLUMNS) :], strict=True)),
            )
            decided = [numbers[place] for place in deciders.of(recorded)]
            found.append([number for number in decided if number is not None])
        return pa.array(found, pa.list_(pa.int32()))

    return evaluated_once(
        decide,
        ArrayType(IntegerType()),
        "decision",
        sql.unix_micros("first_time"),
        sql.unix_micros("last_time"),
        *QUESTION_COLUMNS,
        *[f"_{name}" for name in ACL_COLUMNS],
    )


@kept_in_worker(DECIDERS_MAX, key=lambda shipped, content: (shipped.digest, content))
def _deciders_of(shipped: ShippedAcls, content: bytes) -> tuple[Deciders, list[int | None]]:
    numbers, lives = json.loads(zlib.decompress(content))
    today = frozenset(place for place, number in enumerate(numbers) if number is not None)
    return Deciders(matcher_of(shipped), lives, today), numbers
