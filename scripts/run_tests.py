"""Runs several pytest processes in parallel for `make test`: `run_tests.py 'NAME: ARGUMENTS'...`.

Each job is one pytest process with its own arguments. `VARIABLE=value` words before the arguments set its
environment, as in a shell; `NICE=5` lowers its priority. Four jobs run at a time in the given order, so the
longest comes first. The output of a job is printed when the job ends; meanwhile a line shows the current file
of each job. The last line counts all tests.

Exits with 0 only if every job ran tests and all of them passed; a job that was killed or found no test fails.
Ctrl-C (or SIGTERM) ends all jobs in order, a second one kills them; the exit code is then 130.
"""

import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
AT_ONCE: Final = 4
"""Jobs that run at a time. Client tests wait for sessions and brokers, and Spark's driver, JVM and workers
wait for each other, so four use two cores. Five or six made no run shorter, and brokers and clients ran
into their time limits."""

NICE: Final = "NICE"
"""The variable that sets a job's niceness, see nice(1). Brokers and clients have time limits for each other,
so they run before jobs that only take long."""

POLL_S: Final = 0.5
"""How often the script polls the jobs."""

PROGRESS_S: Final = 60
"""How often a line shows the progress if standard output is no terminal."""

GRACE_S: Final = 30
"""How long an interrupted job may take to stop the brokers and sessions of its tests."""

SEED: Final = "KUSTOS_SEED"
"""The variable that makes all jobs draw what an earlier run drew."""

INTERRUPTED: Final = 130
FOUND_NONE: Final = 5
"""Pytest's exit code for a run without tests."""

SLOWEST: Final = ("--durations=12", "--durations-min=5", "-p", "testkit.processor_time")
"""Each job prints its slowest tests, and the files that took most processor time."""

FILE: Final = re.compile(r"^(\S+\.py)\b", re.MULTILINE)
PERCENT: Final = re.compile(r"\[ *(\d+)%\]$", re.MULTILINE)
MARKS: Final = re.compile(r"^(?:\S+\.py )?([.sxXFE]+)(?: +\[ *\d+%\])?$", re.MULTILINE)
CLOSING: Final = re.compile(r"^(?:=+ )?(\d+ [a-z]+(?:, \d+ [a-z]+)*) in [\d.]+s", re.MULTILINE)
"""Pytest's last line, for example `=== 1 failed, 2 passed in 3.00s ===`."""


@dataclass(slots=True)
class Job:
    """One pytest process with its arguments, environment and output file."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    output: Path
    process: subprocess.Popen[bytes] | None = None
    begun_s: float = 0
    took_s: float = 0

    def start(self) -> None:
        """Start the process in its own session, so that Ctrl-C at the terminal reaches only this script."""
        cache = f"cache_dir=.pytest_cache/{self.name}"
        # --pdeathsig ends the job if this script is killed
        command = ["nice", "-n", self.environment.get(NICE, "0"), "setpriv", "--pdeathsig", "KILL"]
        command += [sys.executable, "-m", "pytest", "-o", cache, *SLOWEST]
        self.begun_s = time.monotonic()
        with self.output.open("wb") as sink:
            self.process = subprocess.Popen(  # noqa: S603 (the caller of this script chooses the arguments)
                [*command, *self.arguments],
                cwd=ROOT,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def text(self) -> str:
        """Everything that the process has printed."""
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    @property
    def runs(self) -> bool:
        """Whether the process has started and not ended."""
        if self.process is None or self.process.returncode is not None:
            return False
        self.took_s = time.monotonic() - self.begun_s
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children, as a terminal does."""
        if self.process is not None and self.runs:
            os.killpg(self.process.pid, number)

    def where(self) -> str:
        """Return the progress, for example `unit 40% tests/unit/test_x.py, 1 failed`."""
        text = self.text
        percent, file = PERCENT.findall(text)[-1:] or ["0"], FILE.findall(text)[-1:] or ["starts"]
        failed = sum(mark in "FE" for marks in MARKS.findall(text) for mark in marks)
        return f"{self.name} {percent[0]}% {file[0]}" + (f", {failed} failed" if failed else "")

    def counts(self) -> Counter[str]:
        """Return the number of tests by outcome from pytest's last line; empty without that line."""
        closing = CLOSING.findall(self.text)[-1:]
        found: Counter[str] = Counter()
        for count, kind in (part.split() for part in (closing[0].split(", ") if closing else ())):
            found[{"error": "failed", "errors": "failed"}.get(kind, kind)] += int(count)
        return found

    def trouble(self) -> str:
        """Return why the job failed; empty if it succeeded."""
        code = None if self.process is None else self.process.returncode
        if code is not None and code < 0:
            return f"killed by {signal.Signals(-code).name}"
        counts = self.counts()
        troubles = {
            "was not started": code is None,
            "found no test": code == FOUND_NONE,
            f"ended with {code} before its last line": not counts,
            f"{counts['failed']} failed": counts["failed"] > 0,
            "no test passed": not counts["passed"],
            f"ended with {code}": code != 0,
        }
        return next((trouble for trouble, is_so in troubles.items() if is_so), "")

    def verdict(self) -> str:
        """Return a line with the result of the job."""
        counts = ", ".join(f"{count} {kind}" for kind, count in self.counts().items()) or "no tests"
        trouble = self.trouble()
        return (
            f"{self.name}: {f'FAILED ({trouble})' if trouble else 'passed'}, {counts}, {_clock(self.took_s)}"
        )


