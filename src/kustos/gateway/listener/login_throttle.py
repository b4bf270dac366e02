"""Limits the rate at which logins from one network may fail, and therefore the rate of password guesses.

Theory of operation. Each network has a bucket of tokens. A failed login takes one, and time refills them.
While the bucket is empty, the listener rejects clients of the network before their handshake. A login that
succeeds takes no token and returns none: otherwise an attacker with one valid password could guess others
forever.

A bucket is one number, the time at which it is full again (the generic cell rate algorithm, ITU-T I.371). A
full bucket is dropped, so the table contains only networks with recent failures. A full table drops the
buckets that are nearest to full: their networks gain least by it, and no client is rejected because others
filled the table. An attacker may control enough networks to keep the table full of emptier buckets. The rates
of these networks alone then allow as many guesses.
"""

import heapq
import math
from dataclasses import dataclass
from typing import Final

from kustos.gateway.upstream.addresses import AddressRanges, network_of
from kustos.settings import INT32_MAX, NETWORKS, Setting, TakesEffect, whole_number

NETWORKS_MAX: Final = 8_192
"""The maximum number of networks with failed logins in the table, in about 1 MiB."""

FORGOTTEN_AT_ONCE: Final = NETWORKS_MAX // 8
"""The number of buckets that a full table drops: finding them takes two milliseconds, once for as many new
networks."""

MINUTE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedLoginLimits:
    """How many logins of one network may fail at once (0: any number), and how many more each minute."""

    burst: int = Setting(
        "kustos.failed.logins.per.ip.burst",
        whole_number(0, INT32_MAX),
        100,
        "Limits",
        "How many logins from one address, or from one /64 of IPv6, may fail at once; 0: any number. Then "
        "kustos closes new connections from there on arrival, until time has given back a try.",
        takes_effect=TakesEffect.RELOAD,
        since="0.2.0",
    ).field()
    per_minute: int = Setting(
        "kustos.failed.logins.per.ip.per.minute",
        whole_number(1, 1_000_000),
        30,
        "Limits",
        "How many tries an address gets back each minute. A client with a wrong password that waits 10 "
        "seconds between its tries needs 6.",
        takes_effect=TakesEffect.RELOAD,
        since="0.2.0",
    ).field()
    unlimited: AddressRanges = Setting(
        "kustos.failed.logins.unlimited.addresses",
        NETWORKS.into(AddressRanges),
        AddressRanges(),
        "Limits",
        "Addresses or networks whose failed logins are not limited: those that many clients share, such as a "
        "balancer that does not send the PROXY protocol.",
        takes_effect=TakesEffect.RELOAD,
        since="0.2.0",
    ).field()


class LoginThrottle:
    """The networks whose logins failed recently. Times in seconds of one clock that never goes back."""

    def __init__(self, limits: FailedLoginLimits) -> None:
        self._limits = limits
        self._interval_s = self._allowed_s = self._emptied_s = 0.0
        self._full_at_s: dict[str, float] = {}
        self._measure(limits)

    def _measure(self, limits: FailedLoginLimits) -> None:
        self._interval_s = MINUTE_S / limits.per_minute
        # with a token left, the bucket is full again within this time
        self._allowed_s = (limits.burst - 1) * self._interval_s if limits.burst else math.inf
        self._emptied_s = limits.burst * self._interval_s

    def change(self, limits: FailedLoginLimits, now_s: float) -> None:
        """Apply new limits; tokens that were taken stay taken."""
        if limits == self._limits:
            return
        former_s, self._limits = self._interval_s, limits
        self._measure(limits)
        taken = {network: (at_s - now_s) / former_s for network, at_s in self._full_at_s.items()}
        self._full_at_s = {
            network: now_s + min(tokens * self._interval_s, self._emptied_s)
            for network, tokens in taken.items()
            if tokens > 0 and limits.burst
        }

    def __len__(self) -> int:
        return len(self._full_at_s)

    def is_throttled(self, host: str, now_s: float) -> bool:
        """Return whether clients of this host's network may not log in now."""
        full_at_s = self._full_at_s.get(network_of(host))
        if full_at_s is None or full_at_s - now_s <= self._allowed_s:
            return False
        # the limits may have changed since the failure
        return not self._limits.unlimited.holds(host)

    def failed(self, host: str, now_s: float) -> None:
        """Count a failed login of this host's network."""
        if self._allowed_s == math.inf or self._limits.unlimited.holds(host):
            return
        network = network_of(host)
        known = self._full_at_s.get(network)
        if known is None and len(self._full_at_s) >= NETWORKS_MAX:
            self._evict()
        full_at_s = max(now_s, now_s if known is None else known) + self._interval_s
        # logins that began before the last token was taken may fail later: a bucket is never less than empty
        self._full_at_s[network] = min(full_at_s, now_s + self._emptied_s)

    def _evict(self) -> None:
        found = self._full_at_s
        for network in heapq.nsmallest(FORGOTTEN_AT_ONCE, found, key=found.__getitem__):
            del found[network]
