"""The authorization of every API, as data.

An API without a row is not offered in ApiVersions, and a request for it closes the connection: nothing is
forwarded unchecked. Derived from `KafkaApis` and `ControllerApis` of Kafka 4.4.0; the conformance tests
compare it with a real broker of 4.3.1.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from kustos.acl import ANONYMOUS, CLUSTER_NAME, AclOperation, ResourceType
from kustos.protocol.codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    UNSUPPORTED_VERSION,
)
from kustos.protocol.escapes.configs import describe_configs_upstream
from kustos.protocol.escapes.fetch import TOPIC_IDS_SINCE_VERSION, fetch
from kustos.protocol.escapes.groups import (
    DESCRIBE_GROUP,
    GROUP_ITEMS,
    OFFSETS_OF_TOPIC,
    consumer_group_describe,
    offset_fetch,
)
from kustos.protocol.escapes.metadata import metadata
from kustos.protocol.escapes.produce import init_producer_id, produce
from kustos.protocol.escapes.scram import alter_scram, refuse_sasl
from kustos.protocol.escapes.tokens import change_token, create_token, describe_tokens
from kustos.protocol.escapes.topics import create_topics, delete_topics, describe_topic_partitions
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import (
    ClusterOperations,
    Gate,
    Hide,
    Operations,
    RefuseRequestError,
    Rewrite,
    Row,
    ServeLocally,
    Strip,
)
from kustos.protocol.token_messages import NO_TIME
from kustos.wire import ApiKey, Message, response_codec

READ_GROUP = Check(AclOperation.READ, ResourceType.GROUP)
READ_TOPIC = Check(AclOperation.READ, ResourceType.TOPIC)
WRITE_TOPIC = Check(AclOperation.WRITE, ResourceType.TOPIC)
DESCRIBE_TOPIC = Check(AclOperation.DESCRIBE, ResourceType.TOPIC)
DESCRIBE_TRANSACTION = Check(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
CLUSTER_ACTION = Check(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
DESCRIBE_CLUSTER = Check(AclOperation.DESCRIBE, ResourceType.CLUSTER)
ALTER_CLUSTER = Check(AclOperation.ALTER, ResourceType.CLUSTER)

TOPIC_NAME_OR_ID: Final = (("name", "name"), ("topic_id", "topic_id"))
SHARE_COORDINATOR_SINCE = 6


def partitions(
    request_list: str, request_index: str, response_list: str, response_index: str, **extra: Any
) -> Items:
    """Return the shape of the partitions below a topic."""
    return Items(request_list, response_list, ((request_index, response_index),), extra=extra)


PRODUCED = Items(
    "topic_data",
    "responses",
    TOPIC_NAME_OR_ID,
    code_field=None,
    inner=partitions("partition_data", "index", "partition_responses", "index", base_offset=-1),
)
PARTITIONS_OF_TOPIC = Items(
    "topics",
    "topics",
    TOPIC_NAME_OR_ID,
    code_field=None,
    inner=partitions("partitions", "partition_index", "partitions", "partition_index"),
)
FETCHED = Items(
    "topics",
    "responses",
    (("topic", "topic"), ("topic_id", "topic_id")),
    code_field=None,
    inner=partitions(
        "partitions", "partition", "partitions", "partition_index", high_watermark=-1, records=b""
    ),
)
COORDINATORS = Items("coordinator_keys", "coordinators", (("", "key"),), extra={"node_id": -1, "port": -1})
UNFOUND_COORDINATORS = replace(COORDINATORS, message_field="error_message")
DESCRIBED_GROUPS = Items("groups", "groups", (("", "group_id"),))
CONFIGS = Items(
    "resources",
    "results",
    (("resource_type", "resource_type"), ("resource_name", "resource_name")),
    message_field="error_message",
)
TOPIC_ENTRIES = Items("topics", "topics", (("name", "name"), ("topic_id", "topic_id")))
DELETED = Items("topics", "responses", (("name", "name"), ("topic_id", "topic_id")))
DELETED_BY_NAME = Items("topic_names", "responses", (("", "name"),))
UNFETCHED_GROUPS = Items("groups", "groups", (("group_id", "group_id"),))
CREATED_ACLS = Items("creations", "results", (), message_field="error_message")
DELETED_ACLS = Items("filters", "filter_results", (), message_field="error_message")
UNDESCRIBED_USERS = Items("users", "results", (), extra={"error_message": None})
TOP = Refusal()
TOP_WITH_MESSAGE = Refusal(message_field="error_message")
EVERY_VERSION: Final = 2**15


def group_of(request: Message) -> list[str]:
    """Return the one group that a request is about."""
    return [request.group_id]


def cluster(_request: Message) -> list[str]:
    """Return the name of the one cluster."""
    return [CLUSTER_NAME]


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


def config_question(_exchange: Exchange, resource: Message) -> tuple[Check, str] | None:
    """Return the check for the type of a config resource."""
    check = CONFIG_CHECKS.get(resource.resource_type)
    if check is None:
        raise RefuseRequestError(INVALID_REQUEST)
    is_cluster = check.resource_type is ResourceType.CLUSTER
    return check, CLUSTER_NAME if is_cluster else resource.resource_name


def no_regular_expression(_exchange: Exchange, expression: str) -> tuple[Check, str] | None:
    """Refuse a subscription by regular expression: only upstream's coordinator could authorize its topics.

    Clients get the answer of version 0, which has no such field.
    """
    if expression:
        raise RefuseRequestError(UNSUPPORTED_VERSION)
    return None


SHARE_COORDINATOR: Final = 2
COORDINATOR_CHECKS: Final[dict[int, Check]] = {0: DESCRIBE_GROUP, 1: DESCRIBE_TRANSACTION}
"""Checks by the type of a coordinator's key: group, transaction."""

