"""How many jobs Spark starts to open a table."""

from pathlib import Path

from pyspark.sql import SparkSession

from kustos.pipeline.schemas.events import LINES_SCHEMA
from kustos.pipeline.tables import Tables, ingest
from tests.pipeline.events import event_line

TIME_MS = 1_795_233_600_123
DAY_MS = 86_400_000
DAYS = 70


def jobs_of(spark: SparkSession) -> int:
    """Return how many jobs were started."""
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))


def test_a_read_of_many_days_starts_no_job(spark: SparkSession, tmp_path: Path) -> None:
    """Spark by itself lists more than 32 files with a job, of a task for each."""
    tables = Tables(tmp_path)
    lines = [("a.jsonl", event_line(day, time_ms=TIME_MS - day * DAY_MS)) for day in range(DAYS)]
    ingest(spark, spark.createDataFrame(lines, LINES_SCHEMA), tables, "a")
    before = jobs_of(spark)
    rows = tables.read(spark, "audit_rollup")
    assert jobs_of(spark) == before
    assert rows.count() == DAYS
    assert jobs_of(spark) > before
