"""One Spark session for the whole run: it costs seconds to start."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.session import open_session
from testkit.spark_jars import SPARK_DELTA, SPARK_KAFKA, spark_jars

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""Plans of tiny frames run once: what the second compiler and parallel collectors do costs more."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = {
        "spark.jars": spark_jars(SPARK_KAFKA, SPARK_DELTA),  # a session cannot be given them later
        "spark.driver.extraJavaOptions": QUICK,
    }
    with open_session("kustos tests", settings=settings) as session:
        session.conf.set("spark.sql.shuffle.partitions", "2")
        session.conf.set("spark.sql.codegen.wholeStage", "false")  # compiling costs more than tiny frames do
        yield session
