"""A recorder of repeated decisions that a test reads."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotedRecorder:
    """Passes the correlation id of each repetition to `note`, which returns what `record` does."""

    note: Callable[[int], bool]

    def record(self, correlation_id: int, _latency_us: int) -> bool:
        return self.note(correlation_id)

    def count(self) -> None:
        """Count nothing."""
