"""The entries of a cell by host, so that a decision takes one look-up of the client's host.

A cell can name ten thousand addresses and ranges. An address is looked up as a text, and the ranges that
contain it by its leading bits: one look-up per prefix length in use.
"""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Generic, TypeVar

from kustos.acl import WILDCARD, AclBinding, AclValueError, HostRange, host_matches

HOST_VIEWS_MAX: Final = 256
"""Per-host views that one cell caches; when full, the cache is cleared."""

PARSED_CLIENTS_MAX: Final = 4096
"""The number of cached client addresses as integers: many cells look up the same address."""

View = TypeVar("View")


class HostViews(Generic[View]):
    """Bindings of one pattern by host, with cached views for some client hosts: `known`."""

    __slots__ = ("_by_host", "_networks", "_sizes", "known")

    def __init__(self, bindings: Iterable[AclBinding]) -> None:
        self._by_host: dict[str, list[AclBinding]] = {}
        # a network is its address size, the number of its host bits, and its network bits
        self._networks: dict[tuple[int, int, int], list[str]] = {}
        self._sizes: Counter[tuple[int, int]] = Counter()
        self.known: dict[str, View] = {}
        for binding in bindings:
            self.add(binding)

    def add(self, binding: AclBinding) -> None:
        """Add a binding."""
        host = binding.entry.host
        known = self._by_host.get(host)
        if known is not None:
            known.append(binding)
            return
        self._by_host[host] = [binding]
        network = _network_of(host)
        if network is not None:
            self._networks.setdefault(network, []).append(host)
            self._sizes[network[:2]] += 1

    def remove(self, binding: AclBinding) -> None:
        """Remove an existing binding."""
        host = binding.entry.host
        known = self._by_host[host]
        known.remove(binding)
        if known:
            return
        del self._by_host[host]
        network = _network_of(host)
        if network is not None:
            self._networks[network].remove(host)
            self._sizes[network[:2]] -= 1
            if not self._networks[network]:
                del self._networks[network]
            if not self._sizes[network[:2]]:
                del self._sizes[network[:2]]

    def matching(self, host: str) -> list[AclBinding]:
        """Return the bindings that match a client host, in no fixed order."""
        patterns = {WILDCARD: None, host: None}
        address = _address_of(host) if self._sizes else None
        if address is not None:
            bits, number = address
            for size, open_bits in self._sizes:
                network = (size, open_bits, number >> open_bits)
                if size == bits and network in self._networks:
                    # the rule itself decides: some addresses are in no range
                    ranges = self._networks[network]
                    patterns.update(dict.fromkeys(text for text in ranges if host_matches(text, host)))
        return [binding for pattern in patterns for binding in self._by_host.get(pattern, ())]

    def keep(self, host: str, view: View) -> View:
        """Cache a view for a client host, and return it."""
        if len(self.known) >= HOST_VIEWS_MAX:
            self.known.clear()
        self.known[host] = view
        return view

    def forget(self) -> None:
        """Clear the cached views; the bindings stay."""
        self.known.clear()


def _range_of(text: str) -> HostRange | None:
    try:
        return HostRange.parse(text)
    except AclValueError:
        return None


def _network_of(pattern: str) -> tuple[int, int, int] | None:
    found = _range_of(pattern) if "/" in pattern else None
    if found is None:
        return None
    open_bits = (found.highest - found.lowest).bit_length()
    return found.bits, open_bits, found.highest >> open_bits


@lru_cache(maxsize=PARSED_CLIENTS_MAX)
def _address_of(host: str) -> tuple[int, int] | None:
    found = _range_of(f"{host}/{128 if ':' in host else 32}")
    return None if found is None else (found.bits, found.highest)
