"""Where the time comes from."""

import time
from typing import Protocol


class Clock(Protocol):
    """A source of time; machines take one so that tests can turn its hands."""

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""

    def monotonic_ms(self) -> int:
        """Return milliseconds on a clock that never goes back; only differences mean anything."""


class SystemClock:
    """The machine's own clocks."""

    __slots__ = ()

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return milliseconds on a clock that never goes back."""
        return time.monotonic_ns() // 1_000_000
