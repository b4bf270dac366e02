"""The options of a recommendation: how broad ACLs may become, and when; where a name may be cut."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, unique
from functools import lru_cache
from itertools import islice
from typing import Final

from kustos.acl import ResourceType
from kustos.pipeline.errors import PipelineError

CUTS_MAX: Final = 8
"""Prefixes tried for one name: deeper ones are not sensible, and a hostile name could have many."""

PREFIXABLE: Final = frozenset({ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID})
"""Types whose names share meaningful prefixes. Users and tokens with similar names have nothing in common."""


class PrivilegeOptionError(PipelineError, ValueError):
    """An invalid option; the text names it and its valid values.

    `option`: its name, None for a text about several options.
    """

    def __init__(self, message: str, option: str | None = None) -> None:
        super().__init__(message)
        self.option: Final = option


@unique
class HostChoice(Enum):
    """The hosts that the ACLs allow.

    ANY: from everywhere (`*`). EXACT: from the recorded addresses, if they are few, else from everywhere.
    RANGES: neighbouring addresses as one range, which needs metadata.version 4.4-IV1 (KIP-1235). Whatever
    is chosen, the ACL names the recorded addresses where a recorded denial from another host requires it.
    """

    ANY = "any"
    EXACT = "exact"
    RANGES = "ranges"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivilegeOptions:
    """The trade-off. An ACL costs 1, and `over_grant_weight` for each known name it grants unnecessarily.

    `over_grant_weight` 0 makes the fewest ACLs, infinity only literal ones. A prefix also pays for
    `future_name_count` names that do not exist yet. A prefix ends with one of the `separators`, has at least
    `prefix_length_min` characters and, for its operation, `prefix_members_min` names that were used. The
    wildcard `*` needs `wildcard_members_min` used names and `wildcard_share` of all known ones (None: never).
    ALL needs `all_operations_min` operations used on the name, or on as many names of the prefix as a prefix
    needs (None: never; never on the cluster). Raises `PrivilegeOptionError`.
    """

    over_grant_weight: float = 0.25
    future_name_count: float = 1.0
    separators: str = "._-/"
    prefix_length_min: int = 4
    prefix_members_min: int = 3
    wildcard_share: float | None = 0.9
    wildcard_members_min: int = 50
    all_operations_min: int | None = 6
    hosts: HostChoice = HostChoice.ANY
    hosts_max: int = 8
    range_hosts_min: int = 3
    range_bits_min_ipv4: int = 24
    range_bits_min_ipv6: int = 64

    def __post_init__(self) -> None:
        _check(self.over_grant_weight >= 0, "over_grant_weight", "0 or more, or infinity")
        _check(
            self.future_name_count >= 0 and math.isfinite(self.future_name_count),
            "future_name_count",
            "0 or more",
        )
        _check(
            len(set(self.separators)) == len(self.separators), "separators", "characters, each of them once"
        )
        _check(self.prefix_length_min >= 1, "prefix_length_min", "1 or more")
        _check(self.prefix_members_min >= 2, "prefix_members_min", "2 or more")
        share = self.wildcard_share
        _check(share is None or 0 < share <= 1, "wildcard_share", "a share above 0 and up to 1, or nothing")
        _check(self.wildcard_members_min >= 2, "wildcard_members_min", "2 or more")
        least = self.all_operations_min
        _check(least is None or least >= 2, "all_operations_min", "2 or more, or nothing")
        _check(self.hosts_max >= 1, "hosts_max", "1 or more")
        _check(self.range_hosts_min >= 2, "range_hosts_min", "2 or more")
        _check(0 <= self.range_bits_min_ipv4 <= 32, "range_bits_min_ipv4", "0 to 32")
        _check(0 <= self.range_bits_min_ipv6 <= 128, "range_bits_min_ipv6", "0 to 128")

    @property
    def has_prefixes(self) -> bool:
        """Whether anything but literal names may be granted."""
        return math.isfinite(self.over_grant_weight)


def _check(holds: bool, name: str, expected: str) -> None:
    if not holds:
        raise PrivilegeOptionError(f"`{name}` is out of range, use {expected}", name)


DEFAULT_OPTIONS: Final = PrivilegeOptions()


@lru_cache(maxsize=64)
def cutter(options: PrivilegeOptions) -> Callable[[str], list[str]]:
    """Return a function from a name to its possible prefixes, shortest first: at most `CUTS_MAX`."""
    if not options.separators or not options.has_prefixes:
        return lambda _name: []
    separators = re.compile("[" + re.escape(options.separators) + "]")
    shortest = options.prefix_length_min

    def cuts(name: str) -> list[str]:
        ends = [match.end() for match in islice(separators.finditer(name), CUTS_MAX)]
        return [name[:end] for end in ends if end >= shortest]

    return cuts
