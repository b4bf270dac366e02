"""What an authorizer is asked and what it answers (KIP-504); `plugin` has the interface itself.

Actions carry LITERAL patterns only: a request names resources, never sets of them.
"""

from dataclasses import dataclass, field
from enum import Enum, unique

from kustos.acl import AclBinding, AclOperation, KafkaPrincipal, ResourceType


@unique
class AuthorizationResult(Enum):
    """The two possible answers."""

    ALLOWED = "ALLOWED"
    DENIED = "DENIED"


@unique
class RuleKind(Enum):
    """Why a decision fell as it did, named as in Kafka's audit log."""

    SUPER_USER = "SuperUser"
    DEFAULT_ALLOW = "DefaultAllow"
    DEFAULT_DENY = "DefaultDeny"
    MATCHING_ACL = "MatchingAcl"
    CUSTOM = "CustomAuthorizer"
    """An authorizer of somebody else's decided; it does not say why."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The deciding rule; `binding` is set for MATCHING_ACL only."""

    kind: RuleKind
    binding: AclBinding | None = None

    def __str__(self) -> str:
        if self.binding is None:
            return self.kind.value
        return f"{self.kind.value}(acl={self.binding.audit_text()})"


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer with its reason; `allowed` says whether the action may proceed."""

    result: AuthorizationResult
    rule: Rule
    allowed: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed", self.result is AuthorizationResult.ALLOWED)


@dataclass(frozen=True, slots=True)
class Action:
    """An operation on one named resource.

    `reference_count`: how many items of the request hang on it. The log flags say whether Kafka's
    audit log shows the decision at DEBUG (allowed) or INFO (denied) rather than TRACE.
    """

    resource_type: ResourceType
    resource_name: str
    operation: AclOperation
    reference_count: int = 1
    log_if_allowed: bool = True
    log_if_denied: bool = True


@dataclass(frozen=True, slots=True)
class AuthorizableRequestContext:
    """Who asks, from where, over what, in which request.

    `host` is the client's address in Java's `getHostAddress()` form. `request_type` is the API key.
    """

    principal: KafkaPrincipal
    host: str
    listener_name: str = ""
    security_protocol: str = "PLAINTEXT"
    client_id: str | None = None
    request_type: int = -1
    request_version: int = -1
    correlation_id: int = 0
    forwarded_by: KafkaPrincipal | None = None
    """Who handed the request in for the principal, by an Envelope (KIP-590)."""


class AuthorizerError(Exception):
    """The root of what an authorizer raises; a caller that sees one must not let the action pass."""


class AuthorizerNotReadyError(AuthorizerError):
    """The ACLs are not loaded yet; clients are told UNKNOWN_SERVER_ERROR, as Kafka does (no own code)."""


class InvalidActionError(AuthorizerError, ValueError):
    """A question that has no answer: operation or resource type ANY or UNKNOWN, principal `User:*`."""
