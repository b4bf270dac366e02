"""May this principal do it on at least one resource of the type?

Kafka's default `authorizeByResourceType`, which looks at every ACL there is several times; here only the
two nodes that speak of the principal are walked. Operations match exactly or by ALL, without implication.
"""

from kustos.acl import AclOperation, AclPermissionType, host_matches
from kustos.authorizer.cells import ALLOWS, DENIES, HOSTED, Cell, PrefixCell, decision_of
from kustos.authorizer.index import Node
from kustos.authorizer.spi import Decision

PROBED_NAME = "hardcode"
"""The name that Kafka authorizes first, so that super users and default-allow pass."""


class ByTypeQuestion:
    """One operation, asked of a principal's node and the node of `User:*` for one client host."""

    __slots__ = ("_allowed", "_denied", "_host", "_nodes", "_operations")

    def __init__(self, operation: AclOperation, host: str, nodes: tuple[Node, ...]) -> None:
        self._operations = (operation, AclOperation.ALL)
        self._allowed = ALLOWS[operation]
        self._denied = DENIES[operation]
        self._host = host
        self._nodes = nodes

    def answer(self) -> Decision | None:
        """Return the decision and an ACL that makes it, None if nothing allows.

        A DENY on `*` ends it; then an ALLOW on `*` grants, whatever is denied elsewhere; then any other
        ALLOW that no DENY dominates.
        """
        wildcards = [node.wildcard for node in self._nodes if node.wildcard is not None]
        for find in (self._denying, self._allowing):
            for cell in wildcards:
                decision = find(cell, cell.mask)
                if decision is not None:
                    return decision
        for node in self._nodes:
            for name, literal in node.literals.items():
                if literal.mask & self._allowed:
                    decision = self._allowing(literal, literal.mask)
                    if decision is not None and not self._denies(name) and not self._denies_prefix(name):
                        return decision
            for name, prefix in node.prefixes.by_name.items():
                if prefix.own_mask & self._allowed:
                    decision = self._allowing(prefix, prefix.own_mask)
                    if decision is not None and not self._denies_prefix(name):
                        return decision
        return None

    def _allowing(self, cell: Cell, mask: int) -> Decision | None:
        if not mask & self._allowed:
            return None
        for binding in cell.bindings:
            entry = binding.entry
            if (
                entry.operation in self._operations
                and entry.permission_type is AclPermissionType.ALLOW
                and host_matches(entry.host, self._host)
            ):
                return decision_of(binding)
        return None

    def _denying(self, cell: Cell, mask: int) -> Decision | None:
        view = cell.at(self._host) if mask & HOSTED else cell
        return None if view is None or not view.mask & self._denied else view.decide(self._denied)

    def _denies(self, name: str) -> bool:
        literals = [node.literals.get(name) for node in self._nodes]
        return any(cell is not None and self._denying(cell, cell.mask) is not None for cell in literals)

    def _denies_prefix(self, name: str) -> bool:
        for node in self._nodes:
            prefix: PrefixCell | None = node.prefixes.longest(name) if node.prefixes.by_name else None
            if prefix is not None and prefix.mask & self._denied:
                view = prefix.at(self._host)
                if view is not None and view.mask & self._denied and self._dominates(node, view):
                    return True
        return False

    def _dominates(self, node: Node, view: PrefixCell) -> bool:
        """Return whether a prefix that denies is one that Kafka looks for: it tries none of length 0."""
        return "" not in node.prefixes.by_name or any(
            cell.own_mask & self._denied for cell in view.chain() if cell.name
        )
