"""Authorities and certificates that tests make for themselves, and the stores that hold them."""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

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

    def __init__(self, name: str = "authority", parent: "Authority | None" = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
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
        if address is not None:
            names.append(x509.IPAddress(IPv4Address(address)))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
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
