"""What the record covers, beside plain Python; and no claim of something unused beyond it."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kustos.acl.forms import texts_of
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.queries.record import RecordCoverage, record_of
from kustos.pipeline.review.access import access_review
from kustos.pipeline.review.findings import acl_findings, removable_together
from testkit.review_rows import START, acl, history, rollup, row
from testkit.seeds import Drawing
from tests.pipeline.plain_record import is_enough as plainly_enough

DAY = timedelta(days=1)
NOON = timedelta(hours=12)

days_of_record = st.sets(st.integers(0, 60)) | st.builds(
    lambda first, last, missing: set(range(first, last)) - missing,
    st.integers(0, 60),
    st.integers(0, 61),
    st.sets(st.integers(0, 60), max_size=6),
)


@given(days=days_of_record, window=st.integers(1, 40), is_midnight=st.booleans())
def test_the_record_is_enough_exactly_if_each_day_of_the_window_is_covered(
    days: set[int], window: int, is_midnight: bool
) -> None:
    recorded = {START.date() + n * DAY for n in days}
    as_of = START + 50 * DAY + (timedelta() if is_midnight else NOON)
    last = (START + (49 if is_midnight else 50) * DAY).date()
    found = RecordCoverage.of(recorded, as_of, window)
    known = {day for day in recorded if day <= last}
    assert (found.last_wanted, found.first_day) == (last, min(known, default=None))
    assert found.recorded_days == sum(last - n * DAY in known for n in range(window))
    assert found.is_enough == plainly_enough(known, last, window)
    assert ("too early to say" in found.text()) == (not found.is_enough)
    runs = [
        length
        for length in range(1, window + 1)
        for start in range(window - length + 1)
        if not any(last - n * DAY in known for n in range(start, start + length))
    ]
    assert found.longest_gap_days == max(runs, default=0)


@pytest.mark.parametrize(
    ("days", "window", "is_enough"),
    [
        ({49}, 90, False),  # an hour of log
        ({48, 49}, 90, False),
        (set(range(50)), 50, True),
        (set(range(1, 50)), 50, False),  # the record begins a day too late
        (set(range(50)) - {20, 21, 22}, 50, True),
        (set(range(50)) - {20, 21, 22, 23}, 50, False),
        (set(range(46)), 50, False),  # the log ends four days before
        (set(range(0, 50, 2)), 49, False),  # each other day
        (set(), 1, False),
    ],
)
def test_records_by_hand(days: set[int], window: int, is_enough: bool) -> None:
    found = RecordCoverage.of({START.date() + n * DAY for n in days}, START + 50 * DAY, window)
    assert found.is_enough == is_enough


OLD = acl("User:old", "READ", "TOPIC", "pay")
YOUNG = acl("User:young", "READ", "TOPIC", "pay")
DOUBLE = acl("User:young", "READ", "TOPIC", "pa", prefixed=True)
SINCE = {OLD: 0, YOUNG: 35, DOUBLE: 35}
WINDOW = 30


@pytest.mark.parametrize("nth", range(4))
def test_unused_is_said_only_of_covered_days_in_which_the_acl_existed(
    spark: SparkSession, seed: int, nth: int
) -> None:
    """Of random records, and of one without a gap: no sentence, flag or mark goes beyond the record."""
    drawn = set(range(50)) if nth == 0 else Drawing(seed + nth)(days_of_record)
    rows = [row("User:clock", "READ", "beats", day=day, rule="SuperUser") for day in sorted(drawn)]
    # denials are no record of uses
    rows += [row("User:eve", "READ", "beats", day=day, decision="DENIED") for day in range(50)]
    as_of, acls = START + 50 * DAY, AclsInForce.of("t", [OLD, YOUNG, DOUBLE])
    recorded, past = rollup(spark, rows), history(spark, [(one, day, None) for one, day in SINCE.items()])
    is_enough = plainly_enough({START.date() + n * DAY for n in drawn}, as_of.date() - DAY, WINDOW)
    found = acl_findings(spark, recorded, acls, as_of=as_of, unused_days=WINDOW, history=past)
    told = found.collect()
    claimed = {one.principal for one in told if one.kind in ("UNUSED_ACL", "ORPHANED_ACL")}
    assert claimed == ({"User:old"} if is_enough else set())
    assert {one.reason.rpartition(" no ")[2] for one in told if one.kind != "REDUNDANT_ACL"} <= {
        "use in 30 days",
        "request in 30 days",
    }
    # what another ACL covers can go, whatever was recorded; that both can go needs a record
    assert {one.is_safe_to_remove for one in told} == {True}
    gone = {tuple(one) for one in found.transform(removable_together).collect()}
    assert gone == ({tuple(texts_of(OLD).values())} if is_enough else set())
    review = access_review(spark, recorded, acls, as_of=as_of, dormant_days=WINDOW, history=past).collect()
    flags = {one.principal: one.is_dormant for one in review if one.use_count == 0}
    assert flags == {"User:old": True if is_enough else None, "User:young": None}
    known = record_of(recorded, as_of, WINDOW)
    assert {(one.recorded_days, one.covered_since) for one in review} == {
        (known.recorded_days, known.covered_since)
    }


def test_what_the_record_only_suggests_is_neither_safe_nor_unsafe_to_remove(spark: SparkSession) -> None:
    """A topic that does not exist is found at once; that its ACL can go is said when the record is long."""
    from kustos.pipeline.review.existing_names import Existing

    acls, existing = AclsInForce.of("t", [OLD]), Existing.of(topics=["beats"])
    for first, said in ((45, None), (0, True)):
        rows = [row("User:clock", "READ", "beats", day=day) for day in range(first, 50)]
        found = acl_findings(
            spark,
            rollup(spark, rows),
            acls,
            as_of=datetime(2026, 9, 20, tzinfo=UTC),
            unused_days=WINDOW,
            existing=existing,
        )
        [orphan] = found.filter("evidence like '%NO_SUCH_RESOURCE%'").collect()
        assert orphan.is_safe_to_remove is said
