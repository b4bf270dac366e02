"""Files that rotation renames or replaces: each line counts once, and none is lost."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

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
