"""The rights of subjects as a table of bits: one row per subject, one column per class of names.

A subject is a principal that the ACLs name (or one that they do not) on a class of hosts, for one resource
type. A row holds one bit per operation: the union of a node's masks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kustos.acl import ResourceType
from kustos.authorizer import StandardAuthorizer
from kustos.authorizer.index import (
    DENY_SHIFT,
    EVERY_ALLOW,
    HOSTED,
    PatternCell,
    PrincipalNode,
    binding_mask,
)
from kustos.pipeline.bulk.classes import NameClasses

Bits = npt.NDArray[np.uint16]

TABLE_BYTES_MAX: Final = 1 << 28
"""Most bytes of rows kept at once; further subjects are decided one by one."""

EVERYBODY_MAX: Final = 256
"""Most pairs of host class and resource type for which the rights of `User:*` are cached."""


def _at(cell: PatternCell, host: str) -> int:
    """Return the bits of a cell's own bindings that match a host."""
    if not cell.own_mask & HOSTED:
        return cell.own_mask
    bits = 0
    for binding in cell.bindings_at(host):
        bits |= binding_mask(binding) & ~HOSTED
    return bits


def hosts_of(node: PrincipalNode) -> Iterator[str]:
    """Yield every host that a node names; none if the host does not matter."""
    wildcards = () if node.wildcard is None else (node.wildcard,)
    for cell in chain(node.literals.values(), node.prefixes.by_name.values(), wildcards):
        if cell.own_mask & HOSTED:
            yield from (binding.entry.host for binding in cell.bindings)


_Rights = tuple[Any, Any, Any]
"""Columns of a row (a range or numbers), and the bits allowed and denied there."""


def _rights_of(node: PrincipalNode, host: str, names: NameClasses) -> list[_Rights]:
    """Return the rights that a node gives a host."""
    rights: list[_Rights] = []
    if node.wildcard is not None:
        mask = _at(node.wildcard, host)
        rights.append((names.in_wildcard, mask & EVERY_ALLOW, mask >> DENY_SHIFT))
    for name, prefix in node.prefixes.by_name.items():
        if name in names.ranges:
            mask = _at(prefix, host)
            rights.append((slice(*names.ranges[name]), mask & EVERY_ALLOW, mask >> DENY_SHIFT))
    known = names.literals
    literals = [(known[name], cell) for name, cell in node.literals.items() if name in known]
    if literals:
        masks = np.array([cell.mask for _, cell in literals], np.uint32)
        for hosted in np.flatnonzero(masks & HOSTED).tolist():
            masks[hosted] = _at(literals[hosted][1], host)
        allows, denies = masks.astype(np.uint16) & EVERY_ALLOW, (masks >> DENY_SHIFT).astype(np.uint16)
        rights.append(([number for number, _ in literals], allows, denies))
    return rights


@dataclass(frozen=True, slots=True)
class _Everybody:
    """The rights of `User:*`, so of each principal; `grantable` has the bits that it does not deny."""

    allowed: Bits
    grantable: Bits
    matched: Bits


class DecisionTable:
    """Rows by subject, filled when first needed, all of one version of the index.

    `allowed` has a bit for each allowed operation, `matched` one for each operation that some ACL names.
    """

    def __init__(self, authorizer: StandardAuthorizer, names: NameClasses, *, with_matched: bool) -> None:
        self._authorizer: Final = authorizer
        self._names: Final = names
        cells_max = TABLE_BYTES_MAX // np.dtype(np.uint16).itemsize // (2 if with_matched else 1)
        self.rows_max: Final = max(1, cells_max // names.count)
        # the system allocates memory only for rows that are written
        self.allowed: Final[Bits] = np.empty((self.rows_max, names.count), np.uint16)
        self.matched: Final[Bits | None] = np.empty_like(self.allowed) if with_matched else None
        self._every: Final[dict[tuple[ResourceType, str], _Everybody]] = {}
        self._uncovered: Final[dict[ResourceType, npt.NDArray[np.bool_]]] = {}

    def fill_super_user(self, row: int) -> None:
        """Fill the row of a super user, who may do everything."""
        self.allowed[row] = EVERY_ALLOW
        if self.matched is not None:
            self.matched[row] = 0

    def fill(self, row: int, node: PrincipalNode | None, resource_type: ResourceType, host: str) -> None:
        """Fill the row of a principal with this node (None if no ACL names it) on the class of this host."""
        everybody = self._everybody(resource_type, host)
        allowed = self.allowed[row]
        np.copyto(allowed, everybody.allowed)
        rights = [] if node is None else _rights_of(node, host, self._names)
        for place, allows, _ in rights:
            allowed[place] |= everybody.grantable[place] & allows
        for place, _, denies in rights:
            allowed[place] &= EVERY_ALLOW ^ denies
        if self.matched is not None:
            matched = self.matched[row]
            np.copyto(matched, everybody.matched)
            for place, allows, denies in rights:
                matched[place] |= allows | denies

    def _everybody(self, resource_type: ResourceType, host: str) -> _Everybody:
        everybody = self._every.get((resource_type, host))
        if everybody is None:
            if len(self._every) >= EVERYBODY_MAX:
                self._every.clear()
            everybody = self._every[resource_type, host] = self._make_everybody(resource_type, host)
        return everybody

    def _make_everybody(self, resource_type: ResourceType, host: str) -> _Everybody:
        node = self._authorizer.index.every.get(resource_type)
        allowed, denied = np.zeros((2, self._names.count), np.uint16)
        for place, allows, denies in [] if node is None else _rights_of(node, host, self._names):
            allowed[place] |= allows
            denied[place] |= denies
        matched = allowed | denied
        allowed &= ~denied
        if self._authorizer.allow_everyone_if_no_acl_found:
            allowed[self._no_acl_found(resource_type)] = EVERY_ALLOW
        return _Everybody(allowed, ~denied, matched)

    def _no_acl_found(self, resource_type: ResourceType) -> npt.NDArray[np.bool_]:
        """Return which classes hold names that no ACL of any principal names."""
        uncovered = self._uncovered.get(resource_type)
        if uncovered is None:
            covers, example = self._authorizer.index.covers, self._names.example
            uncovered = self._uncovered[resource_type] = np.array(
                [not covers(resource_type, example(number)) for number in range(self._names.count)]
            )
        return uncovered
