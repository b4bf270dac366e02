"""What a Connect session cannot do is refused in words, before anything is done."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.errors import StreamError
from kustos.pipeline.inputs import TopicSettings
from kustos.pipeline.streaming import run_stream
from kustos.pipeline.tables import Tables


def test_a_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    settings = TopicSettings(topic="audit", properties={"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(StreamError, match="not one of Spark Connect"):
        run_stream(spark, settings, Tables(tmp_path / "tables"), tmp_path / "checkpoint")
    assert list(tmp_path.iterdir()) == []
