"""Connections that end before their client can log in: the reasons, and how often each occurs.

There are few kinds, so each has its own series in the metrics. The log reports each kind at intervals,
because unauthenticated clients can open any number of connections.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final

import structlog

from kustos.gateway.listener.client_hello import HANDSHAKE_RECORD
from kustos.gateway.listener.proxy_header import is_header
from kustos.runtime import PacedCounts
from kustos.wire import FrameLengthError

LOG: Final = structlog.get_logger("kustos.gateway")

LOGGED_EVERY_S: Final = 10.0
"""How often the log reports failures of one kind."""


@unique
class HandshakeFailure(StrEnum):
    """The kinds of failures, by their label in the metrics."""

    PLAINTEXT = "plaintext"
    HTTP = "http"
    TLS = "tls"
    TRUNCATED = "truncated"
    TIMEOUT = "timeout"
    NO_CERTIFICATE = "no_certificate"
    EXPIRED = "expired"
    UNTRUSTED = "untrusted"
    REVOKED = "revoked"
    REVOCATION_UNKNOWN = "revocation_unknown"
    INVALID_CERTIFICATE = "invalid_certificate"
    NO_PRINCIPAL = "no_principal"
    REFUSED_BY_CLIENT = "refused_by_client"
    INCOMPATIBLE = "incompatible"
    PROTOCOL = "protocol"
    PROXY_HEADER = "proxy_header"
    UNKNOWN_HOST = "unknown_host"
    UNKNOWN_BROKER = "unknown_broker"
    LOGIN_TIMEOUT = "login_timeout"
    CROWDED_OUT = "crowded_out"
    THROTTLED = "throttled"
    NO_ROOM = "no_room"


OF_CERTIFICATES: Final = frozenset(
    {
        HandshakeFailure.NO_CERTIFICATE,
        HandshakeFailure.EXPIRED,
        HandshakeFailure.UNTRUSTED,
        HandshakeFailure.REVOKED,
        HandshakeFailure.REVOCATION_UNKNOWN,
        HandshakeFailure.INVALID_CERTIFICATE,
        HandshakeFailure.NO_PRINCIPAL,
    }
)
"""The failures recorded as failed logins: the client tried to prove an identity, or had to."""

REFUSED_CERTIFICATES: Final = frozenset(
    {
        HandshakeFailure.EXPIRED,
        HandshakeFailure.UNTRUSTED,
        HandshakeFailure.REVOKED,
        HandshakeFailure.INVALID_CERTIFICATE,
    }
)
"""The failures that count against the client's network: a certificate was sent, checked and refused.

A client without a certificate may be a health check. A client whose certificate maps to no principal has
proved its identity. Without a revocation list, the certificate was not checked.
"""

BY_LIMITS: Final = frozenset(
    {
        HandshakeFailure.LOGIN_TIMEOUT,
        HandshakeFailure.CROWDED_OUT,
        HandshakeFailure.THROTTLED,
        HandshakeFailure.NO_ROOM,
    }
)
"""The failures by a limit of kustos, regardless of the bytes that the client sent."""

UNFINISHED: Final = BY_LIMITS | {
    HandshakeFailure.TRUNCATED,
    HandshakeFailure.TIMEOUT,
    HandshakeFailure.PROXY_HEADER,
    HandshakeFailure.UNKNOWN_BROKER,
}
"""The failures that are not recorded as failed logins, even on listeners with logins."""


@dataclass(frozen=True, slots=True)
class HandshakeRefusal:
    """A failed handshake and the text of its reason."""

    kind: HandshakeFailure
    reason: str


_Kinds = HandshakeFailure

IS_HTTP: Final = HandshakeRefusal(_Kinds.HTTP, "an HTTP client; this port speaks Kafka's protocol")
IS_PLAINTEXT: Final = HandshakeRefusal(
    _Kinds.PLAINTEXT, "a client without TLS on a port with TLS; set its `security.protocol`"
)
IS_TLS: Final = HandshakeRefusal(
    _Kinds.TLS, "a client with TLS on a port without TLS; set its `security.protocol`"
)
NO_CLIENT_HELLO: Final = HandshakeRefusal(
    _Kinds.PROTOCOL, "the TLS handshake failed: it does not begin with a ClientHello of at most 16 KiB"
)
TRUNCATED: Final = HandshakeRefusal(
    _Kinds.TRUNCATED, "the client closed the connection within the TLS handshake"
)
TIMED_OUT: Final = HandshakeRefusal(
    _Kinds.TIMEOUT, "the TLS handshake took longer than `kustos.ssl.handshake.timeout.ms`"
)
LOGIN_TIMED_OUT: Final = HandshakeRefusal(
    _Kinds.LOGIN_TIMEOUT, "the client has not authenticated within `kustos.login.timeout.ms`"
)
CROWDED_OUT: Final = HandshakeRefusal(
    _Kinds.CROWDED_OUT,
    "a newer connection took its place, see `kustos.max.unauthenticated.connections` and its `.per.ip`",
)
THROTTLED: Final = HandshakeRefusal(
    _Kinds.THROTTLED, "too many logins from its address failed, see `kustos.failed.logins.per.ip.burst`"
)
NO_ROOM: Final = HandshakeRefusal(
    _Kinds.NO_ROOM,
    "clients that have not authenticated hold too many bytes, see `kustos.gateway.requests.max.bytes`",
)
NO_HOST_NAME: Final = HandshakeRefusal(
    _Kinds.UNKNOWN_HOST, "a client names a host (`server_name`) that is not ASCII"
)
OTHER_HOST: Final = HandshakeRefusal(
    _Kinds.UNKNOWN_HOST, "a client resumes the TLS session of one host (`server_name`) to reach another"
)
UNLISTED_PROXY: Final = HandshakeRefusal(
    _Kinds.PROXY_HEADER,
    "a header of the PROXY protocol from an address that `kustos.proxy.protocol.addresses` does not list",
)

_HTTP_METHODS: Final = frozenset(
    {b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"CONN", b"TRAC", b"PATC", b"PRI "}
)

_BY_VERIFICATION: Final = {
    9: _Kinds.EXPIRED,  # not yet valid
    10: _Kinds.EXPIRED,
    3: _Kinds.REVOCATION_UNKNOWN,  # no list of its issuer exists
    11: _Kinds.REVOCATION_UNKNOWN,  # the list is not yet valid
    12: _Kinds.REVOCATION_UNKNOWN,  # the list has expired
    18: _Kinds.UNTRUSTED,  # self-signed
    19: _Kinds.UNTRUSTED,  # self-signed at the end of the chain
    20: _Kinds.UNTRUSTED,  # unknown issuer
    21: _Kinds.UNTRUSTED,
    23: _Kinds.REVOKED,
}
"""OpenSSL's codes of verification (`x509_vfy.h`)."""

