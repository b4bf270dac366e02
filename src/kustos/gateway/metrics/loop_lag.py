"""The lag of the event loop: the delay of a periodic timer.

Work that blocks the loop delays every client of the process. The metrics of single requests do not show it,
because none of them includes the time that a request waits before it is read.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from kustos.gateway.metrics.tallies import Times

SAMPLE_EVERY_S: Final = 0.1
"""Ten samples a second take a few hundred microseconds, and find a loop that is blocked for 0.1 s."""

WINDOW_S: Final = 60.0
"""How long the highest lag is exported: at least this time, at most twice as long. A scrape every minute
misses no peak."""


class LoopLag:
    """The lag of the running event loop; `now_s` is its clock. `on_sample` is called with each sample."""

    def __init__(self, now_s: Callable[[], float], on_sample: Callable[[], None] = lambda: None) -> None:
        self.times: Final = Times()
        self._now_s: Final = now_s
        self._on_sample: Final = on_sample
        self._timer: asyncio.TimerHandle | None = None
        self._window_began_s = now_s()
        self._highest_s = self._highest_before_s = 0.0

    def start(self) -> None:
        """Take a sample every `SAMPLE_EVERY_S` from now on."""
        loop, due_s = asyncio.get_running_loop(), self._now_s() + SAMPLE_EVERY_S
        self._timer = loop.call_later(SAMPLE_EVERY_S, self._sample, due_s)

    def stop(self) -> None:
        """Take no more samples; further calls have no effect."""
        if self._timer is not None:
            self._timer.cancel()

    def _sample(self, due_s: float) -> None:
        lag_s = self._now_s() - due_s
        # before any step that could fail
        self.start()
        # a timer may be early by the resolution of the clock
        self.late(max(0.0, lag_s))
        self._on_sample()

    def late(self, lag_s: float) -> None:
        """Count a sample."""
        self.times.observe(lag_s)
        self._turn_window()
        self._highest_s = max(self._highest_s, lag_s)

    def highest_s(self) -> float:
        """Return the highest lag of the last minute or two."""
        self._turn_window()
        return max(self._highest_s, self._highest_before_s)

    def _turn_window(self) -> None:
        elapsed_s = self._now_s() - self._window_began_s
        if elapsed_s >= WINDOW_S:
            self._highest_before_s = self._highest_s if elapsed_s < 2 * WINDOW_S else 0.0
            self._highest_s = 0.0
            self._window_began_s += elapsed_s


class WatchedLoop(Collector):
    """The lag of an event loop."""

    def __init__(self, lag: LoopLag) -> None:
        self._lag: Final = lag

    def collect(self) -> Iterable[Metric]:
        """Yield the current values."""
        times = HistogramMetricFamily(
            "kustos_event_loop_lag_seconds",
            "How late the event loop came to a timer, ten times a second in each process.",
        )
        self._lag.times.add_to(times)
        yield times
        yield GaugeMetricFamily(
            "kustos_event_loop_lag_max_seconds",
            "The highest such lag of the last minute or two, of all processes.",
            self._lag.highest_s(),
        )
