"""The months the detectors are scored on: reproducible, labelled truly, and searched from end to end."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.anomalies import Window, find_anomalies, kept
from testkit.months import score_values, sets
from testkit.months.frames import event_rows, rollup_rows, rollup_table
from testkit.months.month import make_month
from testkit.months.score_values import Found
from testkit.months.values import KINDS, Label, Month, Trail

SMALL = replace(
    sets.DEVELOPMENT, teams=(4, 4), services=(8, 8), topics=(8, 10), humans=(10, 10), history_days=(42, 42),
    window_days=(21, 21), labels_per_kind=(1, 1), look_alikes=(1, 1), dormant_days=(30, 30),
    starts=sets.DEVELOPMENT.starts[:1],
)  # fmt: skip


@pytest.fixture(scope="module")
def month() -> Month:
    return make_month(101, SMALL)


def test_a_seed_tells_the_same_month_again(month: Month) -> None:
    again = make_month(101, SMALL)
    assert again.labels == month.labels
    assert again.trail.counts == month.trail.counts
    assert make_month(102, SMALL).trail.counts != month.trail.counts


def test_labels_are_of_the_window_and_of_principals_that_did_something(month: Month) -> None:
    assert {label.kind for label in month.labels} == set(KINDS)
    active = {(key.principal, key.day) for key in month.trail.counts}
    for label in month.labels:
        assert month.history_days <= label.first_day <= label.last_day
        assert (label.principal, label.first_day) in active


def test_held_out_months_are_others() -> None:
    assert not set(sets.DEVELOPMENT_SEEDS) & set(sets.HELD_OUT_SEEDS)
    ours, theirs = sets.DEVELOPMENT, sets.HELD_OUT
    same = [name for name in ours.__slots__ if getattr(ours, name) == getattr(theirs, name)]
    assert same == []


def test_a_roll_up_holds_all_events_of_the_month(month: Month) -> None:
    denied = Trail({key: hours for key, hours in month.trail.counts.items() if key.decision == "DENIED"})
    part = replace(month, trail=denied)
    rows = list(event_rows(part))
    assert sum(row["event_count"] for row in rollup_rows(part)) == len(rows) > 0
    assert {(row["time"].date() - month.start).days for row in rows} == {key.day for key in denied.counts}


def test_labels_and_findings_are_matched_one_by_one() -> None:
    labels = [Label("NEW_HOST", "User:a", 40, 41), Label("BRUTE_FORCE", "User:b", 40, 40)]
    found = [
        Found("NEW_HOST", "User:a", 40),
        Found("NEW_HOST", "User:a", 42),
        Found("NEW_HOST", "User:a", 43),
        Found("MISSING_RIGHT", "User:b", 40),
    ]
    tally = score_values.tally(labels, found)
    assert (dict(tally.found), dict(tally.missed)) == ({"NEW_HOST": 1}, {"BRUTE_FORCE": 1})
    assert dict(tally.wrong) == {"NEW_HOST": 1, "MISSING_RIGHT": 1}
    assert tally.recall() == 0.5
    assert tally.precision() == pytest.approx(1 / 3)


def test_a_small_month_is_searched_from_end_to_end(spark: SparkSession, month: Month, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(rollup_table(month), tmp_path / "rollup.parquet", coerce_timestamps="us")
    start = month.start + timedelta(days=month.history_days)
    window = Window(start, start + timedelta(days=month.window_days))
    rollup = spark.read.parquet(str(tmp_path / "rollup.parquet"))
    rows = find_anomalies(spark, rollup=rollup, window=window, keep=kept).collect()
    found = [Found(row["kind"], row["principal"], (row["day"] - month.start).days) for row in rows]
    tally = score_values.tally(month.labels, found)
    assert tally.recall() >= 0.8, tally.table()
    assert tally.precision() >= 0.8, tally.table()
