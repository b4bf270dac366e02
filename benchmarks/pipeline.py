"""The pipeline's replay: 20 million recorded events and 100,000 ACLs, beside DuckDB on the same files.

- replay-20m: the report of what flips, from the raw events. Theirs: DuckDB makes the questions distinct and
  sums the flips, and between decides the same Python index, in one process
- replay-20m-examples: the same with the id of an event for each flip
- replay-20m-rules: as with `--rules`, also decisions that stay but follow from another rule; DuckDB and the
  index compare the rules, too
- replay-20m-rows: replay-20m over rows of Spark, as a frame of one's own is replayed
- replay-rollup-20m: the same report from the daily roll-up, beside DuckDB's time on the raw events
- rollup-build-20m: what building the roll-up costs, beside what it cost before on two idle cores: a floor in
  seconds is for that machine
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
from benchmarks.replaying.theirs import RULES

EVENTS: Final = 200_000 if QUICK else 20_000_000
ACLS: Final = 10_000 if QUICK else 100_000
ROUNDS: Final = 2 if QUICK else 3
MEMORY: Final = "4g"

DUCKDB: Final = "duckdb"
DUCKDB_RULES: Final = "duckdb-rules"
BEFORE: Final = "rollup-build-before"
BUILD_BEFORE: Final[dict[str, Any]] = {"seconds": [31.9], "core_seconds": [55.0], "found": {}}
"""What building the roll-up of 20 million events took on two idle cores."""

ROWS: Final[dict[str, tuple[str, str, float | None, float | None]]] = {
    "replay-20m": ("replay-raw", DUCKDB, 0.75, 0.6),
    "replay-20m-examples": ("replay-raw-examples", DUCKDB, None, None),
    "replay-20m-rules": ("replay-raw-rules", DUCKDB_RULES, 0.3, None),
    "replay-20m-rows": ("replay-rows", DUCKDB, None, None),
    "rollup-build-20m": ("rollup-build", BEFORE, 1.0, None),
    "replay-rollup-20m": ("replay-rollup", DUCKDB, 1.28, 1.0),
    "verdict-per-event-20m": ("verdicts", "bare-copy", 0.25, 0.25),
}
"""Our case, theirs, the floor by the clock and by processor time."""

NEEDS: Final = {"replay-rollup": "rollup-build"}
"""What another case must have written."""


def ours(case: str, events: int, acls: int, *more: object, rounds: int = ROUNDS) -> dict[str, Any]:
    """Run one case of our side; `more` as its program has it, the memory of the driver first."""
    return _run("benchmarks.replaying.ours", case, events, acls, rounds, *(more or [MEMORY]))


def theirs(events: int, acls: int, *more: object, rounds: int = ROUNDS) -> dict[str, Any]:
    """Run DuckDB and the index."""
    return _run("benchmarks.replaying.theirs", events, acls, rounds, *more)


def _measured(step: str) -> dict[str, Any]:
    if step == DUCKDB:
        return theirs(EVENTS, ACLS)
    return theirs(EVENTS, ACLS, 1, RULES) if step == DUCKDB_RULES else ours(step, EVENTS, ACLS)


def _run(module: str, *arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"`{' '.join(command[1:])}` failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compared(name: str, measured: dict[str, dict[str, Any]]) -> list[Figure]:
    """Return the figures of a row; raise `SystemExit` unless both sides found the same."""
    case, other, floor, cores_floor = ROWS[name]
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
            floor=least,
        )
        for ending, unit, key, least in (
            ("", "s", "seconds", floor),
            ("-cores", "s of a core", "core_seconds", cores_floor),
        )
    ]


def main() -> None:
    words = sys.argv[1:]
    chosen = [name for name in ROWS if not words or any(word in name for word in words)]
    if not chosen:
        raise SystemExit(f"no row is named so, there are: {', '.join(ROWS)}")
    for events in (WARM_EVENTS, EVENTS):
        recorded(events, ACLS)
    measured: dict[str, dict[str, Any]] = {BEFORE: BUILD_BEFORE}
    figures: list[Figure] = []
    for name in chosen:
        case, other, *_ = ROWS[name]
        for step in (NEEDS.get(case), other, case):
            if step is not None and step not in measured:
                measured[step] = _measured(step)
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
