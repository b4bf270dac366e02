"""Authorization on any resource of a type, using only the public interface.

This is the default implementation in Kafka's `Authorizer` (KIP-679), in its order:

1. a probe of one fixed name allows super users, and principals with a default or wildcard ALLOW
2. only ACLs for the exact operation or ALL count, of this principal or `User:*`, from this host
3. a DENY on every resource denies, then an ALLOW on every resource allows
4. else one ALLOW must remain whose name is not denied, literally or by a prefix
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from kustos.acl import (
    EVERY_PRINCIPAL,
    WILDCARD,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePatternFilter,
    ResourceType,
    host_matches,
)
from kustos.authorizer.spi.values import (
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    InvalidActionError,
)

PROBED_NAME: Final = "hardcode"
"""The name that Kafka probes first."""

_EVERY_NAME: Final = (PatternType.LITERAL, WILDCARD)
_NONE_IN_PARTICULAR: Final = frozenset({0, 1})
"""UNKNOWN and ANY, in both enums."""


class AclAuthorizer(Protocol):
    """The methods of an authorizer that this module calls."""

    def authorize(
        self, context: AuthorizableRequestContext, actions: Sequence[Action]
    ) -> Sequence[AuthorizationResult]:
        """Return one result for each action."""

    def acls(self, acl_filter: AclBindingFilter) -> Iterable[AclBinding]:
        """Return the ACLs that match."""


def authorize_by_resource_type(
    authorizer: AclAuthorizer,
    context: AuthorizableRequestContext,
    operation: AclOperation,
    resource_type: ResourceType,
) -> AuthorizationResult:
    """Return whether the operation is allowed on at least one resource of the type.

    Raises `InvalidActionError` for the operation or type ANY or UNKNOWN, and the errors of the authorizer.
    """
    if operation in _NONE_IN_PARTICULAR or resource_type in _NONE_IN_PARTICULAR:
        raise InvalidActionError(f"cannot decide `{operation}` on `{resource_type}`, name both")
    probe = Action(
        resource_type, PROBED_NAME, operation, reference_count=0, log_if_allowed=True, log_if_denied=False
    )
    if authorizer.authorize(context, [probe])[0] is AuthorizationResult.ALLOWED:
        return AuthorizationResult.ALLOWED
    denied: set[tuple[PatternType, str]] = set()
    allowed: set[tuple[PatternType, str]] = set()
    every = AclBindingFilter(ResourcePatternFilter(resource_type))
    for binding in authorizer.acls(every):
        if _matches(binding, context, operation):
            pattern = (binding.pattern.pattern_type, binding.pattern.name)
            if binding.entry.permission_type is AclPermissionType.DENY:
                denied.add(pattern)
            elif binding.entry.permission_type is AclPermissionType.ALLOW:
                allowed.add(pattern)
    if _EVERY_NAME in denied:
        return AuthorizationResult.DENIED
    if _EVERY_NAME in allowed or any(not _is_dominated(pattern, denied) for pattern in allowed):
        return AuthorizationResult.ALLOWED
    return AuthorizationResult.DENIED


def _matches(binding: AclBinding, context: AuthorizableRequestContext, operation: AclOperation) -> bool:
    entry = binding.entry
    return (
        host_matches(entry.host, context.host)
        and (entry.principal == EVERY_PRINCIPAL or KafkaPrincipal.parse(entry.principal) == context.principal)
        and entry.operation in {operation, AclOperation.ALL}
    )


def _is_dominated(pattern: tuple[PatternType, str], denied: set[tuple[PatternType, str]]) -> bool:
    pattern_type, name = pattern
    if pattern_type is PatternType.LITERAL and pattern in denied:
        return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))
