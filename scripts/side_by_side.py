"""Runs pytest processes side by side, as `make test` does: `side_by_side.py 'NAME: ARGUMENTS'...`.

Each side is a pytest of its own with its arguments, before them `VARIABLE=value` for its environment as in
a shell; `NICE=5` lets others go before it. Four run at a time, in the order given, so the longest is named
first. What a side says is kept and printed whole when it ends; meanwhile lines tell at which file each is.
The last line counts all tests.

Exits with 0 only if every side ran tests and all of them passed; one that was killed, or found none, failed.
Ctrl-C (or SIGTERM) ends all of them in good order, a second one at once; then 130.
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
"""Sides that run at a time. Tests of clients wait for sessions and brokers, and Spark's driver, its JVM and
its workers for each other. Five or six made a run no shorter, and brokers and clients, which allow each other
only so much time, wait longer for a core."""

NICE: Final = "NICE"
"""The variable that makes a side nicer (nice(1)): brokers and clients allow each other only so much time, and
go before what merely takes long."""

LOOK_S: Final = 0.5
"""How often the sides are looked at."""

TELL_S: Final = 60
"""How often a line says where they are, if nobody looks on at a terminal."""

GRACE_S: Final = 30
"""What an interrupted side gets to stop the brokers and sessions of its tests."""

SEED: Final = "KUSTOS_SEED"
"""The variable that has all sides draw the same as in an earlier run."""

INTERRUPTED: Final = 130
FOUND_NONE: Final = 5
"""Pytest's exit code where it has found no test."""

SLOWEST: Final = ("--durations=12", "--durations-min=5", "-p", "testkit.processor_time")
"""Each side says what took it longest, and which files took most processor time."""

FILE: Final = re.compile(r"^(\S+\.py)\b", re.MULTILINE)
PERCENT: Final = re.compile(r"\[ *(\d+)%\]$", re.MULTILINE)
MARKS: Final = re.compile(r"^(?:\S+\.py )?([.sxXFE]+)(?: +\[ *\d+%\])?$", re.MULTILINE)
CLOSING: Final = re.compile(r"^(?:=+ )?(\d+ [a-z]+(?:, \d+ [a-z]+)*) in [\d.]+s", re.MULTILINE)
"""Pytest's last line, as `=== 1 failed, 2 passed in 3.00s ===`."""


@dataclass(slots=True)
class Side:
    """One pytest process: what it was asked, and what it has said so far in a file."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    output: Path
    process: subprocess.Popen[bytes] | None = None
    begun_s: float = 0
    took_s: float = 0

    def start(self) -> None:
        """Start it in a session of its own, where a Ctrl-C at the terminal reaches us alone."""
        cache = f"cache_dir=.pytest_cache/{self.name}"
        # --pdeathsig: were this script killed, nobody would end its sides
        command = ["nice", "-n", self.environment.get(NICE, "0"), "setpriv", "--pdeathsig", "KILL"]
        command += [sys.executable, "-m", "pytest", "-o", cache, *SLOWEST]
        self.begun_s = time.monotonic()
        with self.output.open("wb") as sink:
            self.process = subprocess.Popen(  # noqa: S603 (what the caller of this script asks for)
                [*command, *self.arguments],
                cwd=ROOT,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """Everything it has printed."""
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    @property
    def runs(self) -> bool:
        """Whether it was started and has not ended."""
        if self.process is None or self.process.returncode is not None:
            return False
        self.took_s = time.monotonic() - self.begun_s
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and to what it started, as a terminal does."""
        if self.process is not None and self.runs:
            os.killpg(self.process.pid, number)

    def where(self) -> str:
        """Return where it is, as `unit 40% tests/unit/test_x.py, 1 failed`."""
        said = self.said
        percent, file = PERCENT.findall(said)[-1:] or ["0"], FILE.findall(said)[-1:] or ["starts"]
        failed = sum(mark in "FE" for marks in MARKS.findall(said) for mark in marks)
        return f"{self.name} {percent[0]}% {file[0]}" + (f", {failed} failed" if failed else "")

    def counts(self) -> Counter[str]:
        """Return how many tests passed, failed and so on, by pytest's own last line; none if it has none."""
        closing = CLOSING.findall(self.said)[-1:]
        found: Counter[str] = Counter()
        for count, kind in (part.split() for part in (closing[0].split(", ") if closing else ())):
            found[{"error": "failed", "errors": "failed"}.get(kind, kind)] += int(count)
        return found

    def trouble(self) -> str:
        """Return why it did not succeed, nothing if it did."""
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
        """Return a line that says how it ended."""
        told = ", ".join(f"{count} {kind}" for kind, count in self.counts().items()) or "no tests"
        trouble = self.trouble()
        return f"{self.name}: {f'FAILED ({trouble})' if trouble else 'passed'}, {told}, {_clock(self.took_s)}"


