"""SASL settings of a listener, and the lifetime of a session."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kustos.runtime import Clock
from kustos.settings import INT32_MAX, INT64_MAX, Scope, Setting, whole_number

MAX_REAUTH_MS: Final = Setting(
    "connections.max.reauth.ms",
    whole_number(0, INT64_MAX, "milliseconds"),
    0,
    "SASL",
    "How long a session lasts before the client must authenticate again (KIP-368); 0: no limit.",
    scope=Scope.MECHANISM,
)
MAX_RECEIVE_SIZE: Final = Setting(
    "sasl.server.max.receive.size",
    whole_number(1, INT32_MAX, "bytes"),
    524_288,
    "SASL",
    "The largest frame of a client that has not authenticated (KIP-938).",
    scope=Scope.LISTENER,
)

FRAMES_PER_AUTHENTICATION: Final = 16
"""The maximum number of frames in one login. The longest legitimate login, Kerberos after a refused
ApiVersions, takes 6. Kafka has no limit, so an unauthenticated client can request versions for ever."""

MIN_REAUTHENTICATION_INTERVAL_MS: Final = 1000
"""Time between the starts of two re-authentications, as in Kafka (KIP-368)."""

CLAIMED_NAME_MAX_CHARACTERS: Final = 256
"""The maximum length of a stored claimed name, which may fill a frame: one character more than is logged, so
that a truncated name is recognizable."""


@dataclass(frozen=True, slots=True)
class SaslServerSettings:
    """One listener's settings, by Kafka's keys.

    `connections_max_reauth_ms` is by mechanism; a missing or non-positive value means no limit.
    """

    connections_max_reauth_ms: Mapping[str, int] = field(default_factory=dict)
    failed_authentication_delay_ms: int = Setting(
        "connection.failed.authentication.delay.ms",
        whole_number(0, INT32_MAX, "milliseconds"),
        100,
        "SASL",
        "The delay before the answer to a failed login. Must be below `connections.max.idle.ms`.",
    ).field()
    max_receive_size: int = MAX_RECEIVE_SIZE.field()


class SessionLife(NamedTuple):
    """The lifetime of a session: the value reported to the client, and the time when it expires (monotonic
    clock)."""

    lifetime_ms: int
    expires_at_ms: int | None


def session_life(clock: Clock, credential_expires_at_ms: int | None, max_reauth_ms: int) -> SessionLife:
    """Return the lifetime of a session that starts now (KIP-368).

    The credential's expiry counts even if `connections.max.reauth.ms` is off; without both, the session is
    unlimited. Values are limited to an int64.
    """
    if credential_expires_at_ms is None and max_reauth_ms <= 0:
        return SessionLife(0, None)
    lifetime_ms = min(max_reauth_ms, INT64_MAX) if max_reauth_ms > 0 else INT64_MAX
    if credential_expires_at_ms is not None:
        lifetime_ms = max(0, min(lifetime_ms, credential_expires_at_ms - clock.wall_ms()))
    return SessionLife(lifetime_ms, clock.monotonic_ms() + lifetime_ms)
