"""The admin side of a node: what its admin listener shows and changes."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kustos.gateway.admin import AdminApis, AdminNode, ConfigBook, ConfigEntry, Loggers
from kustos.gateway.listener import AdminParts
from kustos.gateway.session import LocalApis
from kustos.gateway.store import MetadataSource, MetadataWriter
from kustos.metadata.control import ConfigRules
from kustos.metadata.image import EMPTY_IMAGE
from kustos.protocol import ADMIN_OFFERED, ADMIN_TABLE, LocalVoter
from kustos.runtime import SystemClock
from kustos.server.authorization.authorization import Authorization, StandardAuthorization
from kustos.server.dynamic_configs import CHECKS, DynamicConfigs
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.table import BY_NAME
from kustos.server.tls import TlsSide
from kustos.wire import ZERO_UUID, ApiKey, response_codec


class AdminSide:
    """Serves the admin listeners and keeps the log's settings in force; created inside the event loop."""

    def __init__(
        self,
        settings: KustosSettings,
        source: MetadataSource,
        writer: MetadataWriter | None,
        authorization: Authorization,
        common: LocalApis,
        audited: Callable[[LocalApis], LocalApis],
        tls: TlsSide,
        loggers: Loggers,
    ) -> None:
        store = source.store
        self._store: Final = store
        is_standard = isinstance(authorization, StandardAuthorization)
        self._tls: Final = tls
        checks = (CHECKS if is_standard else {}) | dict.fromkeys(tls.keys, str)
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
        voter = LocalVoter(
            settings.node_id,
            ZERO_UUID if directory_id is None else directory_id.bytes,
            tuple(
                (listener.name, listener.advertised.host, listener.advertised.port)
                for listener in settings.listeners
                if listener.is_controller
            ),
        )
        self.book: Final = ConfigBook(
            settings.node_id,
            settings.config_entries,
            frozenset(checks),
            # settings in a quorum's log concern its controllers: they are not in force here
            (lambda: store.image) if settings.quorum is None else (lambda: EMPTY_IMAGE),
            loggers,
        )
        self._apis: AdminApis | None = None
        self.parts: AdminParts | None = None
        """Serves the admin listeners; None in a process that has none, as it does not write the log."""
        if writer is not None:
            rules = ConfigRules(settings.node_id, checks, frozenset(BY_NAME) - frozenset(checks), tls.check)
            self._apis = AdminApis(
                node=AdminNode(str(store.properties.cluster_id), voter),
                writer=writer,
                common=common,
                configs=self.book,
                rules=rules,
                loggers=loggers,
                clock=SystemClock(),
            )
            self.parts = AdminParts(
                local=audited(self._apis), table=ADMIN_TABLE, offered=lambda: ADMIN_OFFERED
            )

    def load(self) -> None:
        """Put the log's settings in force, now and at each change."""
        if self._configs is not None:
            self._store.add_publisher(self._configs)
        self._store.add_publisher(self._tls)

    def dynamic_values(self) -> Mapping[str, str]:
        """Return the settings that come from the log."""
        return {} if self._configs is None else self._configs.values

    def reloaded(
        self, authorizer_configs: Mapping[str, str], entries: Iterable[ConfigEntry], gone: Iterable[str]
    ) -> None:
        """Take over what a reload put in force: `entries`, and nothing in place of those that are gone."""
        if self._configs is not None:
            self._configs.restate(authorizer_configs)
        self.book.restate(entries, gone)

    def api_versions_body(self, version: int) -> bytes:
        """Return the answer to ApiVersions for a client of an admin listener that has not logged in yet."""
        if self._apis is None:
            raise RuntimeError("this process has no admin listener")
        return response_codec(ApiKey.API_VERSIONS, version).encode(self._apis.api_versions(version))
