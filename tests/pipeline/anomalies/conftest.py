"""Settings for large plans over tiny frames: planning again after each stage costs more than it saves."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

TINY = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}


@pytest.fixture(autouse=True, scope="package")
def tiny_plans(spark: SparkSession) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in TINY}
    for name, value in TINY.items():
        spark.conf.set(name, value)
    yield
    for name, old in before.items():
        assert old is not None
        spark.conf.set(name, old)
