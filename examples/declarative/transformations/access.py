"""What a run of kustos keeps, declared as tables of a pipeline of Spark, and a table made of them.

`kustos pipeline run` takes lines in: each event once, whatever is killed or comes again. What is declared
here goes on from there. Spark finds the order, and makes each table anew.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.tables import Tables


def spark() -> SparkSession:
    """Return the session that Spark made for this pipeline."""
    session = SparkSession.active()
    if session is None:
        raise RuntimeError("run it with `spark-pipelines run`")
    return session


def kept(name: str) -> DataFrame:
    """Return a table of kustos as its last run left it."""
    place = spark().conf.get("kustos.tables")
    if place is None:
        raise RuntimeError("`kustos.tables` is missing under `configuration` of the specification")
    return Tables.at(place).read(spark(), name)


@dp.materialized_view
def audit_events() -> DataFrame:
    """Each decision once."""
    return kept("audit_events")


@dp.materialized_view
def security_events() -> DataFrame:
    """Each login and each change of a user, token or setting once."""
    return kept("security_events")


@dp.materialized_view
def audit_rollup() -> DataFrame:
    """Who did what, by day and rule."""
    return kept("audit_rollup")


@dp.materialized_view
def quarantine() -> DataFrame:
    """Lines that are not events, each with the reason."""
    return kept("quarantine")


@dp.materialized_view
def denials() -> DataFrame:
    """How often whom was denied what, and when last: a table of one's own."""
    denied = spark().read.table("audit_rollup").where("decision = 'DENIED' AND access = 'ACCESS'")
    return denied.groupBy("cluster", "principal", "operation", "resource_type", "resource_name").agg(
        sql.sum("event_count").alias("denied_count"), sql.max("last_time").alias("last_time")
    )
