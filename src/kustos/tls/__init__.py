"""TLS for servers and clients: Kafka's `ssl.*` keys, the stores that they name, and OpenSSL contexts built
from them."""

from kustos.tls.certificates import Certificate, CertificateParts, certificate_parts
from kustos.tls.contexts import MadeContext, Side, make_context, prove
from kustos.tls.replacement import TlsContexts, follow_files
from kustos.tls.settings import (
    CLIENT_AUTH,
    CRL_LOCATION,
    ENDPOINT_IDENTIFICATION,
    TLS_KEYS,
    tls_settings,
)
from kustos.tls.stores import KeyStore, read_keystore, read_truststore
from kustos.tls.values import (
    PROTOCOLS,
    ClientAuth,
    KeyStoreSettings,
    StoreType,
    TlsError,
    TlsSettings,
    TrustStoreSettings,
)

__all__ = [
    "CLIENT_AUTH",
    "CRL_LOCATION",
    "ENDPOINT_IDENTIFICATION",
    "PROTOCOLS",
    "TLS_KEYS",
    "Certificate",
    "CertificateParts",
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
    "certificate_parts",
    "follow_files",
    "make_context",
    "prove",
    "read_keystore",
    "read_truststore",
    "tls_settings",
]