def _clock(passed_s: float) -> str:
    minutes, seconds = divmod(int(passed_s), 60)
    return f"{minutes}:{seconds:02}"


def parse(text: str, folder: Path) -> Side:
    """Return the side that `NAME: [VARIABLE=value]... ARGUMENTS` says; `ValueError` if it has no name."""
    name, colon, rest = text.partition(":")
    if not (colon and re.fullmatch(r"[a-z0-9-]+", name)):
        raise ValueError(f"`{text}` is no side; write it as `NAME: ARGUMENTS`")
    words = shlex.split(rest)
    environment: dict[str, str] = {}
    while words and re.match(r"[A-Z_]+=", words[0]):
        key, _, environment[key] = words.pop(0).partition("=")
    return Side(name, words, environment, folder / f"{name}.txt")


def tell(line: str) -> None:
    """Print a line, over the one that said where the sides are."""
    clear = "\r\x1b[2K" if sys.stdout.isatty() else ""
    _write(f"{clear}{line}\n")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


class Progress:
    """Says where the sides are: at a terminal all the time in one line, else now and then."""

    def __init__(self) -> None:
        self._begun_s = self._told_s = time.monotonic()

    def look(self, running: Sequence[Side]) -> None:
        """Say it if it is time."""
        if not running:
            return
        if sys.stdout.isatty():
            width = shutil.get_terminal_size().columns - 1
            _write("\r\x1b[2K" + self._line(running)[:width])
        elif time.monotonic() - self._told_s >= TELL_S:
            self._told_s = time.monotonic()
            tell(self._line(running))

    def _line(self, running: Sequence[Side]) -> str:
        return f"{_clock(time.monotonic() - self._begun_s)} " + " | ".join(side.where() for side in running)


def run(sides: Sequence[Side]) -> None:
    """Run them all to their ends, and print what each said at its end."""
    progress = Progress()
    waiting = list(sides)
    running: list[Side] = []
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            running.append(waiting.pop(0))
            running[-1].start()
        for side in [side for side in running if not side.runs]:
            running.remove(side)
            tell(f"\n##### {side.name}\n{side.said}\n{side.verdict()}")
        progress.look(running)
        if running:
            time.sleep(LOOK_S)


def stop(sides: Sequence[Side]) -> None:
    """End those that run, first in good order, and print what they said."""
    running = [side for side in sides if side.runs]
    tell(f"interrupted; waiting for {', '.join(side.name for side in running) or 'nobody'}")
    try:
        for side in running:
            side.signal(signal.SIGINT)
        deadline_s = time.monotonic() + GRACE_S
        while any(side.runs for side in running) and time.monotonic() < deadline_s:
            time.sleep(LOOK_S)
    except KeyboardInterrupt:
        tell("at once")
    finally:
        for side in running:
            side.signal(signal.SIGKILL)
        for side in running:
            if side.process is not None:
                side.process.wait()
            tell(f"\n##### {side.name}\n{side.said}")


def main(arguments: Sequence[str]) -> int:
    """Run the sides and return the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # a shell lets what runs in the background ignore the first, and so would the sides
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="kustos-tests-") as folder:
        try:
            sides = [parse(text, Path(folder)) for text in arguments]
        except ValueError as error:
            sys.stderr.write(f"error: {error}\n")
            return 2
        names = ", ".join(side.name for side in sides)
        seed = os.environ[SEED] = os.environ.get(SEED) or str(secrets.randbelow(10**9) + 1)
        tell(f"{names}: {AT_ONCE} at a time, {SEED}={seed}; what they say grows in {folder}")
        try:
            run(sides)
        except KeyboardInterrupt:
            stop(sides)
            return INTERRUPTED
        return summary(sides)


def summary(sides: Sequence[Side]) -> int:
    """Print how all of them ended and the sum of their tests; return the exit code."""
    tell("\n##### all")
    for side in sides:
        tell(side.verdict())
    total = sum((side.counts() for side in sides), Counter())
    # a side that failed without a failed test is none that passed
    failed = sum(max(1, side.counts()["failed"]) for side in sides if side.trouble())
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    tell(f"tests: {total['passed']} passed, {failed} failed{skipped}")
    return 1 if failed or not sides else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
