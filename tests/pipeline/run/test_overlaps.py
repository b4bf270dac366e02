"""Files that hold lines of one another: each line counts once, or the file is refused; both are said."""

import gzip
import io
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.run import run_pipeline
from kustos.pipeline.run.files import overlaps, pieces
from kustos.pipeline.run.files.beginnings import Beginning, read_beginning
from kustos.pipeline.run.files.line_notes import HeadWatch, WantedMarks
from kustos.pipeline.run.files.overlaps import heads_of, heads_to_look_for
from kustos.pipeline.tables import InputFile
from kustos.pipeline.tables.summary import WARNINGS_MAX
from tests.pipeline.events import event_line, kafka_line
from tests.pipeline.run.homes import Home, log_lines, strimzi, to_the_second


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Home:
    return Home(spark, tmp_path)


def test_two_logs_in_one_file_beside_them_count_once(home: Home) -> None:
    both = gzip.compress((log_lines(1) + log_lines(2)).encode())
    summary = home.run(one=log_lines(1), two=log_lines(2), both=both, three=log_lines(3))
    assert (summary.events, summary.duplicates, summary.overlapping_files) == (90, 60, 1)
    assert sum("overlap: read as one log" in each for each in summary.warnings) == len(summary.warnings) == 1


def test_two_logs_in_one_file_after_one_of_them_count_once(home: Home) -> None:
    assert home.run(one=log_lines(1)).events == 30
    summary = home.run(two=log_lines(2), both=log_lines(1) + log_lines(2))
    assert (summary.events, summary.duplicates, home.events()) == (30, 60, 60)


def test_two_logs_in_one_file_after_both_of_them_are_refused_each_time_until_it_is_gone(home: Home) -> None:
    assert home.run(one=log_lines(1), two=log_lines(2)).events == 60
    for _ in range(2):
        summary = home.run(both=log_lines(1) + log_lines(2))
        assert (summary.lines, summary.refused_files, home.events()) == (0, 1, 60)
        assert ["take it out of the folder" in each for each in summary.warnings] == [True]
    mixed = home.run(one=log_lines(1, 0, 40), both=log_lines(2) + log_lines(1))
    assert (mixed.events, mixed.refused_files) == (10, 1)
    (home.audit / "both").unlink()
    assert home.run().refused_files == 0


def test_exports_that_overlap_count_once_in_one_run_or_in_several(home: Home) -> None:
    first = home.run(a=log_lines(1, 0, 20), b=log_lines(1, 10, 30), other=log_lines(2))
    assert (first.events, first.duplicates, first.overlapping_files) == (60, 10, 1)
    for file in home.audit.iterdir():
        file.unlink()
    later = home.run(c=log_lines(1, 25, 45), d=log_lines(1, 40, 50))
    assert (later.events, later.duplicates, later.overlapping_files) == (20, 10, 1)
    assert home.events() == 80


def test_a_run_that_ends_before_it_reads_files_that_overlap_again_commits_nothing(home: Home) -> None:
    home.write(a=log_lines(1, 0, 20), b=log_lines(1, 10, 30))
    steps: list[str] = []

    def progress(step: str) -> None:
        steps.append(step)
        if steps.count("reading and sorting lines") > 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_pipeline(home.spark, tables=home.tables, audit=home.audit, progress=progress)
    assert (home.tables.state().number, home.tables.inputs()) == (0, {})
    summary = home.run()
    assert (summary.events, summary.duplicates) == (30, 10)


def test_an_export_that_began_earlier_counts_once(home: Home) -> None:
    assert home.run(a=log_lines(1, 20, 40)).events == 20
    summary = home.run(b=log_lines(1, 0, 30))
    assert (summary.events, summary.duplicates, home.events()) == (20, 10, 40)


def test_lines_with_ids_and_paths_that_name_brokers_do_not_overlap(home: Home) -> None:
    events = [event_line(at) + "\n" for at in range(20)]
    summary = home.run(
        x="".join(events[:10]),
        y="".join(events[5:]),
        broker_1__log=log_lines(1) + log_lines(2),
        broker_2__log=log_lines(2),
    )
    assert (summary.events, summary.duplicates, summary.overlapping_files) == (20 + 90, 5, 0)


def among_others(text: str) -> str:
    """Return lines as a broker's standard output has them, where each event is the fifth line."""
    return "".join(
        "".join(f"[{line[1:24]}] INFO step {step} of {at} (kafka.log.Cleaner)\n" for step in range(4))
        + f"{line}\n"
        for at, line in enumerate(text.splitlines(), len(text))
    )


@pytest.mark.parametrize("shown", [strimzi, among_others])
def test_exports_that_overlap_in_several_runs_count_once_in_any_layout(
    home: Home, shown: Callable[[str], str]
) -> None:
    assert home.run(first=shown(log_lines(1, 0, 30))).events == 30
    (home.audit / "first").unlink()  # `kubectl logs --since` into a new file each time
    summary = home.run(second=shown(log_lines(1, 10, 40)))
    assert (summary.events, summary.overlapping_files, home.events()) == (10, 1, 40)


