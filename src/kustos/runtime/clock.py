"""Sources of time."""

import time
from typing import Final, Protocol

SINCE_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux' monotonic clock stops while a machine is suspended or its virtual machine is moved; this one
continues, so that sessions and tokens expire in time. macOS' monotonic clock continues anyway."""


def stopwatch_ns() -> int:
    """Return nanoseconds on a clock for the time that work takes; only differences are meaningful."""
    return time.perf_counter_ns()


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
