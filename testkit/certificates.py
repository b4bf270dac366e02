"""Authorities and certificates that tests make for themselves, and the stores that hold them."""

import ssl
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from kustos.wire import DerTag, der_body, der_elements
from testkit.kafka.java import JDK_TOOL_FLAGS
from testkit.ports import LOOPBACK

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
STORE_PASSWORD = "store-secret"
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Holder:
    """A private key and its certificates, the own one first."""

    key: Key = field(repr=False)
    chain: tuple[x509.Certificate, ...]

    @property
    def certificate(self) -> x509.Certificate:
        """Its own certificate."""
        return self.chain[0]

    @property
    def key_pem(self) -> str:
        """The private key in PKCS8."""
        return self.locked_key_pem(None)

    def locked_key_pem(self, password: str | None) -> str:
        """Return the private key in PKCS8, encrypted if there is a password."""
        lock: KeySerializationEncryption = (
            NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        )
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock).decode()

    @property
    def chain_pem(self) -> str:
        """The certificates."""
        return pem(self.chain)

    def write(self, path: Path, password: str | None = None) -> Path:
        """Write key and certificates as PEM; return the path."""
        path.write_text(self.locked_key_pem(password) + self.chain_pem)
        return path


def pem(certificates: Iterable[x509.Certificate]) -> str:
    """Return certificates in PEM."""
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


class Authority:
    """Signs certificates; `parent` makes it an intermediate one."""

    def __init__(
        self, name: str = "authority", parent: "Authority | None" = None, key: Key | None = None
    ) -> None:
        self.key: Key = key or ec.generate_private_key(ec.SECP256R1())
        self.parent = parent
        self.subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self.renewed(datetime.now(UTC) + 10 * DAY)

    def renewed(self, ends: datetime) -> x509.Certificate:
        """Return another certificate of the same key."""
        signer = self.parent or self
        builder = _builder(self.subject, signer.subject, self.key, ends)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        return builder.sign(signer.key, hashes.SHA256())

    @property
    def pem(self) -> str:
        """Its certificate."""
        return pem([self.certificate])

    def write(self, path: Path) -> Path:
        """Write its certificate as PEM; return the path."""
        path.write_text(self.pem)
        return path

    def issue(
        self,
        name: str | x509.Name,
        *,
        key: Key | None = None,
        hosts: Iterable[str] = (),
        address: str | None = LOOPBACK,
        ends: datetime | None = None,
        usages: Iterable[x509.ObjectIdentifier] = (),
        uris: Iterable[str] = (),
    ) -> Holder:
        """Return a key with a certificate for this common name (or whole subject), by default of loopback."""
        own = key or ec.generate_private_key(ec.SECP256R1())
        subject = (
            name
            if isinstance(name, x509.Name)
            else x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        )
        builder = _builder(subject, self.certificate.subject, own, ends or datetime.now(UTC) + DAY)
        names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
        names += [x509.UniformResourceIdentifier(uri) for uri in uris]
        if address is not None:
            names.append(x509.IPAddress(IPv4Address(address)))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        if usages:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        chain = [builder.sign(self.key, hashes.SHA256())]
        above: Authority | None = self
        while above is not None and above.parent is not None:
            chain.append(above.certificate)
            above = above.parent
        return Holder(own, tuple(chain))

    def revoke(self, *revoked: x509.Certificate) -> str:
        """Return the list of revoked certificates in PEM."""
        now = datetime.now(UTC)
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.certificate.subject)
            .last_update(now - DAY)
            .next_update(now + DAY)
        )
        for each in revoked:
            entry = x509.RevokedCertificateBuilder().serial_number(each.serial_number).revocation_date(now)
            builder = builder.add_revoked_certificate(entry.build())
        return builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


SHA1: Final = bytes.fromhex("300906072a8648ce3d0401")
"""The algorithm `ecdsa-with-SHA1`, which `cryptography` does not sign certificates with."""

ALGORITHM_AT, ISSUER_AT, SUBJECT_AT = 2, 3, 5
"""Where a signed certificate has them (RFC 5280, section 4.1)."""


def resigned(certificate: x509.Certificate, signer: Key, changes: Mapping[int, bytes]) -> str:
    """Return a certificate in PEM with other parts, by position, signed by this key on a curve."""
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    body = der_body(certificate.tbs_certificate_bytes, DerTag.SEQUENCE)
    fields = [each.encoded for each in der_elements(body)]
    for at, field_ in changes.items():
        fields[at] = field_
    signed = der(DerTag.SEQUENCE, b"".join(fields))
    algorithm = fields[ALGORITHM_AT]
    digest = hashes.SHA1() if algorithm == SHA1 else hashes.SHA256()
    signature = der(DerTag.BIT_STRING, b"\0" + signer.sign(signed, ec.ECDSA(digest)))
    return ssl.DER_cert_to_PEM_cert(der(DerTag.SEQUENCE, signed + algorithm + signature))


def der(tag: int, body: bytes) -> bytes:
    """Return an element of DER."""
    size = len(body)
    width = (size.bit_length() + 7) // 8
    length = bytes([size]) if size < 0x80 else bytes([0x80 | width]) + size.to_bytes(width, "big")
    return bytes([tag]) + length + body


def _builder(subject: x509.Name, issuer: x509.Name, key: Key, ends: datetime) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(datetime.now(UTC), ends) - DAY)
        .not_valid_after(ends)
    )


def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return a new RSA key."""
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def keytool(*arguments: str) -> None:
    """Run Java's tool for stores."""
    line = ["keytool", *JDK_TOOL_FLAGS, *arguments]
    subprocess.run(line, check=True, capture_output=True, stdin=subprocess.DEVNULL)
