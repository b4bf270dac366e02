"""What a page shows of the answers: sums and first rows, held against plain Python."""

import random
from collections import Counter, defaultdict

from pyspark.sql import SparkSession

from kustos.pipeline.queries import answers
from kustos.pipeline.report.answers import collect_findings, collect_grants, collect_replayed
from tests.pipeline.answer_rows import ALLOW_READ, at, findings, flips, review


def test_flips_are_counted_in_requests_by_kind_and_lists_apart(spark: SparkSession) -> None:
    frame = flips(
        spark,
        {"event_count": 5, "host": "h1", "sample_event_id": "z"},
        {"event_count": 2, "host": "h2", "last_time": at(3)},
        {"kind": "GAINED", "event_count": 7, "principal": "User:b"},
        {"kind": "RULE_CHANGED", "event_count": 100, "principal": "User:c"},
        {"access": "PROBE", "kind": "GAINED", "event_count": 4, "principal": "User:d"},
        {"access": "PROBE", "event_count": 1000, "principal": "User:e"},
        {"access": "LISTING", "event_count": 11},
        {"access": "LISTING", "kind": "RULE_CHANGED", "event_count": 1000},
    )
    found = collect_replayed(frame)
    sums = (found.lost, found.gained, found.rule_changed, found.listing, found.principals)
    assert sums == (7, 11, 100, 11, 3), "a probe that would be allowed lets somebody in"
    first, second, third = found.flips
    assert (first.principal, first.allowed, first.requests, first.hosts) == ("User:a", False, 7, 2)
    assert (first.last_time, first.sample_event_id) == (at(3), "e")
    assert (second.principal, second.allowed, second.requests) == ("User:b", True, 7)
    assert (third.principal, third.allowed, third.requests) == ("User:d", True, 4)


def test_no_flips_make_a_replay_of_zeros(spark: SparkSession) -> None:
    found = collect_replayed(flips(spark))
    assert (found.lost, found.gained, found.listing, found.principals, found.flips) == (0, 0, 0, 0, ())


def test_the_largest_flips_are_those_of_plain_python(spark: SparkSession) -> None:
    chance = random.Random(3)
    rows = [
        {
            "principal": f"User:{chance.randrange(4)}",
            "resource_name": chance.choice(["a", "b", None]),
            "kind": chance.choice(["LOST", "GAINED", "RULE_CHANGED"]),
            "access": chance.choice(["ACCESS", "ACCESS", "LISTING", "PROBE"]),
            "event_count": chance.randrange(1, 1000),
        }
        for _ in range(300)
    ]
    expected: Counter[tuple[object, ...]] = Counter()
    for row in rows:
        if (row["kind"], row["access"]) in {("LOST", "ACCESS"), ("GAINED", "ACCESS"), ("GAINED", "PROBE")}:
            allowed = row["kind"] == "GAINED"
            expected[row["principal"], row["resource_name"], allowed] += int(str(row["event_count"]))
    largest = answers.largest_flips(flips(spark, *rows), 3).collect()
    found = {(row["principal"], row["resource_name"], row["allowed"]): row["requests"] for row in largest}
    by_direction: defaultdict[object, list[int]] = defaultdict(list)
    for what, count in expected.items():
        by_direction[what[2]].append(count)
    for direction, counts in by_direction.items():
        assert sorted(counts, reverse=True)[:3] == [n for what, n in found.items() if what[2] is direction]
    assert all(expected[what] == count for what, count in found.items())


def test_grants_fall_into_ages_and_the_most_dormant_come_first(spark: SparkSession) -> None:
    used = [(0, "1 day"), (1, "1 day"), (2, "7 days"), (8, "30 days"), (90, "90 days"), (365, "365 days")]
    rows = [{"last_used": at(0), "dormant_days": days, "use_count": 1} for days, _ in used]
    rows += [
        {"last_used": at(0), "dormant_days": 366, "is_dormant": True, "team": "pay"},
        {"dormant_days": 400, "is_dormant": True, "granted_since": at(-9600)},
        {"is_dormant": True, "principal": "User:ghost"},
        {"granted_by": [], "last_used": at(0), "dormant_days": 0},
    ]
    found = collect_grants(review(spark, *rows))
    assert dict(found.ages) == {
        "1 day": 2,
        "7 days": 1,
        "30 days": 1,
        "90 days": 1,
        "365 days": 1,
        "longer ago": 1,
        "no use recorded": 2,
    }
    assert (found.grants, found.dormant) == (9, 3)
    assert [row.dormant_days for row in found.most_dormant] == [None, 400, 366]
    assert found.most_dormant[1].granted_since == at(-9600)
    assert len(ALLOW_READ) == 7


def test_the_gravest_findings_come_first_and_have_their_place_in_time(spark: SparkSession) -> None:
    frame = findings(
        spark,
        {"finding_id": "1", "kind": "BURST", "severity": "MEDIUM", "first_time": at(5), "last_time": at(6)},
        {"finding_id": "2", "kind": "BURST", "severity": "HIGH", "first_time": at(0), "last_time": at(10)},
        {"finding_id": "3", "kind": "UNUSED", "is_safe_to_remove": True, "reason": "r" * 9999},
        {
            "finding_id": "4",
            "kind": "BURST",
            "severity": "HIGH",
            "score": 0.9,
            "first_time": at(-5),
            "last_time": at(2),
        },
        {"finding_id": "5", "kind": "BURST", "first_time": at(20), "last_time": at(21)},
    )
    found = collect_findings(frame, at(0), at(10))
    assert found.count == 5
    burst, unused = found.kinds
    assert (burst.kind, burst.count, burst.high) == ("BURST", 4, 2)
    assert [row.score for row in burst.shown] == [0.9, 0.5, 0.5, 0.5]
    assert [(start, end) for start, end, _ in burst.marks] == [(0.0, 0.2), (0.0, 1.0), (0.5, 0.6)]
    assert (unused.shown[0].is_safe_to_remove, len(unused.shown[0].reason), unused.marks) == (True, 600, ())
