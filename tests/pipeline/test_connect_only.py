"""What only a Connect session has: a stream is refused, and a command finds the server by itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.errors import StreamError
from kustos.pipeline.run.stream import run_stream
from kustos.pipeline.run.topic import TopicSettings
from kustos.pipeline.tables import Tables
from tests.pipeline.events import event_line


def test_a_stream_is_refused_before_anything_is_done(spark: SparkSession, tmp_path: Path) -> None:
    settings = TopicSettings(topic="audit", client_properties={"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(StreamError, match="not one of Spark Connect"):
        run_stream(spark, settings, Tables(tmp_path / "tables"), tmp_path / "checkpoint")
    assert list(tmp_path.iterdir()) == []


def test_a_command_runs_on_the_server_that_its_configuration_names(
    spark: SparkSession, spark_server: str, tmp_path: Path
) -> None:
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "a.jsonl").write_text("\n".join(event_line(number) for number in range(5)))
    spark_of = f"spark: {{remote: '{spark_server}'}}"
    (tmp_path / "pipeline.yml").write_text(
        f"version: 1\n{spark_of}\ntables: {{path: tables}}\ninputs:\n  - files: audit\n"
    )
    elsewhere = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    command = [sys.executable, "-m", "kustos", "pipeline", "run"]
    done = subprocess.run(
        [*command, "--config", str(tmp_path / "pipeline.yml"), "--output", "json"],
        env=elsewhere | {"PATH": "", "JAVA_HOME": ""},  # a client needs no Java
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["inputs"][0]["events"] == 5
    assert Tables(tmp_path / "tables").read(spark, "audit_events").count() == 5
