"""TLS for every side: Kafka's `ssl.*` keys, the stores that they name, and OpenSSL's contexts of them."""

from kustos.tls.contexts import CertificateNames, MadeContext, Side, certificate_names, make_context, prove
from kustos.tls.errors import TlsError
from kustos.tls.reloading import TlsContexts, follow_files
from kustos.tls.settings import (
    PROTOCOLS,
    ClientAuth,
    KeyStoreSettings,
    StoreType,
    TlsSettings,
    TrustStoreSettings,
    tls_settings,
)
from kustos.tls.stores import KeyStore, read_keystore, read_truststore

__all__ = [
    "PROTOCOLS",
    "CertificateNames",
    "ClientAuth",
    "KeyStore",
    "KeyStoreSettings",
    "MadeContext",
    "Side",
    "StoreType",
    "TlsContexts",
    "TlsError",
    "TlsSettings",
    "TrustStoreSettings",
    "certificate_names",
    "follow_files",
    "make_context",
    "prove",
    "read_keystore",
    "read_truststore",
    "tls_settings",
]
