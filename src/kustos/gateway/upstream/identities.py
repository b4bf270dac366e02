"""Authenticates links at brokers as their clients, with delegation tokens (`gateway.upstream.tokens`)."""

import asyncio
from typing import Final, Protocol

from kustos.acl import KafkaPrincipal
from kustos.auth import SaslClientError, SaslErrorCode
from kustos.client import AuthenticationFailedError, Identity, KafkaConnection, SaslClientSettings
from kustos.gateway.upstream.tokens import IdentityError, UpstreamToken, UpstreamTokens, owner_of
from kustos.runtime import Clock

FRESH_MS: Final = 250
"""The minimum age of a token before the first login with it: a broker that has not read the token yet would
count and log a failed login."""

RETRY_PAUSE_S: Final = 0.1
"""The pause before the next login with a token that the broker has not read yet; it doubles each time."""


class ConnectAs(Protocol):
    """Opens an authenticated connection to an upstream address with an identity."""

    async def __call__(self, host: str, port: int, identity: Identity) -> KafkaConnection:
        """Return the connection; raise `ClientError`."""


class ClientIdentities:
    """Connects as the client of a link."""

    def __init__(self, tokens: UpstreamTokens, mechanism: str, connect: ConnectAs, clock: Clock) -> None:
        self._tokens: Final = tokens
        self._mechanism: Final = mechanism
        self._connect: Final = connect
        self._clock: Final = clock

    async def connect(self, principal: KafkaPrincipal, host: str, port: int) -> KafkaConnection:
        """Return a connection on which the broker sees this principal, also after re-authentications.

        A broker reads a new token a moment after the controller created it, and another user may have expired
        a token that the broker knew. The login is therefore retried. Raise `IdentityError` if upstream cannot
        see the client's identity, else `ClientError`.
        """
        owner = owner_of(principal)
        used: UpstreamToken | None = None

        async def identity() -> SaslClientSettings:
            nonlocal used
            used = await self._tokens.current(owner)
            fresh_ms = used.created_at_ms + FRESH_MS - self._clock.wall_ms()
            if fresh_ms > 0:
                await asyncio.sleep(fresh_ms / 1000)
            return SaslClientSettings(self._mechanism, used.token_id, used.password, token_authenticated=True)

        may_replace, pause_s = True, RETRY_PAUSE_S
        while True:
            try:
                return await self._connect(host, port, identity)
            except AuthenticationFailedError as error:
                if used is None or not _is_unknown_token(error):
                    raise IdentityError(f"no login upstream as `User:{owner}`: {error}") from None
                if not used.is_settled(self._clock.wall_ms()):
                    await asyncio.sleep(pause_s)
                    pause_s *= 2
                elif may_replace:
                    self._tokens.forget(owner, used)
                    may_replace, pause_s = False, RETRY_PAUSE_S
                else:
                    raise IdentityError(f"no login upstream as `User:{owner}`: {error}") from None


def _is_unknown_token(error: AuthenticationFailedError) -> bool:
    cause = error.__cause__
    return isinstance(cause, SaslClientError) and cause.error_code == SaslErrorCode.SASL_AUTHENTICATION_FAILED
