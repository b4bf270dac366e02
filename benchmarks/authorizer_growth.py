"""How both authorizers grow: from a thousand ACLs to a million, mixed as in `authorize-zipf-100k`.

    python -m benchmarks.authorizer_growth

For each size: loading a snapshot (a fresh JVM's first), memory (our growth of resident memory, their heap
after collection), one cold decision, adding and removing one ACL. Writes the curves and their data into
docs/assets, from where docs/explanation/performance.md shows them; a quick run writes nothing.
"""

import json
import random
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.authorizing import changes, loads
from benchmarks.authorizing.drawing import Panel, Points, drawing
from benchmarks.authorizing.sides import Ours, Theirs
from benchmarks.figures import QUICK, progress, rounded
from testkit.jars import KAFKA_ORACLE

SIZES: Final = [1_000, 10_000] if QUICK else [1_000, 10_000, 100_000, 1_000_000]
QUESTIONS: Final = 2_000
ASKING_ROUNDS: Final = 5
THEIR_CHANGE_MS: Final = 1_000
ASSETS: Final = Path(__file__).parents[1] / "docs" / "assets"

TITLES: Final = {
    "load_ms": "load a snapshot, ms",
    "memory_mb": "memory, MB",
    "decision_ns": "one cold decision, ns",
    "add_ns": "add one ACL, ns",
    "remove_ns": "remove one ACL, ns",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One side at one size."""

    load_ms: float
    memory_mb: float
    decision_ns: float
    add_ns: float
    remove_ns: float


Found = dict[str, dict[int, Measured]]
"""What was measured, by side and size."""


def ours(load: loads.Load) -> Measured:
    load_ns = changes.our_load(load)
    side = Ours(load)
    asked = [side.cold()[0] for _ in range(ASKING_ROUNDS)]
    adds, removes = changes.our_changes(side, changes.fresh_acls(load))
    return Measured(
        load_ms=rounded(load_ns / 1e6),
        memory_mb=rounded(our_memory(load) / 1e6),
        decision_ns=rounded(median(asked) / len(load.questions)),
        add_ns=rounded(median(adds) / changes.CHANGES),
        remove_ns=rounded(median(removes) / changes.CHANGES),
    )


def our_memory(load: loads.Load) -> int:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in load.lines())
        file.flush()
        return changes.weigh(Path(file.name))


def theirs(load: loads.Load) -> Measured:
    with Theirs(load.size) as side:
        before, loaded, after = side.ask("heap", *load.lines(), "load\t1\t-1", "heap")
        side.ask_about(load, 0)
        asked = [side.round()[0] for _ in range(ASKING_ROUNDS)]
        fresh = loads.kept_lines(enumerate(changes.fresh_acls(load), load.size))
        [reply] = side.ask(*fresh, f"change\t{changes.CHANGE_ROUNDS}\t{THEIR_CHANGE_MS}")
    count, *changed = [int(field) for field in reply.split("\t")]
    return Measured(
        load_ms=rounded(int(loaded.split("\t")[1]) / 1e6),
        memory_mb=rounded((int(after) - int(before)) / 1e6),
        decision_ns=rounded(median(asked) / len(load.questions)),
        add_ns=rounded(median(changed[::2]) / count),
        remove_ns=rounded(median(changed[1::2]) / count),
    )


def measure(found: Found, size: int) -> None:
    """Add what both sides show at a size."""
    whole = loads.zipf(random.Random(size), size)
    load = loads.Load(whole.name, whole.bindings, whole.questions[:QUESTIONS], whole.size)
    for side, run in (("kustos", ours), ("Kafka", theirs)):
        found[side][size] = run(load)
        progress(f"{size} ACLs, {side}: {asdict(found[side][size])}")


def panels(found: Found) -> list[Panel]:
    def curve(side: str, name: str) -> Points:
        points = [(float(size), asdict(measured)[name]) for size, measured in found[side].items()]
        # a thousand ACLs weigh less than a collector leaves behind by chance
        return [(size, value) for size, value in points if value > 0]

    return [Panel(title, {side: curve(side, name) for side in found}) for name, title in TITLES.items()]


def write(found: Found) -> None:
    """Write curves and data; a run that is cut short has written what it has."""
    data = {side: {size: asdict(m) for size, m in by_size.items()} for side, by_size in found.items()}
    version = ".".join(str(part) for part in sys.version_info[:2])
    below = f"ACLs; CPython {version}, Kafka {KAFKA_ORACLE.version}"
    (ASSETS / "authorizer-growth.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    (ASSETS / "authorizer-growth.svg").write_text(drawing(panels(found), below), encoding="utf-8")


def main() -> None:
    found: Found = {"kustos": {}, "Kafka": {}}
    for size in SIZES:
        measure(found, size)
        if not QUICK:
            write(found)


if __name__ == "__main__":
    main()
