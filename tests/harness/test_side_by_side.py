"""`make test`: sides that fail, die or find nothing make it fail; what each said is there, whole."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.side_by_side import AT_ONCE, parse
from testkit.paths import ROOT
from testkit.waiting import wait_until

SCRIPT = ROOT / "scripts" / "side_by_side.py"
WAIT_S = 240.0
"""Six interpreters start and end in seconds; on a crowded machine each has a tenth of a processor."""

HANDED_DOWN = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
"""By the make that runs these tests: its arguments, such as CI's CONNECT=1, and its depth."""

MEETING = """
import os
from pathlib import Path
from testkit.waiting import wait_until

def test_meets_the_others() -> None:
    folder = Path(__file__).parent
    (folder / os.environ["SIDE"]).touch()
    for name in os.environ["OTHERS"].split():
        wait_until((folder / name).exists, what="the other side is there")
"""

HANGING = """
import os
import subprocess
import sys
from pathlib import Path
from threading import Event
import pytest

HERE = Path(__file__)

@pytest.fixture
def broker():
    HERE.with_suffix(".pid").write_text(str(os.getpid()))
    yield
    HERE.with_suffix(".ended").touch()
    if HERE.stem == "test_stubborn":
        Event().wait()

def test_hangs(broker) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    HERE.with_suffix(".child").write_text(str(child.pid))
    HERE.with_suffix(".begun").touch()
    Event().wait()
"""


