"""The table of processor time: a file is charged for its child processes, whether or not they have ended."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.paths import ROOT

USED_S = 1.0
"""What a child uses before it says so, by its own account."""

CHILD = f"import time\nwhile time.process_time() < {USED_S}: pass\nprint('used', flush=True)\ninput()"

ENDED = f"""
import subprocess, sys

def test_waits_for_its_child():
    subprocess.run([sys.executable, "-c", {CHILD!r}], input=b"\\n", check=True)
"""

RUNNING = f"""
import subprocess, sys
import pytest

@pytest.fixture(scope="session")
def child():
    with subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdin=-1, stdout=-1) as process:
        assert process.stdout.readline() == b"used\\n"
        yield process
        process.kill()

def test_has_a_child_that_goes_on(child): pass
"""

WAITING = """
from threading import Event
def test_only_waits(): Event().wait(0.1)
def test_waits_more(): Event().wait(0.1)
"""


@pytest.fixture
def table(tmp_path: Path) -> dict[str, float]:
    """The seconds of the processor that the table gives each file."""
    for name, source in (("ended", ENDED), ("running", RUNNING), ("waiting", WAITING)):
        (tmp_path / f"test_{name}.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "testkit.processor_time", f"--rootdir={tmp_path}", tmp_path],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:asyncio"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^ *([\d.]+) s of +[\d.]+ s  (\S+)$", done.stdout, re.MULTILINE)
    return {Path(name).name: float(used_s) for used_s, name in rows}


def test_children_that_ended_and_that_go_on_are_counted(table: dict[str, float]) -> None:
    assert set(table) == {"test_ended.py", "test_running.py", "test_waiting.py", "all"}
    assert table["test_ended.py"] >= USED_S
    assert table["test_running.py"] >= USED_S
    assert table["all"] >= 2 * USED_S


def test_the_most_costly_comes_first_and_all_last(table: dict[str, float]) -> None:
    *files, total = table.values()
    assert files == sorted(files, reverse=True)
    assert list(table)[-1] == "all"
    assert total >= max(files)
