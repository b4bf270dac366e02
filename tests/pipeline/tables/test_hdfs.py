"""Tables and logs on a real HDFS keep the promises of those on a disk, without a JVM of the clients."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.places import StorePath, native_file
from kustos.pipeline.report.job import run_tables_report
from kustos.pipeline.run import find_new_files, run_pipeline
from kustos.pipeline.tables import Tables, compact_tables
from kustos.pipeline.tables.deduplication import of_runs
from testkit.hdfs import Hdfs, hdfs
from tests.pipeline.events import event_line
from tests.pipeline.tables.races import one_of_writers_wins
from tests.pipeline.tables.test_runs import contents


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with hdfs(tmp_path_factory.mktemp("hdfs")) as found:
        yield found


def put(system: Hdfs, path: str, text: str) -> StorePath:
    """Write a file; return the folder that it lies in."""
    system.put(path, text.encode())
    return StorePath(system.address(path)).parent


def lines(first: int, last: int) -> str:
    return "".join(f"{event_line(number)}\n" for number in range(first, last))


def test_short_and_long_runs_there_write_the_tables_that_they_write_on_a_disk(
    spark: SparkSession, system: Hdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = Tables.at(system.address("access")), Tables(tmp_path / "tables")
    for number in range(2):
        if number:
            monkeypatch.setattr(of_runs, "BUCKET_LINES_MAX", 2)
        audit = put(system, f"audit/{number}.jsonl", lines(number * 30, number * 30 + 40))
        (tmp_path / "audit").mkdir(exist_ok=True)
        (tmp_path / "audit" / f"{number}.jsonl").write_text(lines(number * 30, number * 30 + 40))
        summaries = [
            run_pipeline(spark, tables=there, audit=audit),
            run_pipeline(spark, tables=here, audit=tmp_path / "audit"),
        ]
        assert [(one.new_files, one.events, one.duplicates) for one in summaries] == [
            (1, 30 if number else 40, 10 if number else 0)
        ] * 2
        assert contents(spark, there) == contents(spark, here)
    assert run_pipeline(spark, tables=there, audit=audit).new_files == 0
    compact_tables(there, most_files=1)
    assert contents(spark, there) == contents(spark, here)
    for tables, page in ((there, "there.html"), (here, "here.html")):
        run_tables_report(spark, tables, tmp_path / page)
    assert (tmp_path / "there.html").read_text() == (tmp_path / "here.html").read_text()


def test_of_runs_at_once_one_wins_there_and_the_others_say_so(system: Hdfs) -> None:
    one_of_writers_wins(StorePath(system.address("race")))


def test_who_may_not_write_there_is_told_so(system: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")  # clients are kept by address: by name it is another
    with pytest.raises(PermissionError, match="Permission denied"):
        one_of_writers_wins(StorePath(system.address("access-of-others", host="localhost")))


def test_a_system_that_is_away_is_named(system: Hdfs) -> None:
    away = StorePath("hdfs://127.0.0.1:9/audit")
    with pytest.raises(AuditInputError, match=r"cannot list `hdfs://127.0.0.1:9/audit`: the store does not"):
        find_new_files(away, Tables(Path("tables")))
    with pytest.raises(OSError, match="the store does not answer"):
        native_file(away / "a")