_BY_REASON: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": _Kinds.NO_CERTIFICATE,
    "BAD_SIGNATURE": _Kinds.INVALID_CERTIFICATE,  # the client lacks the certificate's key
    "HTTP_REQUEST": _Kinds.HTTP,
    "HTTPS_PROXY_REQUEST": _Kinds.HTTP,
    "UNSUPPORTED_PROTOCOL": _Kinds.INCOMPATIBLE,
    "NO_SHARED_CIPHER": _Kinds.INCOMPATIBLE,
    "NO_SUITABLE_SIGNATURE_ALGORITHM": _Kinds.INCOMPATIBLE,
    "NO_SHARED_SIGNATURE_ALGORITHMS": _Kinds.INCOMPATIBLE,
    "NO_SUITABLE_KEY_SHARE": _Kinds.INCOMPATIBLE,
}


def refusal_by_first_bytes(data: bytes) -> HandshakeRefusal | None:
    """Return the refusal of a client that does not begin with TLS, None if it may be a TLS client."""
    if data[:1] == bytes([HANDSHAKE_RECORD]):
        return None
    if is_header(data):
        return UNLISTED_PROXY
    return IS_HTTP if data[:4] in _HTTP_METHODS else IS_PLAINTEXT


def refusal_by_length(error: FrameLengthError) -> HandshakeRefusal | None:
    """Return the refusal of another protocol on a port without TLS, None for a Kafka client's large frame."""
    head = (error.size & 0xFFFF_FFFF).to_bytes(4, "big")
    if head[0] == HANDSHAKE_RECORD and head[1] == 3:
        return IS_TLS
    if is_header(head):
        return UNLISTED_PROXY
    return IS_HTTP if head in _HTTP_METHODS else None


def refusal_of(error: ssl.SSLError) -> HandshakeRefusal:
    """Return the kind of a failed handshake with OpenSSL's reason."""
    if isinstance(error, ssl.SSLCertVerificationError):
        kind = _BY_VERIFICATION.get(error.verify_code, _Kinds.INVALID_CERTIFICATE)
        return HandshakeRefusal(kind, f"the client's certificate is refused: {error.verify_message}")
    reason = error.reason or "no reason given"
    words = reason.lower().replace("_", " ")
    if "_ALERT_" in reason:
        return HandshakeRefusal(_Kinds.REFUSED_BY_CLIENT, f"the client ended the TLS handshake: {words}")
    return HandshakeRefusal(_BY_REASON.get(reason, _Kinds.PROTOCOL), f"the TLS handshake failed: {words}")


class FailedHandshakes:
    """Counts failed handshakes, and logs each kind at intervals. For one event loop."""

    def __init__(self, count: Callable[[str, str], object]) -> None:
        self._count: Final = count
        self._failures: Final = PacedCounts(LOGGED_EVERY_S)

    def count(self, refusal: HandshakeRefusal, listener: str) -> None:
        """Count a failure."""
        self._count(listener, refusal.kind)

    def log(self, refusal: HandshakeRefusal, listener: str, host: str) -> None:
        """Report the first failure of a kind, and then one every few seconds."""
        if connections := self._failures.due(refusal.kind, asyncio.get_running_loop().time()):
            LOG.warning(
                "connections failed before a login",
                listener=listener,
                host=host,
                kind=str(refusal.kind),
                reason=refusal.reason,
                connections=connections,
            )
