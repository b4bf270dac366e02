"""Tables as Delta tables: the same rows, written once however often an entry is carried out."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from kustos.pipeline.tables import Tables
from testkit.paths import ROOT
from testkit.processes import spawn
from tests.pipeline.tables.delta_driver import BATCHES, take
from tests.pipeline.tables.test_runs import contents

LONGEST_S = 240.0


def drive(folder: Path, what: str) -> tuple[int, bytes]:
    command = [sys.executable, "-m", "tests.pipeline.tables.delta_driver", str(folder), what]
    driver = spawn(command, stdout=subprocess.PIPE, cwd=ROOT)
    output, _ = driver.communicate(timeout=LONGEST_S)
    return driver.returncode, output


def test_the_rows_are_those_of_parquet_also_after_a_kill_between_two_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert drive(tmp_path / "delta", "kill")[0] == -signal.SIGKILL
    code, output = drive(tmp_path / "delta", "check")
    assert code == 0
    found = json.loads(output.decode().splitlines()[-1])
    plain = Tables(tmp_path / "plain")
    for batch in range(len(BATCHES)):
        take(spark, plain, batch)
    assert found == {
        "was_unfinished": True,
        "finished": contents(spark, plain),
        "is_unfinished": False,
        "is_repeat": True,
        "compacted": contents(spark, plain),
        "spans": 1,
    }
