"""Adapts `StandardAuthorizer` to the interface of authorizers, like Kafka's `ClusterMetadataAuthorizer`.

The ACLs are in a metadata log: another component passes them to `standard` and declares them loaded, and the
`AclMutator` performs `create_acls` and `delete_acls`. `standard.session(principal, host).decide` is faster
than `authorize`, which is for callers of the interface.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Protocol, TypeVar

from kustos.acl import AclBinding, AclBindingFilter, AclOperation, ResourceType
from kustos.authorizer.metrics import AuthorizerMetrics
from kustos.authorizer.spi.plugin import Authorizer
from kustos.authorizer.spi.values import (
    AclCreateResult,
    AclDeleteResult,
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    AuthorizerServerInfo,
    Endpoint,
    KafkaApiError,
    error_codes,
)
from kustos.authorizer.standard import AclListing, StandardAuthorizer, parse_super_users

SUPER_USERS_CONFIG: Final = "super.users"
ALLOW_EVERYONE_CONFIG: Final = "allow.everyone.if.no.acl.found"

Result = TypeVar("Result")


class Completion(Awaitable[None], Protocol):
    """A future of the event loop, made by `loop.create_future`; this package does not import asyncio."""

    def set_result(self, result: None, /) -> object:
        """Wake the waiters."""

    def set_exception(self, exception: Exception, /) -> object:
        """Raise the exception in the waiters."""

    def done(self) -> bool:
        """Return whether either was called."""

    def exception(self) -> object:
        """Return the exception; the event loop then does not log it as unretrieved."""


class AclMutator(Protocol):
    """Changes the metadata: Kafka's active controller."""

    async def create_acls(
        self, context: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> Sequence[AclCreateResult]:
        """Return one result for each ACL, in order, when the ACLs are in force."""

    async def delete_acls(
        self, context: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> Sequence[AclDeleteResult]:
        """Return one result for each filter, in order, when the ACLs are no longer in force."""


class StandardAuthorizerPlugin(Authorizer):
    """Kafka's StandardAuthorizer as a complete `Authorizer`.

    `new_future` is the `create_future` of the calling event loop. Without a `mutator` the ACLs can be read
    but not changed (NOT_CONTROLLER).
    """

    def __init__(
        self,
        new_future: Callable[[], Completion],
        standard: StandardAuthorizer | None = None,
        mutator: AclMutator | None = None,
        metrics: AuthorizerMetrics | None = None,
    ) -> None:
        self.standard: Final = standard or StandardAuthorizer()
        self.mutator = mutator
        self.metrics: Final = metrics or AuthorizerMetrics()
        self._new_future: Final = new_future
        self._loaded: Final = new_future()

    def configure(self, configs: Mapping[str, str]) -> None:
        """Apply `super.users` and `allow.everyone.if.no.acl.found`; the ACLs stay.

        Raises `AclValueError` for a super user that is not a principal; then nothing has changed. As in
        Kafka, any value other than `true` is false.
        """
        super_users = parse_super_users(configs.get(SUPER_USERS_CONFIG, ""))
        everyone = configs.get(ALLOW_EVERYONE_CONFIG, "").strip().lower() == "true"
        self.standard.reconfigure(super_users=super_users, allow_everyone_if_no_acl_found=everyone)

    def reconfigurable_configs(self) -> AbstractSet[str]:
        """Return the two supported settings."""
        return {SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG}

    def validate_reconfiguration(self, configs: Mapping[str, str]) -> None:
        """Raise `AclValueError` for a super user that is not a principal."""
        parse_super_users(configs.get(SUPER_USERS_CONFIG, ""))

    def reconfigure(self, configs: Mapping[str, str]) -> None:
        """Apply settings as `configure` does."""
        self.configure(configs)

    def start(self, server_info: AuthorizerServerInfo) -> Mapping[Endpoint, Awaitable[None]]:
        """Open early start listeners at once, all others when the ACLs are loaded."""
        started = self._new_future()
        started.set_result(None)
        early = server_info.early_start_listeners
        return {
            endpoint: started if endpoint.listener_name in early else self._loaded
            for endpoint in server_info.endpoints
        }

    def complete_initial_load(self, error: Exception | None = None) -> None:
        """Declare the ACLs loaded, or permanently failed; only the first call has an effect."""
        if error is None:
            self.standard.complete_initial_load()
        if self._loaded.done():
            return
        if error is None:
            self._loaded.set_result(None)
        else:
            self._fail(error)

    def authorize(
        self, context: AuthorizableRequestContext, actions: Sequence[Action]
    ) -> list[AuthorizationResult]:
        """Return one result for each action; raise `AuthorizerNotReadyError` before the ACLs are loaded."""
        results = [decision.result for decision in self.standard.authorize(context, actions)]
        allowed = results.count(AuthorizationResult.ALLOWED)
        self.metrics.record(allowed, len(results) - allowed)
        return results

    def authorize_by_resource_type(
        self, context: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> AuthorizationResult:
        """Return the same result as the default, using the compiled index."""
        decision = self.standard.authorize_by_resource_type(context, operation, resource_type)
        self.metrics.record(int(decision.allowed), int(not decision.allowed))
        return decision.result

    async def create_acls(
        self, context: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        """Return the mutator's results; an exception becomes the result of every ACL."""
        try:
            results = await self._mutator_or_raise().create_acls(context, bindings)
            return _counted(results, bindings)
        except Exception as error:  # noqa: BLE001 - as in Kafka the error is the result of each item
            return [AclCreateResult(KafkaApiError.of(error))] * len(bindings)

    async def delete_acls(
        self, context: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> list[AclDeleteResult]:
        """Return the mutator's results; an exception becomes the result of every filter."""
        try:
            results = await self._mutator_or_raise().delete_acls(context, filters)
            return _counted(results, filters)
        except Exception as error:  # noqa: BLE001 - as in `create_acls`
            return [AclDeleteResult(exception=KafkaApiError.of(error))] * len(filters)

    def _mutator_or_raise(self) -> AclMutator:
        if self.mutator is None:
            raise KafkaApiError(
                error_codes().not_controller, "The current node is not the active controller."
            )
        return self.mutator

    def acls(self, acl_filter: AclBindingFilter) -> AclListing:
        """Return the currently matching ACLs."""
        return self.standard.acls(acl_filter)

    @property
    def acl_count(self) -> int:
        """The number of ACLs in force."""
        return self.standard.acl_count

    def close(self) -> None:
        """Fail the waiters for the initial load."""
        if not self._loaded.done():
            closed = "The authorizer was closed before the initial load could complete."
            self._fail(KafkaApiError(error_codes().request_timed_out, closed))

    def _fail(self, error: Exception) -> None:
        self._loaded.set_exception(error)
        # retrieve the error: without waiters it would be logged as lost
        self._loaded.exception()


def _counted(results: Sequence[Result], items: Sequence[object]) -> list[Result]:
    if len(results) != len(items):
        raise KafkaApiError(
            error_codes().unknown_server_error,
            f"Invalid size of result set from controller. Expected {len(items)}; got {len(results)}",
        )
    return list(results)
