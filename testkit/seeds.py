"""One seed for everything that the tests of a run draw at random; `KUSTOS_SEED` repeats a run."""

import os
import secrets
from collections.abc import Callable
from typing import Final, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")

VARIABLE: Final = "KUSTOS_SEED"
SEEDS: Final = 10**9

PASSED_OVER: Final = 20
"""Examples to draw and discard: hypothesis begins with the smallest one."""


def seed_of_run() -> int:
    """Return the seed of this run: `KUSTOS_SEED`, else a new one, which child processes inherit."""
    if not os.environ.get(VARIABLE):
        os.environ[VARIABLE] = str(secrets.randbelow(SEEDS) + 1)
    return int(os.environ[VARIABLE])


class Drawing:
    """Draws one example of a strategy, for a slow test where hypothesis would only try the smallest one."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, strategy: SearchStrategy[T]) -> T:
        """Return an example; the same for the same seed."""
        found: list[T] = []
        _collector(strategy, found.append, self._seed)()
        return found[-1]


def _collector(strategy: SearchStrategy[T], keep: Callable[[T], None], seed: int) -> Callable[[], None]:
    @hypothesis.seed(seed)
    @settings(
        max_examples=PASSED_OVER + 1,
        database=None,
        derandomize=False,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: T) -> None:
        keep(example)

    return collect
