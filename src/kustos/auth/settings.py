"""SASL settings of a listener, and the lifetime of a session."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kustos.runtime import Clock

DEFAULT_SASL_SERVER_MAX_RECEIVE_SIZE: Final = 524_288
"""`sasl.server.max.receive.size`: the memory an unauthenticated peer can take; tokens are far smaller
(KIP-938)."""

DEFAULT_CONNECTION_FAILED_AUTHENTICATION_DELAY_MS: Final = 100
"""`connection.failed.authentication.delay.ms`: slows guessing; must be below the idle timeout."""

FRAMES_PER_AUTHENTICATION: Final = 16
"""Most frames in one login. The longest legitimate one, Kerberos after a refused ApiVersions, takes 6; Kafka
has no bound and lets an unauthenticated peer request versions for ever."""

MIN_REAUTHENTICATION_INTERVAL_MS: Final = 1000
"""Time between the starts of two re-authentications, as in Kafka (KIP-368)."""

CLAIMED_NAME_MAX_CHARACTERS: Final = 256
"""Most characters kept of a claimed name, which may fill a frame: one more than is logged, so that a
truncated name is recognizable."""

_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SaslServerSettings:
    """One listener's settings, by Kafka's keys.

    `connections_max_reauth_ms` is by mechanism; a missing or non-positive value sets no limit.
    """

    connections_max_reauth_ms: Mapping[str, int] = field(default_factory=dict)
    failed_authentication_delay_ms: int = DEFAULT_CONNECTION_FAILED_AUTHENTICATION_DELAY_MS
    max_receive_size: int = DEFAULT_SASL_SERVER_MAX_RECEIVE_SIZE

    def __post_init__(self) -> None:
        if self.failed_authentication_delay_ms < 0:
            raise ValueError("`connection.failed.authentication.delay.ms` is negative, use 0 or more")
        if self.max_receive_size <= 0:
            raise ValueError("`sasl.server.max.receive.size` is not positive, use 524288")


class SessionLife(NamedTuple):
    """The lifetime of a session: as reported to the client, and when we end it (monotonic clock)."""

    lifetime_ms: int
    expires_at_ms: int | None


def session_life(clock: Clock, credential_expires_at_ms: int | None, max_reauth_ms: int) -> SessionLife:
    """Return the life of a session that begins now (KIP-368).

    The credential's expiry counts even if `connections.max.reauth.ms` is off; with neither the session is
    unlimited. Values that would exceed an int64 are clamped to it.
    """
    if credential_expires_at_ms is None and max_reauth_ms <= 0:
        return SessionLife(0, None)
    lifetime_ms = min(max_reauth_ms, _INT64_MAX) if max_reauth_ms > 0 else _INT64_MAX
    if credential_expires_at_ms is not None:
        lifetime_ms = max(0, min(lifetime_ms, credential_expires_at_ms - clock.wall_ms()))
    return SessionLife(lifetime_ms, clock.monotonic_ms() + lifetime_ms)
