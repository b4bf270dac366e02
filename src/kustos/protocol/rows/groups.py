"""Consumer groups, their offsets, and the coordinators of groups and transactions."""

from dataclasses import replace
from typing import Final

from kustos.acl import CLUSTER_NAME, AclOperation, ResourceType
from kustos.protocol.codes import CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST
from kustos.protocol.common import (
    CLUSTER_ACTION,
    DELETE_GROUP,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTION,
    GROUP_OPERATIONS,
    PARTITIONS_OF_TOPIC,
    READ_GROUP,
    READ_TOPIC,
    TOP,
    TOPIC_NAME_OR_ID,
    group_of,
    subscribed_topics,
)
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.handlers.groups import (
    DESCRIBE_GROUP,
    GROUP_ITEMS,
    consumer_group_describe,
    offset_fetch,
)
from kustos.protocol.handlers.streams import (
    streams_group_describe,
    streams_group_heartbeat,
    topics_of,
)
from kustos.protocol.handlers.subscriptions import consumer_group_heartbeat
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import Gate, Hide, RefuseRequestError, Rewrite, Row, Strip
from kustos.wire import ApiKey

SHARE_COORDINATOR_SINCE: Final = 6
SHARE_COORDINATOR: Final = 2
COORDINATOR_CHECKS: Final[dict[int, Check]] = {0: DESCRIBE_GROUP, 1: DESCRIBE_TRANSACTION}
"""Key type of a coordinator → check; the types are group and transaction."""

COORDINATORS: Final = Items(
    "coordinator_keys", "coordinators", (("", "key"),), extra={"node_id": -1, "port": -1}
)
UNFOUND_COORDINATORS: Final = replace(COORDINATORS, message_field="error_message")
DESCRIBED_GROUPS: Final = Items("groups", "groups", (("", "group_id"),))
UNFETCHED_GROUPS: Final = Items("groups", "groups", (("group_id", "group_id"),))
OFFSETS_OF_TOPIC: Final = Items(
    "topics",
    "topics",
    TOPIC_NAME_OR_ID,
    code_field=None,
    inner=Items(
        "partition_indexes",
        "partitions",
        (("", "partition_index"),),
        extra={"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""},
    ),
)
DELETED_GROUPS: Final = Items("groups_names", "results", (("", "group_id"),))


def coordinator_question(exchange: Exchange, key: str) -> tuple[Check, str] | None:
    """Return the check for the type of a coordinator's key."""
    key_type = exchange.request.get("key_type", 0)
    if key_type == SHARE_COORDINATOR:
        if exchange.version < SHARE_COORDINATOR_SINCE:
            raise RefuseRequestError(INVALID_REQUEST)
        if not exchange.allows(CLUSTER_ACTION, CLUSTER_NAME):
            raise RefuseRequestError(CLUSTER_AUTHORIZATION_FAILED)
        return None
    if key_type not in COORDINATOR_CHECKS:
        raise RefuseRequestError(INVALID_REQUEST)
    return COORDINATOR_CHECKS[key_type], key


GROUP_ROWS: Final[tuple[Row, ...]] = (
    Row(
        ApiKey.OFFSET_COMMIT,
        Refusal(top_field=None, items=PARTITIONS_OF_TOPIC),
        (Gate(READ_GROUP, group_of), Strip(PARTITIONS_OF_TOPIC, READ_TOPIC, "name")),
        repeatable=True,
    ),
    Row(
        ApiKey.OFFSET_FETCH,
        Refusal(items=OFFSETS_OF_TOPIC, other_items=UNFETCHED_GROUPS),
        (Strip(OFFSETS_OF_TOPIC, DESCRIBE_TOPIC, "name"),),
        custom_handler=offset_fetch,
        repeatable=True,
    ),
    Row(
        ApiKey.FIND_COORDINATOR,
        Refusal(message_field="error_message", extra={"node_id": -1, "port": -1}, items=UNFOUND_COORDINATORS),
        (
            Gate(coordinator_question, lambda request: [request.key] if "key" in request.FIELDS else []),
            Strip(COORDINATORS, coordinator_question, ""),
            Rewrite("coordinators", "node_id"),
            Rewrite("", "node_id"),
        ),
        repeatable=True,
    ),
    Row(
        ApiKey.JOIN_GROUP,
        Refusal(extra={"generation_id": -1, "protocol_name": None}),
        (Gate(READ_GROUP, group_of),),
    ),
    Row(ApiKey.HEARTBEAT, TOP, (Gate(READ_GROUP, group_of),), repeatable=True),
    Row(ApiKey.LEAVE_GROUP, TOP, (Gate(READ_GROUP, group_of),)),
    Row(ApiKey.SYNC_GROUP, TOP, (Gate(READ_GROUP, group_of),)),
    Row(
        ApiKey.DESCRIBE_GROUPS,
        Refusal(top_field=None, items=DESCRIBED_GROUPS),
        (Strip(DESCRIBED_GROUPS, DESCRIBE_GROUP, ""), GROUP_OPERATIONS),
        repeatable=True,
    ),
    Row(
        ApiKey.LIST_GROUPS,
        TOP,
        (
            Hide(
                "groups",
                "group_id",
                Check(AclOperation.DESCRIBE, ResourceType.GROUP, log_if_denied=False),
                unless_cluster=AclOperation.DESCRIBE,
            ),
        ),
    ),
    Row(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        TOP,
        (Gate(READ_GROUP, group_of), Gate(DESCRIBE_TOPIC, subscribed_topics)),
        custom_handler=consumer_group_heartbeat,
        versions=(0, 1),
    ),
    Row(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        Refusal(top_field=None, items=GROUP_ITEMS),
        (GROUP_OPERATIONS,),
        custom_handler=consumer_group_describe,
    ),
    Row(
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        TOP,
        (Gate(READ_GROUP, group_of), Gate(DESCRIBE_TOPIC, lambda request: topics_of(request.topology))),
        custom_handler=streams_group_heartbeat,
        versions=(0, 1),
    ),
    Row(
        ApiKey.STREAMS_GROUP_DESCRIBE,
        Refusal(top_field=None, items=GROUP_ITEMS),
        (GROUP_OPERATIONS,),
        custom_handler=streams_group_describe,
        versions=(0, 1),
    ),
    Row(
        ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
        TOP,
        (Gate(READ_GROUP, group_of),),
    ),
    Row(
        ApiKey.DELETE_GROUPS,
        Refusal(top_field=None, items=DELETED_GROUPS),
        (Strip(DELETED_GROUPS, DELETE_GROUP, "", once=True),),
    ),
    Row(
        ApiKey.OFFSET_DELETE,
        TOP,
        (Gate(DELETE_GROUP, group_of), Strip(PARTITIONS_OF_TOPIC, READ_TOPIC, "name", yields=True)),
    ),
)
