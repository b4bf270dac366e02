"""Which faults happen when: the same for the same seed, whatever they meet.

A lane is a sequence of faults of which each begins when the one before it is healed; lanes run side by side.
So at most one broker is disturbed at a time, and a partition with three replicas keeps two in sync.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    """What is done; the value is its name in a report."""

    KILL_BROKER = "broker killed, and started again"
    PAUSE_BROKER = "broker paused"
    KILL_WORKER = "worker killed"
    PAUSE_WORKER = "worker paused"
    KILL_NODE = "node killed, and started again"
    CUT = "connections cut"
    CUT_AMID_ANSWER = "connection closed amid an answer"
    SLOW = "connections slowed"


class Side(Enum):
    """Which connections: those of the clients, or those of kustos to brokers."""

    CLIENTS = "clients"
    UPSTREAM = "upstream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault, `wait_s` after the lane's last one was healed; `seed` is for what it draws itself."""

    kind: Kind
    wait_s: float
    length_s: float
    side: Side
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """Kinds with their weights, and the bounds of waits and lengths in seconds."""

    name: str
    weights: dict[Kind, int]
    waits_s: tuple[float, float]
    lengths_s: tuple[float, float]


LANES: Final = (
    Lane(
        name="brokers",
        weights={Kind.KILL_BROKER: 2, Kind.PAUSE_BROKER: 3},
        waits_s=(3, 15),
        lengths_s=(0.5, 8),  # a broker is fenced after 4 s
    ),
    Lane(
        name="workers",
        weights={Kind.KILL_WORKER: 2, Kind.PAUSE_WORKER: 3},
        waits_s=(4, 15),
        lengths_s=(0.2, 4),  # far below what makes a worker count as hung
    ),
    Lane(
        name="connections",
        weights={Kind.CUT: 4, Kind.CUT_AMID_ANSWER: 4, Kind.SLOW: 2},
        waits_s=(0.5, 4),
        lengths_s=(1, 5),
    ),
)


def faults(seed: int, number: int, lane: Lane) -> Iterator[Fault]:
    """Yield the faults of a lane in round `number`, without end."""
    chance = random.Random(f"{seed}/{number}/{lane.name}")
    kinds, weights = list(lane.weights), list(lane.weights.values())
    while True:
        [kind] = chance.choices(kinds, weights)
        yield Fault(
            kind=kind,
            wait_s=chance.uniform(*lane.waits_s),
            length_s=chance.uniform(*lane.lengths_s),
            side=chance.choice(list(Side)),
            seed=chance.getrandbits(32),
        )
