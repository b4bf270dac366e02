"""The interface of authorizers: Kafka's `Authorizer` in Python (KIP-504, with KIP-801's additions).

A server creates an authorizer, calls `configure` and `start`, opens each listener when its awaitable from
`start` completes, calls `authorize` for every request, and finally calls `close`. All calls come from one
event loop. Methods that may wait return awaitables; the others must not block, because all clients wait for
them.

Callers must treat every failure of a custom authorizer as a denial.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from kustos.acl import AclBinding, AclBindingFilter, AclOperation, ResourceType
from kustos.authorizer.spi.by_type_default import authorize_by_resource_type
from kustos.authorizer.spi.values import (
    AclCreateResult,
    AclDeleteResult,
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    AuthorizerServerInfo,
    Endpoint,
)

ACL_COUNT_UNKNOWN: Final = -1
"""The value of `acl_count` if an authorizer does not count its ACLs."""

AclCreations: TypeAlias = Awaitable[Sequence[AclCreateResult]] | Sequence[Awaitable[AclCreateResult]]
"""Either one awaitable of all results (`async def`), or as in Kafka one awaitable per result."""

AclDeletions: TypeAlias = Awaitable[Sequence[AclDeleteResult]] | Sequence[Awaitable[AclDeleteResult]]
"""As with `AclCreations`."""


class Authorizer(ABC):
    """Decides what clients may do, and manages its ACLs, if it has any."""

    @abstractmethod
    def configure(self, configs: Mapping[str, str]) -> None:
        """Receive the settings of the server and the custom settings of this authorizer; raise if they are
        unusable.

        This is called once, before all other methods. References such as `${env:...}` are already resolved.
        """

    @abstractmethod
    def start(self, server_info: AuthorizerServerInfo) -> Mapping[Endpoint, Awaitable[None]]:
        """Start loading; return for each endpoint an awaitable that completes when its requests can be
        decided.

        An endpoint that is not in the result waits for all others. An awaitable that raises ends the server.
        """

    @abstractmethod
    def authorize(
        self, context: AuthorizableRequestContext, actions: Sequence[Action]
    ) -> Sequence[AuthorizationResult]:
        """Return one result for each action, in their order, without waiting.

        Raise `KafkaApiError` for a specific code; any other exception becomes UNKNOWN_SERVER_ERROR.
        """

    def authorize_by_resource_type(
        self, context: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> AuthorizationResult:
        """Return whether the operation is allowed on at least one resource of the type.

        The default makes one `authorize` call and walks all `acls` of the type, as in Kafka: override it for
        many ACLs, or for rules that are not ACLs. Raises `InvalidActionError` for the operation or type ANY
        or UNKNOWN.
        """
        return authorize_by_resource_type(self, context, operation, resource_type)

    @abstractmethod
    def create_acls(
        self, context: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> AclCreations:
        """Create ACLs; the awaited value is one result for each, in their order."""

    @abstractmethod
    def delete_acls(
        self, context: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> AclDeletions:
        """Delete matching ACLs; the awaited value is one result for each filter, in their order."""

    @abstractmethod
    def acls(self, acl_filter: AclBindingFilter) -> Iterable[AclBinding]:
        """Return the matching ACLs without waiting, in no fixed order.

        The server reads an `AclListing` while it serves other clients, and any other iterable at once.
        """

    @property
    def acl_count(self) -> int:
        """The number of ACLs, for the metrics; -1 if unknown."""
        return ACL_COUNT_UNKNOWN

    def reconfigurable_configs(self) -> AbstractSet[str]:
        """Return the settings that may change at run time (`Reconfigurable` in Kafka), by default none."""
        return frozenset()

    def validate_reconfiguration(self, configs: Mapping[str, str]) -> None:  # noqa: B027 - nothing to refuse
        """Raise, with a readable reason, if these settings cannot be applied; change nothing."""

    def reconfigure(self, configs: Mapping[str, str]) -> None:  # noqa: B027 - nothing to change
        """Apply settings that `validate_reconfiguration` accepted."""

    @abstractmethod
    def close(self) -> Awaitable[None] | None:
        """Release all resources; a returned awaitable is awaited."""
