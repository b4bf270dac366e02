"""One Spark session for the whole run: it costs seconds to start."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.session import local_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with local_session("kustos tests") as session:
        session.conf.set("spark.sql.shuffle.partitions", "2")
        session.conf.set("spark.sql.codegen.wholeStage", "false")  # compiling costs more than tiny frames do
        yield session
