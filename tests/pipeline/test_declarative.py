"""The example of a declarative pipeline, run by Spark's own tool over the tables of a run."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import DataFrame, SparkSession

from kustos.pipeline.run import run_pipeline
from kustos.pipeline.tables import Tables
from testkit.paths import ROOT
from testkit.spark_cluster import HOME, START_S, clean_environment
from tests.pipeline.events import event_line, kafka_line, login_line
from tests.pipeline.tables.filling import folder_of

EXAMPLE = ROOT / "examples" / "declarative"
NAMES = ("audit_events", "security_events", "audit_rollup", "quarantine")


def declared(place: Path, tables: Path) -> Path:
    """Run the example over tables; return where its own are."""
    shutil.copytree(EXAMPLE, place)
    spec = place / "spark-pipeline.yml"
    said = yaml.safe_load(spec.read_text())
    said["storage"] = (place / "storage").as_uri()
    said["configuration"]["kustos.tables"] = str(tables)
    spec.write_text(yaml.safe_dump(said))
    warehouse = place / "warehouse"
    tool = [str(HOME / "bin" / "spark-pipelines"), "run", "--spec", str(spec)]
    done = subprocess.run(
        [*tool, "--conf", f"spark.sql.warehouse.dir={warehouse}", "--conf", "spark.ui.enabled=false"],
        cwd=place,
        env=clean_environment({}),
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return warehouse


def contents(frame: DataFrame, columns: list[str]) -> list[Any]:
    return sorted(map(repr, frame.select(*columns).collect()))


def test_the_declared_tables_are_those_of_runs_with_one_made_of_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    audit, tables = tmp_path / "audit", Tables(tmp_path / "tables")
    audit.mkdir()
    events = [event_line(number, principal_name=f"u{number % 3}") for number in range(9)]
    events += [event_line(number, principal_name="u9", decision="DENIED") for number in range(9, 13)]
    (audit / "a.jsonl").write_text("\n".join([*events, events[0], login_line(), login_line(), "junk", ""]))
    (audit / "kafka-authorizer.log").write_text(
        "".join(f"{line}\n" for line in (kafka_line(), kafka_line(), kafka_line(rule="x")))
    )
    run_pipeline(spark, tables=tables, audit=audit)
    warehouse = declared(tmp_path / "declared", folder_of(tables))
    for name in NAMES:
        frame = tables.read(spark, name)
        found = contents(spark.read.parquet(str(warehouse / name)), frame.columns)
        assert found == contents(frame, frame.columns), name
        assert found, name
    [denied] = spark.read.parquet(str(warehouse / "denials")).collect()
    assert (denied["principal"], denied["denied_count"]) == ("User:u9", 4)
