"""Opens a connection by its settings: TCP, TLS, ApiVersions, then SASL in Kafka's requests.

The state machine of `kustos.auth` builds requests and checks answers; this module only does the IO (KIP-43,
KIP-152).
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from kustos.auth import (
    BearerToken,
    GssapiClient,
    OAuthBearerClient,
    SaslClientError,
    SaslClientMachine,
    client_mechanism,
)
from kustos.auth.mechanisms import ClientMechanism
from kustos.client.connection import KafkaConnection
from kustos.client.errors import AuthenticationFailedError, CannotConnectError, UnsupportedVersionError
from kustos.client.kerberos import host_of, ticket_source
from kustos.client.login import credentials_of
from kustos.client.oauth import token_source
from kustos.client.session import Exchange, SaslSession
from kustos.client.settings import ClientSettings, NodeAddress, SaslClientSettings
from kustos.runtime import SystemEntropy
from kustos.wire import ApiKey

MAX_ROUNDS: Final = 10
"""The maximum number of SaslAuthenticate exchanges in one login; SCRAM needs two, GSSAPI three."""

Identity = Callable[[], Awaitable[SaslClientSettings]]
"""Returns the identity for each login of a connection; raises `ClientError`."""


async def connect(
    address: NodeAddress, settings: ClientSettings, identity: Identity | None = None
) -> KafkaConnection:
    """Return an authenticated connection, with the identity of the settings or another one.

    The connection prolongs its session by itself. Raise `CannotConnectError`, or `AuthenticationFailedError`
    if either side refuses the other.
    """
    connection = await KafkaConnection.open(
        address.host,
        address.port,
        tls=settings.tls.context() if settings.tls else None,
        client_id=settings.client_id,
        limits=settings.limits,
    )
    own = settings.sasl
    if own is None:
        return connection

    async def own_identity() -> SaslClientSettings:
        return own

    try:
        version = connection.choose_version(ApiKey.SASL_AUTHENTICATE)
        # a session outlives the connection object if its transport is detached
        log_in = partial(_log_in, address, version, identity or own_identity)
        await connection.authenticate(SaslSession(log_in, str(address), settings.limits.connect_timeout_ms))
    except UnsupportedVersionError as error:
        connection.close()
        raise CannotConnectError(f"`{address}` did not finish the login: {error}") from error
    except BaseException:
        connection.close()
        raise
    return connection


async def _log_in(address: NodeAddress, version: int, identity: Identity, exchange: Exchange) -> int:
    """Log in with these exchanges; return the session's lifetime in milliseconds."""
    settings = await identity()
    try:
        mechanism = await _mechanism(settings, address.host)
        return await _drive(mechanism, settings, version, exchange)
    except SaslClientError as error:
        raise AuthenticationFailedError(
            f"cannot log in at `{address}` as {settings.shown_name}: {error}"
        ) from error


async def _mechanism(settings: SaslClientSettings, host: str) -> ClientMechanism:
    """Return the client side of the mechanism; it may contact a provider or a KDC, or call a custom class."""
    if settings.oauth is not None:
        return OAuthBearerClient(await token_source(settings.oauth).token())
    if settings.kerberos is not None:
        source = ticket_source(settings.kerberos)
        tickets = await source.tickets()
        name = await source.in_thread(partial(host_of, host))
        return GssapiClient(tickets, settings.kerberos.service_name, name)
    username, password = settings.username, settings.password
    if settings.login is not None:
        found = await credentials_of(settings.login)
        if isinstance(found, BearerToken):
            return OAuthBearerClient(found)
        username, password = found.username, found.password
    return client_mechanism(
        settings.mechanism, username, password, SystemEntropy(), settings.token_authenticated
    )


async def _drive(
    mechanism: ClientMechanism, settings: SaslClientSettings, version: int, exchange: Exchange
) -> int:
    """Exchange requests and answers until the machine is done; return the session's lifetime."""
    machine = SaslClientMachine(mechanism, version)
    kerberos = None if settings.kerberos is None else ticket_source(settings.kerberos)
    request = machine.start()
    for _ in range(MAX_ROUNDS):
        answer = await exchange(request.api_key, request.api_version, request.body)
        step = partial(machine.receive, answer)
        following = step() if kerberos is None else await kerberos.in_thread(step)
        if following is None:
            return machine.session_lifetime_ms
        request = following
    raise SaslClientError(f"the server wants more than {MAX_ROUNDS} rounds")
