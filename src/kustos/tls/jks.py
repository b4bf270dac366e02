"""Reads JKS, Java's own key store format, with limits; kustos never writes it.

A store is a magic number, a version, entries, and at the end a SHA-1 digest over password and content, which
is compared before anything of the content is parsed. A private key is an `EncryptedPrivateKeyInfo` (PKCS8) of
Sun's own algorithm: the key is combined with a stream of SHA-1 digests of the password and the previous
digest, starting with a salt, and followed by a digest of password and key. Both algorithms are weak today, so
Java itself has written PKCS12 since version 9 (JEP 229).

Source: the public description in the JDK's `sun.security.provider.JavaKeyStore` and `KeyProtector`.
"""

import hashlib
import hmac
import struct
from dataclasses import dataclass, field
from typing import Final

from kustos.tls.certificates import Certificate
from kustos.tls.values import TlsError
from kustos.wire import DerError, DerTag, der_body, der_fields

MAGIC: Final = b"\xfe\xed\xfe\xed"
JCEKS_MAGIC: Final = b"\xce\xce\xce\xce"
VERSIONS: Final = frozenset({1, 2})
PRIVATE_KEY, TRUSTED_CERTIFICATE = 1, 2
ENTRIES_MAX: Final = 4_096
"""The limit of entries; the trust store of a JDK has 150."""

CHAIN_MAX: Final = 64
"""A chain has two or three certificates; OpenSSL follows at most 100."""

_WHITENING: Final = b"Mighty Aphrodite"
_DIGEST_BYTES: Final = 20
_KEY_ALGORITHM: Final = bytes.fromhex("06 0a 2b 06 01 04 01 2a 02 11 01 01")
"""The DER of the object identifier 1.3.6.1.4.1.42.2.17.1.1."""


class WrongPasswordError(TlsError):
    """The password is wrong or the content was changed: the digest differs."""


@dataclass(frozen=True, slots=True)
class JksKey:
    """A private key entry: protected key (DER), and certificates beginning with the key's own."""

    alias: str
    protected: bytes = field(repr=False)
    chain: tuple[Certificate, ...]


@dataclass(frozen=True, slots=True)
class JksStore:
    """All entries of a store."""

    keys: tuple[JksKey, ...]
    trusted: tuple[Certificate, ...]


def read_jks(data: bytes, password: str | None) -> JksStore:
    """Return the entries; raise `TlsError`, `WrongPasswordError` for a wrong digest.

    Without a password the digest is not checked, as in Java.
    """
    if data[:4] == JCEKS_MAGIC:
        raise TlsError("it is a JCEKS store, convert it with `keytool -importkeystore -deststoretype pkcs12`")
    if data[:4] != MAGIC or len(data) < 12 + _DIGEST_BYTES:
        raise TlsError("it is not a JKS store")
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if password is not None:
        expected = hashlib.sha1(_utf16(password) + _WHITENING + content, usedforsecurity=False).digest()
        if not hmac.compare_digest(expected, digest):
            raise WrongPasswordError("its digest does not fit the password")
    try:
        return _entries(_JksReader(content))
    except (struct.error, IndexError, UnicodeDecodeError):
        raise TlsError("the store is cut off or damaged") from None


def _entries(reader: "_JksReader") -> JksStore:
    _, version, count = reader.number(4), reader.number(4), reader.number(4)
    if version not in VERSIONS:
        raise TlsError(f"it is a JKS store of version {version}, versions 1 and 2 are read")
    if count > ENTRIES_MAX:
        raise TlsError(f"the store has {count} entries, at most {ENTRIES_MAX} are read")
    keys: list[JksKey] = []
    trusted: list[Certificate] = []
    for _ in range(count):
        tag, alias = reader.number(4), reader.text()
        reader.take(8)  # when it was created
        if tag == PRIVATE_KEY:
            protected = reader.take(reader.number(4))
            length = reader.number(4)
            if length > CHAIN_MAX:
                raise TlsError(f"a chain has {length} certificates, at most {CHAIN_MAX} are read")
            chain = tuple(reader.certificate(version, alias) for _ in range(length))
            keys.append(JksKey(alias, protected, chain))
        elif tag == TRUSTED_CERTIFICATE:
            trusted.append(reader.certificate(version, alias))
        else:
            raise TlsError(f"the store has an entry of the unknown kind {tag}")
    if not reader.is_at_end:
        raise TlsError("the store has bytes after its last entry")
    return JksStore(tuple(keys), tuple(trusted))


class _JksReader:
    """Reads big-endian fields in order; raises IndexError beyond the end."""

    def __init__(self, data: bytes) -> None:
        self._data: Final = data
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._data)

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise IndexError
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def text(self) -> str:
        # Java's modified UTF-8 differs beyond the basic plane only; the alias is for messages
        return self.take(self.number(2)).decode("utf-8", "replace")

    def certificate(self, version: int, alias: str) -> Certificate:
        kind = self.text() if version > 1 else "X.509"
        if kind != "X.509":
            raise TlsError("the store has a certificate that is not X.509")
        return Certificate(self.take(self.number(4)), f"the entry `{alias}`")


def unlock(key: JksKey, password: str) -> bytes:
    """Return the private key as DER of PKCS8; raise `WrongPasswordError`, or `TlsError` if damaged."""
    try:
        body = _encrypted_data(key.protected)
    except DerError:
        raise TlsError("the private key is damaged, or protected by an unknown algorithm") from None
    if len(body) <= 2 * _DIGEST_BYTES:
        raise TlsError("the private key is damaged")
    salt, hidden, digest = body[:_DIGEST_BYTES], body[_DIGEST_BYTES:-_DIGEST_BYTES], body[-_DIGEST_BYTES:]
    secret = _utf16(password)
    stream, last = bytearray(), salt
    while len(stream) < len(hidden):
        last = hashlib.sha1(secret + last, usedforsecurity=False).digest()
        stream += last
    plain = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
    expected = hashlib.sha1(secret + plain, usedforsecurity=False).digest()
    if not hmac.compare_digest(expected, digest):
        raise WrongPasswordError("the private key's digest does not fit the password")
    return plain


def _encrypted_data(der: bytes) -> bytes:
    """Return the octets of an `EncryptedPrivateKeyInfo` of Sun's algorithm; raise `DerError`."""
    algorithm, octets, *rest = der_fields(der_body(der, DerTag.SEQUENCE), DerTag.SEQUENCE, DerTag.OCTETS)
    if rest or not algorithm.body.startswith(_KEY_ALGORITHM):
        raise DerError("the algorithm is not Sun's")
    return octets.body


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")
