"""Decides whether a principal may perform an operation on at least one resource of a type.

Kafka's default `authorizeByResourceType` scans all ACLs several times; this module reads only the nodes of
the principal, of `User:*` and of the groups, and caches the answer until one of them changes. Operations
match exactly or by ALL, without implication.
"""

from typing import Final

from kustos.acl import AclOperation, AclPermissionType
from kustos.authorizer.index.cells import ALLOWS, DENIES, HOSTED, Cell, PatternCell, binding_mask, decision_of
from kustos.authorizer.index.index import PrincipalNode
from kustos.authorizer.index.prefixes import PrefixCell
from kustos.authorizer.spi.values import Decision

PROBED_NAME = "hardcode"
"""The name that Kafka authorizes first, to admit super users and principals under default-allow."""

KEPT_ANSWERS_MAX: Final = 256
"""The maximum number of cached answers in a node: a few operations from many hosts."""


def decide_by_type(
    nodes: tuple[PrincipalNode | None, ...], operation: AclOperation, host: str, groups: tuple[str, ...]
) -> Decision | None:
    """Return the decision and an ACL that is its reason, None if no ACL allows.

    `nodes` are the nodes on the type of the principal, of `User:*`, and of its `groups`; the first one keeps
    the answer, for this principal and others with the same groups.
    """
    keeper = next(filter(None, nodes), None)
    if keeper is None:
        return None
    stamps = tuple([0 if node is None else node.stamp for node in nodes])
    if keeper.by_type is None or len(keeper.by_type) >= KEPT_ANSWERS_MAX:
        keeper.by_type = {}
    known = keeper.by_type.get((operation, host, groups))
    if known is None or known[0] != stamps:
        existing = tuple([node for node in nodes if node is not None])
        known = (stamps, ByTypeQuestion(operation, host, existing).answer())
        keeper.by_type[operation, host, groups] = known
    return known[1]


class ByTypeQuestion:
    """One operation, checked in the nodes that apply to one client, for its host."""

    __slots__ = ("_allowed", "_denied", "_denying_nodes", "_host", "_nodes", "_operations")

    def __init__(self, operation: AclOperation, host: str, nodes: tuple[PrincipalNode, ...]) -> None:
        self._operations = (operation, AclOperation.ALL)
        self._allowed = ALLOWS[operation]
        self._denied = DENIES[operation]
        self._host = host
        self._nodes = nodes
        # skip the others in the search for each ALLOW
        self._denying_nodes = [node for node in nodes if self._has_denying_prefix(node)]

    def _has_denying_prefix(self, node: PrincipalNode) -> bool:
        return any(cell.own_mask & self._denied for cell in node.prefixes.by_name.values())

    def answer(self) -> Decision | None:
        """Return the decision and an ACL that is its reason, None if no ACL allows.

        A DENY on `*` denies; otherwise an ALLOW on `*` allows despite other DENYs; otherwise any other ALLOW
        allows unless a DENY dominates it.
        """
        wildcards = [node.wildcard for node in self._nodes if node.wildcard is not None]
        for find in (self._denying, self._allowing):
            for cell in wildcards:
                decision = find(cell)
                if decision is not None:
                    return decision
        for node in self._nodes:
            for name, literal in node.literals.items():
                if self._may_allow(literal.mask) and not self._denies_prefix(name) and not self._denies(name):
                    decision = self._allowing(literal)
                    if decision is not None:
                        return decision
            for name, prefix in node.prefixes.by_name.items():
                # no prefix dominates the empty prefix, not even itself
                if self._may_allow(prefix.own_mask if name else prefix.own_mask & ~self._denied) and (
                    not self._denies_prefix(name)
                ):
                    decision = self._allowing(prefix)
                    if decision is not None:
                        return decision
        return None

    def _may_allow(self, mask: int) -> bool:
        if mask & HOSTED:
            return bool(mask & self._allowed)
        return mask & (self._allowed | self._denied) == self._allowed

    def _allowing(self, cell: PatternCell) -> Decision | None:
        if not cell.own_mask & self._allowed:
            return None
        for binding in cell.bindings_at(self._host):
            entry = binding.entry
            if entry.operation in self._operations and entry.permission_type is AclPermissionType.ALLOW:
                return decision_of(binding)
        return None

    def _denying(self, cell: Cell) -> Decision | None:
        view = cell.at(self._host)
        return view.decide(self._denied) if view.mask & self._denied else None

    def _denies(self, name: str) -> bool:
        cells = [node.literals.get(name) for node in self._nodes]
        return any(cell.at(self._host).mask & self._denied for cell in cells if cell is not None)

    def _denies_prefix(self, name: str) -> bool:
        for node in self._denying_nodes:
            prefix = node.prefixes.longest(name)
            if prefix is not None and prefix.mask & self._denied and self._dominates(node, prefix):
                return True
        return False

    def _dominates(self, node: PrincipalNode, prefix: PrefixCell) -> bool:
        """Return whether a prefix or a shorter one denies; Kafka ignores the empty prefix."""
        if "" not in node.prefixes.by_name:
            return bool(prefix.at(self._host).mask & self._denied)
        bindings_of_prefixes = [cell.bindings_at(self._host) for cell in prefix.chain() if cell.name]
        return any(
            binding_mask(binding) & self._denied for bindings in bindings_of_prefixes for binding in bindings
        )
