"""Least privilege of a month: 1,000 principals, 1.5 million distinct accesses, from the roll-up to the ACLs.

    .venv/bin/python -m benchmarks.pipeline_privilege            # the figures, then the trade-off
    .venv/bin/python -m benchmarks.pipeline_privilege figure
    .venv/bin/python -m benchmarks.pipeline_privilege tradeoff   # draws docs/assets/least-privilege.svg

The time is that of a running session: reading the roll-up from Parquet, choosing, and bringing the ACLs to
the driver; free (`least-privilege-1k`), and with nothing that today's ACLs do not grant
(`least-privilege-within-1k`). The second run counts, the first is told too. `theirs` is the limit of 60
seconds.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import QUICK, Figure, emit, progress
from benchmarks.privilege import chart, estate, tradeoff
from benchmarks.replaying.processor import tree_seconds
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.privilege.recommendations import recommend, recommended_acls
from kustos.pipeline.session import local_session

LIMIT_S: Final = 60.0
SIZE: Final = estate.Estate(100, 50_000) if QUICK else estate.Estate(1_000, 1_500_000)
TRADEOFF: Final = estate.Estate(200, 120_000)
TRADEOFF_EVERY: Final = 20 if QUICK else 2
RUNS: Final = 2
ASSETS: Final = Path(__file__).parent.parent / "docs" / "assets"


def figures() -> list[Figure]:
    """Measure the whole answer, free and within the ACLs of today."""
    with tempfile.TemporaryDirectory() as name, local_session("least privilege") as spark:
        folder = Path(name)
        accesses, rows = estate.write(SIZE, folder)
        today = AclsInForce.of("today", SIZE.todays_acls())
        progress(
            f"{SIZE.principals} principals, {accesses} distinct accesses, {rows} rows of the roll-up, "
            f"{len(today.bindings)} ACLs of today"
        )
        return [
            Figure(name=called, unit="s", ours=seconds, theirs=LIMIT_S, size=accesses, floor=1.0)
            for called, seconds in (
                ("least-privilege-1k", _seconds(spark, folder, None)),
                ("least-privilege-within-1k", _seconds(spark, folder, today)),
            )
        ]


def _seconds(spark: Any, folder: Path, today: AclsInForce | None) -> float:
    took = 0.0
    for _ in range(RUNS):
        start, before = time.perf_counter(), tree_seconds()
        rollup = spark.read.parquet(str(folder / "rollup.parquet"))
        names = spark.read.parquet(str(folder / "names.parquet"))
        found = recommended_acls(recommend(rollup, names=names, within=today))
        took, used = time.perf_counter() - start, tree_seconds() - before
        prefixes = sum(acl.binding.pattern.pattern_type.name == "PREFIXED" for acl in found)
        progress(f"{took:.1f} s ({used:.1f} s of processors): {len(found)} ACLs, {prefixes} of them prefixes")
    return took


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
    measured = figures() if "figure" in wanted else []
    if "tradeoff" in wanted:
        draw()
    for each in measured:
        progress(each.sentence())
    emit(measured)


if __name__ == "__main__":
    main()
