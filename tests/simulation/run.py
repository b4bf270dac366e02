"""Many worlds, one after the other, until so many lives have ended in a crash."""

from collections import Counter

from tests.simulation.world import World

LIVES_PER_WORLD = 60
"""Then a world is old enough: it has rolled, taken snapshots and deleted many times."""


def simulate(seed: int, points: int) -> Counter[str]:
    """Crash so often; return what was seen. Raises `ViolationError`, which names the seed of its world."""
    seen: Counter[str] = Counter()
    number = crashes = 0
    while crashes < points:
        world = World(f"{seed}/{number}")
        number += 1
        goes_on = True
        while goes_on and world.lives < LIVES_PER_WORLD and crashes + world.lives < points:
            goes_on = world.live()
        crashes += world.lives
        seen += world.seen
    seen["crash points"] = crashes
    seen["worlds"] = number
    return seen
