"""Which ACLs of one principal, on one type, allow an access: an index by name."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kustos.acl import WILDCARD, host_matches
from kustos.pipeline.privilege.options import PrivilegeOptions, cutter
from kustos.pipeline.privilege.tree import Placement
from kustos.pipeline.privilege.values import CLOSURES


class HostedPlacement(NamedTuple):
    """A planned ACL, with its host."""

    placement: Placement
    host: str


class Index:
    """ACLs by their patterns; their prefixes are among those that `cutter` gives for these options."""

    def __init__(self, acls: Iterable[HostedPlacement], options: PrivilegeOptions) -> None:
        self._cuts = cutter(options)
        self._literal: dict[str, list[tuple[int, int, str]]] = {}
        self._prefixed: dict[str, list[tuple[int, int, str]]] = {}
        for number, (placement, host) in enumerate(acls):
            by_name = self._prefixed if placement.is_prefix else self._literal
            by_name.setdefault(placement.name, []).append((number, CLOSURES[placement.bit], host))

    def serving(self, host: str, name: str, bit: int) -> Iterator[int]:
        """Yield the numbers of the ACLs that allow an operation, those of longer names first."""
        for number, mask, of_host in self._literal.get(name, ()):
            if mask & bit and (of_host == WILDCARD or host_matches(of_host, host)):
                yield number
        if self._prefixed:
            for prefix in reversed(self._cuts(name)):
                for number, mask, of_host in self._prefixed.get(prefix, ()):
                    if mask & bit and (of_host == WILDCARD or host_matches(of_host, host)):
                        yield number
        if name[:1] != WILDCARD:
            for number, mask, of_host in self._literal.get(WILDCARD, ()):
                if mask & bit and (of_host == WILDCARD or host_matches(of_host, host)):
                    yield number


def pruned(acls: Sequence[HostedPlacement], servers: Iterable[Sequence[int]]) -> list[HostedPlacement]:
    """Leave out superfluous ACLs, expensive ones first; `servers`: for each need the ACLs that serve it."""
    left: list[int] = []
    serves: list[list[int]] = [[] for _ in acls]
    for able in servers:
        for number in able:
            serves[number].append(len(left))
        left.append(len(able))
    dropped: set[int] = set()
    for number in sorted(range(len(acls)), key=lambda number: -acls[number].placement.cost):
        if all(left[need] > 1 for need in serves[number]):
            dropped.add(number)
            for need in serves[number]:
                left[need] -= 1
    return [acl for number, acl in enumerate(acls) if number not in dropped]