def begin(*sides: str) -> "subprocess.Popen[str]":
    """Start it as a shell starts what is to run in the background: with Ctrl-C ignored."""
    return subprocess.Popen(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, str(SCRIPT), *sides],
        env={**os.environ, "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:asyncio"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(*sides: str) -> tuple[int, str]:
    """Return the exit code and all that was said."""
    with begin(*sides) as process:
        said, _ = process.communicate(timeout=2 * WAIT_S)
    return process.returncode, said


def written(folder: Path, name: str, source: str) -> Path:
    path = folder / f"test_{name}.py"
    path.write_text(source)
    return path


def test_a_side_that_fails_makes_all_fail_and_both_are_heard_whole(tmp_path: Path) -> None:
    good = written(tmp_path, "good", "def test_a(): pass\ndef test_b(): pass\n")
    bad = written(tmp_path, "bad", "def test_c(): pass\ndef test_d(): assert 'apples' == 'pears'\n")
    code, said = ended(f"bad: {bad}", f"good: {good}")
    assert code == 1
    for name, own, others in (
        ("bad", "1 failed, 1 passed in", "test_good"),
        ("good", "2 passed in", "test_bad"),
    ):
        [part] = re.findall(rf"^##### {name}\n(.*?)^{name}: ", said, re.MULTILINE | re.DOTALL)
        assert "collected 2 items" in part
        assert own in part
        assert others not in part
    assert "assert 'apples' == 'pears'" in said
    _, summary = said.split("##### all\n")
    lines = summary.splitlines()
    assert lines[0].startswith("bad: FAILED (1 failed), 1 failed, 1 passed, ")
    assert lines[1].startswith("good: passed, 2 passed, ")
    assert lines[2:] == ["tests: 3 passed, 1 failed"]


def test_a_side_without_tests_or_killed_or_cut_short_fails(tmp_path: Path) -> None:
    sources = {
        "none": "",
        "killed": "import os\ndef test_a(): os.kill(os.getpid(), 9)\n",
        "cut": "import os\ndef test_a(): os._exit(0)\n",
        "skipped": "import pytest\ndef test_a(): pytest.skip()\n",
    }
    paths = {name: written(tmp_path, name, source) for name, source in sources.items()}
    code, said = ended(*(f"{name}: {path}" for name, path in paths.items()))
    assert code == 1
    _, summary = said.split("##### all\n")
    troubles = dict(re.findall(r"^(\w+): FAILED \((.*?)\)", summary, re.MULTILINE))
    assert troubles == {
        "none": "found no test",
        "killed": "killed by SIGKILL",
        "cut": "ended with 0 before its last line",
        "skipped": "no test passed",
    }
    assert summary.endswith("tests: 0 passed, 4 failed, 1 skipped\n")


def test_sides_run_at_once_each_in_its_environment_and_one_more_after(tmp_path: Path) -> None:
    meeting = written(tmp_path, "meeting", MEETING)
    expected = ("of two words", os.nice(0) + 5)
    late = written(
        tmp_path, "late", f"import os\ndef test_a(): assert (os.environ['WORD'], os.nice(0)) == {expected}\n"
    )
    names = [f"side-{number}" for number in range(AT_ONCE)]
    code, said = ended(
        *(f"{name}: SIDE={name} OTHERS='{' '.join(names)}' {meeting}" for name in names),
        f"late: NICE=5 WORD='of two words' {late}",
    )
    assert (code, said.splitlines()[-1]) == (0, f"tests: {AT_ONCE + 1} passed, 0 failed"), said


def begun(path: Path) -> int:
    """Return the process id of a side, once it hangs in its test."""
    wait_until(path.with_suffix(".begun").exists, what=f"{path.stem} hangs")
    return int(path.with_suffix(".pid").read_text())


def gone(pids: Sequence[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_every_side_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    names = ["left", *(f"hangs-{index}" for index in range(1, AT_ONCE)), "later"]
    *paths, later = [written(tmp_path, name, HANGING) for name in names]
    with begin(*(f"{path.stem[5:]}: {path}" for path in (*paths, later))) as process:
        pids = [begun(path) for path in paths]
        pids += [int(path.with_suffix(".child").read_text()) for path in paths]
        process.send_signal(number)
        said, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130
    assert all(path.with_suffix(".ended").exists() for path in paths)
    assert not later.with_suffix(".begun").exists()
    wait_until(lambda: gone(pids), what="the sides and their children are gone")
    assert said.count("KeyboardInterrupt") >= len(paths)
    assert "##### left\n" in said
    assert "##### later\n" not in said


def test_a_second_interruption_ends_a_stubborn_side_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "stubborn", HANGING)
    with begin(f"stubborn: {path}") as process:
        pid = begun(path)
        process.send_signal(signal.SIGINT)
        wait_until(path.with_suffix(".ended").exists, what="its test is being ended")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130
    assert "at once\n" in said
    assert gone([pid])


def test_sides_die_with_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # what nobody is left to remove
    paths = [written(tmp_path, name, HANGING) for name in ("left", "right")]
    with begin(*(f"{path.stem[5:]}: {path}" for path in paths)) as process:
        pids = [begun(path) for path in paths]
        process.kill()
        process.wait()
    wait_until(lambda: gone(pids), what="both sides are gone")


@pytest.mark.parametrize("text", ["tests/unit", "A b: tests/unit", ": tests/unit"])
def test_a_side_without_a_name_is_refused(text: str) -> None:
    code, said = ended(text)
    assert code == 2
    assert said == f"error: `{text}` is no side; write it as `NAME: ARGUMENTS`\n"


def test_the_sides_of_make_test_leave_no_test_out() -> None:
    printed = subprocess.run(
        ["make", "--dry-run", "--old-file=setup", "test", "PYTEST_ARGS=", "CONNECT="],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in HANDED_DOWN},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    words = shlex.split(printed)
    sides = [parse(text, ROOT) for text in words[words.index("scripts/side_by_side.py") + 1 :]]
    parts: dict[str, list[str]] = {}
    for side in sides:
        at = next(at for at, word in enumerate(side.arguments) if word.split("/")[0] == "tests")
        parts.setdefault(shlex.join(side.arguments[at:]), []).append(shlex.join(side.arguments[:at]))
    (rest,) = (place for place in parts if " " in place)
    named = sorted(place for place in parts if place != rest)
    assert all((ROOT / place).is_dir() for place in named)
    assert shlex.split(rest) == ["tests", *(f"--ignore={place}" for place in named)]
    for given in parts.values():
        count = len(given)
        whole = [f"-p testkit.parts --part={number}/{count}" for number in range(1, count + 1)]
        assert sorted(given) == ([""] if count == 1 else whole)