@pytest.mark.parametrize("piece_bytes", [1 << 22, 500])
def test_exports_with_two_lines_in_common_count_once_in_one_run(
    home: Home, monkeypatch: pytest.MonkeyPatch, piece_bytes: int
) -> None:
    monkeypatch.setattr(pieces, "TASK_BYTES_MIN", piece_bytes)
    monkeypatch.setattr(pieces, "TASK_BYTES_MAX", piece_bytes)
    # more of `mixed` comes after the lines that it has in common with `a`, in another piece
    mixed = log_lines(1, 0, 2) + log_lines(2, 2, 30)
    summary = home.run(a=log_lines(1, 0, 20), b=log_lines(1, 18, 40), mixed=mixed)
    assert (summary.events, summary.duplicates, summary.overlapping_files) == (70, 2, 1)
    assert sum("too few lines in common" in each for each in summary.warnings) == 1


@pytest.mark.parametrize("is_later_first", [False, True])
def test_exports_with_two_lines_in_common_count_once_in_two_runs(home: Home, is_later_first: bool) -> None:
    files = {"a": log_lines(1, 0, 20), "b": log_lines(1, 18, 40)}
    for name in sorted(files, reverse=is_later_first):
        summary = home.run(**{name: files[name]})
        (home.audit / name).unlink()
    assert (summary.overlapping_files, home.events()) == (1, 40)


def test_an_export_whose_first_events_came_by_two_files_of_one_log_counts_once(home: Home) -> None:
    assert home.run(a=log_lines(1, 0, 20)).events == 20
    assert home.run(b=log_lines(1, 10, 30)).events == 10
    summary = home.run(c=log_lines(1, 18, 40))
    assert (summary.events, summary.duplicates, home.events()) == (10, 12, 40)


@pytest.mark.parametrize("runs", [1, 2])
def test_one_line_in_common_is_a_doubt_that_is_said(home: Home, runs: int) -> None:
    files = {"a": log_lines(1, 0, 20), "b": log_lines(1, 19, 40)}
    summaries = [
        home.run(**part) for part in ([files] if runs == 1 else [{name: files[name]} for name in files])
    ]
    assert home.events() == 41
    assert ["too few lines in common" in each for each in summaries[-1].warnings] == [True]
    assert "`source`" in summaries[-1].warnings[0]


@pytest.mark.parametrize("runs", [1, 2])
def test_two_brokers_with_some_equal_lines_are_two_logs_unless_one_source_wrote_both(
    home: Home, runs: int
) -> None:
    one = log_lines(1, 0, 20)
    other = "".join(log_lines(1, 10, 12).splitlines(True)) + log_lines(2, 12, 30)
    files = {"a": one, "b": other}
    parts = [files] if runs == 1 else [{name: files[name]} for name in files]
    for part in parts:
        summary = home.run(**part)
    assert (home.events(), summary.overlapping_files) == (40, 0)
    assert ["too few lines in common" in each for each in summary.warnings] == [True]
    again = Home(home.spark, home.audit.parent / "again")
    for part in parts:
        summary = again.run(source="broker 1", **part)
    assert (again.events(), summary.overlapping_files) == (38, 1)


@pytest.mark.parametrize(
    "others", ["", kafka_line(time="2026-11-21 04:00:20,001", principal="User:x") + "\n"]
)
def test_equal_lines_on_both_sides_of_a_rotation_are_all_counted(home: Home, others: str) -> None:
    burst = log_lines(1, 20, 21) + others
    files = {"kafka.log.1": log_lines(1, 0, 20) + burst * 2, "kafka.log": burst * 4 + log_lines(1, 21, 30)}
    summary = home.run(**files)
    count = 29 + 6 * len(burst.splitlines())
    assert (summary.events, summary.duplicates, summary.warnings) == (count, 0, ())
    again = Home(home.spark, home.audit.parent / "again")
    for name, text in files.items():
        summary = again.run(**{name: text})
    assert (again.events(), summary.overlapping_files, summary.warnings) == (count, 0, ())


@pytest.mark.parametrize("runs", [1, 2])
def test_exports_named_by_their_days_overlap_also_within_a_busy_millisecond(home: Home, runs: int) -> None:
    time = "2026-11-21 04:00:10,001"
    burst = "".join(f"{kafka_line(time=time, resource=f'Topic:LITERAL:t{at}')}\n" for at in range(6))
    files = {
        "kafka.2026-11-21.log": log_lines(1, 0, 10) + burst + log_lines(1, 11, 20),
        "kafka.2026-11-22.log": burst + log_lines(1, 11, 30),
    }
    for part in [files] if runs == 1 else [{name: files[name]} for name in files]:
        summary = home.run(**part)
    assert (home.events(), summary.overlapping_files) == (35, 1)


