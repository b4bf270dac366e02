"""One principal on one host: what the gateway asks, thousands of times a second.

A session keeps its answers, for as long as the index has the version that gave them. Every question
compares versions first, so no answer is ever older than the last change applied.
"""

from typing import TYPE_CHECKING, Final

from kustos.acl import EVERY_PRINCIPAL, AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer.by_type import PROBED_NAME, ByTypeQuestion
from kustos.authorizer.cells import DECIDES, Cell
from kustos.authorizer.index import Node, first_of
from kustos.authorizer.spi import (
    AuthorizationResult,
    AuthorizerNotReadyError,
    Decision,
    InvalidActionError,
    Rule,
    RuleKind,
)

if TYPE_CHECKING:
    from kustos.authorizer.standard import StandardAuthorizer

SUPER_USER: Final = Decision(AuthorizationResult.ALLOWED, Rule(RuleKind.SUPER_USER))
DEFAULT_ALLOW: Final = Decision(AuthorizationResult.ALLOWED, Rule(RuleKind.DEFAULT_ALLOW))
DEFAULT_DENY: Final = Decision(AuthorizationResult.DENIED, Rule(RuleKind.DEFAULT_DENY))

SESSION_DECISIONS_MAX: Final = 4096
"""Decisions that one session keeps, less than 2 MB: more names than most principals ever touch."""

KEPT_NAME_CHARACTERS_MAX: Final = 255
"""Decisions on longer names are not kept (topics have at most 249), so that they cannot fill memory."""

_Nodes = tuple[Node | None, Node | None, dict[str, Cell] | None]
"""A principal's own node, that of `User:*`, and the literals if there is nothing else in either."""

_NO_LITERALS: Final[dict[str, Cell]] = {}

_RESOURCE_TYPES: Final = frozenset(ResourceType) - {ResourceType.UNKNOWN, ResourceType.ANY}


class AuthorizerSession:
    """Decides for one principal on one host, always from the newest index.

    Made by `StandardAuthorizer.session`. Not thread-safe: one event loop asks and applies changes.
    """

    __slots__ = (
        "_authorizer",
        "_by_type",
        "_decisions",
        "_default",
        "_fixed",
        "_nodes",
        "_principal_text",
        "_version",
        "host",
        "principal",
    )

    def __init__(self, authorizer: "StandardAuthorizer", principal: KafkaPrincipal, host: str) -> None:
        if str(principal) == EVERY_PRINCIPAL:
            raise InvalidActionError(
                f"principal `{principal}` stands for everybody and can ask nothing itself"
            )
        self.principal = principal
        self.host = host
        # an ACL's principal is split at its first colon, so a type that holds one is never matched
        self._principal_text = "" if ":" in principal.principal_type else str(principal)
        self._authorizer = authorizer
        self._version = -1
        self._fixed: Decision | None = None
        self._default: Decision | None = None
        self._nodes: dict[ResourceType, _Nodes] = {}
        self._decisions: dict[tuple[str, AclOperation, ResourceType], Decision] = {}
        self._by_type: dict[tuple[AclOperation, ResourceType], tuple[tuple[int, ...], Decision | None]] = {}

    def decide(self, operation: AclOperation, resource_type: ResourceType, name: str) -> Decision:
        """Return the decision on one named resource.

        Raises `AuthorizerNotReadyError` before the ACLs are loaded (super users pass) and
        `InvalidActionError` for an operation or type that is none in particular.
        """
        if self._version != self._authorizer.version:
            self._refresh()
        try:
            decides = DECIDES[operation]
            own, every, literals = self._nodes[resource_type]
        except KeyError:
            decides = self._open(operation, resource_type)
            own, every, literals = self._nodes[resource_type]
        if literals is not None:
            # one look-up finds all there is: the index is as fast as a table of decisions would be
            cell = literals.get(name)
            if cell is None or not cell.mask & decides:
                if self._default is not None:
                    return self._default
            elif cell.sole is not None:
                return cell.sole
        key = (name, operation, resource_type)
        decision = self._decisions.get(key)
        if decision is not None:
            return decision
        if every is None:
            decision = None if own is None else own.find(name, operation, self.host)
        else:
            decision = self._search(own, every, operation, name)
        if decision is None:
            decision = self._default or self._authorizer.default_decision(resource_type, name)
        if len(self._decisions) >= SESSION_DECISIONS_MAX:
            self._decisions.clear()
        if len(name) <= KEPT_NAME_CHARACTERS_MAX:
            self._decisions[key] = decision
        return decision

    def _search(self, own: Node | None, every: Node, operation: AclOperation, name: str) -> Decision | None:
        mine = None if own is None else own.find(name, operation, self.host)
        theirs = every.find(name, operation, self.host)
        if mine is None or theirs is None:
            return mine or theirs
        return first_of(mine, theirs, name)

    def decide_by_resource_type(self, operation: AclOperation, resource_type: ResourceType) -> Decision:
        """Return whether at least one resource of the type allows it, with an ACL that says so.

        Raises what `decide` raises.
        """
        decision = self.decide(operation, resource_type, PROBED_NAME)
        if decision.allowed:
            return decision
        own, every, _ = self._nodes[resource_type]
        stamps = (0 if own is None else own.stamp, 0 if every is None else every.stamp)
        known = self._by_type.get((operation, resource_type))
        if known is None or known[0] != stamps:
            nodes = tuple([node for node in (own, every) if node is not None])
            known = (stamps, ByTypeQuestion(operation, self.host, nodes).answer())
            self._by_type[operation, resource_type] = known
        return known[1] or DEFAULT_DENY

    def _open(self, operation: AclOperation, resource_type: ResourceType) -> int:
        """Look up the nodes for a question of a kind that was not asked before."""
        if resource_type not in _RESOURCE_TYPES:
            raise InvalidActionError(f"resource type `{resource_type}` cannot be asked about, name one")
        if operation not in DECIDES:
            raise InvalidActionError(f"operation `{operation}` cannot be asked about, name one")
        self._nodes[resource_type] = self._look_up(resource_type)
        return DECIDES[operation]

    def _look_up(self, resource_type: ResourceType) -> _Nodes:
        if self._fixed is not None:
            return None, None, _NO_LITERALS
        index = self._authorizer.index
        own = index.nodes(self._principal_text).get(resource_type)
        every = index.every.get(resource_type)
        if own is None or every is None:
            only = own or every
            if only is None:
                return None, None, _NO_LITERALS
            if only.has_only_literals:
                return own, every, only.literals
        return own, every, None

    def _refresh(self) -> None:
        """Forget what a change may have changed; not ready, the next question comes here again."""
        authorizer = self._authorizer
        self._version = -1
        self._decisions.clear()
        self._nodes.clear()
        self._fixed = SUPER_USER if str(self.principal) in authorizer.super_users else None
        if self._fixed is None and not authorizer.is_ready:
            raise AuthorizerNotReadyError("the ACLs are not loaded yet, ask again when they are")
        # a super user has no nodes (see _look_up), so that this default answers every question
        self._default = self._fixed or (None if authorizer.allow_everyone_if_no_acl_found else DEFAULT_DENY)
        self._version = authorizer.version
