"""Decisions of both sides, in alternating rounds, with their answers compared."""

import time
from collections.abc import Mapping
from typing import Final

from benchmarks.authorizing.loads import Load
from benchmarks.authorizing.sides import Ours, Theirs, Timed
from benchmarks.figures import Figure, median_per_item, progress

ROUNDS: Final = 11
ROUNDS_MIN: Final = 3
ROUNDS_SECONDS_MAX: Final = 30
"""Where the other side takes seconds for a round there are fewer."""

Floors = Mapping[str, float]
"""The ratio to reach, by what is added to the load's name: nothing, `-spi` or `-warm`."""

_WAYS: Final = {"": Ours.cold, "-spi": Ours.full_call, "-warm": Ours.warm}


def compare(load: Load, floors: Floors) -> list[Figure]:
    """Return a figure for each way that has a floor."""
    progress(f"{load.name}: {load.size} ACLs, {len(load.questions)} questions")
    ours = Ours(load)
    is_by_type = load.questions[0].name is None
    ways = {"": Ours.by_type} if is_by_type else {way: _WAYS[way] for way in floors}
    mine: dict[str, list[int]] = {way: [] for way in ways}
    their: list[int] = []
    answers: set[str] = set()
    with Theirs(load.size) as theirs:
        theirs.keep(load)
        until = time.monotonic() + ROUNDS_SECONDS_MAX
        while len(their) < ROUNDS_MIN or (len(their) < ROUNDS and time.monotonic() < until):
            for way, ask in ways.items():
                _note(ask(ours), mine[way], answers)
            _note(theirs.round(), their, answers)
    if len(answers) != 1:
        raise SystemExit(f"{load.name}: the two authorizers answer differently")
    items = len(load.questions)
    figures = [
        Figure(
            name=load.name + way,
            unit="ns/decision",
            ours=median_per_item(durations, items),
            theirs=median_per_item(their, items),
            size=load.size,
            floor=floors[way],
        )
        for way, durations in mine.items()
    ]
    for figure in figures:
        progress(figure.sentence())
    [letters] = answers
    progress(f"  {letters.count('A') / len(letters):.0%} allowed")
    return figures


def _note(timed: Timed, durations: list[int], answers: set[str]) -> None:
    durations.append(timed[0])
    answers.add(timed[1])
