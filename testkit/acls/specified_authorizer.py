"""Authorizers of somebody else's, as the tests of the interface need them."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence

from kustos.acl import AclBinding, AclBindingFilter
from kustos.authorizer import (
    SUCCESS,
    AclCreateResult,
    AclDeleteResult,
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    Authorizer,
    AuthorizerServerInfo,
    Endpoint,
)
from testkit.differential.specification import Spec


class SpecAuthorizer(Authorizer):
    """A custom authorizer that decides by the specification; all it does not define is the default."""

    def __init__(self, acls: Iterable[AclBinding] = (), super_users: frozenset[str] = frozenset()) -> None:
        self.bindings = list(acls)
        self.super_users = super_users
        self.default_allow = False
        self.asked: list[list[Action]] = []
        self.contexts: list[AuthorizableRequestContext] = []

    def configure(self, configs: Mapping[str, str]) -> None:
        self.configs = dict(configs)

    def start(self, server_info: AuthorizerServerInfo) -> Mapping[Endpoint, Awaitable[None]]:
        return {}

    def authorize(
        self, context: AuthorizableRequestContext, actions: Sequence[Action]
    ) -> list[AuthorizationResult]:
        self.asked.append(list(actions))
        self.contexts.append(context)
        spec = Spec(self.bindings, self.super_users, self.default_allow)
        who = (str(context.principal), context.host)
        return [
            AuthorizationResult.ALLOWED
            if spec.authorize(*who, each.operation, each.resource_type, each.resource_name)[0]
            else AuthorizationResult.DENIED
            for each in actions
        ]

    async def create_acls(
        self, context: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        self.bindings.extend(binding for binding in bindings if binding not in self.bindings)
        return [SUCCESS] * len(bindings)

    async def delete_acls(
        self, context: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> list[AclDeleteResult]:
        results = [AclDeleteResult.of(self.acls(each)) for each in filters]
        gone = {deleted.acl_binding for each in results for deleted in each.acl_binding_delete_results}
        self.bindings = [binding for binding in self.bindings if binding not in gone]
        return results

    def acls(self, acl_filter: AclBindingFilter) -> list[AclBinding]:
        return [binding for binding in self.bindings if acl_filter.matches(binding)]

    def close(self) -> None:
        self.bindings.clear()
