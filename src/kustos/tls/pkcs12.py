"""PKCS12 stores (RFC 7292) entry by entry, as Java and OpenSSL 3 write them.

`cryptography` silently reads one of several private keys, and refuses a whole store because of one
certificate with an invalid encoding. This module reads each entry of stores that are encrypted with PBES2 and
AES; it verifies the MAC over the whole store first. `cryptography` reads stores of other kinds.
"""

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from kustos.tls.certificates import Certificate
from kustos.wire import DerError, DerTag, der_bodies, der_body, der_elements, der_fields

ITERATIONS_MAX: Final = 1_000_000
"""The limit of iterations; Java writes 10,000, and a million take a second."""

_TAGGED: Final = 0xA0
_TAGGED_OCTETS: Final = 0x80
_DATA: Final = bytes.fromhex("2a864886f70d010701")
_ENCRYPTED_DATA: Final = bytes.fromhex("2a864886f70d010706")
_PBES2: Final = bytes.fromhex("2a864886f70d01050d")
_PBKDF2: Final = bytes.fromhex("2a864886f70d01050c")
_NIST: Final = bytes.fromhex("60864801650304")
_RSADSI: Final = bytes.fromhex("2a864886f70d02")
_DIGESTS: Final = {
    bytes.fromhex("2b0e03021a"): "sha1",
    _NIST + b"\2\1": "sha256",
    _NIST + b"\2\2": "sha384",
    _NIST + b"\2\3": "sha512",
}
_HMACS: Final = {
    _RSADSI + b"\7": "sha1",
    _RSADSI + b"\x09": "sha256",
    _RSADSI + b"\x0a": "sha384",
    _RSADSI + b"\x0b": "sha512",
}
_KEY_BYTES: Final = {_NIST + b"\1\x02": 16, _NIST + b"\1\x16": 24, _NIST + b"\1\x2a": 32}
"""Keys of AES in CBC mode."""

_BAGS: Final = bytes.fromhex("2a864886f70d010c0a01")
_KEY, _LOCKED_KEY, _CERTIFICATE = (_BAGS + bytes([kind]) for kind in (1, 2, 3))
_X509: Final = bytes.fromhex("2a864886f70d01091601")
_NAME: Final = bytes.fromhex("2a864886f70d010914")
_KEY_ID: Final = bytes.fromhex("2a864886f70d010915")
_MAC_KEY: Final = 3
"""The purpose of a key (RFC 7292, appendix B.3)."""


@dataclass(frozen=True, slots=True)
class Pkcs12Store:
    """Private keys by name (`EncryptedPrivateKeyInfo` in DER), and certificates, the keys' own first."""

    keys: tuple[tuple[str, bytes], ...] = field(repr=False)
    certificates: tuple[Certificate, ...]


@dataclass(frozen=True, slots=True)
class _Bag:
    kind: bytes
    value: bytes = field(repr=False)
    name: str
    key_id: bytes | None


def key_names(data: bytes) -> list[str]:
    """Return the names of private keys outside encrypted parts, where Java and OpenSSL store them."""
    try:
        parts = [content for kind, content in _contents(_authenticated(data)[0]) if kind == _DATA]
        bags = [bag for part in parts for bag in _bags(der_body(part, DerTag.OCTETS))]
    except ValueError:
        return []
    return [bag.name for bag in bags if bag.kind in {_KEY, _LOCKED_KEY}]


def read_pkcs12(data: bytes, password: str) -> Pkcs12Store:
    """Return the entries; raise ValueError for another encryption, a wrong password, or a changed store."""
    content, mac = _authenticated(data)
    _check_mac(content, mac, password)
    bags: list[_Bag] = []
    for kind, part in _contents(content):
        plain = der_body(part, DerTag.OCTETS) if kind == _DATA else _decrypted(kind, part, password)
        bags.extend(_bags(plain))
    if any(bag.kind == _KEY for bag in bags):
        raise DerError("a private key is not encrypted")
    keys = [bag for bag in bags if bag.kind == _LOCKED_KEY]
    own_ids = {bag.key_id for bag in keys} - {None}
    certificates = [bag for bag in bags if bag.kind == _CERTIFICATE]
    certificates.sort(key=lambda bag: bag.key_id not in own_ids)
    return Pkcs12Store(
        tuple((bag.name, bag.value) for bag in keys),
        tuple(_certificate(bag, number) for number, bag in enumerate(certificates, 1)),
    )


def _certificate(bag: _Bag, number: int) -> Certificate:
    kind, value = der_fields(der_body(bag.value, DerTag.SEQUENCE), DerTag.OBJECT_IDENTIFIER, _TAGGED)
    if kind.body != _X509:
        raise DerError("a certificate is not X.509")
    place = f"the entry `{bag.name}`" if bag.name else f"certificate {number}"
    return Certificate(der_body(value.body, DerTag.OCTETS), place)


def _authenticated(data: bytes) -> tuple[bytes, bytes]:
    """Return the content, and the MAC over it (`MacData`)."""
    _, content, *mac = der_fields(der_body(data, DerTag.SEQUENCE), DerTag.INTEGER, DerTag.SEQUENCE)
    kind, value = der_fields(content.body, DerTag.OBJECT_IDENTIFIER, _TAGGED)
    if kind.body != _DATA or len(mac) != 1:
        raise DerError("the store has no MAC of a password")
    return der_body(value.body, DerTag.OCTETS), mac[0].body


