"""The authorization of every API of the admin listener, as data.

The listener acts as a controller's listener: kustos answers for its own node the requests that Kafka's
controllers answer for themselves. APIs shared with the other listeners have the same rows. An API without a
row is not offered, neither directly nor in an Envelope. Derived from `ControllerApis` of Kafka 4.3.1.
"""

from dataclasses import replace
from typing import Final

from kustos.protocol.api_versions import common_versions
from kustos.protocol.common import ALTER_CLUSTER, DESCRIBE_CLUSTER, TOP_WITH_MESSAGE, cluster
from kustos.protocol.handlers.configs import alter_configs, describe_configs
from kustos.protocol.handlers.controllers import describe_controllers, envelope
from kustos.protocol.rows import TABLE
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import ClusterOperations, Gate, Row, ServeLocally
from kustos.wire import ApiKey

ALTERED_CONFIGS: Final = Items(
    "resources",
    "responses",
    (("resource_type", "resource_type"), ("resource_name", "resource_name")),
    # the only code that refuses a whole request is a server fault, sent without a text
    extra={"error_message": None},
)

SHARED: Final = (
    ApiKey.SASL_HANDSHAKE,
    ApiKey.API_VERSIONS,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
)
"""Rows of every listener: kustos answers these APIs itself on all listeners."""

ADMIN_ROWS: Final[tuple[Row, ...]] = (
    *(TABLE[api_key] for api_key in SHARED),
    replace(TABLE[ApiKey.DESCRIBE_CONFIGS], custom_handler=describe_configs),
    Row(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        Refusal(top_field=None, items=ALTERED_CONFIGS),
        custom_handler=alter_configs,
        revokes=True,
    ),
    Row(ApiKey.DESCRIBE_QUORUM, TOP_WITH_MESSAGE, (Gate(DESCRIBE_CLUSTER, cluster), ServeLocally())),
    Row(ApiKey.UPDATE_FEATURES, TOP_WITH_MESSAGE, (Gate(ALTER_CLUSTER, cluster), ServeLocally())),
    Row(ApiKey.ENVELOPE, Refusal(extra={"response_data": None}), custom_handler=envelope),
    Row(
        ApiKey.DESCRIBE_CLUSTER,
        TOP_WITH_MESSAGE,
        (ClusterOperations("cluster_authorized_operations", "include_cluster_authorized_operations"),),
        custom_handler=describe_controllers,
    ),
)

ADMIN_TABLE: Final[dict[int, Row]] = {
    int(row.api_key): row for row in sorted(ADMIN_ROWS, key=lambda row: row.api_key)
}

ADMIN_OFFERED: Final[dict[int, tuple[int, int]]] = {
    api_key: versions
    for api_key, row in ADMIN_TABLE.items()
    if (versions := common_versions(row, None)) is not None
}
"""API key → (lowest, highest version) that a client may use on the admin listener."""
