"""Values of TLS: settings with stores and client authentication, and the error for unusable ones."""

from dataclasses import dataclass, field
from enum import StrEnum, unique
from pathlib import Path
from typing import Final

PROTOCOLS: Final = ("TLSv1.2", "TLSv1.3")
"""The supported versions. RFC 8996 forbids those before; Java 17 disables them."""


class TlsError(ValueError):
    """A TLS setting or store cannot be used; the text names the key and the remedy, never a password."""


@unique
class StoreType(StrEnum):
    """The formats of stores."""

    JKS = "JKS"
    PKCS12 = "PKCS12"
    PEM = "PEM"


@unique
class ClientAuth(StrEnum):
    """`ssl.client.auth`: whether a listener demands a client certificate."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStoreSettings:
    """The location of the private key and its certificates: a file at `location`, or texts in `key` and
    `chain`."""

    store_type: StoreType
    location: Path | None = None
    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    chain: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustStoreSettings:
    """The location of the trusted certificates: a file at `location`, or a text in `certificates`."""

    store_type: StoreType
    location: Path | None = None
    password: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """The settings key of the certificates, for messages."""
        if self.location is None:
            return "`ssl.truststore.certificates`"
        return f"`ssl.truststore.location` (`{self.location}`)"


@dataclass(frozen=True, slots=True)
class CipherSuites:
    """The selected suites. `openssl`: OpenSSL's names of those before TLS 1.3, in order of preference."""

    openssl: tuple[str, ...]
    has_tls13: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """TLS of a listener, or of connections to a cluster. `crl_location`: revoked certificates, in PEM."""

    keystore: KeyStoreSettings | None = None
    truststore: TrustStoreSettings | None = None
    crl_location: Path | None = None
    minimum_version: str = PROTOCOLS[0]
    maximum_version: str = PROTOCOLS[-1]
    suites: CipherSuites | None = None
    """None: OpenSSL's defaults."""
    verify_hostname: bool = True
    client_auth: ClientAuth = ClientAuth.NONE
    allow_dn_changes: bool = False
    allow_san_changes: bool = False

    @property
    def files(self) -> tuple[Path, ...]:
        """The files to watch for changes."""
        stores = (self.keystore, self.truststore)
        locations = (*(None if each is None else each.location for each in stores), self.crl_location)
        return tuple(each for each in locations if each is not None)