CONFIG_CHECKS: Final[dict[int, Check]] = {
    2: Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC),
    4: Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),
    8: Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),
    16: Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),
    32: Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.GROUP),
}
"""Checks by the type of a config resource: topic, broker, broker logger, client metrics, group."""

NO_TOKEN: Final[dict[str, Any]] = {
    **{f"{part}principal_type": ANONYMOUS.principal_type for part in ("", "token_requester_")},
    **{f"{part}principal_name": ANONYMOUS.name for part in ("", "token_requester_")},
    **{f"{which}_timestamp": NO_TIME for which in ("issue", "expiry", "max")},
}
"""Fields of CreateDelegationToken on a broker failure: they name nobody."""

GROUP_OPERATIONS = Operations(
    "groups", "group_id", ResourceType.GROUP, "authorized_operations", "include_authorized_operations"
)


def _served(
    api_key: ApiKey,
    check: Check,
    refusal: Refusal,
    unparsable: Callable[[Message], bool] = lambda _: False,
    *,
    revokes: bool = False,
) -> Row:
    """Return the row of an API that kustos answers itself."""
    steps = (Gate(check, cluster), ServeLocally())
    return Row(api_key, refusal, steps, unparsable=unparsable, revokes=revokes)


def _has_unknown_filter(item: Message) -> bool:
    return 0 in {item.resource_type_filter, item.pattern_type_filter, item.operation, item.permission_type}


def _has_unknown_element(item: Message) -> bool:
    codes = {item.resource_type, item.resource_pattern_type, item.operation, item.permission_type}
    return 0 in codes


