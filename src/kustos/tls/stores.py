"""Reads the key stores and trust stores of the settings: PEM, PKCS12 and JKS.

PEM (RFC 7468) is read as Kafka reads it: CRLF, blank lines, text around the blocks, one long line.
`kustos.tls.jks` reads JKS. `kustos.tls.pkcs12` reads PKCS12, and `cryptography` its older encryptions. As in
Java, a file of one binary format may have the type of the other in the settings. Certificates remain DER;
OpenSSL decides whether they are valid.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, load_der_private_key, load_der_public_key
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from kustos.runtime import reason_of
from kustos.tls import jks
from kustos.tls.certificates import Certificate
from kustos.tls.pkcs12 import key_names, read_pkcs12
from kustos.tls.values import KeyStoreSettings, StoreType, TlsError, TrustStoreSettings

BLOCKS_MAX: Final = 4_096
"""The limit of certificates; the trust store of a system has 150."""

CERTIFICATE: Final = "CERTIFICATE"
REVOCATIONS: Final = "X509 CRL"
ENCRYPTED_KEY: Final = "ENCRYPTED PRIVATE KEY"
KEYS: Final = frozenset({"PRIVATE KEY", ENCRYPTED_KEY, "RSA PRIVATE KEY", "EC PRIVATE KEY"})

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----([^-]*(?:-(?!----)[^-]*)*)-----END \1-----")

STORE_MAX_BYTES: Final = 4 * 2**20
"""The limit of a file's size: ten times the trust store of a JDK."""


@dataclass(frozen=True, slots=True)
class PemBlock:
    """One block: its label, and its content as DER."""

    label: str
    der: bytes = field(repr=False)


def pem_blocks(text: str) -> list[PemBlock]:
    """Return the blocks of a text in order; raise `TlsError` for a damaged one."""
    blocks: list[PemBlock] = []
    for match in _BLOCK.finditer(text):
        if len(blocks) == BLOCKS_MAX:
            raise TlsError(f"it has more than {BLOCKS_MAX} blocks of PEM")
        label, body = match.groups()
        if ":" in body:
            raise TlsError(
                "its private key is encrypted in OpenSSL's old way, convert it with `openssl pkcs8 -topk8`"
            )
        try:
            der = base64.b64decode("".join(body.split()), validate=True)
        except (binascii.Error, ValueError):
            raise TlsError(f"a block `{label}` is not base64") from None
        blocks.append(PemBlock(label, der))
    return blocks


def pem(label: str, der: bytes) -> bytes:
    """Return one block."""
    return f"-----BEGIN {label}-----\n{base64.encodebytes(der).decode()}-----END {label}-----\n".encode()


@dataclass(frozen=True, slots=True)
class KeyStore:
    """A private key and its certificates: its own first, then the authorities above it."""

    key: PrivateKeyTypes = field(repr=False)
    chain: tuple[Certificate, ...]


def read_keystore(settings: KeyStoreSettings) -> KeyStore:
    """Return the key store; raise `TlsError` naming the key of the settings."""
    if settings.location is None:
        store = _pem_keystore(
            [*_inline(settings.key, "ssl.keystore.key"), *_inline(settings.chain, _CHAIN_KEY)],
            settings,
            "`ssl.keystore.key`",
        )
    else:
        where = f"`ssl.keystore.location` (`{settings.location}`)"
        try:
            store = _keystore_of(_read(settings.location), settings, where)
        except TlsError as error:
            raise _placed(error, where) from None
    if not store.chain:
        raise TlsError("the key store has no certificate of its private key, add it (`ssl.keystore.*`)")
    try:
        fits = store.key.public_key() == load_der_public_key(store.chain[0].parts().public_key)
    except (ValueError, UnsupportedAlgorithm):
        fits = False
    if not fits:
        raise TlsError(
            "the first certificate of the key store is not that of its private key; put it first, those of "
            "authorities after it (`ssl.keystore.*`)"
        )
    return store


_CHAIN_KEY: Final = "ssl.keystore.certificate.chain"


def _placed(error: TlsError, where: str) -> TlsError:
    text = str(error)
    return error if "`ssl." in text else TlsError(f"{where} cannot be used: {text}")


