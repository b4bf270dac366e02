"""An attacker who copies an event id cannot remove the genuine event, whatever file or run has the copy."""

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.report.access_report import run_access_report
from kustos.pipeline.report.job import run_tables_report
from kustos.pipeline.schemas import LINES_SCHEMA
from kustos.pipeline.tables import IngestOptions, RunSummary, Tables, ingest
from tests.pipeline.events import event_line, login_line

TIME_MS = 1_795_233_600_123
HOUR_MS = 3_600_000
GENUINE = event_line(1, decision="DENIED")
FORGED = event_line(1, principal_name="mallory")
OF_ANOTHER_HOUR = event_line(1, time_ms=TIME_MS + 2 * HOUR_MS)
OF_ANOTHER_DAY = event_line(1, time_ms=TIME_MS + 24 * HOUR_MS)
LOGINS = login_line(2), login_line(2, claimed_name="mallory")
Runs = Sequence[Sequence[tuple[str, str]]]


def left_by(
    spark: SparkSession, folder: Path, runs: Runs, **options: Any
) -> tuple[list[Any], list[RunSummary]]:
    """Return the events that runs over these lines leave, without their files, and what the runs report."""
    tables = Tables(folder)
    told = []
    for number, lines in enumerate(runs):
        run = ingest(
            spark,
            spark.createDataFrame(list(lines), LINES_SCHEMA),
            tables,
            f"s@{number}",
            options=IngestOptions(**options),
        )
        assert run.lines == run.events + run.security_events + run.quarantined + run.duplicates
        told.append(run)
    frames = [tables.read(spark, name) for name in ("audit_events", "security_events", "audit_rollup")]
    dropped = ("source_file", "conflicting_file")
    return [sorted(map(str, frame.drop(*dropped).collect())) for frame in frames], told


@pytest.mark.parametrize("forged", [FORGED, OF_ANOTHER_HOUR, OF_ANOTHER_DAY])
def test_a_forged_copy_ends_the_same_under_any_name_in_any_order_and_in_any_run(
    spark: SparkSession, tmp_path: Path, forged: str
) -> None:
    pair = [("m.log", GENUINE), ("m.log", GENUINE)]
    wanted: list[Any] | None = None
    for number, name in enumerate(("a.log", "m.log", "z.log")):
        copy = (name, forged)
        splits: list[Runs] = [
            [[*pair, copy]],
            [[copy, *pair]],
            [pair, [copy]],
            [[copy], pair],
            [pair[:1], [copy, pair[1]], [copy]],
        ]
        for at, runs in enumerate(splits):
            found, told = left_by(spark, tmp_path / f"{number}-{at}", runs)
            wanted = wanted or found
            assert found == wanted
            assert sum(run.quarantined for run in told) == 0
            # a run reports conflicts among its lines, and with stored events of about the same time
            is_near = forged is FORGED or any({GENUINE, forged} <= {line for _, line in run} for run in runs)
            assert sum(run.conflicts for run in told) == (1 if is_near else 0)
            said = [text for run in told for text in run.warnings]
            assert len(said) == (1 if is_near else 0)
            assert all("`m.log`" in text and f"`{name}`" in text for text in said)
    assert wanted is not None
    assert [len(rows) for rows in wanted[:2]] == [2, 0]


def test_of_several_contents_each_is_an_event_once_in_batches_as_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = [GENUINE, FORGED, event_line(1, host="10.0.0.9"), *LOGINS]
    orders = list(permutations(zip("abcde", lines, strict=True)))[::29]
    at_once, [run] = left_by(spark, tmp_path / "at-once", [orders[0]])
    assert (run.events, run.security_events, run.conflicts) == (3, 2, 3)
    assert len(run.warnings) == 1
    for number, order in enumerate(orders[1:4]):
        batches = [[line] for line in (*order, order[0])]
        found, told = left_by(spark, tmp_path / str(number), batches)
        assert found == at_once
        assert (sum(one.conflicts for one in told), told[-1].duplicates) == (3, 1)


def test_each_event_but_one_names_the_file_of_another(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    for run_id, lines in (("a", [("x", GENUINE), ("y", FORGED)]), ("b", [("z", OF_ANOTHER_HOUR)])):
        ingest(spark, spark.createDataFrame(lines, LINES_SCHEMA), tables, run_id)
    again = [("z", event_line(1, host="10.0.0.9")), ("x", GENUINE)]
    ingest(spark, spark.createDataFrame(again, LINES_SCHEMA), tables, "c")
    rows = tables.read(spark, "audit_events").select("source_file", "host", "conflicting_file").collect()
    assert sorted(tuple(str(value) for value in row) for row in rows) == [
        ("x", "10.0.0.7", "None"),
        ("y", "10.0.0.7", "x"),
        ("z", "10.0.0.7", "None"),  # two hours later: no run compared it with the others
        ("z", "10.0.0.9", "x"),
    ]


def test_the_pages_name_both_files(spark: SparkSession, tmp_path: Path) -> None:
    audit, tables = tmp_path / "audit", Tables(tmp_path / "tables")
    audit.mkdir()
    for name, lines in (("a.jsonl", [GENUINE, LOGINS[0]]), ("b.jsonl", [FORGED, LOGINS[1]])):
        (audit / name).write_text("\n".join([*lines, ""]))
        ingest(spark, spark.createDataFrame([(name, line) for line in lines], LINES_SCHEMA), tables, name)
    summary = run_access_report(spark, audit, tmp_path / "out")
    assert (summary.events, summary.security_events, summary.conflicts) == (2, 2, 2)
    assert len(summary.warnings) == 1
    assert "2 events have the id of another" in summary.warnings[0]
    [warning] = run_tables_report(spark, tables, tmp_path / "page.html").warnings
    assert warning.startswith("2 events have the id of another event with other content")
    assert "in `b.jsonl` and in `a.jsonl`" in warning
    for page in (tmp_path / "out" / "report.html", tmp_path / "page.html"):
        [section] = page.read_text().split('id="conflicts"')[1:]
        row = section.partition("<tbody>")[2].partition("</tbody>")[0]
        assert [row.count(text) for text in ("<tr>", "b.jsonl", "a.jsonl", ">2<", "-000000000001")] == [1] * 5