def _clock(passed_s: float) -> str:
    minutes, seconds = divmod(int(passed_s), 60)
    return f"{minutes}:{seconds:02}"


def parse(text: str, folder: Path) -> Job:
    """Parse `NAME: [VARIABLE=value]... ARGUMENTS`; raise `ValueError` if the name is missing or invalid."""
    name, colon, rest = text.partition(":")
    if not (colon and re.fullmatch(r"[a-z0-9-]+", name)):
        raise ValueError(f"invalid job `{text}`; write it as `NAME: ARGUMENTS`")
    words = shlex.split(rest)
    environment: dict[str, str] = {}
    while words and re.match(r"[A-Z_]+=", words[0]):
        key, _, environment[key] = words.pop(0).partition("=")
    return Job(name, words, environment, folder / f"{name}.txt")


def print_line(line: str) -> None:
    """Print a line in place of the progress line."""
    clear = "\r\x1b[2K" if sys.stdout.isatty() else ""
    _write(f"{clear}{line}\n")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


class Progress:
    """Shows the progress of the jobs: in one line of a terminal, or as a line every `PROGRESS_S` seconds."""

    def __init__(self) -> None:
        self._begun_s = self._shown_s = time.monotonic()

    def show(self, running: Sequence[Job]) -> None:
        """Show the progress if it is due."""
        if not running:
            return
        if sys.stdout.isatty():
            width = shutil.get_terminal_size().columns - 1
            _write("\r\x1b[2K" + self._line(running)[:width])
        elif time.monotonic() - self._shown_s >= PROGRESS_S:
            self._shown_s = time.monotonic()
            print_line(self._line(running))

    def _line(self, running: Sequence[Job]) -> str:
        return f"{_clock(time.monotonic() - self._begun_s)} " + " | ".join(job.where() for job in running)


def run(jobs: Sequence[Job]) -> None:
    """Run all jobs, and print the output of each when it ends."""
    progress = Progress()
    waiting = list(jobs)
    running: list[Job] = []
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            running.append(waiting.pop(0))
            running[-1].start()
        for job in [job for job in running if not job.runs]:
            running.remove(job)
            print_line(f"\n##### {job.name}\n{job.text}\n{job.verdict()}")
        progress.show(running)
        if running:
            time.sleep(POLL_S)


def stop(jobs: Sequence[Job]) -> None:
    """Interrupt the running jobs, kill those that do not end in time, and print their output."""
    running = [job for job in jobs if job.runs]
    print_line(f"interrupted; waiting for {', '.join(job.name for job in running) or 'no job'}")
    try:
        for job in running:
            job.signal(signal.SIGINT)
        deadline_s = time.monotonic() + GRACE_S
        while any(job.runs for job in running) and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        print_line("killing them")
    finally:
        for job in running:
            job.signal(signal.SIGKILL)
        for job in running:
            if job.process is not None:
                job.process.wait()
            print_line(f"\n##### {job.name}\n{job.text}")


def main(arguments: Sequence[str]) -> int:
    """Run the jobs and return the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # a shell makes background processes ignore SIGINT, and the jobs would inherit that
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="kustos-tests-") as folder:
        try:
            jobs = [parse(text, Path(folder)) for text in arguments]
        except ValueError as error:
            sys.stderr.write(f"error: {error}\n")
            return 2
        names = ", ".join(job.name for job in jobs)
        seed = os.environ[SEED] = os.environ.get(SEED) or str(secrets.randbelow(10**9) + 1)
        print_line(f"{names}: {AT_ONCE} at a time, {SEED}={seed}; output in {folder}")
        try:
            run(jobs)
        except KeyboardInterrupt:
            stop(jobs)
            return INTERRUPTED
        return summary(jobs)


def summary(jobs: Sequence[Job]) -> int:
    """Print the results and the number of tests; return the exit code."""
    print_line("\n##### all")
    for job in jobs:
        print_line(job.verdict())
    total = sum((job.counts() for job in jobs), Counter())
    # a job that failed without a failed test counts as one failure
    failed = sum(max(1, job.counts()["failed"]) for job in jobs if job.trouble())
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print_line(f"tests: {total['passed']} passed, {failed} failed{skipped}")
    return 1 if failed or not jobs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
