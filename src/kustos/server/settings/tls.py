"""TLS settings by Kafka's `ssl.*` keys: of listeners, and with a prefix of connections to a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kustos.client import ENGINE_FACTORIES, ENGINE_FACTORY_KEY, NO_ENGINES, SettingsError
from kustos.server.settings.properties import GivenSettings, keys_of, listener_key
from kustos.settings import Kind, Scope, Section, Setting
from kustos.tls import (
    CLIENT_AUTH,
    CRL_LOCATION,
    ENDPOINT_IDENTIFICATION,
    TLS_KEYS,
    ClientAuth,
    TlsError,
    TlsSettings,
    tls_settings,
)

LISTENER_TLS: Final = (*TLS_KEYS, replace(CRL_LOCATION, name="kustos.ssl.crl.location"), CLIENT_AUTH)


def client_tls_declarations(prefix: str, section: Section) -> tuple[Setting[Any], ...]:
    """Return the TLS settings of connections to a cluster."""
    return tuple(each.behind(prefix, section) for each in (*TLS_KEYS, CRL_LOCATION, ENDPOINT_IDENTIFICATION))


def _read_engine_factory(text: str) -> str:
    if text not in ENGINE_FACTORIES:
        raise SettingsError(NO_ENGINES)
    return text


SSL_ENGINE_FACTORY_CLASS: Final = Setting(
    ENGINE_FACTORY_KEY,
    Kind("string", f"`{ENGINE_FACTORIES[1]}`, or nothing", _read_engine_factory),
    "",
    "Listeners",
    "In Kafka, a class that creates TLS engines. kustos does not support it and accepts only Kafka's own.",
    scope=Scope.LISTENER,
    since="0.2.0",
)

TLS_PROTOCOLS: Final = frozenset({"SSL", "SASL_SSL"})


@dataclass(frozen=True, slots=True)
class ListenerTlsSettings:
    """TLS of a listener. `texts` are the values by key without the listener's prefix; some are secrets."""

    settings: TlsSettings
    texts: Mapping[str, str] = field(repr=False)

    def changed_by(self, texts: Mapping[str, str]) -> TlsSettings:
        """Return the settings with these texts instead of the file's; raise `TlsError`."""
        return tls_settings({**self.texts, **texts})


def listener_tls_settings(given: GivenSettings, listener: str, protocol: str) -> ListenerTlsSettings | None:
    """Return the TLS of a listener, None if its protocol has none; raise `SettingsError`.

    As in Kafka, the listener's own key overrides the general one, for each key separately.
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
