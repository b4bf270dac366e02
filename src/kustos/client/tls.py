"""TLS of outgoing connections: the stores of Kafka's `ssl.*` keys are read at the first connection and when
they change.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

import structlog

from kustos.client.errors import SettingsError
from kustos.tls import Side, TlsContexts, TlsError, TlsSettings, tls_settings

ENGINE_FACTORY_KEY: Final = "ssl.engine.factory.class"
ENGINE_FACTORIES: Final = ("", "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory")
"""The value for TLS with the settings of the other keys."""

NO_ENGINES: Final = (
    "TLS here is that of OpenSSL, and no factory of Java can make it; leave the key out, and say by the "
    "other `ssl.` keys what is needed"
)

LOG = structlog.get_logger("kustos.client")


@dataclass(slots=True, unsafe_hash=True)
class ClientTls:
    """The settings, and the context made of them; equal, and hashed alike, if the settings are.

    `settings` never changes. It is part of the settings by which key sets and tokens are shared.
    """

    settings: TlsSettings
    _contexts: TlsContexts | None = field(default=None, compare=False, repr=False)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Return the TLS settings of these keys; raise `SettingsError` naming a wrong one. No file is read
        yet."""
        factory = properties.get(ENGINE_FACTORY_KEY, "").strip()
        if factory not in ENGINE_FACTORIES:
            raise SettingsError(f"`{ENGINE_FACTORY_KEY}` is `{factory}`: {NO_ENGINES}")
        try:
            return cls(tls_settings(properties))
        except TlsError as error:
            raise SettingsError(str(error)) from None

    def context(self) -> ssl.SSLContext:
        """Return the context for the next connection; raise `SettingsError` for unusable stores.

        If usable stores are replaced by unusable ones, this is logged and the usable ones remain.
        """
        if self._contexts is None:
            try:
                self._contexts = TlsContexts(self.settings, Side.CLIENT)
                self._contexts.made.report_expired_trust(LOG)
            except TlsError as error:
                raise SettingsError(str(error)) from None
        elif self._contexts.has_new_files():
            self._contexts.renew(LOG)
        return self._contexts.context


_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})
"""OpenSSL's names for bytes that are not TLS."""


def tls_reason(error: ssl.SSLError) -> str:
    """Return the reason why TLS failed: the error of a certificate, or OpenSSL's name of the error."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    if error.reason in _NO_TLS:
        return "the listener does not answer in TLS, check that `security.protocol` matches the listener"
    return (error.reason or "the peer gives no reason").lower().replace("_", " ")
