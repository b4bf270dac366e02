"""The compiled index: principal, then resource type, then pattern.

Kafka walks a tree sorted by resource and checks every entry on every matching pattern, for any principal. A
question to this index reads only the entries of its principal and of `User:*`: one dictionary look-up for the
literal name, one bisection for the prefixes, one cell for the wildcard. A change affects the node of one
principal on one resource type.

To read the whole index, walk `AclIndex.nodes` and `every`, and in each node `literals`, `prefixes.by_name`
and `wildcard`; their cells have `own_mask` (with HOSTED it may be too broad, and the hosts decide) and
`bindings`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, TypeVar
from uuid import UUID

from kustos.acl import (
    EVERY_PRINCIPAL,
    WILDCARD,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    PatternType,
    ResourceType,
    SharedParts,
)
from kustos.authorizer.index.cells import PatternCell
from kustos.authorizer.index.prefixes import LiteralCell, PrefixTable
from kustos.authorizer.spi.values import Decision, DuplicateAclIdError, InvalidAclError

_Key = TypeVar("_Key")

ByTypeKey = tuple[AclOperation, str, tuple[str, ...]]
"""An operation on any resource of a type, the client's host, and the client's groups."""


class Coverage:
    """The number of entries of all principals on each resource: Kafka's "has ACLs", used only by
    default-allow."""

    __slots__ = ("_literals", "_prefix_lengths", "_prefixes")

    def __init__(self) -> None:
        self._literals: Counter[str] = Counter()
        self._prefixes: Counter[str] = Counter()
        self._prefix_lengths: Counter[int] = Counter()

    def count(self, binding: AclBinding, step: int) -> None:
        """Add a binding to the counts (`step` 1) or remove it (-1)."""
        name = binding.pattern.name
        if binding.pattern.pattern_type is PatternType.LITERAL:
            self._step(self._literals, name, step)
        else:
            self._step(self._prefixes, name, step)
            self._step(self._prefix_lengths, len(name), step)

    @staticmethod
    def _step(counter: Counter[_Key], key: _Key, step: int) -> None:
        counter[key] += step
        if not counter[key]:
            del counter[key]

    def covers(self, name: str) -> bool:
        """Return whether some entry names the resource."""
        if name in self._literals or (WILDCARD in self._literals and name[:1] != WILDCARD):
            return True
        return any(name[:length] in self._prefixes for length in self._prefix_lengths if length <= len(name))


class PrincipalNode:
    """The entries of one principal on one resource type.

    `stamp` is the version of the index at the node's last change. `by_type` is the cache of `decide_by_type`.
    """

    __slots__ = ("by_type", "literals", "prefixes", "stamp", "wildcard")

    def __init__(self) -> None:
        self.literals: dict[str, LiteralCell] = {}
        self.prefixes = PrefixTable()
        self.wildcard: PatternCell | None = None
        self.stamp = 0
        self.by_type: dict[ByTypeKey, tuple[tuple[int, ...], Decision | None]] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there are no entries."""
        return not self.literals and self.has_only_literals

    @property
    def has_only_literals(self) -> bool:
        """Whether there are entries neither on a prefix nor on `*`."""
        return not self.prefixes.by_name and self.wildcard is None

    def cells(self) -> Iterator[PatternCell]:
        """Yield every cell."""
        wildcard = () if self.wildcard is None else (self.wildcard,)
        return chain(self.literals.values(), self.prefixes.by_name.values(), wildcard)

    def cell(self, name: str, pattern_type: PatternType) -> PatternCell | None:
        """Return the cell of a pattern, None without entries."""
        if pattern_type is not PatternType.LITERAL:
            return self.prefixes.by_name.get(name)
        return self.wildcard if name == WILDCARD else self.literals.get(name)

    def add(self, binding: AclBinding) -> None:
        """Add a binding; raise `DuplicateAclError` if it exists."""
        pattern = binding.pattern
        if pattern.pattern_type is not PatternType.LITERAL:
            self.prefixes.add(binding)
            return
        name = pattern.name
        cell = self.wildcard if name == WILDCARD else self.literals.get(name)
        if cell is not None:
            cell.add(binding)
        elif name == WILDCARD:
            self.wildcard = PatternCell(binding)
        else:
            self.literals[name] = LiteralCell(binding)

    def remove(self, binding: AclBinding) -> None:
        """Remove an existing binding."""
        pattern = binding.pattern
        if pattern.pattern_type is not PatternType.LITERAL:
            self.prefixes.remove(binding)
            return
        name = pattern.name
        cell = self.wildcard if name == WILDCARD else self.literals[name]
        if cell is None:
            raise KeyError(name)
        if not cell.remove(binding):
            return
        if name == WILDCARD:
            self.wildcard = None
        else:
            del self.literals[name]


