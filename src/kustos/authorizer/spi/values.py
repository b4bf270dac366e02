"""The parameters and results of an authorizer (KIP-504); `plugin` has the interface itself.

Actions have LITERAL patterns only: a request names resources, not sets of resources.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import TYPE_CHECKING, Final, Self

from kustos.acl import AclBinding, AclOperation, KafkaPrincipal, ResourceType

if TYPE_CHECKING:
    from kustos.wire import ErrorCode


@unique
class AuthorizationResult(Enum):
    """The two possible answers."""

    ALLOWED = "ALLOWED"
    DENIED = "DENIED"


@unique
class RuleKind(Enum):
    """The reason for a decision, named as in Kafka's audit log."""

    SUPER_USER = "SuperUser"
    DEFAULT_ALLOW = "DefaultAllow"
    DEFAULT_DENY = "DefaultDeny"
    MATCHING_ACL = "MatchingAcl"
    CUSTOM = "CustomAuthorizer"
    """A custom authorizer decided; it gives no reason."""
    SHADOW_MODE = "ShadowMode"
    """The ACLs deny, but the listener does not enforce them (`kustos.authorization.mode=shadow`)."""
    AUTHORIZATION_OFF = "AuthorizationOff"
    """No authorizer decided (`kustos.authorization.mode=off`)."""


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

    `reference_count`: how many items of the request depend on it. The log flags say whether Kafka's
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
    """The context of a request: its principal, client address, listener and API.

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
    """The principal that forwarded the request in an Envelope (KIP-590)."""


class AuthorizerError(Exception):
    """The base class of errors of authorizers; a caller must deny the action."""


class AuthorizerNotReadyError(AuthorizerError):
    """The ACLs are not loaded yet; clients get UNKNOWN_SERVER_ERROR, as in Kafka, which has no specific
    code."""


class InvalidActionError(AuthorizerError, ValueError):
    """An invalid question: operation or resource type ANY or UNKNOWN, principal `User:*`."""


def error_codes() -> "type[ErrorCode]":
    """Return Kafka's error codes, imported at the first error, because importing the message codecs
    takes longer than importing this package."""
    from kustos.wire import ErrorCode

    return ErrorCode


class KafkaApiError(AuthorizerError):
    """An error sent to clients as its code, like `ApiException` in Kafka.

    `message` None: the client shows its own text for the code. As in Kafka, UNKNOWN_SERVER_ERROR has no
    message, so that unexpected errors reveal nothing. Raises ValueError for NONE.
    """

    def __init__(self, code: "ErrorCode", message: str | None = None) -> None:
        codes = error_codes()
        if code is codes.none:
            raise ValueError("`none` is not an error, name the code that clients shall see")
        super().__init__(message or code.name)
        self.code: Final = code
        self.message: Final = None if code is codes.unknown_server_error else message

    @classmethod
    def of(cls, error: BaseException) -> "KafkaApiError":
        """Return the error to send to clients: the error itself, or UNKNOWN_SERVER_ERROR."""
        return error if isinstance(error, KafkaApiError) else cls(error_codes().unknown_server_error)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener as advertised to clients."""

    listener_name: str
    security_protocol: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ClusterResource:
    """The cluster; its id is None if unknown."""

    cluster_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizerServerInfo:
    """The server that starts an authorizer."""

    cluster_resource: ClusterResource
    broker_id: int
    endpoints: tuple[Endpoint, ...]
    inter_broker_endpoint: Endpoint
    """One of the endpoints; the first one if there is no inter-broker endpoint."""
    early_start_listeners: frozenset[str] = frozenset()
    """Listeners that must not wait for the ACLs, because the ACLs arrive through them (KIP-801)."""


@dataclass(frozen=True, slots=True)
class AclCreateResult:
    """The result of one creation: without `exception` the ACL is in force."""

    exception: KafkaApiError | None = None
    change_offset: int | None = field(default=None, compare=False)
    """The offset of the request's first record in the metadata log, None if the log has no record of it."""


SUCCESS: Final = AclCreateResult()
"""The ACL is in force."""


@dataclass(frozen=True, slots=True)
class AclBindingDeleteResult:
    """The result of deleting one matching ACL: without `exception` it is deleted."""

    acl_binding: AclBinding
    exception: KafkaApiError | None = None


@dataclass(frozen=True, slots=True)
class AclDeleteResult:
    """The result of one filter: its matches with their results, or the error of the filter."""

    acl_binding_delete_results: tuple[AclBindingDeleteResult, ...] = ()
    exception: KafkaApiError | None = field(default=None)
    change_offset: int | None = field(default=None, compare=False)
    """As in `AclCreateResult`."""

    @classmethod
    def of(cls, deleted: Iterable[AclBinding], change_offset: int | None = None) -> Self:
        """Return the result of a filter whose matches were all deleted."""
        results = tuple(AclBindingDeleteResult(binding) for binding in deleted)
        return cls(results, change_offset=change_offset)


class AclFaultError(AuthorizerError):
    """An ACL could not be applied; the index is unchanged.

    The log or its reader is faulty, never a client: the node must not decide with an index that differs from
    the log.
    """


class DuplicateAclIdError(AclFaultError):
    """An ACL with this id exists already."""


class DuplicateAclError(AclFaultError):
    """The same ACL exists already under another id."""


class UnknownAclIdError(AclFaultError):
    """No ACL has the id to remove."""


class InvalidAclError(AclFaultError):
    """An ACL that could never match as its author intended."""
