"""Scores the detectors on the months: `python -m testkit.months.score [--held-out] [--write FOLDER]`.

The detectors see only the roll-up, never the labels and parameters of the months.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from testkit.months import baseline, sets
from testkit.months.frames import rollup_table
from testkit.months.month import make_month
from testkit.months.score_values import Found, Tally, matches, tally
from testkit.months.values import Month, Ranges

MONTHS_AT_ONCE = 2
"""For so few rows planning takes longer than the work, and each thread plans its own."""
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",  # planning again after each stage costs more than it saves
    "spark.sql.codegen.wholeStage": "false",  # so does compiling
}


def search(spark: Any, month: Month, folder: Path, seed: int) -> list[tuple[Found, str]]:
    """Return the detectors' findings in a month, with their reasons."""
    import pyarrow.parquet

    from kustos.pipeline.anomalies import Window, find_anomalies, kept

    path = folder / f"{seed}.parquet"
    pyarrow.parquet.write_table(rollup_table(month), path, coerce_timestamps="us")
    start = month.start + timedelta(days=month.history_days)
    window = Window(start, start + timedelta(days=month.window_days))
    rollup = spark.read.parquet(str(path))
    rows = find_anomalies(spark, rollup=rollup, window=window, keep=kept).collect()
    return [
        (Found(row["kind"], row["principal"], (row["day"] - month.start).days), row["reason"]) for row in rows
    ]


def explain(month: Month, found: list[tuple[Found, str]]) -> None:
    """Print each miss and each false finding."""
    for label in month.labels:
        if not any(matches(label, one) for one, _ in found):
            print("missed", *label)
    for one, reason in found:
        if not any(matches(label, one) for label in month.labels):
            print("false ", *one, reason)


def run(seeds: tuple[int, ...], ranges: Ranges, *, is_explained: bool) -> tuple[Tally, Tally]:
    """Return the detectors' tally over these months, and the baseline's."""
    from kustos.pipeline.session import open_session

    ours, theirs = Tally(), Tally()
    with TemporaryDirectory() as folder, open_session("months", master="local[2]", settings=SMALL) as spark:

        def one(seed: int) -> tuple[Month, list[tuple[Found, str]]]:
            month = make_month(seed, ranges)
            return month, search(spark, month, Path(folder), seed)

        with ThreadPoolExecutor(MONTHS_AT_ONCE) as pool:
            for seed, (month, found) in zip(seeds, pool.map(one, seeds), strict=True):
                mine = tally(month.labels, [finding for finding, _ in found])
                ours.add(mine)
                theirs.add(tally(month.labels, baseline.findings(month)))
                figures = f"precision {mine.precision():.2f}, recall {mine.recall():.2f}"
                print(f"month {seed}: {len(month.labels)} labels, {figures}", flush=True)
                if is_explained:
                    explain(month, found)
    return ours, theirs


def main() -> None:
    """Print the detectors' table and the baseline's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--held-out", action="store_true", help="the months kept back, to be scored once")
    parser.add_argument("--explain", action="store_true", help="name each miss and each false finding")
    parser.add_argument("--seed", type=int, action="append", help="only this month (may be repeated)")
    chosen = parser.parse_args()
    seeds = sets.HELD_OUT_SEEDS if chosen.held_out else sets.DEVELOPMENT_SEEDS
    ranges = sets.HELD_OUT if chosen.held_out else sets.DEVELOPMENT
    if chosen.seed:
        seeds = tuple(chosen.seed)
    ours, theirs = run(seeds, ranges, is_explained=chosen.explain)
    print(f"\ndetectors\n\n{ours.table()}\n\nplain z-score on daily counts\n\n{theirs.table()}")


if __name__ == "__main__":
    main()