class AclIndex:
    """All nodes and, if default-allow needs it, the coverage of every resource type."""

    __slots__ = ("_coverage", "_nodes", "counts_coverage", "every")

    def __init__(self, *, counts_coverage: bool) -> None:
        self.counts_coverage = counts_coverage
        self._nodes: dict[str, dict[ResourceType, PrincipalNode]] = {}
        self._coverage: dict[ResourceType, Coverage] = {}
        self.every: dict[ResourceType, PrincipalNode] = {}
        self._nodes[EVERY_PRINCIPAL] = self.every

    @property
    def by_principal(self) -> Mapping[str, Mapping[ResourceType, PrincipalNode]]:
        """Every node by principal and resource type, `User:*` included; read-only."""
        return self._nodes

    def nodes(self, principal: str) -> dict[ResourceType, PrincipalNode]:
        """Return a principal's nodes by resource type; read-only."""
        return self._nodes.get(principal, {})

    def candidates(self, acl_filter: AclBindingFilter, limit: int) -> list[AclBinding] | None:
        """Return a few ACLs that include all matches of a filter.

        None if there are more than `limit`, if more principals than that would have to be searched, or if the
        filter names neither a principal nor one pattern.
        """
        cells: Iterator[PatternCell]
        pattern = acl_filter.pattern_filter
        if acl_filter.entry_filter.principal is not None:
            nodes = self.nodes(acl_filter.entry_filter.principal).values()
            cells = chain.from_iterable(node.cells() for node in nodes)
        elif pattern.name is not None and pattern.matches_at_most_one and len(self._nodes) <= limit:
            nodes_of_type = filter(None, (each.get(pattern.resource_type) for each in self._nodes.values()))
            found_cells = (node.cell(pattern.name, pattern.pattern_type) for node in nodes_of_type)
            cells = filter(None, found_cells)
        else:
            return None
        found: list[AclBinding] = []
        for cell in cells:
            found += cell.bindings
            if len(found) > limit:
                return None
        return found

    def covers(self, resource_type: ResourceType, name: str) -> bool:
        """Return whether any entry of any principal names the resource."""
        coverage = self._coverage.get(resource_type)
        return coverage is not None and coverage.covers(name)

    def load(self, bindings: Iterable[AclBinding], stamp: int) -> None:
        """Add many bindings; raise what `add` raises, after which the index must not be used."""
        # the entries of one principal are allocated together, because a cold decision mostly waits for memory
        groups: dict[str, list[AclBinding]] = {}
        for binding in bindings:
            principal = binding.entry.principal
            try:
                groups[principal].append(binding)
            except KeyError:
                groups[principal] = [binding]
        while groups:
            # free them one by one: freeing all at once would block every other thread
            for binding in groups.popitem()[1]:
                self.add(binding, stamp)

    def add(self, binding: AclBinding, stamp: int) -> None:
        """Add a binding; raise `DuplicateAclError` or `InvalidAclError` and change nothing."""
        principal = binding.entry.principal
        resource_type = binding.pattern.resource_type
        try:
            node = self._nodes[principal][resource_type]
        except KeyError:
            node = self._new_node(principal, resource_type)
        node.add(binding)
        node.stamp = stamp
        if self.counts_coverage:
            self._count(binding, 1)

    def _new_node(self, principal: str, resource_type: ResourceType) -> PrincipalNode:
        if ":" not in principal:
            raise InvalidAclError(f"principal `{principal}` of an ACL has no type, write it as `User:name`")
        node = self._nodes.setdefault(principal, {})[resource_type] = PrincipalNode()
        return node

    def _count(self, binding: AclBinding, step: int) -> None:
        self._coverage.setdefault(binding.pattern.resource_type, Coverage()).count(binding, step)

    def remove(self, binding: AclBinding, stamp: int) -> None:
        """Remove an existing binding."""
        principal = binding.entry.principal
        resource_type = binding.pattern.resource_type
        by_type = self._nodes[principal]
        node = by_type[resource_type]
        node.remove(binding)
        node.stamp = stamp
        if self.counts_coverage:
            self._count(binding, -1)
        if not node.literals and node.is_empty:
            del by_type[resource_type]
            if not by_type and by_type is not self.every:
                del self._nodes[principal]


ID_SHARDS: Final = 64
"""The number of dictionaries for the ids of all ACLs, a power of two: growing one dictionary with a million
entries blocks all threads for 30 ms."""

SHARD_BITS: Final = ID_SHARDS - 1
"""Mask for the bits of an id that select its dictionary."""

ShardedBindings = list[dict[int, AclBinding]]
"""Bindings by the integers of their ids; an id's last bits, which are random, select its dictionary."""


def no_bindings() -> ShardedBindings:
    """Return empty dictionaries."""
    return [{} for _ in range(ID_SHARDS)]


def all_bindings(bindings: ShardedBindings) -> Iterator[AclBinding]:
    """Yield the bindings, in no fixed order."""
    return chain.from_iterable([shard.values() for shard in bindings])


def bindings_by_id(acls: Iterable[tuple[UUID, AclBinding]]) -> ShardedBindings:
    """Return bindings by the integers of their ids; raise `DuplicateAclIdError`.

    Equal parts of the bindings are shared to save memory.
    """
    bindings = no_bindings()
    parts = SharedParts()
    intern = parts.intern
    for acl_id, binding in acls:
        number = acl_id.int
        shard = bindings[number & SHARD_BITS]
        if number in shard:
            raise DuplicateAclIdError(f"snapshot has two ACLs with id `{acl_id}`")
        intern(binding)
        shard[number] = binding
    parts.forget()
    return bindings
