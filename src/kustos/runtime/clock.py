"""Sources of time, and a limit for repeated log lines."""

import math
import time
from collections import Counter
from collections.abc import Hashable
from typing import Final, Protocol

SINCE_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux' monotonic clock stops while a machine is suspended or its virtual machine is moved; this clock
continues, so sessions and tokens expire on time. The monotonic clock of macOS also continues."""


stopwatch_ns: Final = time.perf_counter_ns
"""Returns nanoseconds of a clock that measures durations; only differences are meaningful."""


class Clock(Protocol):
    """A source of time; state machines have one as a parameter so that tests can replace it."""

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""

    def monotonic_ms(self) -> int:
        """Return milliseconds of a clock that never goes back and continues while the machine is suspended.

        Only differences are meaningful. The event loop uses another clock.
        """


class SystemClock:
    """The machine's own clocks."""

    __slots__ = ()

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return milliseconds of a clock that never goes back and continues while the machine is
        suspended."""
        return time.clock_gettime_ns(SINCE_BOOT) // 1_000_000


class PacedCounts:
    """Counts events by kind and limits their log lines.

    The first event of a kind is logged at once, then one line every `every_s` seconds. The caller must bound
    the number of kinds, because each has an entry.
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
        """Count an event; return the number of events since the last line if another line is due, else 0."""
        self._counted[kind] += 1
        if now_s - self._said_s.get(kind, -math.inf) < self._every_s:
            return 0
        self._said_s[kind] = now_s
        return self._counted.pop(kind)
