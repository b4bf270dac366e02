"""The life cycle of an authorizer: start, readiness of each listener, reconfiguration, and close.

It is third-party code: its exceptions prevent the start of the node, or a reload from taking effect.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from typing import Final

import structlog

from kustos.authorizer import (
    Authorizer,
    AuthorizerError,
    AuthorizerServerInfo,
    ClusterResource,
    Endpoint,
)
from kustos.gateway.apis import discard, words_of_others
from kustos.server.settings.node import KustosSettings

LOG: Final = structlog.get_logger("kustos.server")

CLOSE_TIMEOUT_S: Final = 30.0
"""The time limit for closing an authorizer; after that, the node stops without it."""


class AuthorizerStartError(AuthorizerError):
    """An authorizer could not be created, configured or started; the node stops."""


class ReconfigurationError(AuthorizerError):
    """An authorizer rejected new settings; the old ones stay in force."""


def start(authorizer: Authorizer, info: AuthorizerServerInfo) -> dict[str, asyncio.Future[None]]:
    """Start an authorizer; return for each listener a future that is done when the listener may open.

    A listener for which the authorizer returns no awaitable waits for all others. Raise
    `AuthorizerStartError`, as the futures do.
    """
    name = type(authorizer).__name__
    try:
        awaitables = _awaitables(authorizer.start(info))
    except Exception as error:
        raise start_error(name, "does not start", error) from error
    # many listeners may share one awaitable, and a coroutine can be awaited only once
    single = {id(each): each for each in awaitables.values()}
    begun = {key: asyncio.ensure_future(_checked(name, each)) for key, each in single.items()}
    return {
        endpoint.listener_name: begun[id(awaitables[endpoint])]
        if endpoint in awaitables
        else asyncio.ensure_future(_all(begun.values()))
        for endpoint in info.endpoints
    }


def _awaitables(answer: object) -> dict[object, Awaitable[None]]:
    if not isinstance(answer, Mapping):
        discard(answer)
        raise TypeError(f"`start` returned `{type(answer).__name__}`, not a mapping of endpoints")
    for awaitable in answer.values():
        if not isinstance(awaitable, Awaitable):
            raise TypeError(
                f"`start` returned `{type(awaitable).__name__}` for a listener, which cannot be awaited"
            )
    return dict(answer)


async def _checked(name: str, awaitable: Awaitable[None]) -> None:
    try:
        await awaitable
    except Exception as error:
        raise start_error(name, "does not start", error) from error


async def _all(awaitables: Iterable[Awaitable[None]]) -> None:
    for awaitable in tuple(awaitables):
        await awaitable


def start_error(name: str, what: str, error: Exception) -> AuthorizerStartError:
    """Return the error with the failed step of an authorizer and its reason."""
    return AuthorizerStartError(f"the authorizer `{name}` {what}, {words_of_others(error)}")


async def close(authorizer: Authorizer) -> None:
    """Close an authorizer within a time limit; failures are only logged, because the node stops anyway."""
    try:
        answer = authorizer.close()
        if answer is not None:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await answer
    except Exception as error:  # noqa: BLE001 - everything else must still be closed
        name = type(authorizer).__name__
        LOG.error("the authorizer did not close cleanly", authorizer=name, reason=words_of_others(error))


def server_info(settings: KustosSettings, cluster_id: str) -> AuthorizerServerInfo:
    """Return the server info for an authorizer: the listeners as advertised to clients."""
    endpoints = tuple(
        Endpoint(each.name, each.security_protocol, each.advertised.host, each.advertised.port)
        for each in settings.listeners
    )
    return AuthorizerServerInfo(
        cluster_resource=ClusterResource(cluster_id),
        broker_id=settings.node_id,
        endpoints=endpoints,
        inter_broker_endpoint=next(
            endpoint
            for endpoint, each in zip(endpoints, settings.listeners, strict=True)
            if not each.is_controller
        ),
        early_start_listeners=settings.early_start_listeners,
    )


def reconfigure(
    authorizer: Authorizer, old: Mapping[str, str], new: Mapping[str, str]
) -> tuple[Mapping[str, str], frozenset[str]]:
    """Apply reconfigurable settings; return all settings in force, and the keys that need a restart.

    Raise `ReconfigurationError` if the authorizer refuses; then the old settings stay in force.
    """
    changed = changed_keys(old, new)
    name = type(authorizer).__name__
    try:
        now = changed & frozenset(authorizer.reconfigurable_configs())
        if not now:
            return old, changed
        configs = {key: value for key, value in old.items() if key not in now}
        configs |= {key: new[key] for key in now if key in new}
        authorizer.validate_reconfiguration(configs)
        authorizer.reconfigure(configs)
    except Exception as error:
        # any failure of the third-party code must leave the node unchanged
        reason = words_of_others(error)
        raise ReconfigurationError(f"the authorizer `{name}` refuses its new settings, {reason}") from error
    return configs, changed - now


def changed_keys(old: Mapping[str, str | None], new: Mapping[str, str | None]) -> frozenset[str]:
    """Return the keys whose values differ, including added and removed ones."""
    return frozenset(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
