"""How a replay grows: from 2 to 200 million events, and from a thousand ACLs to a million.

    python -m benchmarks.pipeline_growth

200 million events are the files of 20 million ten times over; the roll-up of ten weeks likewise. Beside the
seconds stands the memory of Spark's processes, and what 20 million events as rows of Spark spill
where the heap is one gigabyte. Writes the curves and their data into docs/assets, from where
docs/explanation/pipeline-scale.md shows them; a quick run writes nothing.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.authorizing.drawing import Panel, Points, drawing
from benchmarks.figures import QUICK, progress, rounded
from benchmarks.pipeline import ACLS, EVENTS, MEMORY, ours, theirs
from benchmarks.replaying.events import WARM_EVENTS, recorded

SMALL: Final = EVENTS // 10
TIMES: Final = 10
SMALL_MEMORY: Final = "1g"
CANDIDATES: Final = [1_000, 10_000] if QUICK else [1_000, 10_000, 100_000, 1_000_000]
ROUNDS: Final = 1
ASSETS: Final = Path(__file__).parents[1] / "docs" / "assets"
NAME: Final = "pipeline-growth"

RAW, ROLLED, DUCKDB = "Spark, raw events", "Spark, roll-up", "DuckDB, raw events"
COLOURS: Final = {RAW: "#0b6e99", ROLLED: "#5a9e3a", DUCKDB: "#c2571a"}
BY_EVENTS: Final = "replay of so many events, s"
BY_ACLS: Final = "the same questions, so many ACLs, s"
MEMORY_BY_EVENTS: Final = "JVM heap and Python workers, MB"

Found = dict[str, dict[str, dict[int, dict[str, Any]]]]
"""What was measured, by panel, side and size."""

Step = tuple[str, str, int, dict[str, Any]]


def steps() -> Iterator[Step]:
    """Measure one after the other, the cheap ones first."""
    for size, events, times in ((SMALL, SMALL, 1), (EVENTS, EVENTS, 1), (EVENTS * TIMES, EVENTS, TIMES)):
        if times == 1:
            recorded(events, ACLS)
            yield BY_EVENTS, "build of the roll-up", size, ours("rollup-build", events, ACLS, rounds=ROUNDS)
        yield BY_EVENTS, ROLLED, size, ours("replay-rollup", events, ACLS, MEMORY, times, rounds=ROUNDS)
        yield BY_EVENTS, DUCKDB, size, theirs(events, ACLS, times, rounds=ROUNDS)
        yield BY_EVENTS, RAW, size, ours("replay-raw", events, ACLS, MEMORY, times, rounds=ROUNDS)
    rows = ours("replay-rows", EVENTS, ACLS, SMALL_MEMORY, rounds=ROUNDS)
    yield "rows of Spark", SMALL_MEMORY, EVENTS, rows
    for count in CANDIDATES:
        asked = ours("decide-distinct", EVENTS, ACLS, MEMORY, 1, count, rounds=ROUNDS)
        yield BY_ACLS, ROLLED, count, asked


def panels(found: Found) -> list[Panel]:
    def curve(panel: str, side: str) -> Points:
        return [(float(size), said["s"]) for size, said in found.get(panel, {}).get(side, {}).items()]

    def memory(side: str) -> Points:
        sizes = found.get(BY_EVENTS, {}).get(side, {})
        return [(float(size), said["memory_mb"]) for size, said in sizes.items()]

    made = [
        Panel(BY_EVENTS, {side: curve(BY_EVENTS, side) for side in COLOURS}),
        Panel(MEMORY_BY_EVENTS, {side: memory(side) for side in COLOURS}),
        Panel(BY_ACLS, {ROLLED: curve(BY_ACLS, ROLLED)}),
    ]
    drawn = [
        Panel(each.title, {side: points for side, points in each.curves.items() if points}) for each in made
    ]
    return [each for each in drawn if each.curves]


def told(measured: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a measurement: megabytes and seconds of four digits."""
    memory = measured.get("jvm_heap", 0) + measured["python_resident"]
    return {
        "s": rounded(median(measured["seconds"])),
        "memory_mb": rounded(memory / 1e6),
        "jvm_heap_mb": rounded(measured.get("jvm_heap", 0) / 1e6),
        "python_mb": rounded(measured["python_resident"] / 1e6),
        "spilled_mb": rounded(measured.get("disk_spilled", 0) / 1e6),
    }


def main() -> None:
    found: Found = {}
    for events in {WARM_EVENTS, EVENTS}:
        recorded(events, ACLS)
    for panel, side, size, measured in steps():
        found.setdefault(panel, {}).setdefault(side, {})[size] = told(measured)
        progress(f"{panel}: {side}, {size:,}: {told(measured)}")
        if not QUICK:
            (ASSETS / f"{NAME}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            svg = drawing(panels(found), "events, or ACLs; two cores", COLOURS)
            (ASSETS / f"{NAME}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
