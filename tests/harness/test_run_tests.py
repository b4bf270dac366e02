"""`make test` fails if a job fails, dies or finds no test; it prints the whole output of each job."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.run_tests import AT_ONCE, parse
from testkit import versions
from testkit.paths import ROOT
from testkit.waiting import wait_until

SCRIPT = ROOT / "scripts" / "run_tests.py"
WAIT_S = 240.0
"""Six interpreters start and end in seconds; on a busy machine each gets a tenth of a core."""

INHERITED = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
"""Variables set by the make that runs these tests: its arguments, such as CI's CONNECT=1, and its depth."""

MEETING = """
import os
from pathlib import Path
from testkit.waiting import wait_until

def test_meets_the_others() -> None:
    folder = Path(__file__).parent
    (folder / os.environ["JOB"]).touch()
    for name in os.environ["OTHERS"].split():
        wait_until((folder / name).exists, what="the other job is there")
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


def begin(*jobs: str) -> "subprocess.Popen[str]":
    """Start the script as a shell starts a background process: with Ctrl-C ignored."""
    return subprocess.Popen(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, str(SCRIPT), *jobs],
        env={**os.environ, "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:asyncio"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(*jobs: str) -> tuple[int, str]:
    """Return the exit code and the output."""
    with begin(*jobs) as process:
        said, _ = process.communicate(timeout=2 * WAIT_S)
    return process.returncode, said


def written(folder: Path, name: str, source: str) -> Path:
    path = folder / f"test_{name}.py"
    path.write_text(source)
    return path


def test_a_failed_job_fails_the_run_and_all_output_is_printed(tmp_path: Path) -> None:
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


def test_a_job_that_is_killed_or_cut_short_or_has_no_tests_fails(tmp_path: Path) -> None:
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


def test_jobs_run_in_parallel_in_their_own_environments(tmp_path: Path) -> None:
    meeting = written(tmp_path, "meeting", MEETING)
    expected = ("of two words", os.nice(0) + 5)
    late = written(
        tmp_path, "late", f"import os\ndef test_a(): assert (os.environ['WORD'], os.nice(0)) == {expected}\n"
    )
    names = [f"job-{number}" for number in range(AT_ONCE)]
    code, said = ended(
        *(f"{name}: JOB={name} OTHERS='{' '.join(names)}' {meeting}" for name in names),
        f"late: NICE=5 WORD='of two words' {late}",
    )
    assert (code, said.splitlines()[-1]) == (0, f"tests: {AT_ONCE + 1} passed, 0 failed"), said


def begun(path: Path) -> int:
    """Return the process id of a job, once it hangs in its test."""
    wait_until(path.with_suffix(".begun").exists, what=f"{path.stem} hangs")
    return int(path.with_suffix(".pid").read_text())


def gone(pids: Sequence[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_every_job_in_order(tmp_path: Path, number: signal.Signals) -> None:
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
    wait_until(lambda: gone(pids), what="the jobs and their children are gone")
    assert said.count("KeyboardInterrupt") >= len(paths)
    assert "##### left\n" in said
    assert "##### later\n" not in said


def test_a_second_interruption_kills_a_job_that_does_not_end(tmp_path: Path) -> None:
    path = written(tmp_path, "stubborn", HANGING)
    with begin(f"stubborn: {path}") as process:
        pid = begun(path)
        process.send_signal(signal.SIGINT)
        wait_until(path.with_suffix(".ended").exists, what="its test is being ended")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130
    assert "killing them\n" in said
    assert gone([pid])


def test_jobs_die_with_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a killed script removes nothing
    paths = [written(tmp_path, name, HANGING) for name in ("left", "right")]
    with begin(*(f"{path.stem[5:]}: {path}" for path in paths)) as process:
        pids = [begun(path) for path in paths]
        process.kill()
        process.wait()
    wait_until(lambda: gone(pids), what="both jobs are gone")


@pytest.mark.parametrize("text", ["tests/unit", "A b: tests/unit", ": tests/unit"])
def test_a_job_without_a_name_is_refused(text: str) -> None:
    code, said = ended(text)
    assert code == 2
    assert said == f"error: invalid job `{text}`; write it as `NAME: ARGUMENTS`\n"


def test_the_jobs_of_make_test_cover_every_test() -> None:
    printed = subprocess.run(
        ["make", "--dry-run", "--old-file=setup", "test", "PYTEST_ARGS=", "CONNECT="],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in INHERITED},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    words = shlex.split(printed)
    jobs = [parse(text, ROOT) for text in words[words.index("scripts/run_tests.py") + 1 :]]
    parts: dict[str, list[str]] = {}
    for job in jobs:
        if versions.VARIABLE in job.environment:
            continue  # repeats tests of another job with an older release
        at = next(at for at, word in enumerate(job.arguments) if word.split("/")[0] == "tests")
        parts.setdefault(shlex.join(job.arguments[at:]), []).append(shlex.join(job.arguments[:at]))
    (rest,) = (place for place in parts if " " in place)
    named = sorted(place for place in parts if place != rest)
    assert all((ROOT / place).is_dir() for place in named)
    assert shlex.split(rest) == ["tests", *(f"--ignore={place}" for place in named)]
    for given in parts.values():
        count = len(given)
        whole = [f"-p testkit.parts --part={number}/{count}" for number in range(1, count + 1)]
        assert sorted(given) == ([""] if count == 1 else whole)
