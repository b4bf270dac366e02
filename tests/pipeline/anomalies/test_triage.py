"""Anomalies over runs: kept, counted once, acknowledged, suppressed, resolved, and open again."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kustos.acl import PatternType, ResourcePattern, ResourceType
from kustos.pipeline.anomalies import (
    Suppression,
    acknowledge,
    merged,
    of_cluster,
    reopen,
    states_of,
    stored_states,
    suppressed_by,
)
from kustos.pipeline.errors import TablesError, TriageError
from kustos.pipeline.schemas import ANOMALIES_SCHEMA, FOUND_ANOMALIES_SCHEMA
from kustos.pipeline.tables import Tables
from kustos.pipeline.tables.clusters import Cluster

MONDAY = date(2026, 11, 2)
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def seen(anomaly: str, *days: int, **more: Any) -> list[dict[str, Any]]:
    """Return the rows of an anomaly on days after MONDAY."""
    rows = []
    for number in days:
        day = MONDAY + timedelta(days=number)
        at = datetime(day.year, day.month, day.day, 9, tzinfo=UTC)
        rows.append(
            dict.fromkeys(FOUND_ANOMALIES_SCHEMA.fieldNames())
            | {
                "anomaly_id": anomaly * 8,
                "kind": "UNUSUAL_HOURS",
                "severity": "LOW",
                "score": 0.5,
                "principal": f"User:{anomaly}",
                "day": day,
                "first_time": at,
                "last_time": at + timedelta(hours=1),
                "event_count": 10,
                "reason": f"seen on day {number}",
                "evidence": "{}",
            }
            | more
        )
    return rows


class Runs:
    """Runs over tables that find what they are told, in a cluster if one is named."""

    def __init__(self, spark: SparkSession, folder: Path, cluster: str = "") -> None:
        self.spark = spark
        self.tables = Tables(folder, Cluster(cluster, frozenset({cluster})) if cluster else None)

    def frame(self, rows: list[dict[str, Any]]) -> DataFrame:
        return self.spark.createDataFrame(rows, FOUND_ANOMALIES_SCHEMA)

    def run(
        self,
        until: int,
        *found: list[dict[str, Any]],
        known: Sequence[Suppression] = (),
        recorded: Iterable[int] | None = None,
    ) -> None:
        days = range(until + 1) if recorded is None else recorded
        frame = self.frame([row for rows in found for row in rows])
        frame = of_cluster(frame, self.tables.chosen_cluster.name)

        def rows_after(before: Tables) -> dict[str, DataFrame]:
            former = before.read(self.spark, "anomalies").drop("suppressed_by", "cluster")
            rows = merged(former, frame).withColumn("suppressed_by", suppressed_by(known))
            states = before.read(self.spark, "anomaly_states").drop("cluster")
            last = MONDAY + timedelta(days=until)
            return {
                "anomalies": rows,
                "anomaly_states": states_of(
                    rows,
                    states,
                    judged_until=last,
                    recorded=[MONDAY + timedelta(days=day) for day in days],
                    now=NOW + timedelta(days=until),
                ),
            }

        self.tables.update("find", rows_after, is_kept=True)

    def states(self) -> dict[str, dict[str, Any]]:
        return {row["principal"].removeprefix("User:"): row for row in stored_states(self.tables)}

    def state(self, name: str) -> str:
        return str(self.states()[name]["state"])

    def acknowledge(self, name: str) -> None:
        acknowledge(self.tables, [name * 8], by="alice", reason="a drill", at=NOW)


@pytest.fixture
def runs(spark: SparkSession, tmp_path: Path) -> Runs:
    return Runs(spark, tmp_path / "tables")


def test_a_run_of_one_day_forgets_nothing_and_one_done_again_doubles_nothing(runs: Runs) -> None:
    runs.run(4, seen("a", 0, 2), seen("b", 1))
    runs.run(5, seen("a", 5))
    once = runs.states()
    runs.run(5, seen("a", 5))
    runs.run(5, seen("a", 0, 2, 5), seen("b", 1))
    assert runs.states() == once
    a = once["a"]
    assert (a["day_count"], a["event_count"], a["reason"]) == (3, 30, "seen on day 5")
    assert (a["first_day"], a["last_day"]) == (MONDAY, MONDAY + timedelta(days=5))
    assert a["recorded_at"] == NOW + timedelta(days=4)
    assert runs.tables.read(runs.spark, "anomalies").count() == 4
    assert runs.tables.read(runs.spark, "anomalies").drop("cluster").schema == ANOMALIES_SCHEMA


def test_an_anomaly_that_a_later_run_sees_otherwise_is_replaced_and_not_doubled(runs: Runs) -> None:
    runs.run(1, seen("a", 1))
    runs.run(2, seen("b", 1, principal="User:a"))
    assert {row["anomaly_id"] for row in stored_states(runs.tables)} == {"b" * 8}


def test_what_was_acknowledged_stays_so_until_it_was_gone_for_a_week(runs: Runs) -> None:
    runs.run(1, seen("a", 1))
    runs.acknowledge("a")
    said = runs.states()["a"]
    assert (said["state"], said["acknowledged_by"], said["acknowledged_reason"]) == (
        "ACKNOWLEDGED", "alice", "a drill",
    )  # fmt: skip
    assert said["acknowledged_at"] == NOW
    runs.run(5, seen("a", 5))
    assert runs.state("a") == "ACKNOWLEDGED"
    runs.run(11)
    assert runs.state("a") == "ACKNOWLEDGED"
    runs.run(12)
    assert runs.state("a") == "RESOLVED"
    runs.run(3)
    assert runs.state("a") == "RESOLVED", "a run over earlier days brings nothing back"
    runs.run(20, seen("a", 20))
    assert (runs.state("a"), runs.states()["a"]["acknowledged_by"]) == ("OPEN", None)


def test_without_a_record_of_the_week_it_is_too_early_to_say_that_an_anomaly_is_over(runs: Runs) -> None:
    def said() -> tuple[Any, ...]:
        row = runs.states()["a"]
        return tuple(row[name] for name in ("state", "unseen_days", "recorded_days", "is_over"))

    runs.run(1, seen("a", 1))
    assert said() == ("OPEN", 0, 0, False)
    runs.run(5)
    assert said() == ("OPEN", 4, 4, False)
    # the log ended: no day after the anomaly has a record, then the last five days have none
    runs.run(9, recorded=range(2))
    assert said() == ("OPEN", 8, 0, None)
    runs.run(12, recorded=range(8))
    assert said() == ("OPEN", 11, 6, None)
    # weekends and a holiday may be missing
    runs.run(16, recorded=[0, 1, 7, 10, 11, 12, 14, 15, 16])
    assert said() == ("RESOLVED", 15, 7, True)
    runs.run(30, recorded=range(17))
    assert said() == ("RESOLVED", 29, 15, None), "what is over stays so"


def test_a_grave_anomaly_does_not_resolve_by_waiting_and_is_open_again_on_another_day(runs: Runs) -> None:
    grave = {"severity": "HIGH", "kind": "SWEEP"}
    runs.run(1, seen("a", 1, **grave), seen("b", 1))
    runs.run(30)
    assert (runs.state("a"), runs.state("b")) == ("OPEN", "RESOLVED")
    runs.acknowledge("a")
    assert runs.state("a") == "ACKNOWLEDGED"
    runs.run(31)
    assert runs.state("a") == "RESOLVED"
    runs.run(32, seen("a", 32, **grave))
    assert runs.state("a") == "OPEN"
    runs.acknowledge("a")
    runs.run(32, seen("a", 32, **grave))
    assert runs.state("a") == "ACKNOWLEDGED"
    runs.run(33, seen("a", 33, **grave))
    assert runs.state("a") == "OPEN"


def test_what_is_suppressed_is_kept_and_counted_and_open_after_the_last_day_of_the_rule(runs: Runs) -> None:
    until = datetime(2026, 11, 5, tzinfo=UTC)
    rule = Suppression(reason="a drill", kind="UNUSUAL_HOURS", principal="User:a", until=until)
    runs.run(2, seen("a", 1, 2), seen("b", 2), known=[rule])
    a = runs.states()["a"]
    assert (a["state"], a["suppressed_by"], a["suppressed_days"]) == ("SUPPRESSED", "a drill", 2)
    assert runs.state("b") == "OPEN"
    runs.run(3, seen("a", 3), known=[rule])
    a = runs.states()["a"]
    assert (a["state"], a["suppressed_days"], a["day_count"], a["suppressed_by"]) == ("OPEN", 2, 3, None)
    runs.run(3)
    assert runs.states()["a"]["suppressed_days"] == 0, "a rule that is gone suppresses nothing"


@pytest.mark.parametrize(
    ("rule", "covered"),
    [
        ({"kind": "SWEEP"}, {"a", "ab"}),
        ({"principal": "User:a"}, {"a"}),
        ({"principal": "User:a*"}, {"a", "ab"}),
        ({"principal": "User:a*", "kind": "NEW_HOST"}, set()),
        ({"resource": ("TOPIC", "pay", PatternType.LITERAL)}, {"a"}),
        ({"resource": ("TOPIC", "pay", PatternType.PREFIXED)}, {"a", "ab"}),
        ({"resource": ("GROUP", "pay", PatternType.PREFIXED)}, set()),
    ],
)
def test_a_rule_covers_what_it_names(spark: SparkSession, rule: dict[str, Any], covered: set[str]) -> None:
    if "resource" in rule:
        kind, name, pattern = rule["resource"]
        rule = {"resource": ResourcePattern(ResourceType[kind], name, pattern)}
    rows = [
        *seen("a", 1, kind="SWEEP", resource_type="TOPIC", resource_name="pay"),
        *seen("ab", 1, kind="SWEEP", resource_type="TOPIC", resource_name="pay.x"),
        *seen("c", 1, resource_type="TOPIC"),
        *seen("d", 1, principal=None),
    ]
    frame = spark.createDataFrame(rows, FOUND_ANOMALIES_SCHEMA)
    found = frame.filter(suppressed_by([Suppression(reason="known", **rule)]).isNotNull()).collect()
    assert {row["principal"].removeprefix("User:") for row in found} == covered


def test_an_acknowledgement_says_who_and_why_and_of_what(runs: Runs) -> None:
    with pytest.raises(TriageError, match="no anomalies yet"):
        acknowledge(runs.tables, ["aaaaaa"], by="alice", reason="r", at=NOW)
    runs.run(1, seen("a", 1), seen("b", 1), seen("ab", 1))
    for ids, by, reason, message in (
        (["a" * 8], "", "r", "`by`"),
        (["a" * 8], "alice", " ", "`reason`"),
        (["a" * 8], "alice", "r" * 1001, "`reason`"),
        (["aaa"], "alice", "r", "too short"),
        (["ffffff"], "alice", "r", "of the anomalies no id begins"),
        (["bbbbbb", "aaaaab"], "alice", "r", "did you mean"),
    ):
        with pytest.raises(TriageError, match=message):
            acknowledge(runs.tables, ids, by=by, reason=reason, at=NOW)
    assert {row["state"] for row in stored_states(runs.tables)} == {"OPEN"}
    [row] = acknowledge(runs.tables, ["bbbbbb"], by="alice", reason="r", at=NOW)
    assert row["state"] == "ACKNOWLEDGED"
    with pytest.raises(TriageError, match="`alice` has acknowledged anomaly"):
        acknowledge(runs.tables, ["aaaaaaaa", "bbbbbb"], by="bob", reason="r", at=NOW)
    assert runs.states()["a"]["acknowledged_by"] is None, "all or nothing"
    [row] = reopen(runs.tables, ["bbbbbb"])
    assert (row["state"], row["acknowledged_by"]) == ("OPEN", None)
    assert stored_states(runs.tables) == sorted(stored_states(runs.tables), key=lambda row: row["anomaly_id"])


def test_anomalies_of_two_clusters_are_two(spark: SparkSession, tmp_path: Path) -> None:
    east, west = (Runs(spark, tmp_path / "tables", name) for name in ("east", "west"))
    east.run(1, seen("a", 1))
    west.run(1, seen("a", 1))
    [of_east], [of_west] = stored_states(east.tables), stored_states(west.tables)
    assert (of_east["cluster"], of_west["cluster"]) == ("east", "west")
    acknowledge(Tables(tmp_path / "tables"), [of_east["anomaly_id"]], by="alice", reason="r", at=NOW)
    west.run(2, seen("a", 2))
    assert (east.state("a"), west.state("a")) == ("ACKNOWLEDGED", "OPEN")
    assert (east.states()["a"]["day_count"], west.states()["a"]["day_count"]) == (1, 2)
    assert len(stored_states(Tables(tmp_path / "tables"))) == 2


def test_two_tables_change_together_or_not_at_all(runs: Runs) -> None:
    runs.run(1, seen("a", 1))
    before = runs.states()

    def broken(_: Tables) -> dict[str, DataFrame]:
        rows = runs.frame(seen("b", 1)).selectExpr("*", "null suppressed_by")
        return {"anomalies": rows, "audit_events": rows}

    with pytest.raises(TablesError, match="written by runs only"):
        runs.tables.update("broken", broken)
    assert runs.states() == before
    assert runs.tables.read(runs.spark, "anomalies").count() == 1


def test_the_evidence_of_each_day_is_kept(runs: Runs) -> None:
    runs.run(1, seen("a", 1, evidence=json.dumps({"hours": [1]})))
    runs.run(2, seen("a", 2, evidence=json.dumps({"hours": [2]})))
    rows = runs.tables.read(runs.spark, "anomalies").orderBy("day").collect()
    assert [json.loads(row["evidence"])["hours"] for row in rows] == [[1], [2]]
