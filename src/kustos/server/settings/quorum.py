"""The settings of the quorum that a node follows."""

from dataclasses import dataclass, replace
from typing import Final

from kustos.client import ClientSettings, SettingsError
from kustos.server.settings.clients import client_declarations, client_settings
from kustos.server.settings.listeners import ListenerSettings
from kustos.server.settings.properties import GivenSettings
from kustos.settings import INT32_MAX, INT64_MAX, TEXT, Setting, one_of, whole_number

EMBEDDED: Final = "embedded"

METADATA_STORE: Final = Setting(
    "kustos.metadata.store",
    one_of(EMBEDDED, "kraft"),
    EMBEDDED,
    "Quorum",
    "Where ACLs, SCRAM users and delegation tokens are stored: `embedded`, in a log of this node; `kraft`, "
    "in the metadata of a Kafka cluster: this node follows its controllers and sends all changes to them.",
)
CONTROLLERS: Final[Setting[str]] = Setting(
    "controller.quorum.bootstrap.servers",
    TEXT,
    None,
    "Quorum",
    "Controllers of the cluster: `host:port`, separated by commas; needed for `kraft`.",
)
CONTROLLER_TIMEOUT_MS: Final = Setting(
    "controller.quorum.request.timeout.ms",
    whole_number(1000, INT32_MAX, "milliseconds"),
    2_000,
    "Quorum",
    "How long a controller may take to connect or to answer before kustos tries the next one. A controller "
    "without new records delays its answer by half a second.",
)
QUORUM_PREFIX: Final = "kustos.quorum."
QUORUM: Final = client_declarations(
    QUORUM_PREFIX,
    "Quorum",
    "The security protocol of the controllers. The principal needs CLUSTER_ACTION on the cluster there.",
)

KEPT: Final = "the quorum has the metadata, `kustos.metadata.store` is `kraft`"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSettings:
    """Cluster mode. Times in milliseconds."""

    client: ClientSettings
    max_staleness_ms: int = Setting(
        "kustos.metadata.max.staleness.ms",
        whole_number(2_000, INT64_MAX // 1_000_000, "milliseconds"),
        300_000,
        "Quorum",
        "How long a node that has lost the quorum decides by its last metadata. After that it denies "
        "everything to everybody except super users, and logins with SCRAM or tokens fail.",
    ).field()
    change_timeout_ms: int = Setting(
        "kustos.quorum.change.timeout.ms",
        whole_number(1000, INT32_MAX, "milliseconds"),
        30_000,
        "Quorum",
        "How long a change may take until it is in force on this node, even if the active controller changes "
        "meanwhile. After that the answer is `REQUEST_TIMED_OUT`.",
    ).field()


def quorum_settings(given: GivenSettings, listeners: tuple[ListenerSettings, ...]) -> QuorumSettings | None:
    """Return the settings of cluster mode, None if the node has its own metadata.

    Raise `SettingsError`.
    """
    if given.require(METADATA_STORE) == EMBEDDED:
        return None
    servers = given.get(CONTROLLERS)
    if servers is None:
        raise SettingsError(
            "`controller.quorum.bootstrap.servers` is not set, `kustos.metadata.store=kraft` needs it"
        )
    for listener in listeners:
        if listener.is_controller:
            raise SettingsError(
                f"`{listener.name}` is a listener of controllers, but {KEPT}: its controllers answer for "
                "themselves, take it out of `listeners`"
            )
    return QuorumSettings(client=_client(given, servers), **given.fields(QuorumSettings))


def _client(given: GivenSettings, servers: str) -> ClientSettings:
    client = client_settings(given, QUORUM_PREFIX, servers)
    timeout_ms = given.require(CONTROLLER_TIMEOUT_MS)
    limits = replace(client.limits, connect_timeout_ms=timeout_ms, request_timeout_ms=timeout_ms)
    return replace(client, limits=limits)
