"""What one command answers is committed together, and read together."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.report.job import run_tables_report
from kustos.pipeline.tables import Tables, ingest
from tests.pipeline.events import event_line
from tests.pipeline.tables.reviewing import acls_for, principals, review
from tests.pipeline.tables.test_ingest import lines_of


@pytest.fixture
def reviewed(spark: SparkSession, tmp_path: Path) -> Tables:
    """Tables with a review of the ACLs of alice."""
    tables = Tables(tmp_path / "tables")
    ingest(spark, lines_of(spark, event_line(1)), tables, "a")
    review(spark, tables, acls_for(tmp_path / "first.txt", "alice"))
    return tables


def test_a_review_is_one_commit_and_a_reader_between_its_tables_sees_one_review(
    spark: SparkSession, reviewed: Tables, tmp_path: Path
) -> None:
    reader = reviewed.rolled_up(spark)
    before = principals(spark, reader)
    number = reviewed.state().number
    again, _ = review(spark, reviewed, acls_for(tmp_path / "second.txt", "zoe"))
    assert reviewed.state().number == number + 1
    assert principals(spark, reader) == before
    review(spark, reviewed, acls_for(tmp_path / "third.txt", "mia"))
    of_one = principals(spark, again)
    assert all("User:zoe" in found and "User:mia" not in found for found in of_one.values()), of_one
    assert all("User:mia" in found for found in principals(spark, reviewed).values())


def test_a_page_is_of_one_review_though_another_one_is_committed_meanwhile(
    spark: SparkSession, reviewed: Tables, tmp_path: Path
) -> None:
    page, acls = tmp_path / "page.html", acls_for(tmp_path / "second.txt", "zoe")

    def progress(step: str) -> None:
        if step == "summing up access":
            review(spark, reviewed, acls)

    run_tables_report(spark, reviewed, page, progress=progress)
    assert "User:alice" in page.read_text()
    assert "User:zoe" not in page.read_text()
    run_tables_report(spark, reviewed, page)
    assert "User:zoe" in page.read_text()
