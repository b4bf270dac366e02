"""One principal on one host: what the gateway asks, thousands of times a second.

A session keeps its answers, for as long as the index has the version that gave them. Every question
compares versions first, so no answer is ever older than the last change applied.
"""

from typing import TYPE_CHECKING, Final

from kustos.acl import EVERY_PRINCIPAL, AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer.by_type import PROBED_NAME, ByTypeQuestion
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
"""Decisions that one session keeps, about 0.5 MB: more names than most principals ever touch."""

_NO_NODES: Final[tuple[Node | None, Node | None]] = (None, None)


def check_question(operation: AclOperation, resource_type: ResourceType) -> None:
    """Raise `InvalidActionError` for what stands for no operation or resource type in particular."""
    if operation not in _OPERATIONS:
        raise InvalidActionError(f"operation `{operation}` cannot be asked about, name a particular one")
    if resource_type not in _RESOURCE_TYPES:
        raise InvalidActionError(
            f"resource type `{resource_type}` cannot be asked about, name a particular one"
        )


_OPERATIONS: Final = frozenset(AclOperation) - {AclOperation.UNKNOWN, AclOperation.ANY}
_RESOURCE_TYPES: Final = frozenset(ResourceType) - {ResourceType.UNKNOWN, ResourceType.ANY}


class AuthorizerSession:
    """Decides for one principal on one host, always from the newest index.

    Made by `StandardAuthorizer.session`. Not thread-safe: one event loop asks and applies changes.
    """

    __slots__ = (
        "__weakref__",
        "_authorizer",
        "_by_type",
        "_decisions",
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
        self._decisions: dict[tuple[str, AclOperation, ResourceType], Decision] = {}
        self._by_type: dict[tuple[AclOperation, ResourceType], tuple[tuple[int, ...], Decision | None]] = {}
        self._nodes: dict[ResourceType, tuple[Node | None, Node | None]] = {}

    def decide(self, operation: AclOperation, resource_type: ResourceType, name: str) -> Decision:
        """Return the decision on one named resource.

        Raises `AuthorizerNotReadyError` before the ACLs are loaded (super users pass) and
        `InvalidActionError` for an operation or type that is none in particular.
        """
        if self._version != self._authorizer.version:
            self._refresh()
        key = (name, operation, resource_type)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide(operation, resource_type, name)
            if len(self._decisions) >= SESSION_DECISIONS_MAX:
                self._decisions.clear()
            self._decisions[key] = decision
        return decision

    def decide_by_resource_type(self, operation: AclOperation, resource_type: ResourceType) -> Decision:
        """Return whether at least one resource of the type allows it, with an ACL that says so."""
        decision = self.decide(operation, resource_type, PROBED_NAME)
        if decision.allowed:
            return decision
        own, every = self._nodes.get(resource_type, _NO_NODES)
        stamps = (0 if own is None else own.stamp, 0 if every is None else every.stamp)
        known = self._by_type.get((operation, resource_type))
        if known is None or known[0] != stamps:
            nodes = tuple(node for node in (own, every) if node is not None)
            known = (stamps, ByTypeQuestion(operation, self.host, nodes).answer())
            self._by_type[operation, resource_type] = known
        return known[1] or DEFAULT_DENY

    def forget(self) -> None:
        """Drop the kept decisions."""
        self._decisions.clear()

    def _decide(self, operation: AclOperation, resource_type: ResourceType, name: str) -> Decision:
        if operation not in _OPERATIONS or resource_type not in _RESOURCE_TYPES:
            check_question(operation, resource_type)
        if self._fixed is not None:
            return self._fixed
        own, every = self._nodes.get(resource_type, _NO_NODES)
        decision = None if own is None else own.find(name, operation, self.host)
        if every is not None:
            theirs = every.find(name, operation, self.host)
            if theirs is not None:
                decision = theirs if decision is None else first_of(decision, theirs, name)
        return decision or self._authorizer.default_decision(resource_type, name)

    def _refresh(self) -> None:
        """Look again at what a change may have changed; leaves no trace if the index is not ready."""
        authorizer = self._authorizer
        self._decisions.clear()
        self._version = -1
        if str(self.principal) in authorizer.super_users:
            self._fixed = SUPER_USER
        else:
            self._fixed = None
            if not authorizer.is_ready:
                raise AuthorizerNotReadyError("the ACLs are not loaded yet, ask again when they are")
            index = authorizer.index
            own, every = index.nodes(self._principal_text), index.every
            self._nodes = {
                resource_type: (own.get(resource_type), every.get(resource_type))
                for resource_type in own.keys() | every.keys()
            }
        self._version = authorizer.version
