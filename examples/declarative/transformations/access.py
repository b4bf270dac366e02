"""Tables of access, declared: Spark finds their order and makes them anew, the stages are those of kustos."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.tables.deduplication import frames
from kustos.pipeline.tables.rollup.frames import rollup


def spark() -> SparkSession:
    """Return the session that Spark made for this pipeline."""
    session = SparkSession.active()
    if session is None:
        raise RuntimeError("run it with `spark-pipelines run`")
    return session


def setting(name: str) -> str:
    """Return what the specification says under `configuration`."""
    said = spark().conf.get(name)
    if said is None:
        raise RuntimeError(f"`{name}` is missing under `configuration` of the specification")
    return said


@dp.temporary_view
def lines() -> DataFrame:
    """Every line of the audit files, with its file."""
    read = spark().read.option("recursiveFileLookup", "true").text(setting("kustos.audit"))
    return read.select(sql.col("_metadata.file_path").alias("file"), sql.col("value").alias("line"))


@dp.materialized_view
def classified() -> DataFrame:
    """Every line as an event, a duplicate or quarantined."""
    time_zone = setting("kustos.time.zone")
    return spark().read.table("lines").transform(frames.classify, time_zone=time_zone)


@dp.materialized_view
def audit_events() -> DataFrame:
    """Each decision once."""
    return spark().read.table("classified").transform(frames.audit_events)


@dp.materialized_view
def security_events() -> DataFrame:
    """Each login and each change of a user, token or setting once."""
    return spark().read.table("classified").transform(frames.security_events)


@dp.materialized_view
def audit_rollup() -> DataFrame:
    """Who did what, by day and rule."""
    return spark().read.table("audit_events").transform(rollup)


@dp.materialized_view
def quarantine() -> DataFrame:
    """Lines that are not events, each with the reason."""
    return spark().read.table("classified").transform(frames.quarantine)
