"""The interface of authorizers: Kafka's `Authorizer` in Python (KIP-504, with KIP-801's additions).

A server makes one, calls `configure` and `start`, opens each listener when what `start` promised for it
has come, asks `authorize` for every request, and ends with `close`. All calls come from one event loop.
What may wait is awaitable; the rest answers from memory, since all clients wait meanwhile.

Whoever calls an authorizer of somebody else's must take every failure for a denial.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from kustos.acl import AclBinding, AclBindingFilter, AclOperation, ResourceType
from kustos.authorizer.by_type_default import authorize_by_resource_type
from kustos.authorizer.spi import Action, AuthorizableRequestContext, AuthorizationResult
from kustos.authorizer.spi_values import AclCreateResult, AclDeleteResult, AuthorizerServerInfo, Endpoint

ACL_COUNT_UNKNOWN: Final = -1
"""The count of an authorizer that does not count."""

AclCreations: TypeAlias = Awaitable[Sequence[AclCreateResult]] | Sequence[Awaitable[AclCreateResult]]
"""Either form will do: one awaitable of all results (`async def`), or as in Kafka one awaitable each."""

AclDeletions: TypeAlias = Awaitable[Sequence[AclDeleteResult]] | Sequence[Awaitable[AclDeleteResult]]
"""As with `AclCreations`."""


class Authorizer(ABC):
    """Decides what clients may do, and keeps the ACLs by which it does, if it has any."""

    @abstractmethod
    def configure(self, configs: Mapping[str, str]) -> None:
        """Take the settings of the server and those that only this authorizer knows; raise if unusable.

        Comes once, before everything else. Values of `${env:...}` and the like are looked up already.
        """

    @abstractmethod
    def start(self, server_info: AuthorizerServerInfo) -> Mapping[Endpoint, Awaitable[None]]:
        """Begin to load; return for each endpoint what ends when its requests can be decided.

        An endpoint that is not in the answer waits for all the others. One that raises ends the server.
        """

    @abstractmethod
    def authorize(
        self, context: AuthorizableRequestContext, actions: Sequence[Action]
    ) -> Sequence[AuthorizationResult]:
        """Return one result for each action, in their order, at once.

        Raise `KafkaApiError` for a certain code; any other exception is told as UNKNOWN_SERVER_ERROR.
        """

    def authorize_by_resource_type(
        self, context: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> AuthorizationResult:
        """Return whether the operation is allowed on at least one resource of the type.

        By default found by one `authorize` and a walk through all `acls` of the type, as in Kafka: an
        authorizer of many ACLs, or of rules that are no ACLs, has its own. Raises `InvalidActionError`
        for an operation or a type that is none in particular.
        """
        return authorize_by_resource_type(self, context, operation, resource_type)

    @abstractmethod
    def create_acls(
        self, context: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> AclCreations:
        """Put ACLs in force; come to one result for each, in their order."""

    @abstractmethod
    def delete_acls(
        self, context: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> AclDeletions:
        """Take the ACLs that match out of force; come to one result for each filter, in their order."""

    @abstractmethod
    def acls(self, acl_filter: AclBindingFilter) -> Iterable[AclBinding]:
        """Return the ACLs that match, at once, in no set order."""

    @property
    def acl_count(self) -> int:
        """How many ACLs there are, for the metrics; -1 says that nobody counts them."""
        return ACL_COUNT_UNKNOWN

    def reconfigurable_configs(self) -> AbstractSet[str]:
        """Return the settings that may change while the server runs (`Reconfigurable` in Kafka): none."""
        return frozenset()

    def validate_reconfiguration(self, configs: Mapping[str, str]) -> None:  # noqa: B027 - nothing to refuse
        """Raise, with a reason for people, if these settings cannot be put in force; change nothing."""

    def reconfigure(self, configs: Mapping[str, str]) -> None:  # noqa: B027 - nothing to change
        """Put settings in force that `validate_reconfiguration` found good."""

    @abstractmethod
    def close(self) -> Awaitable[None] | None:
        """Let go of everything; an awaitable is waited for."""
