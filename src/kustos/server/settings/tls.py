"""TLS of a listener, from Kafka's `ssl.*` keys for all listeners and for this one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kustos.client import SettingsError
from kustos.server.settings.properties import GivenSettings, keys_of, listener_key
from kustos.server.settings.table.tls import CLIENT_AUTH, LISTENER_TLS
from kustos.tls import ClientAuth, TlsError, TlsSettings, tls_settings

TLS_PROTOCOLS: Final = frozenset({"SSL", "SASL_SSL"})


@dataclass(frozen=True, slots=True)
class ListenerTlsSettings:
    """TLS of a listener. `texts` are the values of its keys, prefixes removed; some are secrets."""

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
    for name, setting in (*LISTENER_TLS.items(), (CLIENT_AUTH.name, CLIENT_AUTH)):
        key = next((key for key in keys_of(setting, listener, None) if key in given.texts), None)
        if key is not None:
            texts[name] = given.texts[key]
    own_key = listener_key(CLIENT_AUTH, listener)
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
