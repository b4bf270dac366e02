"""TLS of a node's listeners: their contexts, and the principals that certificates name."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import structlog
from cryptography import x509

from kustos.acl import ANONYMOUS, KafkaPrincipal
from kustos.gateway.listener import ListenerTls
from kustos.server.settings.listeners import ListenerSettings
from kustos.tls import Side, TlsContexts, TlsError, prove

LOG: Final = structlog.get_logger("kustos.server")

USER: Final = "User"


def listener_tls(listener: ListenerSettings, handshake_timeout_ms: int) -> ListenerTls | None:
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
    principal_of = None if listener.sasl is not None else certificate_principals(lambda name: name)
    return ListenerTls(contexts, principal_of, handshake_timeout_ms)


def certificate_principals(map_name: Callable[[str], str]) -> Callable[[bytes | None], KafkaPrincipal]:
    """Return Kafka's default builder of principals (`DefaultKafkaPrincipalBuilder`) for certificates.

    `map_name` maps a distinguished name in RFC 2253's form; it raises ValueError if no rule applies.
    """

    def principal_of(certificate: bytes | None) -> KafkaPrincipal:
        if certificate is None:
            return ANONYMOUS
        try:
            read = x509.load_der_x509_certificate(certificate)
            ends, name = read.not_valid_after_utc, read.subject.rfc4514_string()
        except ValueError:
            raise TlsError("the client's certificate cannot be read") from None
        if ends < datetime.now(UTC):
            # a resumed TLS session does not verify it again
            raise TlsError("the client's certificate has expired")
        try:
            return KafkaPrincipal(USER, map_name(name))
        except ValueError:
            raise TlsError("no rule of `ssl.principal.mapping.rules` fits the client's certificate") from None

    return principal_of