def _check_mac(content: bytes, mac: bytes, password: str) -> None:
    digest_info, salt, *rounds = der_fields(mac, DerTag.SEQUENCE, DerTag.OCTETS)
    algorithm, expected = der_fields(digest_info.body, DerTag.SEQUENCE, DerTag.OCTETS)
    name = _DIGESTS.get(der_fields(algorithm.body, DerTag.OBJECT_IDENTIFIER)[0].body)
    if name is None or not salt.body:
        raise DerError("the MAC is of an unknown kind")
    width = hashlib.new(name).block_size
    secret = (password + "\0").encode("utf-16-be", "surrogatepass")
    # RFC 7292, appendix B.2, for a key as long as a digest
    key = bytes([_MAC_KEY]) * width + _repeated(salt.body, width) + _repeated(secret, width)
    for _ in range(_iterations(rounds[0].body if rounds else b"\1")):
        key = hashlib.new(name, key).digest()
    if not hmac.compare_digest(hmac.digest(key, content, name), expected.body):
        raise DerError("the MAC does not fit the password")


def _repeated(data: bytes, width: int) -> bytes:
    size = -(-len(data) // width) * width
    return (data * (size // len(data) + 1))[:size]


def _iterations(body: bytes) -> int:
    count = int.from_bytes(body, "big")
    if not 1 <= count <= ITERATIONS_MAX:
        raise DerError(f"a key is derived in {count} steps, at most {ITERATIONS_MAX} are done")
    return count


def _contents(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and the body of each part."""
    for part in der_bodies(der_body(content, DerTag.SEQUENCE), DerTag.SEQUENCE):
        kind, value = der_fields(part, DerTag.OBJECT_IDENTIFIER, _TAGGED)
        yield kind.body, value.body


def _decrypted(kind: bytes, part: bytes, password: str) -> bytes:
    """Return the content of `EncryptedData` (RFC 5652, section 8)."""
    if kind != _ENCRYPTED_DATA:
        raise DerError("the store is encrypted for a public key")
    _, info = der_fields(der_body(part, DerTag.SEQUENCE), DerTag.INTEGER, DerTag.SEQUENCE)[:2]
    _, algorithm, hidden = der_fields(info.body, DerTag.OBJECT_IDENTIFIER, DerTag.SEQUENCE, _TAGGED_OCTETS)[
        :3
    ]
    scheme, parameters = der_fields(algorithm.body, DerTag.OBJECT_IDENTIFIER, DerTag.SEQUENCE)
    derivation, cipher = der_fields(parameters.body, DerTag.SEQUENCE, DerTag.SEQUENCE)
    cipher_kind, vector = der_fields(cipher.body, DerTag.OBJECT_IDENTIFIER, DerTag.OCTETS)
    key_bytes = _KEY_BYTES.get(cipher_kind.body)
    if scheme.body != _PBES2 or key_bytes is None:
        raise DerError("the store has an older encryption")
    key = _derived(derivation.body, password, key_bytes)
    opening = Cipher(AES(key), CBC(vector.body)).decryptor()
    padded = opening.update(hidden.body) + opening.finalize()
    unpadder = PKCS7(AES.block_size).unpadder()
    return unpadder.update(padded) + unpadder.finalize()


def _derived(derivation: bytes, password: str, key_bytes: int) -> bytes:
    """Return the key of PBKDF2 (RFC 8018, appendix A.2)."""
    kind, parameters = der_fields(derivation, DerTag.OBJECT_IDENTIFIER, DerTag.SEQUENCE)
    salt, rounds, *rest = der_fields(parameters.body, DerTag.OCTETS, DerTag.INTEGER)
    functions = [each.body for each in rest if each.tag == DerTag.SEQUENCE]
    name = "sha1"
    if functions:
        name = _HMACS.get(der_fields(functions[0], DerTag.OBJECT_IDENTIFIER)[0].body, "")
    if kind.body != _PBKDF2 or not name:
        raise DerError("the key is derived in an unknown way")
    return hashlib.pbkdf2_hmac(name, password.encode(), salt.body, _iterations(rounds.body), key_bytes)


def _bags(contents: bytes) -> Iterator[_Bag]:
    for bag in der_bodies(der_body(contents, DerTag.SEQUENCE), DerTag.SEQUENCE):
        kind, value, *sets = der_fields(bag, DerTag.OBJECT_IDENTIFIER, _TAGGED)
        attributes: dict[bytes, bytes] = {}
        for each in (body for element in sets for body in der_bodies(element.body, DerTag.SEQUENCE)):
            name, values = der_fields(each, DerTag.OBJECT_IDENTIFIER, DerTag.SET)
            attributes[name.body] = next((found.body for found in der_elements(values.body)), b"")
        text = attributes.get(_NAME, b"").decode("utf-16-be", "replace")
        yield _Bag(kind.body, value.body, text, attributes.get(_KEY_ID))
