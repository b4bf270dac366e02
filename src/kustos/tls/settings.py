"""The settings of Kafka's `ssl.*` keys: stores, protocols, cipher suites, and client authentication.

The rules are those of Kafka's `DefaultSslEngineFactory`: key and certificates are in a file (PEM, PKCS12,
JKS), or in the settings themselves (PEM, KIP-651), never in both. This module reads no files.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kustos.settings import (
    ANY_TEXT,
    BOOLEAN,
    TEXT,
    Kind,
    Scope,
    Setting,
    TakesEffect,
    list_of,
    one_of,
)
from kustos.tls.cipher_suites import cipher_suites
from kustos.tls.values import (
    PROTOCOLS,
    CipherSuites,
    ClientAuth,
    KeyStoreSettings,
    StoreType,
    TlsError,
    TlsSettings,
    TrustStoreSettings,
)

TLS_PROTOCOL_WORDS: Final = ("TLS", *PROTOCOLS)
DEFAULT_STORE_TYPE: Final = "JKS"

_STORES: Final = ("ssl.keystore.", "ssl.key.", "ssl.truststore.")
"""The prefixes of the keys that may change while a node runs (`SslConfigs.RECONFIGURABLE_CONFIGS`)."""


def _key(name: str, kind: Kind[Any], default: Any, doc: str, *, secret: bool = False) -> Setting[Any]:
    """Return the declaration of a key for all listeners or one."""
    return Setting(
        name,
        kind,
        default,
        "TLS",
        doc,
        secret=secret,
        scope=Scope.LISTENER,
        takes_effect=TakesEffect.RELOAD,
        dynamic=name.startswith(_STORES),
        since="0.2.0",
    )


_STORE_TYPE: Final = one_of(*StoreType)
TLS_KEYS: Final[tuple[Setting[Any], ...]] = (
    _key("ssl.keystore.type", _STORE_TYPE, DEFAULT_STORE_TYPE, "The format of the key store."),
    _key("ssl.keystore.location", TEXT, None, "The file of the private key and its certificates."),
    _key("ssl.keystore.password", TEXT, None, "The password of a key store in JKS or PKCS12.", secret=True),
    _key(
        "ssl.key.password",
        TEXT,
        None,
        "The password of the private key: in PEM if it is encrypted, in JKS if it differs from the store's.",
        secret=True,
    ),
    _key(
        "ssl.keystore.key",
        TEXT,
        None,
        "The private key itself in PEM (PKCS8), in place of a file.",
        secret=True,
    ),
    _key(
        "ssl.keystore.certificate.chain",
        TEXT,
        None,
        "Its certificates in PEM, its own first; with `ssl.keystore.key`.",
        secret=True,
    ),
    _key("ssl.truststore.type", _STORE_TYPE, DEFAULT_STORE_TYPE, "The format of the trust store."),
    _key("ssl.truststore.location", TEXT, None, "The file of the trusted certificates."),
    _key(
        "ssl.truststore.password",
        TEXT,
        None,
        "The password of a trust store in JKS or PKCS12. JKS can be read without it, but a changed file is "
        "not detected then.",
        secret=True,
    ),
    _key(
        "ssl.truststore.certificates",
        TEXT,
        None,
        "The trusted certificates themselves in PEM, in place of a file.",
        secret=True,
    ),
    _key("ssl.enabled.protocols", list_of(*PROTOCOLS), PROTOCOLS, "The accepted versions of TLS."),
    _key(
        "ssl.protocol",
        one_of(*TLS_PROTOCOL_WORDS),
        PROTOCOLS[-1],
        "The highest version, whatever `ssl.enabled.protocols` accepts.",
    ),
    _key(
        "ssl.cipher.suites",
        list_of(),
        None,
        "The accepted cipher suites, by their names in Java. Either all three of TLS 1.3 are among them, or "
        "none, which switches TLS 1.3 off. The default is OpenSSL's list.",
    ),
    _key(
        "ssl.allow.dn.changes",
        BOOLEAN,
        False,
        "Whether a changed key store may have a certificate with another distinguished name.",
    ),
    _key(
        "ssl.allow.san.changes",
        BOOLEAN,
        False,
        "Whether a changed key store may have a certificate with other subject alternative names.",
    ),
)
"""The keys that listeners and clients have."""

CRL_LOCATION: Final = _key(
    "ssl.crl.location",
    TEXT,
    None,
    "A file of lists of revoked certificates (CRL, in PEM). With it a certificate is refused if it is "
    "revoked, or if its issuer has no list.",
)
CLIENT_AUTH: Final = _key(
    "ssl.client.auth",
    one_of(*ClientAuth),
    str(ClientAuth.NONE),
    "Whether clients must show a certificate. A `SASL_SSL` listener needs it with the listener's prefix.",
)
"""The key that only listeners have."""

ENDPOINT_IDENTIFICATION: Final = _key(
    "ssl.endpoint.identification.algorithm",
    ANY_TEXT,
    "https",
    "`https`: the certificate must be of the host that is connected to; empty: any trusted one will do.",
)
"""The key that only clients have."""


def tls_settings(properties: Mapping[str, str]) -> TlsSettings:
    """Return the settings of these keys, prefixes removed; raise `TlsError` naming a wrong one."""
    minimum, maximum = _versions(properties)
    suites = _suites(properties)
    if suites is not None and not suites.has_tls13:
        maximum = PROTOCOLS[0]
    if suites is not None and not suites.openssl:
        minimum = PROTOCOLS[-1]
    if minimum > maximum:
        raise TlsError(
            "`ssl.cipher.suites` has no suite of the versions in `ssl.enabled.protocols` and `ssl.protocol`; "
            "name suites of these versions"
        )
    return TlsSettings(
        keystore=_keystore(properties),
        truststore=_truststore(properties),
        crl_location=_path(properties, "kustos.ssl.crl.location") or _path(properties, "ssl.crl.location"),
        minimum_version=minimum,
        maximum_version=maximum,
        suites=suites,
        verify_hostname=_verifies_hostname(properties),
        client_auth=_client_auth(properties),
        allow_dn_changes=_boolean(properties, "ssl.allow.dn.changes"),
        allow_san_changes=_boolean(properties, "ssl.allow.san.changes"),
    )


def _text(properties: Mapping[str, str], key: str) -> str | None:
    text = properties.get(key, "")
    return text if text.strip() else None


def _path(properties: Mapping[str, str], key: str) -> Path | None:
    text = _text(properties, key)
    return None if text is None else Path(text.strip())


def _type(properties: Mapping[str, str], key: str) -> StoreType:
    text = properties.get(key, DEFAULT_STORE_TYPE).strip()
    try:
        return StoreType(text.upper())
    except ValueError:
        raise TlsError(f"`{key}` is `{text}`, use one of {', '.join(StoreType)}") from None


def _keystore(properties: Mapping[str, str]) -> KeyStoreSettings | None:
    store = KeyStoreSettings(
        store_type=_type(properties, "ssl.keystore.type"),
        location=_path(properties, "ssl.keystore.location"),
        password=_text(properties, "ssl.keystore.password"),
        key_password=_text(properties, "ssl.key.password"),
        key=_text(properties, "ssl.keystore.key"),
        chain=_text(properties, "ssl.keystore.certificate.chain"),
    )
    is_inline = store.key is not None or store.chain is not None
    if is_inline and store.store_type is not StoreType.PEM:
        raise TlsError(
            "`ssl.keystore.key` and `ssl.keystore.certificate.chain` hold PEM, but `ssl.keystore.type` is "
            f"`{store.store_type}`; set it to `PEM`"
        )
    if (store.key is None) != (store.chain is None):
        missing = "ssl.keystore.key" if store.key is None else "ssl.keystore.certificate.chain"
        raise TlsError(f"`{missing}` is not set, key and certificates belong together")
    if is_inline and store.location is not None:
        raise TlsError("`ssl.keystore.location` and `ssl.keystore.key` are both set, keep one of them")
    if store.store_type is StoreType.PEM and store.password is not None:
        raise TlsError(
            "`ssl.keystore.password` is set for a `PEM` store, which has none; the password of its private "
            "key is `ssl.key.password`"
        )
    if not is_inline and store.location is None:
        if store.password is not None:
            raise TlsError("`ssl.keystore.password` is set without a store, set `ssl.keystore.location`")
        return None
    if store.store_type is not StoreType.PEM and store.password is None:
        raise TlsError("`ssl.keystore.location` is set without its password, set `ssl.keystore.password`")
    return store


def _truststore(properties: Mapping[str, str]) -> TrustStoreSettings | None:
    store = TrustStoreSettings(
        store_type=_type(properties, "ssl.truststore.type"),
        location=_path(properties, "ssl.truststore.location"),
        password=_text(properties, "ssl.truststore.password"),
        certificates=_text(properties, "ssl.truststore.certificates"),
    )
    if store.certificates is not None and store.store_type is not StoreType.PEM:
        raise TlsError(
            "`ssl.truststore.certificates` holds PEM, but `ssl.truststore.type` is "
            f"`{store.store_type}`; set it to `PEM`"
        )
    if store.certificates is not None and store.location is not None:
        raise TlsError(
            "`ssl.truststore.location` and `ssl.truststore.certificates` are both set, keep one of them"
        )
    if store.store_type is StoreType.PEM and store.password is not None:
        raise TlsError("`ssl.truststore.password` is set for a `PEM` store, which has none; remove it")
    if store.certificates is None and store.location is None:
        if store.password is not None:
            raise TlsError("`ssl.truststore.password` is set without a store, set `ssl.truststore.location`")
        return None
    return store


def _versions(properties: Mapping[str, str]) -> tuple[str, str]:
    key = "ssl.enabled.protocols"
    text = _text(properties, key) or ",".join(PROTOCOLS)
    named = sorted(item.strip() for item in text.split(",") if item.strip())
    if not named or any(name not in PROTOCOLS for name in named):
        raise TlsError(f"`{key}` is `{text}`, use {' and '.join(PROTOCOLS)}")
    highest = (_text(properties, "ssl.protocol") or PROTOCOLS[-1]).strip()
    if highest not in TLS_PROTOCOL_WORDS:
        raise TlsError(f"`ssl.protocol` is `{highest}`, use one of {', '.join(TLS_PROTOCOL_WORDS)}")
    # as in Kafka, this key limits the other
    maximum = min(named[-1], PROTOCOLS[-1] if highest == "TLS" else highest)
    if named[0] > maximum:
        raise TlsError(f"`{key}` has no version up to `ssl.protocol` (`{highest}`), raise that one")
    return named[0], maximum


def _suites(properties: Mapping[str, str]) -> CipherSuites | None:
    text = _text(properties, "ssl.cipher.suites")
    return None if text is None else cipher_suites(item.strip() for item in text.split(",") if item.strip())


def _verifies_hostname(properties: Mapping[str, str]) -> bool:
    key = "ssl.endpoint.identification.algorithm"
    algorithm = properties.get(key, "https").strip().lower()
    if algorithm not in {"https", ""}:
        raise TlsError(
            f"`{key}` is `{algorithm}`, use `https`, or nothing to trust any host that holds a trusted "
            "certificate"
        )
    return algorithm == "https"


def _client_auth(properties: Mapping[str, str]) -> ClientAuth:
    text = properties.get("ssl.client.auth", ClientAuth.NONE).strip()
    try:
        return ClientAuth(text)
    except ValueError:
        raise TlsError(f"`ssl.client.auth` is `{text}`, use one of {', '.join(ClientAuth)}") from None


def _boolean(properties: Mapping[str, str], key: str) -> bool:
    text = properties.get(key, "false").strip().lower()
    if text not in {"true", "false"}:
        raise TlsError(f"`{key}` is `{text}`, use `true` or `false`")
    return text == "true"
