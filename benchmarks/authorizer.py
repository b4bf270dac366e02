"""kustos against Kafka's Java StandardAuthorizer: the same ACLs, the same questions, one thread each.

`authorize-…` is the session call that the gateway makes, cold: sessions are open, but no question of a
round was asked of them before, so every answer comes from the index and none from a session's memory.
`…-spi` is the full call `StandardAuthorizer.authorize(context, [action])`, as cold; `…-warm` asks
sessions what they know. Theirs is the same call each time. Both answer every question and the answers
are compared. Figures are medians over alternating rounds, of processor time: the machine may be shared
(loads are timed by the wall).

    python -m benchmarks.authorizer [word ...]     rows whose names hold a word; without one, all

A row prints the floor that we set ourselves and whether it holds; a miss fails nothing.
"""

import random
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

from benchmarks.authorizing import changes, grid, loads
from benchmarks.authorizing.decisions import compare
from benchmarks.figures import Figure, emit, progress

SEED: Final = 20_26

LITERAL_FLOORS: Final = {"": 4.0, "-spi": 2.0, "-warm": 6.0}
PREFIXED_FLOORS: Final = {"": 3.0, "-spi": 1.5, "-warm": 8.0}
ZIPF_FLOORS: Final = {"": 30.0, "-spi": 15.0, "-warm": 120.0}
GRID_FLOOR: Final = 100.0
HARD_SHAPE_FLOOR: Final = 1.0
BY_TYPE_FLOOR: Final = 500.0
LOAD_FLOOR: Final = 1.5
MEMORY_FLOOR: Final = 1.0
CHANGE_FLOORS: Final = {"add-100k": 1.0, "remove-100k": 1.0}

LENGTHS: Final = [3, 16, 60, 240]
"""Distinct lengths of prefixes."""

Row = Callable[[], list[Figure]]


def rng() -> random.Random:
    return random.Random(SEED)


def rows() -> dict[str, Row]:
    """Return every row by name, in the order in which they run."""
    hard = {"": HARD_SHAPE_FLOOR}
    made: dict[str, Row] = {
        "authorize-literal-10k": lambda: compare(loads.literal(rng()), LITERAL_FLOORS),
        "authorize-prefixed-20k": lambda: compare(loads.prefixed(rng()), PREFIXED_FLOORS),
        "authorize-zipf-100k": lambda: compare(loads.zipf(rng()), ZIPF_FLOORS),
        "by-resource-type-zipf-100k": lambda: compare(
            loads.by_resource_type(loads.zipf(rng()), rng()), {"": BY_TYPE_FLOOR}
        ),
        "by-resource-type-dominated": lambda: compare(loads.dominated(rng()), {"": BY_TYPE_FLOOR}),
        "authorize-nested": lambda: compare(loads.nested(rng()), hard),
        "authorize-huge-principal": lambda: compare(loads.huge_principal(rng()), hard),
        "authorize-cidr-10k": lambda: compare(loads.cidr(rng()), hard),
        "add-100k remove-100k": lambda: changes.one_change(CHANGE_FLOORS),
        "memory-1m": lambda: changes.memory(MEMORY_FLOOR),
    }
    for distinct in LENGTHS:
        made[f"authorize-lengths-{distinct}"] = partial(_lengths, distinct)
    for name, size in changes.LOADED.items():
        made[name] = partial(changes.load_speed, name, size // loads.SHRINK, LOAD_FLOOR)
    for resources in grid.RESOURCES:
        for acls in grid.ACLS:
            for denied in grid.DENIED:
                name = f"authorize-grid-{resources}-{acls}-{denied}"
                made[name] = partial(_grid, resources, acls, denied)
    return made


def _lengths(distinct: int) -> list[Figure]:
    return compare(loads.lengths(rng(), distinct), {"": HARD_SHAPE_FLOOR})


def _grid(resources: int, acls: int, denied: int) -> list[Figure]:
    return compare(grid.grid(resources, acls, denied), {"": GRID_FLOOR})


def run(words: list[str]) -> list[Figure]:
    """Run the rows whose names hold one of the words, printing the figures of each."""
    chosen = {name: row for name, row in rows().items() if not words or any(word in name for word in words)}
    if not chosen:
        raise SystemExit(f"no row is named so, there are: {', '.join(rows())}")
    figures: list[Figure] = []
    for row in chosen.values():
        # at once: a run that is cut short has shown what it measured
        found = row()
        emit(found)
        figures += found
    return figures


def main() -> None:
    figures = run(sys.argv[1:])
    missed = [figure.name for figure in figures if not figure.holds]
    progress(f"{len(figures)} figures, {len(missed)} below their floor: {', '.join(missed) or 'none'}")


if __name__ == "__main__":
    main()