ROWS: Final[tuple[Row, ...]] = (
    Row(
        ApiKey.PRODUCE,
        Refusal(top_field=None, items=PRODUCED),
        (Strip(PRODUCED, WRITE_TOPIC, "name", counts_inner=True), Rewrite("node_endpoints", "node_id")),
        escape=produce,
        pipelined=True,
    ),
    Row(
        ApiKey.FETCH,
        # clients without the top-level code look for it at the partitions (FetchRequest.getErrorResponse)
        Refusal(items=FETCHED, both_below=TOPIC_IDS_SINCE_VERSION),
        escape=fetch,
    ),
    Row(
        ApiKey.LIST_OFFSETS,
        Refusal(top_field=None, items=PARTITIONS_OF_TOPIC),
        (Strip(PARTITIONS_OF_TOPIC, DESCRIBE_TOPIC, "name"),),
    ),
    Row(ApiKey.METADATA, Refusal(items=TOPIC_ENTRIES, both_below=EVERY_VERSION), escape=metadata),
    Row(
        ApiKey.OFFSET_COMMIT,
        Refusal(top_field=None, items=PARTITIONS_OF_TOPIC),
        (Gate(READ_GROUP, group_of), Strip(PARTITIONS_OF_TOPIC, READ_TOPIC, "name")),
    ),
    Row(
        ApiKey.OFFSET_FETCH,
        Refusal(items=OFFSETS_OF_TOPIC, other_items=UNFETCHED_GROUPS),
        escape=offset_fetch,
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
    ),
    Row(
        ApiKey.JOIN_GROUP,
        Refusal(extra={"generation_id": -1, "protocol_name": None}),
        (Gate(READ_GROUP, group_of),),
    ),
    Row(ApiKey.HEARTBEAT, TOP, (Gate(READ_GROUP, group_of),)),
    Row(ApiKey.LEAVE_GROUP, TOP, (Gate(READ_GROUP, group_of),)),
    Row(ApiKey.SYNC_GROUP, TOP, (Gate(READ_GROUP, group_of),)),
    Row(
        ApiKey.DESCRIBE_GROUPS,
        Refusal(top_field=None, items=DESCRIBED_GROUPS),
        (Strip(DESCRIBED_GROUPS, DESCRIBE_GROUP, ""), GROUP_OPERATIONS),
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
    Row(ApiKey.SASL_HANDSHAKE, TOP, escape=refuse_sasl),
    Row(ApiKey.API_VERSIONS, TOP, (ServeLocally(),)),
    Row(ApiKey.CREATE_TOPICS, Refusal(top_field=None, items=TOPIC_ENTRIES), escape=create_topics),
    Row(
        ApiKey.DELETE_TOPICS,
        Refusal(top_field=None, items=DELETED, other_items=DELETED_BY_NAME),
        escape=delete_topics,
    ),
    Row(
        ApiKey.INIT_PRODUCER_ID,
        Refusal(extra={"producer_id": -1, "producer_epoch": -1}),
        escape=init_producer_id,
    ),
    _served(ApiKey.DESCRIBE_ACLS, DESCRIBE_CLUSTER, TOP_WITH_MESSAGE, _has_unknown_filter),
    _served(
        ApiKey.CREATE_ACLS,
        ALTER_CLUSTER,
        Refusal(top_field=None, items=CREATED_ACLS),
        lambda request: any(_has_unknown_element(item) for item in request.creations),
        revokes=True,
    ),
    _served(
        ApiKey.DELETE_ACLS,
        ALTER_CLUSTER,
        Refusal(top_field=None, items=DELETED_ACLS),
        lambda request: any(_has_unknown_filter(item) for item in request.filters),
        revokes=True,
    ),
    Row(
        ApiKey.DESCRIBE_CONFIGS,
        Refusal(top_field=None, items=CONFIGS),
        (Strip(CONFIGS, config_question, "resource_name"),),
        escape=describe_configs_upstream,
    ),
    Row(ApiKey.SASL_AUTHENTICATE, TOP_WITH_MESSAGE, escape=refuse_sasl),
    Row(ApiKey.CREATE_DELEGATION_TOKEN, Refusal(extra=NO_TOKEN), escape=create_token),
    Row(ApiKey.RENEW_DELEGATION_TOKEN, TOP, escape=change_token),
    Row(ApiKey.EXPIRE_DELEGATION_TOKEN, TOP, escape=change_token),
    Row(ApiKey.DESCRIBE_DELEGATION_TOKEN, TOP, escape=describe_tokens),
    Row(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        Refusal(extra={"error_message": None, "entries": None}),
        (Gate(Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER), cluster),),
    ),
    _served(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        DESCRIBE_CLUSTER,
        # a nameless result for each requested user; if all are (null), Kafka 4.3.1 never answers
        Refusal(extra={"error_message": None}, items=UNDESCRIBED_USERS, both_below=EVERY_VERSION),
    ),
    Row(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, Refusal(top_field=None), escape=alter_scram),
    Row(
        ApiKey.DESCRIBE_CLUSTER,
        TOP_WITH_MESSAGE,
        (
            ClusterOperations("cluster_authorized_operations", "include_cluster_authorized_operations"),
            Rewrite("brokers", "broker_id"),
        ),
    ),
    Row(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        TOP,
        (
            Gate(READ_GROUP, group_of),
            Gate(DESCRIBE_TOPIC, lambda request: list(dict.fromkeys(request.subscribed_topic_names or ()))),
            Gate(no_regular_expression, lambda request: [request.get("subscribed_topic_regex") or ""]),
        ),
        versions=(0, 1),
    ),
    Row(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        Refusal(top_field=None, items=GROUP_ITEMS),
        (GROUP_OPERATIONS,),
        escape=consumer_group_describe,
    ),
    Row(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        Refusal(top_field=None, items=TOPIC_ENTRIES),
        escape=describe_topic_partitions,
    ),
)

TABLE: Final[dict[int, Row]] = {int(row.api_key): row for row in ROWS}


def refusal_body(
    api_key: int, api_version: int, code: int, text: str, table: Mapping[int, Row] = TABLE
) -> bytes | None:
    """Return the encoded body that refuses an unread request with this code and text.

    None for an API without a row, and if a refusal would have to name the requested items.
    """
    row = table.get(api_key)
    if row is None:
        return None
    codec = response_codec(api_key, api_version)
    refusal = row.refusal.refuse_unread(codec, code, text)
    return None if refusal is None else codec.encode(refusal)
