"""Uses of what was revoked count up to the end of its ACL, however late they were read."""

from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kustos.acl.forms import texts_of
from kustos.pipeline.review.revoked import with_uses_until_revoked
from kustos.signoff.csv_form import instant_text
from testkit.review_documents import entitlement_row
from testkit.review_rows import AS_OF, START, acl, history, rollup, row

PREFIX = acl("User:bob", "READ", "TOPIC", "pay.", prefixed=True)
OLD = acl("User:*", "WRITE", "TOPIC", "old")
RECORDED = [
    row("User:bob", "READ", "pay.in", day=10, count=5),
    # read after the former review of day 60; the ACL ended at the beginning of day 91
    row("User:bob", "READ", "pay.out", day=90, count=3),
    # by another ACL, since this one was gone
    row("User:bob", "READ", "pay.in", day=100, count=70),
    row("User:bob", "READ", "pay.in", day=20, decision="DENIED"),
    # goes on after the former review, and after the end
    row("User:eve", "WRITE", "old", day=60, last=95, count=9),
    row("User:root", "WRITE", "old", day=1, count=8),
]
GONE = [
    entitlement_row("User:bob", "READ", "pay.", granted_by=[texts_of(PREFIX)], use_count=5, last_used="then"),
    entitlement_row("User:bob", "DESCRIBE", "pay.", granted_by=[texts_of(PREFIX)], use_count=7),
    entitlement_row("User:*", "WRITE", "old", granted_by=[texts_of(OLD)]),
    entitlement_row("User:ann", "ALL", "*", resource_type="ANY", basis="SuperUser", use_count=4),
]


def counted(spark: SparkSession, known: DataFrame | None) -> list[tuple[Any, ...]]:
    rows = with_uses_until_revoked(
        spark,
        rollup(spark, RECORDED),
        GONE,
        super_users=["User:root"],
        former_as_of=START + timedelta(days=60, hours=12),
        as_of=AS_OF,
        history=known,
    )
    return [
        (one["use_count"], one["used_by_count"], one["used_name_count"], one["last_used"]) for one in rows
    ]


def at(day: int, hour: int) -> str:
    time: datetime = START + timedelta(days=day, hours=hour)
    return instant_text(time)


def test_a_late_event_counts_for_the_acl_that_allowed_it_until_it_ended(spark: SparkSession) -> None:
    ended = history(spark, [(PREFIX, 0, 91), (OLD, 0, 80), (OLD, 85, 90)])
    assert counted(spark, ended) == [
        (8, 1, 2, at(90, 23)),
        (0, 0, 0, None),
        # a day's row that goes on proves its first event alone
        (1, 1, 1, at(60, 1)),
        (4, 0, 0, None),
    ]


def test_without_the_metadata_an_acl_held_for_certain_until_the_former_review(spark: SparkSession) -> None:
    assert counted(spark, None) == [
        (5, 1, 1, at(10, 23)),
        (0, 0, 0, None),
        (1, 1, 1, at(60, 1)),
        (4, 0, 0, None),
    ]
