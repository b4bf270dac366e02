"""The settings of cluster mode: where the metadata is, and how old it may be."""

from typing import Any, Final

from kustos.server.settings.kinds import INT32_MAX, INT64_MAX, TEXT, Setting, one_of, whole_number
from kustos.server.settings.table.clients import client_table

QUORUM_PREFIX: Final = "kustos.quorum."
EMBEDDED: Final = "embedded"
KRAFT: Final = "kraft"

METADATA_STORE: Final = Setting(
    "kustos.metadata.store",
    one_of(EMBEDDED, KRAFT),
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
MAX_STALENESS_MS: Final = Setting(
    "kustos.metadata.max.staleness.ms",
    whole_number(2_000, INT64_MAX // 1_000_000, "milliseconds"),
    300_000,
    "Quorum",
    "How long a node that has lost the quorum decides by its last metadata. After that it denies everything "
    "to everybody except super users, and logins with SCRAM or tokens fail.",
)
QUORUM: Final = client_table(
    QUORUM_PREFIX,
    "Quorum",
    "The security protocol of the controllers. The principal needs CLUSTER_ACTION on the cluster there.",
)
CHANGE_TIMEOUT_MS: Final = Setting(
    QUORUM_PREFIX + "change.timeout.ms",
    whole_number(1000, INT32_MAX, "milliseconds"),
    30_000,
    "Quorum",
    "How long a change may take until it is in force on this node, even if the active controller changes "
    "meanwhile. After that the answer is `REQUEST_TIMED_OUT`.",
)

QUORUM_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    METADATA_STORE,
    CONTROLLERS,
    CONTROLLER_TIMEOUT_MS,
    MAX_STALENESS_MS,
    CHANGE_TIMEOUT_MS,
    *QUORUM.settings,
)
