"""The admin side of a node: what its admin listener shows and changes, wired to the rest."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from kustos.gateway.admin.apis import AdminApis, AdminNode
from kustos.gateway.admin.configs import ConfigBook, ConfigEntry
from kustos.gateway.listener import AdminParts
from kustos.gateway.session_parts import LocalApis
from kustos.gateway.writer import MetadataWriter
from kustos.metadata.control import ConfigRules
from kustos.protocol import ADMIN_TABLE
from kustos.protocol.admin_table import ADMIN_OFFERED
from kustos.protocol.node_messages import Voter
from kustos.runtime import SystemClock
from kustos.server.authorization import Authorization, StandardAuthorization
from kustos.server.dynamic_configs import CHECKS, DynamicConfigs
from kustos.server.logs import LOG_LEVELS
from kustos.server.setting_table import BY_NAME
from kustos.server.settings import KustosSettings
from kustos.wire import ZERO_UUID, response_codec
from kustos.wire.api_keys import ApiKey


class AdminSide:
    """Serves the admin listeners and keeps the settings of the log in force; made inside the event loop."""

    def __init__(
        self,
        settings: KustosSettings,
        writer: MetadataWriter,
        authorization: Authorization,
        common: LocalApis,
    ) -> None:
        store = writer.store
        self._writer: Final = writer
        is_standard = isinstance(authorization, StandardAuthorization)
        checks = CHECKS if is_standard else {}
        self._configs = (
            DynamicConfigs(
                authorization.authorizer,
                settings.authorizer_configs,
                settings.node_id,
                asyncio.get_running_loop(),
            )
            if isinstance(authorization, StandardAuthorization)
            else None
        )
        directory_id = store.properties.directory_id
        voter = Voter(
            settings.node_id,
            ZERO_UUID if directory_id is None else directory_id.bytes,
            tuple(
                (listener.name, listener.advertised.host, listener.advertised.port)
                for listener in settings.listeners
                if listener.is_controller
            ),
        )
        self.book: Final = ConfigBook(
            settings.node_id, settings.config_entries, frozenset(checks), lambda: store.image, LOG_LEVELS
        )
        self.apis: Final = AdminApis(
            node=AdminNode(str(store.properties.cluster_id), voter),
            writer=writer,
            common=common,
            configs=self.book,
            rules=ConfigRules(settings.node_id, checks, frozenset(BY_NAME) - frozenset(checks)),
            loggers=LOG_LEVELS,
            clock=SystemClock(),
        )
        self.parts: Final = AdminParts(local=self.apis, table=ADMIN_TABLE, offered=lambda: ADMIN_OFFERED)

    def load(self) -> None:
        """Put in force what the log says of settings, from now on."""
        if self._configs is not None:
            self._writer.store.add_publisher(self._configs)

    def dynamic_values(self) -> Mapping[str, str]:
        """Return the settings that the log has the say in."""
        return {} if self._configs is None else self._configs.values

    def reloaded(self, given: Mapping[str, str], entries: Iterable[ConfigEntry]) -> None:
        """Take note of what the file says now, as far as it is in force without a restart."""
        if self._configs is not None:
            self._configs.restate(given)
            self.book.restate(entry for entry in entries if entry.name in CHECKS)

    def api_versions_body(self, version: int) -> bytes:
        """Return the answer to ApiVersions of who has not logged in yet."""
        return response_codec(ApiKey.API_VERSIONS, version).encode(self.apis.api_versions(version))
