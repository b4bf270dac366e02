"""TLS of a node's listeners: their contexts, and the principals that certificates name."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import structlog
from cryptography import x509

from kustos.acl import KafkaPrincipal
from kustos.auth import ListenerPrincipals, PrincipalBuilderError
from kustos.auth.mapping import rfc2253
from kustos.gateway.listener import ListenerTls
from kustos.server.settings.listeners import ListenerSettings
from kustos.tls import Side, TlsContexts, TlsError, prove

LOG: Final = structlog.get_logger("kustos.server")


def listener_tls(
    listener: ListenerSettings, principals: ListenerPrincipals, handshake_timeout_ms: int
) -> ListenerTls | None:
    """Return the TLS of a listener, None if it has none; raise `TlsError` if its stores cannot be used."""
    if listener.tls is None:
        return None
    try:
        contexts = TlsContexts(listener.tls, Side.SERVER)
        if contexts.made.expired_since() is None:
            prove(contexts.made, Side.SERVER)
        else:
            # as in Kafka it serves: clients that do not verify it may connect
            LOG.error("the listener's certificate has expired, clients refuse it", listener=listener.name)
    except TlsError as error:
        raise TlsError(f"listener `{listener.name}`: {error}") from None
    # a login names the principal on other listeners
    principal_of = None if listener.sasl is not None else certificate_principals(principals)
    return ListenerTls(contexts, principal_of, handshake_timeout_ms)


def certificate_principals(principals: ListenerPrincipals) -> Callable[[str, bytes | None], KafkaPrincipal]:
    """Return what builds the principal of a client's address and certificate; it raises `TlsError`."""

    def principal_of(host: str, certificate: bytes | None) -> KafkaPrincipal:
        name = None if certificate is None else _subject_of(certificate)
        try:
            return principals.of_certificate(host, name, certificate)
        except PrincipalBuilderError as error:
            raise TlsError(f"the client's certificate gives no principal: {error}") from None

    return principal_of


def _subject_of(certificate: bytes) -> str:
    try:
        read = x509.load_der_x509_certificate(certificate)
        ends, name = read.not_valid_after_utc, rfc2253(read.subject)
    except ValueError:
        raise TlsError("the client's certificate cannot be read") from None
    if ends < datetime.now(UTC):
        # a resumed TLS session does not verify it again
        raise TlsError("the client's certificate has expired")
    return name
