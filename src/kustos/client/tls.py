"""TLS of outgoing connections: the stores of Kafka's `ssl.*` keys, read at the first connection and when they
change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Self

import structlog

from kustos.client.errors import SettingsError
from kustos.tls import Side, TlsContexts, TlsError, TlsSettings, tls_settings

LOG = structlog.get_logger("kustos.client")


@dataclass(slots=True, unsafe_hash=True)
class ClientTls:
    """The settings, and the context made of them; equal, and hashed alike, if the settings are.

    `settings` never changes. Key sets and tokens are shared by equal settings, which it is a part of.
    """

    settings: TlsSettings
    _contexts: TlsContexts | None = field(default=None, compare=False, repr=False)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Return the TLS of these keys; raise `SettingsError` naming a wrong one. No file is read yet."""
        try:
            return cls(tls_settings(properties))
        except TlsError as error:
            raise SettingsError(str(error)) from None

    def context(self) -> SSLContext:
        """Return the context for the next connection; raise `SettingsError` for unusable stores.

        Once stores were usable, worse ones that replace them are reported and not used.
        """
        if self._contexts is None:
            try:
                self._contexts = TlsContexts(self.settings, Side.CLIENT)
            except TlsError as error:
                raise SettingsError(str(error)) from None
        elif self._contexts.has_new_files():
            self._contexts.renew(LOG)
        return self._contexts.context
