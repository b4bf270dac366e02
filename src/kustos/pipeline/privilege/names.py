"""Where a name may be cut to a prefix that people would choose too."""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import Final

from kustos.acl import ResourceType
from kustos.pipeline.privilege.options import CUTS_MAX, PrivilegeOptions

PREFIXABLE: Final = frozenset({ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID})
"""Types whose names share meaningful prefixes. Users and tokens with similar names have nothing in common."""


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
