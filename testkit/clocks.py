"""A clock that stands still until a test moves it."""

from dataclasses import dataclass


@dataclass(slots=True)
class ManualClock:
    """Both of kustos' clocks, with one time in milliseconds."""

    now_ms: int = 1_700_000_000_000

    def wall_ms(self) -> int:
        """Return the time of day."""
        return self.now_ms

    def monotonic_ms(self) -> int:
        """Return the time that only grows, if the test lets it."""
        return self.now_ms
