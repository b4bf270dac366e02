"""Least privilege of a month: 1,000 principals, 1.5 million distinct accesses, from the roll-up to the ACLs.

    .venv/bin/python -m benchmarks.pipeline_privilege            # the figure, then the trade-off
    .venv/bin/python -m benchmarks.pipeline_privilege figure
    .venv/bin/python -m benchmarks.pipeline_privilege tradeoff   # draws docs/assets/least-privilege.svg

The time is that of a running session: reading the roll-up from Parquet, choosing, and bringing the ACLs to
the driver. The second run counts, the first is told too. `theirs` is the limit of 60 seconds.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.figures import QUICK, Figure, emit, progress
from benchmarks.privilege import chart, estate, tradeoff
from kustos.pipeline.privilege.recommending import recommend, recommended_acls
from kustos.pipeline.session import local_session

LIMIT_S: Final = 60.0
SIZE: Final = estate.Estate(100, 50_000) if QUICK else estate.Estate(1_000, 1_500_000)
TRADEOFF: Final = estate.Estate(200, 120_000)
TRADEOFF_EVERY: Final = 20 if QUICK else 2
RUNS: Final = 2
ASSETS: Final = Path(__file__).parent.parent / "docs" / "assets"


def figure() -> Figure:
    """Measure the whole answer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        accesses, rows = estate.write(SIZE, folder)
        progress(f"{SIZE.principals} principals, {accesses} distinct accesses, {rows} rows of the roll-up")
        seconds: list[float] = []
        with local_session("least privilege") as spark:
            for _ in range(RUNS):
                start = time.perf_counter()
                rollup = spark.read.parquet(str(folder / "rollup.parquet"))
                names = spark.read.parquet(str(folder / "names.parquet"))
                found = recommended_acls(recommend(rollup, names=names))
                seconds.append(time.perf_counter() - start)
                prefixes = sum(acl.binding.pattern.pattern_type.name == "PREFIXED" for acl in found)
                progress(f"{seconds[-1]:.1f} s: {len(found)} ACLs, {prefixes} of them prefixes")
    return Figure(
        name="least-privilege-1k", unit="s", ours=seconds[-1], theirs=LIMIT_S, size=accesses, floor=1.0
    )


def draw() -> None:
    """Draw the trade-off and write its data."""
    found = tradeoff.points(TRADEOFF, TRADEOFF_EVERY)
    for point in found:
        progress(
            f"weight {point.weight:g}: {point.acls} ACLs, {point.excess:.3f} names in vain for each used, "
            f"{point.foresight:.0%} of later new accesses allowed"
        )
    if QUICK:
        return
    data = [
        {"weight": str(p.weight), "acls": p.acls, "excess": p.excess, "foresight": p.foresight} for p in found
    ]
    (ASSETS / "least-privilege.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    below = "each point is a value of over_grant_weight; learned from 20 days, tried on the next 10"
    (ASSETS / "least-privilege.svg").write_text(chart.drawing(found, below), encoding="utf-8")


def main() -> None:
    wanted = sys.argv[1:] or ["figure", "tradeoff"]
    figures = [figure()] if "figure" in wanted else []
    if "tradeoff" in wanted:
        draw()
    for each in figures:
        progress(each.sentence())
    emit(figures)


if __name__ == "__main__":
    main()