def test_an_export_of_one_of_two_files_of_one_name_is_of_its_own_log(home: Home) -> None:
    home.write(one__kafka=log_lines(1), two__kafka=log_lines(2))
    for name in ("one", "two"):
        run_pipeline(home.spark, tables=home.tables, audit=home.audit / name)
    summary = home.run(one__export=log_lines(1, 20, 40))
    assert (summary.events, summary.duplicates, summary.refused_files, home.events()) == (10, 10, 0, 70)


def test_times_without_milliseconds_tell_no_overlap_and_it_is_said(home: Home) -> None:
    assert home.run(a=to_the_second(0, 30)).warnings == ()
    summary = home.run(b=to_the_second(10, 40))
    assert (summary.events, summary.overlapping_files) == (30, 0)
    assert ["have no milliseconds" in each for each in summary.warnings] == [True]
    again = home.run(a=to_the_second(0, 35))
    assert (again.events, again.duplicates, again.warnings) == (5, 30, ())


@pytest.mark.parametrize("runs", [1, 2])
def test_a_log_that_has_just_begun_with_lines_of_another_is_its_own(home: Home, runs: int) -> None:
    files = {"east__log": log_lines(1, 0, 20), "west__log": log_lines(1, 10, 12)}
    for part in [files] if runs == 1 else [{name: files[name]} for name in files]:
        summary = home.run(**part)
    assert (home.events(), summary.overlapping_files) == (22, 0)
    assert ["too few lines in common" in each for each in summary.warnings] == [True]
    grown = home.run(west__log=log_lines(1, 10, 12) + log_lines(2, 12, 20))
    assert (grown.events, grown.overlapping_files, home.events()) == (8, 0, 30)


def test_a_file_that_is_partly_written_over_is_said(home: Home) -> None:
    home.run(a=log_lines(1, 0, 30), other=log_lines(3))
    with (home.audit / "a").open("r+b") as file:
        file.write(log_lines(2, 40, 50).encode() + b"[2026-11-21 04:")
    summary = home.run()
    assert [("was written over" in each, "rsync" in each) for each in summary.warnings] == [(True, True)]


def test_a_second_name_of_a_refused_file_does_not_make_it_known(home: Home) -> None:
    home.run(one=log_lines(1), two=log_lines(2))
    home.write(both=log_lines(1) + log_lines(2))
    os.link(home.audit / "both", home.audit / "link")
    assert (home.run(three=log_lines(3)).refused_files, home.run().refused_files) == (1, 1)


def test_only_the_latest_logs_are_looked_for_and_it_is_said(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.run(**{f"f{at}": log_lines(at) for at in range(4)})
    monkeypatch.setattr(overlaps, "HEADS_MAX", 3)
    summary = home.run(late=log_lines(5) + log_lines(3), early=log_lines(6) + log_lines(0))
    assert (summary.events, summary.duplicates, summary.overlapping_files) == (90, 30, 1)
    assert sum("only the latest 3 of 6 logs were looked for" in each for each in summary.warnings) == 1


def test_what_tasks_get_is_eight_bytes_a_mark_of_logs_that_their_files_may_hold() -> None:
    def read(node: int, source: str | None) -> InputFile:
        beginning = read_beginning(io.BytesIO(log_lines(node, 0, 4).encode())).to_text()
        return InputFile(f"/x/{node}", 9, 9, node, f"log-{node}", beginning, source)

    files = [read(node, ("a", "b", None)[node % 3]) for node in range(600)]
    heads = heads_to_look_for(heads_of(files), [replace(files[0], beginning=Beginning().to_text())])
    assert {head.file.source for head in heads} == {"a", None}
    marks = WantedMarks(mark for head in heads for mark in head.marks)
    assert len(pickle.dumps(marks)) < 8 * 4 * 400 + 500
    assert all(mark in marks for head in heads for mark in head.marks)
    others = {mark for head in heads_of(files) for mark in head.marks}
    assert sum(mark in marks for mark in others) == len(others) * 2 // 3


def test_what_was_refused_is_said_before_what_was_chosen(home: Home) -> None:
    home.run(one=log_lines(1), two=log_lines(2))
    doubts = {f"d{at}__{name}": log_lines(at, 0, 1) for at in range(100, 130) for name in ("x", "y")}
    summary = home.run(both=log_lines(1) + log_lines(2), **doubts)
    assert (summary.refused_files, len(summary.warnings)) == (1, WARNINGS_MAX)
    assert "both` holds the beginning of" in summary.warnings[0]
    assert "take it out of the folder" in summary.warnings[0]


def test_a_task_that_runs_again_leaves_the_same_notes(tmp_path: Path) -> None:
    watch = HeadWatch(WantedMarks(()), tmp_path)
    note: dict[str, Any] = {"place": "a.log", "held": [], "end": None, "goes_back": False}
    times = ("2026-11-29 10:00:00", "2026-11-29 11:00:00"), ("2026-11-29 11:00:00", "2026-11-29 12:00:00")
    pieces = [
        note | {"start": start, "first": first, "last": last} for start, (first, last) in enumerate(times)
    ]
    watch.write(pieces)
    once = watch.held()
    watch.write(pieces)
    assert watch.held() == once
    assert not once["a.log"].goes_back
