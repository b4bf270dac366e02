"""Runs comparisons and property tests for a given time and records the result: `make soak`.

First it compares decisions in random worlds with Kafka's own authorizer. Then it runs the property tests with
new seeds, round after round, until the time is over. `soak/results.md` lists the seeds, which repeat the run.
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

Made by `make soak`: one row for each run, the newest last. *Decisions*: equal in kustos, Kafka's own
`StandardAuthorizer` and the specification in `testkit/differential/specification.py`. *Examples*: drawn by
the property tests in `tests/property`. Round *n* uses the run's seed plus *n*.

| date | commit | seed | decisions | worlds | rounds | examples | minutes | result |
|---|---|--:|--:|--:|--:|--:|--:|---|
"""


def pytest(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[str, bool]:
    """Run pytest; return its output and whether it passed, and print the output of a failed run."""
    command = [sys.executable, "-m", "pytest", "-q", "--timeout=0", *arguments]
    done = subprocess.run(  # noqa: S603 (the arguments are below)
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
    """Return the tested commit; a star marks uncommitted changes."""
    described = ["git", "describe", "--always", "--abbrev=9", "--exclude=*", "--dirty=*"]
    return subprocess.run(  # noqa: S603 (constant)
        described, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> int:
    """Run, append a row, and return 0 if everything passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=CHECKS)
    parser.add_argument("--minutes", type=float, required=True, help="start no round after this time")
    parser.add_argument("--seed", type=int, default=0, help="default: a new seed")
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
