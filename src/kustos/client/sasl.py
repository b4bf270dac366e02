"""Open a connection by its settings: TCP, TLS, ApiVersions, then SASL inside Kafka's requests.

The machine of `kustos.auth` decides what to send and judges the answers; this module only does the IO
(KIP-43, KIP-152).
"""

import asyncio
from typing import Final

from kustos.auth import BearerToken, OAuthBearerClient, SaslClientError, SaslClientMachine, client_mechanism
from kustos.auth.mechanisms import ClientMechanism
from kustos.client.addresses import NodeAddress
from kustos.client.connection import KafkaConnection
from kustos.client.errors import (
    AuthenticationFailedError,
    CannotConnectError,
    ConnectionClosedError,
    UnsupportedVersionError,
)
from kustos.client.login import credentials_of
from kustos.client.oauth import token_source
from kustos.client.settings import ClientSettings, SaslClientSettings
from kustos.runtime import SystemEntropy
from kustos.wire import ApiKey

SESSION_USE_FRACTION: Final = 0.85
"""The used part of a session's lifetime: Kafka's clients re-authenticate after 85 to 95 % (KIP-368)."""

MAX_ROUNDS: Final = 10
"""Most SaslAuthenticate exchanges before the login is given up as endless; SCRAM needs two."""


async def connect(address: NodeAddress, settings: ClientSettings) -> KafkaConnection:
    """Return an authenticated connection.

    Raise `CannotConnectError`, or `AuthenticationFailedError` if either side rejects the other.
    """
    connection = await KafkaConnection.open(
        address.host,
        address.port,
        tls=settings.tls.context() if settings.tls else None,
        client_id=settings.client_id,
        limits=settings.limits,
    )
    if settings.sasl is None:
        return connection
    try:
        async with asyncio.timeout(settings.limits.connect_timeout_ms / 1000):
            await _authenticate(connection, settings.sasl)
    except TimeoutError as error:
        connection.close()
        raise CannotConnectError(
            f"`{address}` did not finish the login within {settings.limits.connect_timeout_ms} ms"
        ) from error
    except (ConnectionClosedError, UnsupportedVersionError) as error:
        connection.close()
        raise CannotConnectError(f"`{address}` did not finish the login: {error}") from error
    except BaseException:
        connection.close()
        raise
    return connection


async def _authenticate(connection: KafkaConnection, settings: SaslClientSettings) -> None:
    try:
        lifetime_ms = await _drive(connection, settings)
    except SaslClientError as error:
        raise AuthenticationFailedError(
            f"cannot log in at `{connection.host}:{connection.port}` as `{settings.shown_name}`: {error}"
        ) from error
    if lifetime_ms > 0:
        lifetime_seconds = lifetime_ms / 1000 * SESSION_USE_FRACTION
        connection.session_expires_at = asyncio.get_running_loop().time() + lifetime_seconds


async def _mechanism(settings: SaslClientSettings) -> ClientMechanism:
    """Return our side of the mechanism; it may take a request to a provider, or a class of the operator's."""
    if settings.oauth is not None:
        return OAuthBearerClient(await token_source(settings.oauth).token())
    username, password = settings.username, settings.password
    if settings.login is not None:
        found = await credentials_of(settings.login)
        if isinstance(found, BearerToken):
            return OAuthBearerClient(found)
        username, password = found.username, found.password
    return client_mechanism(
        settings.mechanism, username, password, SystemEntropy(), settings.token_authenticated
    )


async def _drive(connection: KafkaConnection, settings: SaslClientSettings) -> int:
    """Exchange requests and answers until the machine is done; return the session's lifetime."""
    mechanism = await _mechanism(settings)
    machine = SaslClientMachine(mechanism, connection.choose_version(ApiKey.SASL_AUTHENTICATE))
    request = machine.start()
    for _ in range(MAX_ROUNDS):
        answer = await connection.exchange(request.api_key, request.api_version, request.body)
        following = machine.receive(answer)
        if following is None:
            return machine.session_lifetime_ms
        request = following
    raise SaslClientError(f"the server wants more than {MAX_ROUNDS} rounds")
