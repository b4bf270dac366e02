"""Waiting for a condition, never for an amount of time."""

import time
from collections.abc import Callable
from threading import Event
from typing import TypeVar

T = TypeVar("T")

POLL_INTERVAL_S = 0.02
"""How often a condition is looked at: short beside anything a JVM does, long beside what a look costs."""


class DeadlineExceededError(Exception):
    """A condition did not come true in the time it was given."""


def wait_until(
    condition: Callable[[], T], *, timeout_s: float, what: str, pause: Callable[[float], object] | None = None
) -> T:
    """Return the first true value of `condition`, or raise `DeadlineExceededError` naming `what`.

    `pause` is how the time between two looks is spent; whoever waits on a process passes that process's own
    `wait`, so that its end is seen at once.
    """
    spend = pause if pause is not None else Event().wait
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        left = deadline - time.monotonic()
        if left <= 0:
            raise DeadlineExceededError(f"{what}: not so within {timeout_s:g} s")
        spend(min(POLL_INTERVAL_S, left))
    return value
