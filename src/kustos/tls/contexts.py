"""Builds OpenSSL contexts from settings and stores.

Python can pass a private key to OpenSSL only as a file. kustos uses an anonymous file in memory
(`memfd_create`) and closes it as soon as OpenSSL has read it, so no key is ever written to a disk.
"""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto, unique
from typing import Final

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from structlog.typing import FilteringBoundLogger

from kustos.tls.certificates import Certificate, CertificateParts
from kustos.tls.openssl import is_reachable, new_context
from kustos.tls.stores import (
    CERTIFICATE,
    REVOCATIONS,
    KeyStore,
    pem,
    read_keystore,
    read_revocations,
    read_truststore,
)
from kustos.tls.values import ClientAuth, TlsError, TlsSettings

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFIES: Final = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}

HANDSHAKE_ROUNDS_MAX: Final = 10
"""The maximum number of rounds of a handshake in memory; TLS 1.2 needs two."""


@unique
class Side(Enum):
    """The side of a connection that a context is for."""

    SERVER = auto()
    CLIENT = auto()


@dataclass(frozen=True, slots=True)
class MadeContext:
    """A context, the key store that it presents (None: none), and the expired trusted certificates."""

    context: ssl.SSLContext
    keystore: KeyStore | None
    expired_trust: tuple[Certificate, ...]
    """Trusted certificates that have expired: OpenSSL refuses certificates that they issued."""

    @property
    def certificate(self) -> CertificateParts | None:
        """The parts of the certificate that it presents."""
        return None if self.keystore is None else self.keystore.chain[0].parts()

    def report_expired_trust(self, log: FilteringBoundLogger) -> None:
        """Log a warning for expired trusted certificates, because the refusal of a peer does not name
        them."""
        if self.expired_trust:
            log.warning(
                "the trust store has expired certificates, peers with certificates of theirs are refused",
                certificates=list(map(str, self.expired_trust)),
            )


