"""The settings of TLS, once for each side: listeners, the upstream cluster, the controllers."""

from collections.abc import Mapping
from typing import Any, Final

from kustos.server.settings.kinds import (
    ANY_TEXT,
    BOOLEAN,
    INT32_MAX,
    TEXT,
    Kind,
    Section,
    Setting,
    TakesEffect,
    list_of,
    one_of,
    whole_number,
)
from kustos.tls import PROTOCOLS, ClientAuth, StoreType

_STORE_TYPE: Final = one_of(*StoreType)

_COMMON: Final[tuple[tuple[str, Kind[Any], Any, str, bool], ...]] = (
    ("ssl.keystore.type", _STORE_TYPE, "JKS", "The format of the key store.", False),
    ("ssl.keystore.location", TEXT, None, "The file of the private key and its certificates.", False),
    ("ssl.keystore.password", TEXT, None, "The password of a key store in JKS or PKCS12.", True),
    (
        "ssl.key.password",
        TEXT,
        None,
        "The password of the private key: in PEM if it is encrypted, in JKS if it is not that of the store.",
        True,
    ),
    ("ssl.keystore.key", TEXT, None, "The private key itself in PEM (PKCS8), in place of a file.", True),
    (
        "ssl.keystore.certificate.chain",
        TEXT,
        None,
        "Its certificates in PEM, its own first; with `ssl.keystore.key`.",
        True,
    ),
    ("ssl.truststore.type", _STORE_TYPE, "JKS", "The format of the trust store.", False),
    ("ssl.truststore.location", TEXT, None, "The file of the trusted certificates.", False),
    (
        "ssl.truststore.password",
        TEXT,
        None,
        "The password of a trust store in JKS or PKCS12. JKS can be read without it, but a changed file is "
        "not detected then.",
        True,
    ),
    (
        "ssl.truststore.certificates",
        TEXT,
        None,
        "The trusted certificates themselves in PEM, in place of a file.",
        True,
    ),
    ("ssl.enabled.protocols", list_of(*PROTOCOLS), PROTOCOLS, "The accepted versions of TLS.", False),
    (
        "ssl.protocol",
        one_of("TLS", *PROTOCOLS),
        PROTOCOLS[-1],
        "The highest version, whatever `ssl.enabled.protocols` accepts.",
        False,
    ),
    (
        "ssl.cipher.suites",
        list_of(),
        None,
        "The accepted cipher suites, by their names in Java. Either all three of TLS 1.3 are among them, or "
        "none, which switches TLS 1.3 off. Without it, those of OpenSSL.",
        False,
    ),
    (
        "ssl.allow.dn.changes",
        BOOLEAN,
        False,
        "Whether a changed key store may have a certificate with another distinguished name.",
        False,
    ),
    (
        "ssl.allow.san.changes",
        BOOLEAN,
        False,
        "Whether a changed key store may have a certificate with other subject alternative names.",
        False,
    ),
)
"""Name, kind, default, meaning, and whether it is a secret."""

_REVOCATIONS: Final = (
    "A file of lists of revoked certificates (CRL, in PEM). With it a certificate is refused if it is "
    "revoked, or if its issuer has no list."
)


def _settings(prefix: str, section: Section) -> dict[str, Setting[Any]]:
    is_of_listeners = not prefix
    takes_effect = TakesEffect.RELOAD if is_of_listeners else TakesEffect.RESTART
    made = {
        name: Setting(
            prefix + name,
            kind,
            default,
            section,
            doc,
            secret=is_secret,
            per_listener=is_of_listeners,
            takes_effect=takes_effect,
        )
        for name, kind, default, doc, is_secret in _COMMON
    }
    revocations = "kustos.ssl.crl.location" if is_of_listeners else f"{prefix}ssl.crl.location"
    made["ssl.crl.location"] = Setting(
        revocations,
        TEXT,
        None,
        section,
        _REVOCATIONS,
        per_listener=is_of_listeners,
        takes_effect=takes_effect,
    )
    return made


def client_tls_settings(prefix: str, section: Section) -> tuple[Setting[Any], ...]:
    """Return the settings of TLS of connections to a cluster."""
    verification: Setting[str] = Setting(
        f"{prefix}ssl.endpoint.identification.algorithm",
        ANY_TEXT,
        "https",
        section,
        "`https`: the certificate must be of the host that is connected to; empty: any trusted one will do.",
    )
    return (*_settings(prefix, section).values(), verification)


LISTENER_TLS: Final[Mapping[str, Setting[Any]]] = _settings("", "TLS")
"""By the name of the setting for a listener."""

CLIENT_AUTH: Final = Setting(
    "ssl.client.auth",
    one_of(*ClientAuth),
    str(ClientAuth.NONE),
    "TLS",
    "Whether clients must show a certificate. A `SASL_SSL` listener needs it with the listener's prefix.",
    per_listener=True,
    takes_effect=TakesEffect.RELOAD,
)
HANDSHAKE_TIMEOUT_MS: Final = Setting(
    "kustos.ssl.handshake.timeout.ms",
    whole_number(100, INT32_MAX, "milliseconds"),
    10_000,
    "TLS",
    "How long a TLS handshake of a client may take as a whole.",
)

TLS_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    *LISTENER_TLS.values(),
    CLIENT_AUTH,
    HANDSHAKE_TIMEOUT_MS,
)
