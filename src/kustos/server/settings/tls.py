"""TLS settings by Kafka's `ssl.*` keys: of listeners, and with a prefix of connections to a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kustos.client import ENGINE_FACTORIES, ENGINE_FACTORY_KEY, NO_ENGINES, SettingsError
from kustos.server.settings.properties import GivenSettings, keys_of, listener_key
from kustos.settings import ANY_TEXT, BOOLEAN, TEXT, Kind, Section, Setting, TakesEffect, list_of, one_of
from kustos.tls import PROTOCOLS, ClientAuth, StoreType, TlsError, TlsSettings, tls_settings

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
"""Name, kind, default, meaning, and whether the value is a secret."""

_REVOCATIONS: Final = (
    "A file of lists of revoked certificates (CRL, in PEM). With it a certificate is refused if it is "
    "revoked, or if its issuer has no list."
)


def _declarations(prefix: str, section: Section) -> tuple[Setting[Any], ...]:
    is_of_listeners = not prefix
    revocations = "kustos.ssl.crl.location" if is_of_listeners else f"{prefix}ssl.crl.location"
    rows = [(prefix + name, *row) for name, *row in _COMMON]
    return tuple(
        Setting(
            name,
            kind,
            default,
            section,
            doc,
            secret=is_secret,
            per_listener=is_of_listeners,
            takes_effect=TakesEffect.RELOAD if is_of_listeners else TakesEffect.RESTART,
            dynamic=is_of_listeners and name.startswith(_STORES),
        )
        for name, kind, default, doc, is_secret in (*rows, (revocations, TEXT, None, _REVOCATIONS, False))
    )


_STORES: Final = ("ssl.keystore.", "ssl.key.", "ssl.truststore.")
"""The beginnings of the keys that change while a node runs (`SslConfigs.RECONFIGURABLE_CONFIGS` of Kafka)."""


def client_tls_declarations(prefix: str, section: Section) -> tuple[Setting[Any], ...]:
    """Return the TLS settings of connections to a cluster."""
    verification: Setting[str] = Setting(
        f"{prefix}ssl.endpoint.identification.algorithm",
        ANY_TEXT,
        "https",
        section,
        "`https`: the certificate must be of the host that is connected to; empty: any trusted one will do.",
    )
    return (*_declarations(prefix, section), verification)


CLIENT_AUTH: Final = Setting(
    "ssl.client.auth",
    one_of(*ClientAuth),
    str(ClientAuth.NONE),
    "TLS",
    "Whether clients must show a certificate. A `SASL_SSL` listener needs it with the listener's prefix.",
    per_listener=True,
    takes_effect=TakesEffect.RELOAD,
)
LISTENER_TLS: Final = (*_declarations("", "TLS"), CLIENT_AUTH)


def _read_engine_factory(text: str) -> str:
    if text not in ENGINE_FACTORIES:
        raise SettingsError(NO_ENGINES)
    return text


SSL_ENGINE_FACTORY_CLASS: Final = Setting(
    ENGINE_FACTORY_KEY,
    Kind("string", f"`{ENGINE_FACTORIES[1]}`, or nothing", _read_engine_factory),
    "",
    "Listeners",
    "In Kafka a class that makes TLS engines. There is none here: any but Kafka's own is refused.",
    per_listener=True,
)

TLS_PROTOCOLS: Final = frozenset({"SSL", "SASL_SSL"})


@dataclass(frozen=True, slots=True)
class ListenerTlsSettings:
    """TLS of a listener. `texts` are the values by key without the listener's prefix; some are secrets."""

    settings: TlsSettings
    texts: Mapping[str, str] = field(repr=False)

    def changed_by(self, texts: Mapping[str, str]) -> TlsSettings:
        """Return the settings with these texts in place of the file's; raise `TlsError`."""
        return tls_settings({**self.texts, **texts})


def listener_tls_settings(given: GivenSettings, listener: str, protocol: str) -> ListenerTlsSettings | None:
    """Return the TLS of a listener, None if its protocol has none; raise `SettingsError`.

    As in Kafka the listener's own key wins over the general one, each key by itself.
    """
    if protocol not in TLS_PROTOCOLS:
        return None
    texts: dict[str, str] = {}
    for setting in LISTENER_TLS:
        key = next((key for key in keys_of(setting, listener, None) if key in given.texts), None)
        if key is not None:
            texts[setting.name] = given.texts[key]
    own_key = listener_key(CLIENT_AUTH.name, listener)
    if protocol == "SASL_SSL" and own_key not in given.texts:
        client_auth = texts.pop(CLIENT_AUTH.name, ClientAuth.NONE)
        if client_auth != ClientAuth.NONE:
            given.warnings.append(
                f"`{CLIENT_AUTH.name}` has no effect on the `SASL_SSL` listener `{listener}`, as in Kafka; "
                f"to demand certificates, set `{own_key}`"
            )
    try:
        return ListenerTlsSettings(tls_settings(texts), texts)
    except TlsError as error:
        raise SettingsError(f"listener `{listener}`: {error}") from None
