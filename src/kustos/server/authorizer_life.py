"""The life of an authorizer: it is started, promises when it can decide, is given other settings, and ends.

Its code is not ours: what it raises keeps the node from starting, or a reload from happening.
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
from kustos.gateway.custom import discard
from kustos.server.settings import KustosSettings

LOG: Final = structlog.get_logger("kustos.server")

CLOSE_TIMEOUT_S: Final = 30.0
"""How long an authorizer may take to end; the node ends without it."""


class AuthorizerStartError(AuthorizerError):
    """An authorizer could not be made, configured or started; the node ends."""


class ReconfigurationError(AuthorizerError):
    """An authorizer does not take other settings; those that it has stay in force."""


def start(authorizer: Authorizer, info: AuthorizerServerInfo) -> dict[str, asyncio.Future[None]]:
    """Start an authorizer; return for each listener what ends when it may be opened.

    A listener that the authorizer says nothing of waits for all others. Raise `AuthorizerStartError`; what
    is returned raises it, too.
    """
    name = type(authorizer).__name__
    try:
        promised = _promises(authorizer.start(info))
    except Exception as error:
        raise start_error(name, "does not start", error) from error
    # one and the same promise may stand for many listeners, and a coroutine can be awaited but once
    single = {id(each): each for each in promised.values()}
    begun = {key: asyncio.ensure_future(_kept(name, each)) for key, each in single.items()}
    return {
        endpoint.listener_name: begun[id(promised[endpoint])]
        if endpoint in promised
        else asyncio.ensure_future(_all(begun.values()))
        for endpoint in info.endpoints
    }


def _promises(answer: object) -> dict[object, Awaitable[None]]:
    if not isinstance(answer, Mapping):
        discard(answer)
        raise TypeError(f"`start` returned `{type(answer).__name__}`, not a mapping of endpoints")
    for promise in answer.values():
        if not isinstance(promise, Awaitable):
            raise TypeError(f"`start` promised `{type(promise).__name__}`, which cannot be awaited")
    return dict(answer)


async def _kept(name: str, promise: Awaitable[None]) -> None:
    try:
        await promise
    except Exception as error:
        raise start_error(name, "does not start", error) from error


async def _all(promises: Iterable[Awaitable[None]]) -> None:
    for promise in tuple(promises):
        await promise


def start_error(name: str, what: str, error: Exception) -> AuthorizerStartError:
    """Return the error that says what of an authorizer failed, and why."""
    return AuthorizerStartError(f"the authorizer `{name}` {what}, {type(error).__name__}: {error}")


async def close(authorizer: Authorizer) -> None:
    """End an authorizer, and wait for it a while; what goes wrong is logged, for the node ends anyway."""
    try:
        answer = authorizer.close()
        if answer is not None:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await answer
    except Exception as error:  # noqa: BLE001 - what else is open must be closed all the same
        reason = f"{type(error).__name__}: {error}"
        LOG.error("the authorizer did not end well", authorizer=type(authorizer).__name__, reason=reason)


def server_info(settings: KustosSettings, cluster_id: str) -> AuthorizerServerInfo:
    """Return what an authorizer is told of this node: its listeners as clients are told of them."""
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
    """Put in force what may change; return the settings now in force, and the keys that need a restart.

    Raise `ReconfigurationError` where the authorizer refuses; then the old settings are in force.
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
        # the boundary where whatever its code does must leave the node as it was
        reason = f"{type(error).__name__}: {error}"
        raise ReconfigurationError(f"the authorizer `{name}` refuses its new settings, {reason}") from error
    return configs, changed - now


def changed_keys(old: Mapping[str, str], new: Mapping[str, str]) -> frozenset[str]:
    """Return the keys whose values differ, those that came or went included."""
    return frozenset(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
