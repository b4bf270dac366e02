"""The settings of Kafka's `ssl.*` keys: stores, protocols, cipher suites, and who is verified.

The rules are those of Kafka's `DefaultSslEngineFactory`: key and certificates stand in a file (PEM, PKCS12,
JKS), or in the settings themselves (PEM, KIP-651), never in both. Nothing is read from files here.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

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
    # as in Kafka this limits the other
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
