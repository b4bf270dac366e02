"""Ports are given out once, to whichever process asks."""

import subprocess
import sys
from pathlib import Path

import pytest

from testkit import ports
from testkit.paths import ROOT

HOLDER = """
import sys
from testkit import ports
ports.FIRST_PORT, ports.LAST_PORT = int(sys.argv[1]), int(sys.argv[1]) + 2
print(ports.free_port_range(2) if sys.argv[2:] else ports.free_port(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The first of three ports, and no more, that processes of this test may be given."""
    number = ports.free_port_range(3)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(ports, "_locks", (tmp_path / ports.LOCKS).open("ab"))
    monkeypatch.setattr(ports, "_given", set())
    monkeypatch.setattr(ports, "FIRST_PORT", number)
    monkeypatch.setattr(ports, "LAST_PORT", number + 2)
    return number


def holder(first: int, *words: str) -> "subprocess.Popen[str]":
    """Start another process that asks and keeps what it is given until it ends."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(first), *words],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def answer(process: "subprocess.Popen[str]") -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def test_no_two_processes_are_given_the_same_port(first: int) -> None:
    with holder(first) as one, holder(first) as other:
        theirs = {answer(one), answer(other)}
        assert len(theirs) == 2
        [left] = {first, first + 1, first + 2} - theirs
        assert ports.free_port() == left
        with pytest.raises(OSError, match="no free port"):
            ports.free_port()


def test_ports_in_a_row_are_kept_until_their_process_is_killed(first: int) -> None:
    with holder(first, "row") as one:
        assert answer(one) in {first, first + 1}
        with pytest.raises(OSError, match="in a row"):
            ports.free_port_range(2)
        one.kill()
        one.wait()
        assert ports.free_port_range(2) in {first, first + 1}
