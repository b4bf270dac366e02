"""The pipeline's replay: 20 million recorded events and 100,000 ACLs, beside DuckDB on the same files.

- replay-20m: the report of what flips, from the raw events. Theirs: DuckDB makes the questions distinct and
  sums the flips, and between decides the same Python index, in one process
- replay-20m-examples: the same with the id of an event for each flip
- replay-20m-rows: the same over rows of Spark, as it must be where rules are compared
- replay-rollup-20m: the same report from the daily roll-up, beside DuckDB's time on the raw events
- rollup-build-20m: what building the roll-up costs, beside the same
- verdict-per-event-20m: a verdict on each event, written; theirs is Spark's bare copy of the events

Both sides are processes of their own that read the same Parquet files and must find the same flips; Spark
is warm, as a session that is used is. Figures are medians of rounds, by the clock and (`-cores`) by the
processor time of all processes of a side, which a machine that is shared does not change. With each goes
what Spark spilled and how much memory its processes had at most.

    python -m benchmarks.pipeline [word ...]     rows whose names hold a word; without one, all
"""

import json
import subprocess
import sys
from statistics import median
from typing import Any, Final

from benchmarks.figures import QUICK, Figure, emit, progress
from benchmarks.replaying.events import WARM_EVENTS, recorded

EVENTS: Final = 200_000 if QUICK else 20_000_000
ACLS: Final = 10_000 if QUICK else 100_000
ROUNDS: Final = 2 if QUICK else 3
MEMORY: Final = "4g"

DUCKDB: Final = "duckdb"
ROWS: Final[dict[str, tuple[str, str, float | None]]] = {
    "replay-20m": ("replay-raw", DUCKDB, 0.6),
    "replay-20m-examples": ("replay-raw-examples", DUCKDB, None),
    "replay-20m-rows": ("replay-rows", DUCKDB, None),
    "rollup-build-20m": ("rollup-build", DUCKDB, None),
    "replay-rollup-20m": ("replay-rollup", DUCKDB, 1.0),
    "verdict-per-event-20m": ("verdicts", "bare-copy", 0.25),
}
"""Our case, theirs, and the floor."""

NEEDS: Final = {"replay-rollup": "rollup-build"}
"""What another case must have written."""


def ours(case: str, events: int, acls: int, *more: object, rounds: int = ROUNDS) -> dict[str, Any]:
    """Run one case of our side; `more` as its program has it, the memory of the driver first."""
    return _run("benchmarks.replaying.ours", case, events, acls, rounds, *(more or [MEMORY]))


def theirs(events: int, acls: int, *more: object, rounds: int = ROUNDS) -> dict[str, Any]:
    """Run DuckDB and the index."""
    return _run("benchmarks.replaying.theirs", events, acls, rounds, *more)


def _run(module: str, *arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"`{' '.join(command[1:])}` failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compared(name: str, measured: dict[str, dict[str, Any]]) -> list[Figure]:
    """Return the figures of a row; raise `SystemExit` unless both sides found the same."""
    case, other, floor = ROWS[name]
    one, two = measured[case], measured[other]
    if one["found"] and two["found"] and one["found"] != two["found"]:
        raise SystemExit(f"{name}: ours finds {one['found']}, theirs {two['found']}")
    return [
        Figure(
            name=f"{name}{ending}",
            unit=unit,
            ours=median(one[key]),
            theirs=median(two[key]),
            size=EVENTS,
            floor=floor,
        )
        for ending, unit, key in (("", "s", "seconds"), ("-cores", "s of a core", "core_seconds"))
    ]


def main() -> None:
    words = sys.argv[1:]
    chosen = [name for name in ROWS if not words or any(word in name for word in words)]
    if not chosen:
        raise SystemExit(f"no row is named so, there are: {', '.join(ROWS)}")
    for events in (WARM_EVENTS, EVENTS):
        recorded(events, ACLS)
    measured: dict[str, dict[str, Any]] = {}
    figures: list[Figure] = []
    for name in chosen:
        case, other, _ = ROWS[name]
        for step in (NEEDS.get(case), other, case):
            if step is not None and step not in measured:
                measured[step] = theirs(EVENTS, ACLS) if step == DUCKDB else ours(step, EVENTS, ACLS)
                progress(f"{step}: {json.dumps(measured[step])}")
        found = compared(name, measured)
        emit(found)
        for each in found:
            progress(each.sentence())
        figures += found
    missed = [each.name for each in figures if not each.holds]
    progress(f"{len(figures)} figures, {len(missed)} below their floor: {', '.join(missed) or 'none'}")


if __name__ == "__main__":
    main()