def _inline(text: str | None, key: str) -> list[PemBlock]:
    try:
        blocks = pem_blocks(text or "")
    except TlsError as error:
        raise TlsError(f"`{key}` cannot be used: {error}") from None
    if not blocks:
        raise TlsError(f"`{key}` has no PEM, such as `-----BEGIN CERTIFICATE-----`")
    return blocks


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(STORE_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "it is not a file name"
        raise TlsError(f"it cannot be read, {reason}") from None
    if len(data) > STORE_MAX_BYTES:
        raise TlsError(f"it is larger than {STORE_MAX_BYTES} bytes")
    return data


def _pem_text(data: bytes) -> list[PemBlock]:
    # text around the blocks may be in any encoding
    return pem_blocks(data.decode("utf-8", "replace"))


def _keystore_of(data: bytes, settings: KeyStoreSettings, where: str) -> KeyStore:
    if settings.store_type is StoreType.PEM:
        return _pem_keystore(_pem_text(data), settings, where)
    if data[:4] in {jks.MAGIC, jks.JCEKS_MAGIC}:
        return _jks_keystore(data, settings)
    password = settings.password or ""
    if settings.key_password not in {None, password}:
        raise TlsError(
            "`ssl.key.password` differs from `ssl.keystore.password`, but a `PKCS12` store has one password; "
            "remove `ssl.key.password`"
        )
    key, chain = _pkcs12(data, password, "ssl.keystore.password")
    if key is None:
        raise TlsError("it has no private key")
    return KeyStore(key, chain)


def _pem_keystore(blocks: list[PemBlock], settings: KeyStoreSettings, where: str) -> KeyStore:
    keys = [block for block in blocks if block.label in KEYS]
    if len(keys) != 1:
        raise TlsError(f"{where} has {len(keys)} private keys in PEM, one is needed")
    return KeyStore(_private_key(keys[0], settings.key_password, where), _certificates(blocks))


def _private_key(block: PemBlock, password: str | None, where: str) -> PrivateKeyTypes:
    is_locked = block.label == ENCRYPTED_KEY
    if is_locked and password is None:
        raise TlsError(f"{where} has an encrypted private key, set `ssl.key.password`")
    secret = password.encode() if is_locked and password is not None else None
    try:
        return load_der_private_key(block.der, secret)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # the library's own messages have no more details, and may contain parts of the file
        hint = ", or `ssl.key.password` is wrong" if is_locked else ""
        raise TlsError(f"the private key of {where} cannot be read{hint}") from None


def _jks_keystore(data: bytes, settings: KeyStoreSettings) -> KeyStore:
    try:
        keys = jks.read_jks(data, settings.password).keys
    except jks.WrongPasswordError:
        raise TlsError("`ssl.keystore.password` is wrong, or the store was changed") from None
    if not keys:
        raise TlsError("it has no private key")
    _check_one([key.alias for key in keys])
    try:
        der = jks.unlock(keys[0], settings.key_password or settings.password or "")
    except jks.WrongPasswordError:
        raise TlsError(
            "`ssl.key.password` is wrong; without it the key has the password of the store"
        ) from None
    try:
        return KeyStore(load_der_private_key(der, None), keys[0].chain)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise TlsError("its private key cannot be read") from None


def _check_one(names: Sequence[str]) -> None:
    """Raise `TlsError` for several private keys: Java would choose one for each connection."""
    if len(names) > 1:
        named = ", ".join(f"`{name}`" for name in sorted(names))
        raise TlsError(
            f"it has {len(names)} private keys ({named}), one is needed; delete others with `keytool -delete`"
        )


def read_truststore(settings: TrustStoreSettings) -> tuple[Certificate, ...]:
    """Return the trusted certificates, one at least; raise `TlsError` naming the key of the settings."""
    if settings.location is None:
        found = _certificates(_inline(settings.certificates, "ssl.truststore.certificates"))
    else:
        try:
            found = _trusted_of(_read(settings.location), settings)
        except TlsError as error:
            raise _placed(error, settings.where) from None
    if not found:
        raise TlsError(f"{settings.where} has no certificate, add the certificates to trust")
    return found


def _trusted_of(data: bytes, settings: TrustStoreSettings) -> tuple[Certificate, ...]:
    if settings.store_type is StoreType.PEM:
        return _certificates(_pem_text(data))
    if data[:4] in {jks.MAGIC, jks.JCEKS_MAGIC}:
        try:
            store = jks.read_jks(data, settings.password)
        except jks.WrongPasswordError:
            raise TlsError("`ssl.truststore.password` is wrong, or the store was changed") from None
        # Java trusts the certificate of a key in a trust store, but not the chain above it
        return (*store.trusted, *(key.chain[0] for key in store.keys if key.chain))
    key, found = _pkcs12(data, settings.password, "ssl.truststore.password")
    if key is not None:
        # the format does not show which certificates are trusted and which only belong to the key
        raise TlsError("it has a private key; keep trusted certificates in a store of their own")
    return found


def _pkcs12(
    data: bytes, password: str | None, key: str
) -> tuple[PrivateKeyTypes | None, tuple[Certificate, ...]]:
    """Return the private key if there is one, and all certificates, the key's own certificate first."""
    try:
        store = read_pkcs12(data, password or "")
    except ValueError:
        return _older_pkcs12(data, password, key)
    _check_one([name for name, _ in store.keys])
    try:
        found = load_der_private_key(store.keys[0][1], (password or "").encode()) if store.keys else None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise TlsError("its private key cannot be read") from None
    return found, store.certificates


def _older_pkcs12(
    data: bytes, password: str | None, key: str
) -> tuple[PrivateKeyTypes | None, tuple[Certificate, ...]]:
    try:
        found = load_pkcs12(data, None if password is None else password.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise TlsError(
            f"it is not a PKCS12 store, or `{key}` is wrong, or a certificate under an older encryption than "
            "AES cannot be read"
        ) from None
    _check_one(key_names(data))
    certificates = [*([] if found.cert is None else [found.cert]), *found.additional_certs]
    return found.key, tuple(
        Certificate(each.certificate.public_bytes(Encoding.DER), f"certificate {number}")
        for number, each in enumerate(certificates, 1)
    )


def read_revocations(path: Path) -> tuple[bytes, ...]:
    """Return the lists of revoked certificates (DER) in a PEM file, one at least; raise `TlsError`."""
    where = f"`kustos.ssl.crl.location` (`{path}`)"
    try:
        lists = tuple(block.der for block in _pem_text(_read(path)) if block.label == REVOCATIONS)
    except TlsError as error:
        raise TlsError(f"{where} cannot be used: {error}") from None
    if not lists:
        raise TlsError(f"{where} has no `X509 CRL` in PEM")
    return lists


def _certificates(blocks: Iterable[PemBlock]) -> tuple[Certificate, ...]:
    ders = [block.der for block in blocks if block.label == CERTIFICATE]
    return tuple(Certificate(der, f"certificate {number}") for number, der in enumerate(ders, 1))
