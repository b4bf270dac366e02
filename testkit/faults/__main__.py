"""`python -m testkit.faults --minutes 30 --seed 5`: run, print the outcome, add a row to `soak/faults.md`."""

import argparse
import json
import secrets
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Final

from scripts.soak import commit
from testkit.faults.run import Outcome, Run
from testkit.faults.scene import FaultScene
from testkit.paths import ROOT

RESULTS: Final = ROOT / "soak" / "faults.md"
ROUNDS: Final = 5
HEADER: Final = """\
# Runs with faults

Made by `make faults`, one row for each run, the newest last. [Testing](../docs/explanation/testing.md#faults)
says what must hold. *Records* and *transactions* were acknowledged.
*MB* is the memory of all processes of the node, after the first round and after the last.

| date | commit | seed | minutes | requests | decided again | records | transactions | faults | MB | result |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|
"""


def row(outcome: Outcome, tested: str) -> str:
    """Return the row of a run."""
    figures, rests = outcome.figures, outcome.rests
    memory = f"{rests[0].memory_mb:.0f}, {rests[-1].memory_mb:.0f}" if rests else "-"
    result = "held" if not outcome.problems else f"FAILED: {outcome.problems[0][:100]}".replace("|", "/")
    cells = (
        time.strftime("%Y-%m-%d", time.gmtime()), tested, outcome.seed, f"{outcome.seconds / 60:.1f}",
        figures["requests of clients"], figures["requests forwarded and decided again"],
        figures["records acknowledged"], figures["transactions committed"], figures["faults"], memory, result,
    )  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |\n"


def main() -> int:
    """Run, and return 0 if everything held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seed", type=int, default=0, help="default: a new one")
    parser.add_argument("--keep", type=Path, help="a folder for all that the processes leave")
    parser.add_argument("--no-row", action="store_true", help="leave soak/faults.md as it is")
    options = parser.parse_args()
    seed = options.seed or secrets.randbelow(10**6) + 1
    tested = commit()
    print(f"faults: seed {seed}, commit {tested}", flush=True)
    with tempfile.TemporaryDirectory(prefix="kustos-faults-") as scratch:
        directory = options.keep or Path(scratch)
        directory.mkdir(exist_ok=True)
        with FaultScene(directory) as scene:
            run = Run(scene, seed, lambda text: print(text, flush=True))
            outcome = run.rounds(options.rounds, options.minutes * 60 / options.rounds)
        (directory / "samples.json").write_text(json.dumps([asdict(each) for each in outcome.samples]))
    for name, count in {**outcome.figures, **{k.value: v for k, v in outcome.faults.items()}}.items():
        print(f"  {name}: {count}")
    for detail, count in sorted(outcome.details.items()):
        print(f"    {detail}: {count}")
    for problem in outcome.problems:
        print(f"PROBLEM {problem}")
    line = row(outcome, tested)
    print(line)
    if not options.no_row:
        before = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else HEADER
        RESULTS.write_text(before + line, encoding="utf-8")
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
