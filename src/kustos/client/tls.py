"""TLS of outgoing connections, from Kafka's `ssl.*` keys with PEM stores (KIP-651).

Java key stores are refused with instructions to convert them: reading them would take a second, unproven
parser of keys.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kustos.client.errors import SettingsError

_MINIMUM_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class TlsClientSettings:
    """Trusted certificates and our own; without a trust store the system's certificates are trusted."""

    truststore_location: Path | None = None
    truststore_certificates: str | None = field(default=None, repr=False)
    keystore_location: Path | None = None
    key_password: str | None = field(default=None, repr=False)
    verify_hostname: bool = True
    minimum_version: str = "TLSv1.2"

    def context(self) -> ssl.SSLContext:
        """Return a context that verifies the peer; raise `SettingsError` for unusable files."""
        try:
            context = ssl.create_default_context(
                cafile=str(self.truststore_location) if self.truststore_location else None,
                cadata=self.truststore_certificates,
            )
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"`ssl.truststore.location` (`{self.truststore_location}`) is no readable PEM file "
                "of certificates"
            ) from error
        context.check_hostname = self.verify_hostname
        context.minimum_version = _MINIMUM_VERSIONS[self.minimum_version]
        if self.keystore_location is not None:
            try:
                context.load_cert_chain(str(self.keystore_location), password=self.key_password or "")
            except (OSError, ssl.SSLError) as error:
                raise SettingsError(
                    f"`ssl.keystore.location` (`{self.keystore_location}`) is no readable PEM file of a "
                    "private key and its certificates, or `ssl.key.password` is wrong"
                ) from error
        return context


def tls_settings(properties: Mapping[str, str]) -> TlsClientSettings:
    """Return the TLS settings of Kafka's `ssl.*` keys; raise `SettingsError` naming a wrong one."""
    for store in ("truststore", "keystore"):
        has_store = f"ssl.{store}.location" in properties
        kind = properties.get(f"ssl.{store}.type", "JKS").strip().upper()
        if has_store and kind != "PEM":
            raise SettingsError(
                f"`ssl.{store}.type` is `{kind}`, kustos reads PEM; convert the store with "
                "`keytool -importkeystore` and `openssl pkcs12`, and set the type to `PEM`"
            )
    if "ssl.keystore.key" in properties:
        raise SettingsError(
            "`ssl.keystore.key` is not read; put key and certificates into a PEM file and name it in "
            "`ssl.keystore.location`"
        )
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in {"https", ""}:
        raise SettingsError(
            f"`ssl.endpoint.identification.algorithm` is `{algorithm}`, use `https`, or nothing to trust "
            "any host that holds a trusted certificate"
        )
    return TlsClientSettings(
        _path(properties, "ssl.truststore.location"),
        properties.get("ssl.truststore.certificates"),
        _path(properties, "ssl.keystore.location"),
        properties.get("ssl.key.password"),
        verify_hostname=algorithm == "https",
        minimum_version=_minimum_version(properties),
    )


def _path(properties: Mapping[str, str], key: str) -> Path | None:
    text = properties.get(key, "").strip()
    return Path(text) if text else None


def _minimum_version(properties: Mapping[str, str]) -> str:
    text = properties.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3")
    named = sorted(item.strip() for item in text.split(",") if item.strip())
    if not named or any(name not in _MINIMUM_VERSIONS for name in named):
        raise SettingsError(f"`ssl.enabled.protocols` is `{text}`, use {' and '.join(_MINIMUM_VERSIONS)}")
    return named[0]
