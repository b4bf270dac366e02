"""Figures that benchmarks print: rounds, medians, one JSON line each on standard output.

Whatever is for people goes to standard error. `BENCH_QUICK=1` asks for a run of less than a minute in
all; its figures say so, and carry the size they were measured at.
"""

import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

QUICK = os.environ.get("BENCH_QUICK") == "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One comparison. `ratio` says how many times better ours is: above 1 is better, whatever the unit.

    `floor` is the ratio that we set ourselves, None where there is none. `enough` is a value of ours that
    holds whatever theirs is.
    """

    name: str
    unit: str
    ours: float
    theirs: float
    size: int
    higher_is_better: bool = False
    floor: float | None = None
    enough: float | None = None

    @property
    def ratio(self) -> float:
        better, worse = (self.ours, self.theirs) if self.higher_is_better else (self.theirs, self.ours)
        return better / worse

    @property
    def holds(self) -> bool:
        """Whether the floor is reached, or ours is enough by itself."""
        return self.floor is None or self.ratio >= self.floor or self._is_enough

    @property
    def _is_enough(self) -> bool:
        if self.enough is None:
            return False
        return self.ours >= self.enough if self.higher_is_better else self.ours <= self.enough

    def line(self) -> str:
        fields: dict[str, object] = {
            "name": self.name,
            "unit": self.unit,
            "ours": rounded(self.ours),
            "theirs": rounded(self.theirs),
            "ratio": rounded(self.ratio),
            "size": self.size,
        }
        if self.floor is not None:
            fields |= {"floor": self.floor, "holds": self.holds}
        if self.enough is not None:
            fields["enough"] = self.enough
        if QUICK:
            fields["quick"] = True
        return json.dumps(fields)

    def sentence(self) -> str:
        """Return the figure as people read it."""
        text = f"  {self.name}: ours {rounded(self.ours):g}, theirs {rounded(self.theirs):g} {self.unit}"
        text += f": {rounded(self.ratio):g} times"
        if self.floor is None:
            return text
        enough = "" if self.enough is None else f" or {self.enough:g} {self.unit}"
        return f"{text}, floor {self.floor:g}{enough} {'holds' if self.holds else 'MISSED'}"


def rounded(value: float) -> float:
    """Keep the four digits that a measurement deserves."""
    return float(f"{value:.4g}")


def progress(text: str) -> None:
    """Tell people how it goes."""
    print(text, file=sys.stderr, flush=True)


def emit(figures: Sequence[Figure]) -> None:
    """Print the figures, last and machine-readable."""
    for figure in figures:
        print(figure.line(), flush=True)


def timed(
    run: Callable[[], None], *, collecting: bool = False, clock: Callable[[], int] = time.thread_time_ns
) -> int:
    """Return how many nanoseconds of processor time a run takes.

    Whoever shares the machine counts only by what they do to its caches. The cyclic garbage collector
    rests meanwhile, as `timeit` has it, unless it is `collecting`.
    """
    gc.collect()
    if not collecting:
        gc.disable()
    try:
        start = clock()
        run()
        return clock() - start
    finally:
        gc.enable()


def median_per_item(durations: Sequence[int], items: int) -> float:
    """Return the median round's nanoseconds for one item."""
    return statistics.median(durations) / items
