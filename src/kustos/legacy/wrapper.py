"""`AuthorizerWrapper`: adapts any legacy authorizer to the current interface, as in Kafka 2.4 to 2.8.

The limits of the legacy interface remain, as in Kafka: changes are applied one by one and immediately;
deletion by exact filters makes no look-up first; a Deny of the exact operation on `*` decides a question by
type even for super users. Hosts are texts: a legacy authorizer has no ranges, so the wrapper refuses to
create one.
"""

from collections.abc import Awaitable, Generator, Iterable, Iterator, Mapping, Sequence

from kustos.acl import (
    EVERY_PRINCIPAL,
    WILDCARD,
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.authorizer import (
    SUCCESS,
    AclBindingDeleteResult,
    AclCreateResult,
    AclDeleteResult,
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    Authorizer,
    AuthorizerServerInfo,
    Endpoint,
    InvalidActionError,
    KafkaApiError,
)
from kustos.authorizer.spi import authorize_by_resource_type
from kustos.legacy.conversion import single_of
from kustos.legacy.interface import LegacyAuthorizer
from kustos.legacy.simple import SimpleAclAuthorizer
from kustos.legacy.values import Acl, Resource, Session
from kustos.legacy.vocabulary import OPERATION_NAMES, RESOURCE_TYPE_NAMES, LegacyRefusalError
from kustos.wire import ErrorCode

NOT_CREATED = "Failed to create ACL"
"""Kafka's text for an error without its own code."""


class _Done(Awaitable[None]):
    """An awaitable that is already done."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


class AuthorizerWrapper(Authorizer):
    """Delegates to `base`; passes the settings to it unchanged."""

    def __init__(self, base: LegacyAuthorizer) -> None:
        self.base = base

    def configure(self, configs: Mapping[str, str]) -> None:
        """Configure the legacy authorizer; its errors are raised unchanged."""
        self.base.configure(configs)

    def start(self, server_info: AuthorizerServerInfo) -> Mapping[Endpoint, Awaitable[None]]:
        """Report every endpoint as ready: a legacy authorizer is ready once configured."""
        return {endpoint: _Done() for endpoint in server_info.endpoints}

    def authorize(
        self, context: AuthorizableRequestContext, actions: Sequence[Action]
    ) -> list[AuthorizationResult]:
        """Return one result for each action; raise `InvalidActionError` for ANY and UNKNOWN."""
        session = Session(context.principal, context.host)
        return [self._authorize(session, action) for action in actions]

    def _authorize(self, session: Session, action: Action) -> AuthorizationResult:
        if action.operation not in OPERATION_NAMES or action.resource_type not in RESOURCE_TYPE_NAMES:
            question = f"`{action.operation}` on `{action.resource_type}`"
            raise InvalidActionError(f"cannot decide {question}, name both")
        resource = Resource(action.resource_type, action.resource_name)
        # only True allows: any other value of a plugin is a denial
        if self.base.authorize(session, action.operation, resource) is True:
            return AuthorizationResult.ALLOWED
        return AuthorizationResult.DENIED

    def authorize_by_resource_type(
        self, context: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> AuthorizationResult:
        """Return the result of Kafka's wrapper: a Deny of the operation on `*` first, then default-allow."""
        if operation not in OPERATION_NAMES or resource_type not in RESOURCE_TYPE_NAMES:
            raise InvalidActionError(f"cannot decide `{operation}` on `{resource_type}`, name both")
        denials = AclBindingFilter(
            ResourcePatternFilter(resource_type, WILDCARD, PatternType.LITERAL),
            AccessControlEntryFilter(None, None, operation, AclPermissionType.DENY),
        )
        who = {EVERY_PRINCIPAL, str(context.principal)}
        if any(
            denial.entry.principal in who and denial.entry.host in {WILDCARD, context.host}
            for denial in self.acls(denials)
        ):
            return AuthorizationResult.DENIED
        if isinstance(self.base, SimpleAclAuthorizer) and self.base.allows_everyone_if_no_acl_found:
            return AuthorizationResult.ALLOWED
        return authorize_by_resource_type(
            _HostsAsTexts(self, context.host), context, operation, resource_type
        )

    async def create_acls(
        self, context: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        """Add them one by one; INVALID_REQUEST for each that cannot be expressed or was refused."""
        del context  # the legacy interface has no place for it
        return [self._create(binding) for binding in bindings]

    def _create(self, binding: AclBinding) -> AclCreateResult:
        try:
            resource, acl = single_of(binding)
        except LegacyRefusalError as error:
            return AclCreateResult(KafkaApiError(ErrorCode.invalid_request, str(error)))
        try:
            self.base.add_acls({acl}, resource)
        except KafkaApiError as error:
            return AclCreateResult(error)
        except Exception:  # noqa: BLE001 - plugin code failed: nothing was acknowledged, report it
            return AclCreateResult(KafkaApiError(ErrorCode.invalid_request, NOT_CREATED))
        return SUCCESS

    async def delete_acls(
        self, context: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> list[AclDeleteResult]:
        """Remove matches one by one; an ACL that two filters match is reported under the first."""
        del context  # as with creations
        if all(each.matches_at_most_one for each in filters):
            return [self._delete_one(each) for each in filters]
        every = list(self._kept())
        return [self._deleted(kept for kept in every if each.matches(_binding(*kept))) for each in filters]

    def _delete_one(self, acl_filter: AclBindingFilter) -> AclDeleteResult:
        pattern, entry = acl_filter.pattern_filter, acl_filter.entry_filter
        try:
            resource = Resource(pattern.resource_type, pattern.name or "", pattern.pattern_type)
            principal = KafkaPrincipal.parse(entry.principal or "")
            acl = Acl.of(principal, entry.permission_type, entry.host or "", entry.operation)
        except ValueError as error:
            return AclDeleteResult(exception=KafkaApiError(ErrorCode.invalid_request, str(error)))
        return self._deleted([(resource, acl)])

    def _deleted(self, wanted: Iterable[tuple[Resource, Acl]]) -> AclDeleteResult:
        results: list[AclBindingDeleteResult] = []
        for resource, acl in wanted:
            binding = _binding(resource, acl)
            try:
                if self.base.remove_acls({acl}, resource):
                    results.append(AclBindingDeleteResult(binding))
            except Exception as error:  # noqa: BLE001 - as with creations
                results.append(AclBindingDeleteResult(binding, KafkaApiError.of(error)))
        return AclDeleteResult(tuple(results))

    def acls(self, acl_filter: AclBindingFilter) -> Iterator[AclBinding]:
        """Yield the current matching statements, with their hosts as written."""
        for kept in self._kept():
            binding = _binding(*kept)
            if acl_filter.matches(binding):
                yield binding

    def _kept(self) -> Iterator[tuple[Resource, Acl]]:
        for resource, acls in self.base.get_acls().items():
            for acl in acls:
                for single in acl.singles():
                    yield resource, single

    def close(self) -> None:
        """Close the legacy authorizer."""
        self.base.close()


class _HostsAsTexts:
    """A view of a wrapper for Kafka's default for questions by type: no host is a range of addresses."""

    def __init__(self, wrapper: AuthorizerWrapper, host: str) -> None:
        self._wrapper = wrapper
        self._hosts = {WILDCARD, host}
        self.authorize = wrapper.authorize

    def acls(self, acl_filter: AclBindingFilter) -> Iterator[AclBinding]:
        """Yield the ACLs of one host or all hosts."""
        return (each for each in self._wrapper.acls(acl_filter) if each.entry.host in self._hosts)


def _binding(resource: Resource, acl: Acl) -> AclBinding:
    ((host,), (operation,)) = acl.hosts, acl.operations
    return AclBinding(
        resource.pattern, AccessControlEntry(str(acl.principal), host, operation, acl.permission_type)
    )
