"""Over Connect the server's workers read a topic, and a command finds the server by itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.errors import KafkaInputError
from kustos.pipeline.run.stream import StreamOptions, run_stream
from kustos.pipeline.tables import Tables
from testkit.kafka import KafkaNode
from tests.pipeline.events import event_line
from tests.pipeline.run.topics import fill, make_topic, settings_of


def test_a_stream_goes_on_where_it_ended(spark: SparkSession, kafka: KafkaNode, tmp_path: Path) -> None:
    topic, tables, now = make_topic(kafka), Tables(tmp_path / "tables"), StreamOptions(available_now=True)
    for first in (0, 10):
        fill(kafka, topic, [event_line(number) for number in range(first, first + 10)])
        assert run_stream(spark, settings_of(kafka, topic), tables, options=now).events == 10
    with pytest.raises(KafkaInputError, match="topic `missing` does not exist"):
        run_stream(spark, settings_of(kafka, "missing"), tables, options=now)


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
