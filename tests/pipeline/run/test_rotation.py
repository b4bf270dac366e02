"""Files that rotation renames or replaces: each line counts once, and none is lost."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.run import run_pipeline
from tests.pipeline.run.test_overlaps import Home, log_lines

LOG = "kafka-authorizer.log"


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Home:
    return Home(spark, tmp_path)


def rotate(folder: Path) -> None:
    """Rename the log and its rotated files as log4j's RollingFileAppender does."""
    for number in (2, 1):
        if (folder / f"{LOG}.{number}").exists():
            (folder / f"{LOG}.{number}").rename(folder / f"{LOG}.{number + 1}")
    (folder / LOG).rename(folder / f"{LOG}.1")


def test_a_log_that_was_first_seen_empty_counts_once_after_rotations(home: Home) -> None:
    home.run(**{LOG: ""})
    with (home.audit / LOG).open("a") as file:
        file.write(log_lines(1, 0, 10))
    assert home.run().events == 10
    for number in range(1, 4):
        rotate(home.audit)
        summary = home.run(**{LOG: log_lines(1, 10 * number, 10 * number + 10)})
        assert (summary.events, summary.duplicates, summary.new_files) == (10, 0, 1)
        assert home.run().lines == 0
    (home.audit / f"{LOG}.1").touch()
    (home.audit / f"{LOG}.3").touch()
    again = home.run()
    assert (again.events, again.duplicates, home.events()) == (0, 20, 40)


def test_a_log_whose_cluster_was_declared_later_keeps_its_own_after_a_rotation(home: Home) -> None:
    home.run(**{LOG: log_lines(1, 0, 10)})
    rotate(home.audit)
    for number in (1, 2):
        home.run(cluster="east", **{LOG: log_lines(1, 10, 10 + 5 * number)})
    (home.audit / f"{LOG}.1").touch()
    assert home.run(cluster="east").duplicates == 10
    assert home.events() == 20


def rotated(folder: Path) -> None:
    rotate(folder)
    (folder / LOG).write_text(log_lines(1, 20, 21))


def replaced_by_a_longer_one(folder: Path) -> None:
    rotate(folder)
    (folder / LOG).write_text(log_lines(1, 20, 60))


def truncated(folder: Path) -> None:
    with (folder / LOG).open("r+b") as file:  # copytruncate keeps the inode
        file.truncate(len(log_lines(1, 0, 3)))


@pytest.mark.parametrize("change", [rotated, replaced_by_a_longer_one, truncated])
def test_a_file_that_changed_between_listing_and_reading_stops_the_run(
    home: Home, change: Callable[[Path], None]
) -> None:
    home.write(**{LOG: log_lines(1, 0, 20)})

    def progress(step: str) -> None:
        if step == "looking for overlaps":  # the files are listed, and their logs known
            change(home.audit)

    with pytest.raises(AuditInputError, match=rf"`[^`]*{LOG}` changed while it was read, run again"):
        run_pipeline(home.spark, tables=home.tables, audit=home.audit, progress=progress)
    assert home.tables.inputs() == {}
    lines = sum(len(file.read_text().splitlines()) for file in home.audit.iterdir())
    assert (home.run().events, home.events()) == (lines, lines)


def test_a_file_that_grew_meanwhile_is_read_as_it_was_listed(home: Home) -> None:
    home.write(**{LOG: log_lines(1, 0, 20)})

    def progress(step: str) -> None:
        if step == "looking for overlaps":
            with (home.audit / LOG).open("a") as file:
                file.write(log_lines(1, 20, 25))

    summary = run_pipeline(home.spark, tables=home.tables, audit=home.audit, progress=progress)
    assert (summary.events, home.run().events) == (20, 5)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_packed_file_that_is_replaced_between_listing_and_reading_stops_the_run(
    home: Home, pack: Callable[[bytes], bytes]
) -> None:
    home.write(packed=pack(log_lines(1, 0, 20).encode()))

    def progress(step: str) -> None:
        if step == "looking for overlaps":
            home.write(other=pack(log_lines(2, 0, 20).encode()))
            (home.audit / "other").replace(home.audit / "packed")

    with pytest.raises(AuditInputError, match="packed` changed while it was read"):
        run_pipeline(home.spark, tables=home.tables, audit=home.audit, progress=progress)
    assert home.run().events == 20
