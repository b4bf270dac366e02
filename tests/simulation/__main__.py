"""`make simulation`: crash so many times from one seed, and write down what was seen."""

import argparse
import secrets
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import structlog

from tests.simulation.run import simulate
from tests.simulation.world import ViolationError

RESULTS = Path(__file__).parents[2] / "soak" / "simulations.md"
CRITICAL = 50
"""What the store logs of its thousands of recoveries is not looked at."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9))
    parser.add_argument("--points", type=int, default=10_000)
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(CRITICAL))
    print(f"seed {arguments.seed}, {arguments.points} crash points", flush=True)
    began = time.monotonic()
    try:
        seen = simulate(arguments.seed, arguments.points)
    except ViolationError as violation:
        print(f"VIOLATION: {violation}", file=sys.stderr)
        return 1
    seconds = time.monotonic() - began
    for what, count in sorted(seen.items()):
        print(f"{count:>8}  {what}")
    commit = subprocess.run(
        ("git", "rev-parse", "--short=9", "HEAD"), capture_output=True, text=True, check=True
    ).stdout.strip()
    row = (
        datetime.now(UTC).date(), commit, arguments.seed, seen["crash points"], seen["worlds"],
        seen["acknowledged"], seen["snapshot"], seen["fsync"], seen["full"], f"{seconds:.0f}", "held",
    )  # fmt: skip
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(f"| {' | '.join(map(str, row))} |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
