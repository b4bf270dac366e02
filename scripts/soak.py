"""Compares and tests for as long as it is given, and writes down what was done: `make soak`.

First the decisions of random worlds beside Kafka's own authorizer, then the properties, round after round
with new seeds until the minutes are over. The seeds stand in `soak/results.md`: they repeat the run.
"""

import argparse
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = ROOT / "soak" / "results.md"
COMPARISON: Final = "tests/differential/test_standard_authorizer.py"
DECISIONS: Final = re.compile(r"^\.?KUSTOS_SEED=\d+: (\d+) decisions in (\d+) worlds", re.MULTILINE)
EXAMPLES: Final = re.compile(r"^    - (\d+) passing", re.MULTILINE)
STATISTICS: Final = re.compile(r"^=+ Hypothesis Statistics =+$", re.MULTILINE)
CHECKS: Final = 10_000_000
HEADER: Final = """\
# Soak runs

Made by `make soak`, one row a run; the newest is the last. *Decisions*: asked of kustos, of Kafka's own
`StandardAuthorizer` and of the specification in `testkit/differential/specification.py`, and equal.
*Examples*: of the properties in `tests/property`. Round *n* of the properties has the seed of the run plus
*n*.

| date | commit | seed | decisions | worlds | rounds | examples | minutes | result |
|---|---|--:|--:|--:|--:|--:|--:|---|
"""


def pytest(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[str, bool]:
    """Return what a run of pytest said and whether it passed; what failed is shown at once."""
    command = [sys.executable, "-m", "pytest", "-q", "--timeout=0", *arguments]
    done = subprocess.run(  # noqa: S603 (its arguments are written below)
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.stdout.write(STATISTICS.split(done.stdout)[0])
    return done.stdout, done.returncode == 0


def commit() -> str:
    """Return the commit that is tested; a star says that files were changed since."""
    described = ["git", "describe", "--always", "--abbrev=9", "--exclude=*", "--dirty=*"]
    return subprocess.run(  # noqa: S603 (constant)
        described, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> int:
    """Run, add a row, and return 0 if everything held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=CHECKS)
    parser.add_argument("--minutes", type=float, required=True, help="no round begins after these")
    parser.add_argument("--seed", type=int, default=0, help="default: a new one")
    options = parser.parse_args()
    seed = options.seed or secrets.randbelow(10**9) + 1
    tested = commit()
    sys.stdout.write(f"soak: seed {seed}, commit {tested}\n")
    begun_s = time.monotonic()
    said, passed = pytest(
        ["-s", COMPARISON], {"KUSTOS_SEED": str(seed), "KUSTOS_CHECKS": str(options.checks)}
    )
    found = DECISIONS.search(said)
    decisions, worlds = (int(found[1]), int(found[2])) if found else (0, 0)
    rounds = examples = 0
    while passed and time.monotonic() - begun_s < options.minutes * 60:
        rounds += 1
        said, passed = pytest(
            [
                "tests/property",
                "--hypothesis-profile=soak",
                "--hypothesis-show-statistics",
                f"--hypothesis-seed={seed + rounds}",
            ],
            {},
        )
        examples += sum(int(count) for count in EXAMPLES.findall(said))
    minutes = (time.monotonic() - begun_s) / 60
    result = "held" if passed else f"FAILED in {'the comparison' if rounds == 0 else f'round {rounds}'}"
    row = (
        f"| {time.strftime('%Y-%m-%d', time.gmtime())} | {tested} | {seed} | {decisions} | {worlds} "
        f"| {rounds} | {examples} | {minutes:.1f} | {result} |\n"
    )
    RESULTS.parent.mkdir(exist_ok=True)
    before = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else HEADER
    RESULTS.write_text(before + row, encoding="utf-8")
    sys.stdout.write(HEADER.splitlines()[-2] + "\n" + row)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
