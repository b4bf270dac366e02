"""Limits of fetches and retries, by the keys of Kafka's clients."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, Self

from kustos.client.connection import ConnectionLimits
from kustos.client.properties import whole_number
from kustos.client.refreshed import chance
from kustos.runtime import Entropy

_KEYS: Final = {
    "max_wait_ms": "fetch.max.wait.ms",
    "partition_max_bytes": "max.partition.fetch.bytes",
    "max_bytes": "fetch.max.bytes",
    "default_api_timeout_ms": "default.api.timeout.ms",
    "retry_backoff_ms": "retry.backoff.ms",
    "retry_backoff_max_ms": "retry.backoff.max.ms",
}

_MAY_BE_0: Final = frozenset({"max_wait_ms", "retry_backoff_ms", "retry_backoff_max_ms"})

_MOST_DOUBLINGS: Final = 16
"""The largest exponent of a pause, which has reached its maximum long before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Limits of reading a topic. Times in milliseconds, sizes in bytes; limits in _MAY_BE_0 may be 0."""

    max_wait_ms: int = 500
    """The time that a broker waits for records before it answers a fetch: Kafka's default."""

    partition_max_bytes: int = 4 * 1024 * 1024
    """The maximum size of an answer, unless its first batch is larger (KIP-74). A reader holds one or two
    answers for each partition; a round trip per 4 MB costs little, one per 1 MB (Kafka's default) much."""

    max_bytes: int = 50 * 1024 * 1024
    """Kafka's default for all partitions of a fetch; here a fetch has one."""

    default_api_timeout_ms: int = 15_000
    """The time limit of a call with its retries. Kafka's default of 60 s is too long for a user at a
    terminal; brokers elect a new leader within 10 s."""

    retry_backoff_ms: int = 100
    """The first pause before a retry, doubled each time: Kafka's default (KIP-580)."""

    retry_backoff_max_ms: int = 1000
    """The longest pause: Kafka's default."""

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Return the limits of Kafka's keys, defaults for those that are missing; raise `SettingsError`."""
        limits: dict[str, int] = {}
        for limit in fields(cls):
            unit = "milliseconds" if limit.name.endswith("_ms") else "bytes"
            least = 0 if limit.name in _MAY_BE_0 else 1
            number = whole_number(properties, _KEYS[limit.name], unit, least)
            if number is not None:
                limits[limit.name] = number
        return cls(**limits)

    def request_timeout_ms(self, limits: ConnectionLimits) -> int:
        """Return the time limit of one answer, which leaves time to ask another broker."""
        return min(limits.request_timeout_ms, self.default_api_timeout_ms * 2 // 3)

    def pause_ms(self, tries: int, entropy: Entropy) -> float:
        """Return the wait after `tries` failed attempts, with Kafka's jitter of a fifth (KIP-580)."""
        pause: int = min(self.retry_backoff_max_ms, self.retry_backoff_ms << min(tries, _MOST_DOUBLINGS))
        return pause * (0.8 + 0.4 * chance(entropy))
