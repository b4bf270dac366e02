"""Sources of time, and what is said only once in a while."""

import math
import time
from collections import Counter
from collections.abc import Hashable
from typing import Final, Protocol

SINCE_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux' monotonic clock stops while a machine is suspended or its virtual machine is moved; this one
continues, so that sessions and tokens expire in time. macOS' monotonic clock continues anyway."""


stopwatch_ns: Final = time.perf_counter_ns
"""Returns nanoseconds on a clock for the time that work takes; only differences are meaningful."""


class Clock(Protocol):
    """A source of time; machines take one so that tests can set it."""

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""

    def monotonic_ms(self) -> int:
        """Return milliseconds on a clock that never goes back and runs on while the machine sleeps.

        Only differences are meaningful. The event loop uses another clock.
        """


class SystemClock:
    """The machine's own clocks."""

    __slots__ = ()

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return milliseconds on a clock that never goes back and runs on while the machine sleeps."""
        return time.clock_gettime_ns(SINCE_BOOT) // 1_000_000


class PacedCounts:
    """Counts, by kind, what may happen too often for a line of the log each time.

    The first of a kind is said at once, then one in `every_s` seconds. Whoever uses it bounds the kinds: each
    is held.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s: Final = every_s
        self._counted: Final[Counter[Hashable]] = Counter()
        self._said_s: Final[dict[Hashable, float]] = {}

    def __contains__(self, kind: Hashable) -> bool:
        return kind in self._said_s

    def __len__(self) -> int:
        return len(self._said_s)

    def due(self, kind: Hashable, now_s: float) -> int:
        """Count one; return how many there were since the last line if another is due, else 0."""
        self._counted[kind] += 1
        if now_s - self._said_s.get(kind, -math.inf) < self._every_s:
            return 0
        self._said_s[kind] = now_s
        return self._counted.pop(kind)
