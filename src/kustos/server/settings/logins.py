"""Limits on clients that have not authenticated, and on logins that fail, read from the settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kustos.client import SettingsError
from kustos.gateway.listener import FailedLoginLimits
from kustos.gateway.upstream import AddressRanges
from kustos.server.settings.kinds import Network
from kustos.server.settings.properties import GivenSettings, listener_key
from kustos.server.settings.table import login as table
from kustos.server.settings.table.node import FAILED_AUTHENTICATION_DELAY_MS, MAX_IDLE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginLimits:
    """The limits of one listener, for all processes of the node together."""

    timeout_ms: int = 30_000
    max_unauthenticated_connections: int = 10_000
    max_unauthenticated_connections_per_ip: int = 2_000


DEFAULT_LOGIN_LIMITS: Final = LoginLimits()


def login_limits(given: GivenSettings, listener: str) -> LoginLimits:
    """Return the limits of a listener."""
    return LoginLimits(
        timeout_ms=given.require(table.LOGIN_TIMEOUT_MS, listener),
        max_unauthenticated_connections=given.require(table.MAX_UNAUTHENTICATED_CONNECTIONS, listener),
        max_unauthenticated_connections_per_ip=given.require(
            table.MAX_UNAUTHENTICATED_CONNECTIONS_PER_IP, listener
        ),
    )


def check_delay(given: GivenSettings, delays: Mapping[str, LoginLimits]) -> None:
    """Raise `SettingsError` if a listener, by name, ends connections before their refusal is sent."""
    delay_ms, idle_ms = given.require(FAILED_AUTHENTICATION_DELAY_MS), given.require(MAX_IDLE_MS)
    limits = {MAX_IDLE_MS.name: idle_ms}
    for listener, own in delays.items():
        limits[listener_key(table.LOGIN_TIMEOUT_MS, listener)] = own.timeout_ms
    for key, limit_ms in limits.items():
        if delay_ms >= limit_ms:
            raise SettingsError(
                f"`{FAILED_AUTHENTICATION_DELAY_MS.name}` is `{delay_ms}`, it must be below `{key}` "
                f"(`{limit_ms}`)"
            )


def failed_login_limits(given: GivenSettings) -> FailedLoginLimits:
    """Return how often logins of one address may fail."""
    unlimited: tuple[Network, ...] = given.require(table.FAILED_LOGINS_UNLIMITED_ADDRESSES)
    return FailedLoginLimits(
        burst=given.require(table.FAILED_LOGINS_BURST),
        per_minute=given.require(table.FAILED_LOGINS_PER_MINUTE),
        unlimited=AddressRanges(unlimited),
    )


def share_of(limit: int, processes: int) -> int:
    """Return the part of a limit that one of several processes has; the kernel spreads connections evenly."""
    return -(-limit // processes)
