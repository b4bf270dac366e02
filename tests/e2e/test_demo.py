"""The demo as a visitor runs it: ends well, tells when something goes otherwise, leaves nothing behind."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.paths import ROOT
from testkit.spark_quick import quick_driver_environment
from testkit.waiting import wait_until

OUTCOME = re.compile(r"^    actual    ", re.MULTILINE)
OUTCOMES_AT_LEAST = 35
"""So that a demo which skips its story is no success."""

DEMO_TIMEOUT_S = 800.0
"""It takes a minute on an idle machine of two cores."""

END_TIMEOUT_S = 300.0
"""For a demo that ends early, or has to end its servers first: a few seconds on an idle machine."""

WIDTH = 80


def demo(folder: Path, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "demo"],
        cwd=ROOT,
        env={
            **os.environ,
            **quick_driver_environment(),
            "DEMO_OUT": str(folder),
            "COLUMNS": str(WIDTH),
            **environment,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def survivors(folder: Path) -> list[str]:
    """Return the command lines of the processes that were started for this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


def test_the_demo_ends_by_itself_and_every_outcome_is_as_expected(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with demo(folder, DEMO_ONCE="1") as process:
        told, errors = process.communicate(timeout=DEMO_TIMEOUT_S)
    assert process.returncode == 0, told + errors
    outcomes = len(OUTCOME.findall(told))
    assert outcomes >= OUTCOMES_AT_LEAST
    assert f"{outcomes} outcomes, every one as expected" in told
    assert errors == ""
    assert "\x1b" not in told
    wide = [line for line in told.splitlines() if len(line) > WIDTH]
    assert [line for line in wide if str(folder) not in line and "kafka_server_" not in line] == []
    assert survivors(folder) == []

    page = (folder / "report" / "report.html").read_text()
    assert {name for name in ("mallory", "payroll", "orders-eu", "accounting") if name not in page} == set()
    summary = json.loads((folder / "report" / "summary.json").read_text())
    assert summary["events"] > 0
    assert summary["denied"] > 0
    passwords = [file.read_text() for file in (folder / "clients").glob("*.password")]
    assert len(passwords) == 7
    written = [told, (folder / "kustos" / "kustos.log").read_text(), page]
    written += [file.read_text() for file in (folder / "kustos" / "audit").glob("*.jsonl")]
    assert not [password for password in passwords for text in written if password in text]


def test_an_outcome_that_is_not_the_expected_one_is_told_and_fails_the_demo(tmp_path: Path) -> None:
    without_java = tmp_path / "bin"
    without_java.mkdir()
    with demo(tmp_path / "out", DEMO_ONCE="1", PATH=str(without_java)) as process:
        told, _ = process.communicate(timeout=END_TIMEOUT_S)
    assert process.returncode == 1
    assert "NOT AS EXPECTED" in told
    assert "`java` is not installed" in told.replace("\n", " ")
    assert "kafka/server.log" in told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_interrupted_ends_what_it_started(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "out"
    with demo(folder) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Four users" in line:
                break
        assert survivors(folder) != []
        process.send_signal(number)
        process.communicate(timeout=END_TIMEOUT_S)
    assert process.returncode == 130
    wait_until(lambda: not survivors(folder), what="all children are gone")


def test_a_second_demo_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with demo(folder) as first:
        assert first.stdout is not None
        first.stdout.readline()
        with demo(folder) as second:
            told, _ = second.communicate(timeout=END_TIMEOUT_S)
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=END_TIMEOUT_S)
    assert second.returncode == 1
    assert "another demo runs in" in told
