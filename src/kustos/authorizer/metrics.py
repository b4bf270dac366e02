"""Rates of decisions per minute, as Kafka's StandardAuthorizer counts them.

A rate is Kafka's `Rate(MINUTES, WindowedCount)` with its defaults: the events within two samples of 30
seconds, and the sample that overlaps their beginning. Therefore the rate changes in steps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kustos.runtime import SystemClock

SAMPLES: Final = 2
SAMPLE_MS: Final = 30_000
MINUTE_MS: Final = 60_000


@dataclass(slots=True)
class _Sample:
    began_ms: int
    last_ms: int
    count: int = 0


class RatePerMinute:
    """Events per minute over the last samples. Times are milliseconds of one clock."""

    __slots__ = ("_at", "_samples")

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self._at = 0

    def record(self, count: int, now_ms: int) -> None:
        """Count events that happened now."""
        if not self._samples:
            self._samples.append(_Sample(now_ms, now_ms))
        sample = self._samples[self._at]
        if now_ms - sample.began_ms >= SAMPLE_MS:
            # one more sample than a rate covers, for the sample that overlaps its beginning
            self._at = (self._at + 1) % (SAMPLES + 1)
            sample = _Sample(now_ms, now_ms)
            self._samples[self._at : self._at + 1] = [sample]
        sample.count += count
        sample.last_ms = now_ms

    def measure(self, now_ms: int) -> float:
        """Return the events per minute as of now."""
        if not self._samples:
            return 0.0
        for sample in self._samples:
            if now_ms - sample.last_ms >= SAMPLES * SAMPLE_MS:
                sample.began_ms, sample.last_ms, sample.count = now_ms, now_ms, 0
        total = sum(sample.count for sample in self._samples)
        return total * MINUTE_MS / self._window_ms(now_ms)

    def _window_ms(self, now_ms: int) -> int:
        """Return the age of the oldest sample, counting missing samples as whole.

        Otherwise the first event after a start would give a rate of thousands.
        """
        elapsed_ms = now_ms - min(sample.began_ms for sample in self._samples)
        missing = max(0, SAMPLES - 1 - elapsed_ms // SAMPLE_MS)
        return elapsed_ms + missing * SAMPLE_MS


class AuthorizerMetrics:
    """The metrics of Kafka's StandardAuthorizer, except for the number of ACLs."""

    __slots__ = ("_now_ms", "allowed", "denied", "requests")

    def __init__(self, now_ms: Callable[[], int] | None = None) -> None:
        self._now_ms: Final = now_ms or SystemClock().monotonic_ms
        self.allowed: Final = RatePerMinute()
        self.denied: Final = RatePerMinute()
        self.requests: Final = RatePerMinute()

    def record(self, allowed: int, denied: int) -> None:
        """Count decisions that were made now."""
        now_ms = self._now_ms()
        if allowed:
            self.allowed.record(allowed, now_ms)
        if denied:
            self.denied.record(denied, now_ms)
        if allowed or denied:
            self.requests.record(allowed + denied, now_ms)

    def rates(self) -> dict[str, float]:
        """Return the rates by Kafka's names."""
        now_ms = self._now_ms()
        return {
            "authorization-allowed-rate-per-minute": self.allowed.measure(now_ms),
            "authorization-denied-rate-per-minute": self.denied.measure(now_ms),
            "authorization-request-rate-per-minute": self.requests.measure(now_ms),
        }
