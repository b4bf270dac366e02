"""Over Spark Connect, where there is no broadcast, the same stages say the same."""

import subprocess
import sys
from pathlib import Path

import pytest

from testkit.spark_connect import clean_environment, connect_server

ROOT = Path(__file__).parents[3]


@pytest.mark.timeout(600)
def test_a_connect_session_decides_the_same(tmp_path: Path) -> None:
    with connect_server(tmp_path) as url:
        done = subprocess.run(
            [sys.executable, "-m", "tests.pipeline.deciding.over_connect", url],
            cwd=ROOT,
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, "LOST True\n"), done.stderr[:3000]
