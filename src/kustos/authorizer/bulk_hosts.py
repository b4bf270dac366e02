"""Client hosts by what the ACLs can tell of them: those between two ends of ranges are alike."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from kustos.acl import AclValueError, HostRange

KEPT_HOSTS_MAX: Final = 65_536
"""Hosts whose class is kept; more distinct ones start the memory anew."""


class HostClasses:
    """The classes of all hosts, given every host that some ACL names."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns: Final = frozenset(patterns)
        ranges = [
            parsed for text in self._patterns if "/" in text and (parsed := _range_of(text)) is not None
        ]
        self._ends: Final = {
            bits: sorted({end for r in ranges if r.bits == bits for end in (r.lowest, r.highest + 1)})
            for bits in (32, 128)
        }
        self._numbers: Final[dict[tuple[str | None, int, int], int]] = {}
        self._known: Final[dict[str, int]] = {}
        self.examples: Final[list[str]] = []

    def of(self, host: str) -> int:
        """Return the class of a host: `getHostAddress()` form, or any text, which only its equal names."""
        number = self._known.get(host)
        if number is None:
            if len(self._known) >= KEPT_HOSTS_MAX:
                self._known.clear()
            number = self._known[host] = self._class_of(host)
        return number

    def _class_of(self, host: str) -> int:
        bits = 128 if ":" in host else 32
        address = _range_of(f"{host}/{bits}")
        place = (0, 0) if address is None else (bits, bisect_right(self._ends[bits], address.highest))
        key = (host if host in self._patterns else None, *place)
        number = self._numbers.setdefault(key, len(self.examples))
        if number == len(self.examples):
            self.examples.append(host)
        return number


def _range_of(text: str) -> HostRange | None:
    try:
        return HostRange.parse(text)
    except AclValueError:
        return None
