"""`AuthorizerWrapper`: any legacy authorizer behind today's interface, as Kafka 2.4 to 2.8 put it there.

What the legacy interface cannot say is kept as Kafka kept it: changes are made one by one, at once; the
deletion by exact filters asks nothing first; a Deny of the very operation on `*` ends a question by type even
for super users. Hosts stay texts: a legacy authorizer knows no ranges, so none is created through it.
"""

from collections.abc import Awaitable, Generator, Iterable, Iterator, Mapping, Sequence

from kio.schema.errors import ErrorCode

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
from kustos.authorizer.by_type_default import authorize_by_resource_type
from kustos.authorizer.legacy.conversion import single_of
from kustos.authorizer.legacy.errors import LegacyRefusalError
from kustos.authorizer.legacy.interface import LegacyAuthorizer
from kustos.authorizer.legacy.simple import SimpleAclAuthorizer
from kustos.authorizer.legacy.values import Acl, Resource, Session
from kustos.authorizer.legacy.vocabulary import OPERATION_NAMES, RESOURCE_TYPE_NAMES
from kustos.authorizer.plugin import Authorizer
from kustos.authorizer.spi import (
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    InvalidActionError,
)
from kustos.authorizer.spi_values import (
    SUCCESS,
    AclBindingDeleteResult,
    AclCreateResult,
    AclDeleteResult,
    AuthorizerServerInfo,
    Endpoint,
    KafkaApiError,
)

NOT_CREATED = "Failed to create ACL"
"""What clients are told of an error that has no code of its own, in Kafka's words."""


class _Done(Awaitable[None]):
    """What has nothing to wait for."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


class AuthorizerWrapper(Authorizer):
    """Asks `base`; the settings go to it as they are."""

    def __init__(self, base: LegacyAuthorizer) -> None:
        self.base = base

    def configure(self, configs: Mapping[str, str]) -> None:
        """Do what the legacy authorizer does with the settings, and raise what it raises."""
        self.base.configure(configs)

    def start(self, server_info: AuthorizerServerInfo) -> Mapping[Endpoint, Awaitable[None]]:
        """Return that every endpoint can begin: a legacy authorizer is ready when it is configured."""
        return {endpoint: _Done() for endpoint in server_info.endpoints}

    def authorize(
        self, context: AuthorizableRequestContext, actions: Sequence[Action]
    ) -> list[AuthorizationResult]:
        """Return one result for each action; raise `InvalidActionError` for ANY and UNKNOWN."""
        session = Session(context.principal, context.host)
        return [self._authorize(session, action) for action in actions]

    def _authorize(self, session: Session, action: Action) -> AuthorizationResult:
        if action.operation not in OPERATION_NAMES or action.resource_type not in RESOURCE_TYPE_NAMES:
            asked = f"`{action.operation}` on `{action.resource_type}`"
            raise InvalidActionError(f"{asked} cannot be asked about, name both")
        resource = Resource(action.resource_type, action.resource_name)
        # only a true yes allows: what else somebody's code returns is a no
        if self.base.authorize(session, action.operation, resource) is True:
            return AuthorizationResult.ALLOWED
        return AuthorizationResult.DENIED

    def authorize_by_resource_type(
        self, context: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> AuthorizationResult:
        """Return what Kafka's wrapper does: a Deny of the operation on `*` first, then default-allow."""
        if operation not in OPERATION_NAMES or resource_type not in RESOURCE_TYPE_NAMES:
            raise InvalidActionError(f"`{operation}` on `{resource_type}` cannot be asked about, name both")
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
        """Add them one by one; come to INVALID_REQUEST for each that cannot be said or was not taken."""
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
        except Exception:  # noqa: BLE001 - somebody's code failed: nothing was acknowledged, the client learns it
            return AclCreateResult(KafkaApiError(ErrorCode.invalid_request, NOT_CREATED))
        return SUCCESS

    async def delete_acls(
        self, context: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> list[AclDeleteResult]:
        """Remove what matches one by one; an ACL that two filters match is told under the first."""
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
        """Yield the statements that match, as they are now, their hosts as they were written."""
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
    """A wrapper as Kafka's default for questions by type sees it: no host is a range of addresses."""

    def __init__(self, wrapper: AuthorizerWrapper, host: str) -> None:
        self._wrapper = wrapper
        self._hosts = {WILDCARD, host}
        self.authorize = wrapper.authorize

    def acls(self, acl_filter: AclBindingFilter) -> Iterator[AclBinding]:
        """Yield those of one host or all."""
        return (each for each in self._wrapper.acls(acl_filter) if each.entry.host in self._hosts)


def _binding(resource: Resource, acl: Acl) -> AclBinding:
    ((host,), (operation,)) = acl.hosts, acl.operations
    return AclBinding(
        resource.pattern, AccessControlEntry(str(acl.principal), host, operation, acl.permission_type)
    )
