"""The cluster: brokers and controllers, placement of partitions, and client metrics."""

from typing import Final

from kustos.protocol.common import (
    ALTER_CLUSTER,
    DESCRIBE_CLUSTER,
    EVERY_VERSION,
    TOP,
    TOP_WITH_MESSAGE,
    cluster,
)
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import ClusterOperations, Conceal, Gate, Rewrite, Row
from kustos.wire import ApiKey

ELECTIONS: Final = Items(
    "topic_partitions",
    "replica_election_results",
    (("topic", "topic"),),
    code_field=None,
    inner=Items("partitions", "partition_result", (("", "partition_id"),), message_field="error_message"),
)
REASSIGNED: Final = Items(
    "topics",
    "responses",
    (("name", "name"),),
    code_field=None,
    inner=Items(
        "partitions", "partitions", (("partition_index", "partition_index"),), message_field="error_message"
    ),
)
BEING_REASSIGNED: Final = Items(
    "topics",
    "topics",
    (("name", "name"),),
    code_field=None,
    inner=Items("partition_indexes", "partitions", (("", "partition_index"),), code_field=None),
)
MOVED_LOGS: Final = Items(
    "topics",
    "results",
    (("name", "topic_name"),),
    code_field=None,
    inner=Items("partitions", "partitions", (("", "partition_index"),)),
    inside="dirs",
)

CLUSTER_ROWS: Final[tuple[Row, ...]] = (
    Row(
        ApiKey.DESCRIBE_CLUSTER,
        TOP_WITH_MESSAGE,
        (
            ClusterOperations("cluster_authorized_operations", "include_cluster_authorized_operations"),
            Rewrite("brokers", "broker_id"),
        ),
    ),
    Row(
        ApiKey.DESCRIBE_QUORUM,
        TOP_WITH_MESSAGE,
        # no client reaches the controllers
        (Gate(DESCRIBE_CLUSTER, cluster), Conceal("nodes", "listeners")),
        repeatable=True,
    ),
    *[
        Row(api_key, TOP_WITH_MESSAGE, (Gate(ALTER_CLUSTER, cluster),))
        for api_key in (
            ApiKey.UNREGISTER_BROKER,
            ApiKey.UNREGISTER_CONTROLLER,
            ApiKey.UPDATE_FEATURES,
            ApiKey.ADD_RAFT_VOTER,
            ApiKey.REMOVE_RAFT_VOTER,
        )
    ],
    Row(
        ApiKey.ELECT_LEADERS,
        Refusal(items=ELECTIONS, both_below=EVERY_VERSION),
        (Gate(ALTER_CLUSTER, cluster),),
    ),
    Row(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        Refusal(message_field="error_message", items=REASSIGNED, both_below=EVERY_VERSION),
        (Gate(ALTER_CLUSTER, cluster),),
    ),
    Row(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        Refusal(message_field="error_message", items=BEING_REASSIGNED, both_below=EVERY_VERSION),
        (Gate(DESCRIBE_CLUSTER, cluster),),
    ),
    # every client may send its own metrics (KIP-714)
    Row(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, TOP),
    Row(ApiKey.PUSH_TELEMETRY, TOP),
    Row(ApiKey.DESCRIBE_LOG_DIRS, TOP, (Gate(DESCRIBE_CLUSTER, cluster),), repeatable=True),
    Row(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        Refusal(top_field=None, items=MOVED_LOGS),
        (Gate(ALTER_CLUSTER, cluster),),
    ),
)
