"""The settings of the quorum that a node follows."""

from dataclasses import dataclass, replace
from typing import Final

from kustos.client import ClientSettings, SettingsError
from kustos.server.settings.clients import client_settings
from kustos.server.settings.listeners import ListenerSettings
from kustos.server.settings.properties import GivenSettings
from kustos.server.settings.table import quorum as table

KEPT: Final = "the quorum has the metadata, `kustos.metadata.store` is `kraft`"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSettings:
    """Cluster mode. Times in milliseconds."""

    client: ClientSettings
    max_staleness_ms: int
    change_timeout_ms: int


def quorum_settings(given: GivenSettings, listeners: tuple[ListenerSettings, ...]) -> QuorumSettings | None:
    """Return the settings of cluster mode, None where the metadata is this node's own.

    Raise `SettingsError`.
    """
    if given.require(table.METADATA_STORE) == table.EMBEDDED:
        return None
    servers = given.get(table.CONTROLLERS)
    if servers is None:
        raise SettingsError(
            f"`{table.CONTROLLERS.name}` is not set, `{table.METADATA_STORE.name}=kraft` needs it"
        )
    for listener in listeners:
        if listener.is_controller:
            raise SettingsError(
                f"`{listener.name}` is a listener of controllers, but {KEPT}: its controllers answer for "
                "themselves, take it out of `listeners`"
            )
    return QuorumSettings(
        client=_client(given, servers),
        max_staleness_ms=given.require(table.MAX_STALENESS_MS),
        change_timeout_ms=given.require(table.CHANGE_TIMEOUT_MS),
    )


def _client(given: GivenSettings, servers: str) -> ClientSettings:
    client = client_settings(given, table.QUORUM, servers)
    timeout_ms = given.require(table.CONTROLLER_TIMEOUT_MS)
    limits = replace(client.limits, connect_timeout_ms=timeout_ms, request_timeout_ms=timeout_ms)
    return replace(client, limits=limits)
