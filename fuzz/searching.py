"""Searches as child processes, and the table of long ones: `python -m fuzz.searching --inputs n [--seed s]`.

Without `--target` everything that anybody can send is searched, each target by its share of the inputs.
A row of `soak/fuzz.md` is added for each.
"""

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fuzz.targets import SEARCHED

ROOT: Final = Path(__file__).resolve().parent.parent
TABLE: Final = ROOT / "soak" / "fuzz.md"

_DONE: Final = re.compile(r"^Done (\d+) runs in (\d+) second", re.MULTILINE)
_BEGUN: Final = re.compile(r"^#(\d+)\s+INITED", re.MULTILINE)
_EDGES: Final = re.compile(r"cov: (\d+) ft: (\d+)")
_SEED: Final = re.compile(r"INFO: Seed: (\d+)")


@dataclass(frozen=True, slots=True)
class Search:
    """A search that has ended; `find` has the end of its output if it found something, else it is empty.

    `inputs` count those that it began with, too: seeds, earlier finds, and what other searches have kept.
    """

    target: str
    commit: str
    seed: int
    begun: int
    inputs: int
    seconds: int
    edges: int
    features: int
    find: str

    @property
    def row(self) -> str:
        """The row of the table."""
        rate = round(self.inputs / max(1, self.seconds))
        told = "FOUND" if self.find else "nothing found"
        day = datetime.now(UTC).date()
        numbers = (self.seed, self.inputs, rate, self.seconds, self.edges, self.features)
        return f"| {day} | {self.commit} | {self.target} | {' | '.join(map(str, numbers))} | {told} |\n"


def _commit() -> str:
    """Return the commit of the sources; with `-dirty` where they have changed since."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    at = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    changed = ["git", "diff", "--quiet", "HEAD", "--", "src", "fuzz", "testkit"]
    return at + ("-dirty" if subprocess.run(changed, cwd=ROOT, check=False).returncode else "")


def search(target: str, *options: str) -> Search:
    """Search with libFuzzer's options, such as `-runs=1000` and `-seed=1`; return how it ended."""
    # before the search: it imports what is there now
    commit = _commit()
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", target, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    counted, seed, begun = _DONE.search(said), _SEED.search(said), _BEGUN.search(said)
    edges = _EDGES.findall(said)[-1:] or [("0", "0")]
    find = "" if done.returncode == 0 and counted is not None else said[-4_000:]
    inputs, seconds = (0, 0) if counted is None else map(int, counted.groups())
    return Search(
        target,
        commit,
        0 if seed is None else int(seed[1]),
        0 if begun is None else int(begun[1]),
        inputs,
        seconds,
        int(edges[0][0]),
        int(edges[0][1]),
        find,
    )


def main() -> int:
    """Search, add the rows, and return 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, required=True, help="how many in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", choices=SEARCHED, action="append", help="one, instead of all")
    given = parser.parse_args()
    targets = given.target or SEARCHED
    ended = 0
    for target in targets:
        found = search(target, f"-runs={-(-given.inputs // len(targets))}", f"-seed={given.seed}")
        with TABLE.open("a") as table:
            table.write(found.row)
        sys.stdout.write(found.row + found.find)
        sys.stdout.flush()
        ended |= bool(found.find)
    return ended


if __name__ == "__main__":
    sys.exit(main())
