"""The wheel on clusters, handed over by spark-submit as the page says: executors run what is in it."""

import json
import subprocess
import sys
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

from kustos.pipeline.session import open_session

def where(batches):
    import kustos.pipeline.deciding as deciding
    for batch in batches:
        batch["id"] = deciding.__file__
        yield batch

with open_session("where") as spark:
    found = spark.range(2).selectExpr("cast(id as string) id").repartition(2).mapInPandas(where, "id string")
    print(json.dumps(sorted({row.id for row in found.collect()})))
    runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""
"""Says from where the workers have their code, then runs a program in the same session: a start is dear."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel under a name that Spark puts on the path of its workers: it knows `.zip`, not `.whl`."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("kustos-*.whl")
    return wheel.rename(folder / "kustos.zip")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "audit").mkdir()
    (folder / "audit" / "a.jsonl").write_text("\n".join(event_line(number) for number in range(50)))
    (folder / "acls.txt").write_text(ACLS)
    (folder / "pipeline.yml").write_text("version: 1\ntables: {path: tables}\ninputs:\n  - files: audit\n")
    (folder / "where.py").write_text(WHERE)
    return folder


def test_a_run_on_a_local_cluster_and_a_replay_on_a_standalone_one(archive: Path, place: Path) -> None:
    options = [f"--py-files={archive}"]
    words = ["--config", str(place / "pipeline.yml"), "--output", "json"]
    run = submit("local-cluster[2,1,1024]", PROGRAM, ["pipeline", "run", *words], options=options, cwd=place)
    assert json.loads(run)["inputs"][0]["events"] == 50
    with standalone_cluster(place, 2) as master:
        replay = [str(PROGRAM), "pipeline", "replay", str(place / "acls.txt"), *words]
        said = submit(master, place / "where.py", replay, options=options, cwd=place)
    workers, _, answer = said.partition("\n")
    assert json.loads(workers)
    assert all(archive.name in path and str(ROOT) not in path for path in json.loads(workers)), workers
    flips = json.loads(answer)
    assert (flips["lost"], [row["principal"] for row in flips["flips"]]) == (50, ["User:bob"])
