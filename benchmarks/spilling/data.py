"""Events of which nearly each is a use of its own, and lines of which each comes several times."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.figures import progress
from benchmarks.replaying.estate import SEED, estate
from benchmarks.replaying.events import CACHE, DAY_MS, START_MS, write
from benchmarks.sources.lines import event

FORMAT: Final = 1
"""Of what is written; another one is written again."""

LINE_DAYS: Final = 3


def distinct_events(count: int, acls: int) -> Path:
    """Return the folder of so many events of a week, drawn alike from a large estate's questions.

    Eight or nine in ten of them have a row of their own in the roll-up.
    """

    def make(folder: Path) -> None:
        write(estate(acls, max(1_000, count)), count, folder, exponent=0)

    return _kept(CACHE / f"distinct-{count}-{acls}", make)


def repeated_lines(count: int, copies: int) -> Path:
    """Return the folder of so many events as lines of JSON, all of them in as many files as there are copies.

    Each file begins elsewhere: else it would be known as a copy by its first line, and not be read.
    """

    def make(folder: Path) -> None:
        rng = random.Random(SEED)
        step = LINE_DAYS * DAY_MS // count
        lines = [event(number, START_MS + number * step, rng) + "\n" for number in range(count)]
        for copy in range(copies):
            first = count * copy // copies
            with (folder / f"sink-{copy}.jsonl").open("w", encoding="utf-8") as file:
                file.writelines(lines[first:])
                file.writelines(lines[:first])

    return _kept(CACHE / f"lines-{count}-{copies}", make)


def _kept(folder: Path, make: Callable[[Path], None]) -> Path:
    marker = folder / "_MADE"
    said = json.dumps({"format": FORMAT, "seed": SEED})
    if not marker.exists() or marker.read_text(encoding="ascii") != said:
        progress(f"writing {folder.name}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)
        marker.write_text(said, encoding="ascii")
    return folder
