"""Files that hold lines of one another: each line counts once, or the file is refused; both are said."""

import gzip
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.run import run_pipeline
from kustos.pipeline.tables import RunSummary, Tables
from tests.pipeline.events import event_line, kafka_line


def log_lines(node: int, first: int = 0, last: int = 30) -> str:
    times = (f"2026-11-21 04:00:{at:02d},{node:03d}" for at in range(first, last))
    return "".join(f"{kafka_line(time=time, principal=f'User:u{time[-6:-4]}')}\n" for time in times)


class Home:
    """A folder of logs and its tables."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.audit, self.tables = spark, folder / "audit", Tables(folder / "tables")

    def run(self, **files: str | bytes) -> RunSummary:
        for name, content in files.items():
            path = self.audit / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return run_pipeline(self.spark, tables=self.tables, audit=self.audit)

    def events(self) -> int:
        return self.tables.read(self.spark, "audit_events").count()


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
