"""May this principal do it on at least one resource of the type?

Kafka's default `authorizeByResourceType`, which looks at every ACL there is several times; here only the
two nodes that speak of the principal are walked. Operations match exactly or by ALL, without implication.
"""

from collections.abc import Iterator

from kustos.acl import AclBinding, AclOperation, host_matches
from kustos.authorizer.cells import DENIED_BIT, WRITTEN_BIT, Cell, binding_mask, decision_of
from kustos.authorizer.index import Node
from kustos.authorizer.spi import Decision

PROBED_NAME = "hardcode"
"""The name that Kafka authorizes first, so that super users and default-allow pass."""


class ByTypeQuestion:
    """One operation, asked of a principal's node and the node of `User:*` for one client host."""

    __slots__ = ("_allowed", "_denied", "_host", "_nodes")

    def __init__(self, operation: AclOperation, host: str, nodes: tuple[Node, ...]) -> None:
        self._allowed = WRITTEN_BIT << operation
        self._denied = DENIED_BIT << operation
        self._host = host
        self._nodes = nodes

    def answer(self) -> Decision | None:
        """Return the decision and an ACL that makes it, None if nothing allows.

        A DENY on `*` ends it; then an ALLOW on `*` grants, whatever is denied elsewhere; then any other
        ALLOW that no DENY dominates.
        """
        wildcards = [node.wildcard for node in self._nodes if node.wildcard is not None]
        for wanted in (self._denied, self._allowed):
            for cell in wildcards:
                binding = self._binding_in(cell, wanted)
                if binding is not None:
                    return decision_of(binding)
        for name, cell, is_prefix in self._patterns():
            binding = self._binding_in(cell, self._allowed) if cell.mask & self._allowed else None
            if binding is not None and not self._is_dominated(name, is_prefix=is_prefix):
                return decision_of(binding)
        return None

    def _patterns(self) -> Iterator[tuple[str, Cell, bool]]:
        for node in self._nodes:
            for name, cell in node.literals.items():
                yield name, cell, False
            for name, prefix in node.prefixes.by_name.items():
                yield name, prefix, True

    def _binding_in(self, cell: Cell, wanted: int) -> AclBinding | None:
        for binding in cell.bindings:
            if binding_mask(binding) & wanted and host_matches(binding.entry.host, self._host):
                return binding
        return None

    def _is_dominated(self, name: str, *, is_prefix: bool) -> bool:
        for node in self._nodes:
            if not is_prefix:
                literal = node.literals.get(name)
                if literal is not None and self._binding_in(literal, self._denied) is not None:
                    return True
            prefix = node.prefixes.longest(name) if node.prefixes.by_name else None
            if prefix is not None and prefix.mask & self._denied:
                for shorter in prefix.chain():
                    if (
                        shorter.own_mask & self._denied
                        and self._binding_in(shorter, self._denied) is not None
                    ):
                        return True
        return False
