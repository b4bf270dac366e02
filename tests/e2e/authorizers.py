"""Authorizers that kustos loads in the end-to-end tests, by `authorizer.class.name`."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from kustos.acl import AclBinding, AclBindingFilter, AclOperation
from kustos.authorizer import (
    SUCCESS,
    AclCreateResult,
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
)
from testkit.acls.specified_authorizer import SpecAuthorizer

ALLOWED = AuthorizationResult.ALLOWED


async def coroutine(results: list[Any]) -> list[Any]:
    return results


def raises(_: list[Any]) -> Any:
    raise RuntimeError("a secret of the store")


FAULTS: dict[str, Callable[[list[Any]], Any]] = {
    "exception": raises,
    "too-few": lambda results: results[1:],
    "too-many": lambda results: [*results, ALLOWED],
    "none": lambda _: None,
    "booleans": lambda results: [True for _ in results],
    "texts": lambda results: ["ALLOWED" for _ in results],
    "coroutine": coroutine,
    "coroutines": lambda results: [coroutine([]) for _ in results],
    "iterator": iter,
}


class Faulty(SpecAuthorizer):
    """Means to allow everything, but answers as the client id says, by the fault of that name."""

    def authorize(self, context: AuthorizableRequestContext, actions: Sequence[Action]) -> Any:
        results = [ALLOWED for _ in actions]
        # a client id `later:fault` is allowed to describe: the fault shows when upstream has answered
        kind, _, fault = (context.client_id or "").rpartition(":")
        if kind == "later" and all(each.operation is AclOperation.DESCRIBE for each in actions):
            return results
        return FAULTS[fault](results) if fault in FAULTS else results

    async def create_acls(self, context: AuthorizableRequestContext, bindings: Sequence[AclBinding]) -> Any:
        fault = bindings[0].pattern.name
        return FAULTS[fault]([SUCCESS for _ in bindings]) if fault in FAULTS else await self.made(bindings)

    async def made(self, bindings: Sequence[AclBinding]) -> list[AclCreateResult]:
        self.bindings.extend(bindings)
        return [SUCCESS for _ in bindings]

    def acls(self, acl_filter: AclBindingFilter) -> Any:
        fault = acl_filter.pattern_filter.name
        return FAULTS[fault](self.bindings) if fault in FAULTS else self.bindings


class Slow(SpecAuthorizer):
    """Makes ACLs only once one for the topic `release` was made; allows everything."""

    def __init__(self) -> None:
        super().__init__()
        self.released = asyncio.Event()

    def authorize(
        self, context: AuthorizableRequestContext, actions: Sequence[Action]
    ) -> list[AuthorizationResult]:
        return [ALLOWED for _ in actions]

    async def create_acls(
        self, context: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        if any(binding.pattern.name == "release" for binding in bindings):
            self.released.set()
        await self.released.wait()
        await super().create_acls(context, bindings)
        return [SUCCESS for _ in bindings]
