"""The wheel on clusters, handed over by spark-submit as the page says: executors run what is in it."""

import json
from pathlib import Path

import pytest

from testkit.spark_cluster import standalone_cluster, submit
from tests.pipeline.events import event_line

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "submit.py"
ACLS = """Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=payments, patternType=LITERAL)`:
 \t(principal=User:eve, host=*, operation=READ, permissionType=ALLOW)
"""
WHERE = """
import json
import runpy
import sys
from pathlib import Path

from pyspark.sql import functions as sql

from kustos.pipeline.session import open_session
from kustos.pipeline.tables import Tables

def log_level(spark):
    return str(spark._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel())

def where(batches):
    import kustos.pipeline.deciding as deciding
    for batch in batches:
        batch["id"] = deciding.__file__
        yield batch

with open_session("where") as spark:
    found = spark.range(2).selectExpr("cast(id as string) id").repartition(2).mapInPandas(where, "id string")
    print(json.dumps(sorted({row.id for row in found.collect()})))
    print(log_level(spark))
    tables = Tables(Path("tables"))
    events, stored = tables.read(spark, "audit_events"), tables.read(spark, "audit_rollup")
    keys = ("host", "resource_name", "decision")
    of_rows = events.repartition(2).groupBy(*keys).agg(sql.count("*").alias("event_count"))
    for rows in (of_rows, stored.select(*of_rows.columns)):
        print(json.dumps(sorted(map(str, rows.collect()))))
    runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""
"""Says from where the workers have their code and what the roll-up counts, over rows and as it is stored.

Then it runs a program in the same session: a start is dear.
"""

ROWS_IN_MEMORY = 10
"""So many an executor may sort before it has to spill."""

HOSTS = 7


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "audit").mkdir()
    lines = (event_line(number, host=f"10.0.0.{number % HOSTS}") for number in range(50))
    (folder / "audit" / "a.jsonl").write_text("\n".join(lines))
    (folder / "log").mkdir()
    (folder / "acls.txt").write_text(ACLS)
    (folder / "pipeline.yml").write_text("version: 1\ntables: {path: tables}\ninputs:\n  - files: audit\n")
    (folder / "where.py").write_text(WHERE)
    return folder


def spilled_bytes(log: Path) -> int:
    """Return what the tasks of a Spark wrote to disk for want of memory, by its event log."""
    [path] = log.glob("app-*")
    events = map(json.loads, path.read_text().splitlines())
    metrics = [event.get("Task Metrics") or {} for event in events]
    return sum(one.get("Disk Bytes Spilled", 0) for one in metrics)


def test_a_run_on_a_local_cluster_and_a_replay_on_a_standalone_one_that_spills(
    archive: Path, place: Path
) -> None:
    options = [f"--py-files={archive}"]
    words = ["--config", str(place / "pipeline.yml"), "--output", "json"]
    run = submit("local-cluster[2,1,1024]", PROGRAM, ["pipeline", "run", *words], options=options, cwd=place)
    assert json.loads(run)["inputs"][0]["events"] == 50
    settings = {
        "spark.shuffle.spill.numElementsForceSpillThreshold": ROWS_IN_MEMORY,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (place / "log").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    options += [f"--conf={key}={value}" for key, value in settings.items()]
    with standalone_cluster(place, 2) as cluster:
        replay = [str(PROGRAM), "pipeline", "replay", str(place / "acls.txt"), *words]
        said = submit(cluster.url, place / "where.py", replay, options=options, cwd=place)
    workers, level, of_rows, stored, answer = said.split("\n", 4)
    assert level == "WARN"
    assert json.loads(workers)
    assert all(archive.name in path and str(ROOT) not in path for path in json.loads(workers)), workers
    assert spilled_bytes(place / "log") > 0
    assert len(json.loads(stored)) == HOSTS
    assert of_rows == stored
    flips = json.loads(answer)
    assert (flips["lost"], {row["principal"] for row in flips["flips"]}) == (50, {"User:bob"})
