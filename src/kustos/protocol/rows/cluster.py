"""The cluster and its settings."""

from typing import Final

from kustos.acl import CLUSTER_NAME, AclOperation, ResourceType
from kustos.protocol.codes import INVALID_REQUEST
from kustos.protocol.escapes.configs import describe_configs_upstream
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.rows.common import TOP_WITH_MESSAGE, cluster
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import ClusterOperations, Gate, RefuseRequestError, Rewrite, Row, Strip
from kustos.wire import ApiKey, Message

CONFIG_CHECKS: Final[dict[int, Check]] = {
    2: Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC),
    4: Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),
    8: Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),
    16: Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),
    32: Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.GROUP),
}
"""Checks by the type of a config resource: topic, broker, broker logger, client metrics, group."""

CONFIGS: Final = Items(
    "resources",
    "results",
    (("resource_type", "resource_type"), ("resource_name", "resource_name")),
    message_field="error_message",
)


def config_question(_exchange: Exchange, resource: Message) -> tuple[Check, str] | None:
    """Return the check for the type of a config resource."""
    check = CONFIG_CHECKS.get(resource.resource_type)
    if check is None:
        raise RefuseRequestError(INVALID_REQUEST)
    is_cluster = check.resource_type is ResourceType.CLUSTER
    return check, CLUSTER_NAME if is_cluster else resource.resource_name


CLUSTER_ROWS: Final[tuple[Row, ...]] = (
    Row(
        ApiKey.DESCRIBE_CONFIGS,
        Refusal(top_field=None, items=CONFIGS),
        (Strip(CONFIGS, config_question, "resource_name"),),
        escape=describe_configs_upstream,
    ),
    Row(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        Refusal(extra={"error_message": None, "entries": None}),
        (Gate(Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER), cluster),),
    ),
    Row(
        ApiKey.DESCRIBE_CLUSTER,
        TOP_WITH_MESSAGE,
        (
            ClusterOperations("cluster_authorized_operations", "include_cluster_authorized_operations"),
            Rewrite("brokers", "broker_id"),
        ),
    ),
)