def make_context(settings: TlsSettings, side: Side) -> MadeContext:
    """Read the stores and return a context of them; raise `TlsError`.

    As in Java, exactly the certificates in the trust store are trusted: roots, intermediates or single
    certificates. A client without a trust store trusts the authorities of the system. A server that verifies
    clients must have one: otherwise any certificate of a public authority would be a valid identity.
    """
    is_server = side is Side.SERVER
    context = new_context(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = _VERSIONS[settings.minimum_version]
    context.maximum_version = _VERSIONS[settings.maximum_version]
    # a peer could cause endless computation; Kafka also refuses renegotiation
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if settings.suites is not None and settings.suites.openssl:
        try:
            context.set_ciphers(":".join(settings.suites.openssl))
        except ssl.SSLError:
            raise TlsError("`ssl.cipher.suites` has no suite that this OpenSSL allows") from None
        if is_server:
            context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    trusted = _trust(context, settings, is_server=is_server)
    keystore = None if settings.keystore is None else read_keystore(settings.keystore)
    if keystore is not None:
        _present(context, keystore)
    elif is_server:
        raise TlsError("a listener needs a private key and certificates, set `ssl.keystore.location`")
    if is_server:
        context.verify_mode = _VERIFIES[settings.client_auth]
        if settings.client_auth is not ClientAuth.NONE:
            # a resumed session would admit a certificate that has expired since
            context.options |= ssl.OP_NO_TICKET
            context.num_tickets = 0
            if not is_reachable() and context.minimum_version is not ssl.TLSVersion.TLSv1_3:
                raise TlsError(
                    "this Python hides the functions of its OpenSSL, so sessions of TLS 1.2 would be resumed "
                    "without verifying the client's certificate again; use a Python that loads `libssl` as a "
                    "shared library, or set `ssl.enabled.protocols=TLSv1.3`"
                )
    else:
        context.check_hostname = settings.verify_hostname
        context.verify_mode = ssl.CERT_REQUIRED
    return MadeContext(context, keystore, tuple(each for each in trusted if _has_expired(each)))


def _has_expired(certificate: Certificate) -> bool:
    try:
        return certificate.parts().has_expired
    except TlsError:
        # OpenSSL accepts some certificates that are not valid DER
        return False


def _trust(context: ssl.SSLContext, settings: TlsSettings, *, is_server: bool) -> tuple[Certificate, ...]:
    """Configure the trust of a context by the settings; return the certificates of the trust store."""
    trusted: tuple[Certificate, ...] = ()
    if settings.truststore is not None:
        trusted = read_truststore(settings.truststore)
        for each in trusted:
            try:
                context.load_verify_locations(cadata=each.der)
            except ssl.SSLError:
                raise TlsError(f"{each} of {settings.truststore.where} cannot be read") from None
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    elif not is_server:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    elif settings.client_auth is not ClientAuth.NONE:
        raise TlsError(
            f"`ssl.client.auth` is `{settings.client_auth}` without a trust store, set "
            "`ssl.truststore.location` to whom clients' certificates are trusted from"
        )
    if settings.crl_location is not None:
        for number, crl in enumerate(read_revocations(settings.crl_location), 1):
            try:
                with _in_memory(pem(REVOCATIONS, crl)) as path:
                    context.load_verify_locations(cafile=path)
            except ssl.SSLError:
                raise TlsError(
                    f"list {number} in `kustos.ssl.crl.location` (`{settings.crl_location}`) cannot be read"
                ) from None
        # if the list of an authority is missing, its certificates are refused
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF | ssl.VERIFY_CRL_CHECK_CHAIN
    return trusted


def _present(context: ssl.SSLContext, store: KeyStore) -> None:
    try:
        key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        with _in_memory(key + b"".join(pem(CERTIFICATE, each.der) for each in store.chain)) as path:
            context.load_cert_chain(path)
    except (ssl.SSLError, ValueError):
        raise TlsError(
            "OpenSSL refuses the private key or its certificate as too weak or of an unknown kind; use RSA "
            "of 2048 bits or more, or EC (`ssl.keystore.*`)"
        ) from None


@contextmanager
def _in_memory(data: bytes) -> Iterator[str]:
    """Provide an anonymous file in memory."""
    descriptor = os.memfd_create("kustos-tls", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def prove(made: MadeContext, side: Side) -> None:
    """Make a handshake with this context in memory, with a peer that trusts its last certificate; raise
    `TlsError`.

    This detects a key that does not match, an expired certificate, an invalid chain, and suites that the key
    cannot use, before a peer does.
    """
    if made.keystore is None:
        return
    context, wanted = made.context, (made.context.check_hostname, made.context.verify_mode)
    other = _verifier(made, made.keystore, Side.CLIENT if side is Side.SERVER else Side.SERVER)
    # the peer of the test has no certificate, so it is not verified
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        _shake_hands(*((context, other) if side is Side.SERVER else (other, context)))
    except ssl.SSLCertVerificationError as error:
        raise TlsError(f"the key store's certificate does not verify: {error.verify_message}") from None
    except ssl.SSLError as error:
        reason = (error.reason or "it fails").lower().replace("_", " ")
        raise TlsError(f"no TLS connection can be made with the key store: {reason}") from None
    finally:
        context.verify_mode = wanted[1]
        context.check_hostname = wanted[0]


def _verifier(made: MadeContext, store: KeyStore, side: Side) -> ssl.SSLContext:
    """Return a context for the peer of the test, which verifies the certificate of this key store."""
    is_server = side is Side.SERVER
    context = new_context(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = made.context.minimum_version
    context.set_ciphers("ALL")
    context.load_verify_locations(cadata=store.chain[-1].der)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if is_server:
        _present(context, store)
    return context


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(sides)
    for _ in range(HANDSHAKE_ROUNDS_MAX):
        for side in tuple(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(side)
        if not waiting:
            return
    raise ssl.SSLError(1, "the handshake does not end")
