"""Settings of topics, groups, brokers and loggers, and quotas."""

import re
from collections.abc import Mapping
from typing import Final

from kustos.acl import CLUSTER_NAME, AclOperation, ResourceType
from kustos.metadata.control import ConfigOperation, ConfigResourceType
from kustos.protocol.codes import CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST, UNKNOWN_SERVER_ERROR
from kustos.protocol.common import (
    DESCRIBE_CLUSTER_CONFIGS,
    TOP,
    cluster,
)
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.handlers.configs import (
    ALTER_CHECKS,
    ALTER_CLUSTER_CONFIGS,
    UNCHANGED_HERE,
    describe_configs_upstream,
)
from kustos.protocol.handlers.replaced_configs import replace_configs_upstream
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import Gate, RefusedItem, RefuseRequestError, Row, Strip
from kustos.wire import ApiKey, Message

DESCRIBE_CHECKS: Final[Mapping[int, Check]] = {
    ConfigResourceType.TOPIC: Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC),
    ConfigResourceType.BROKER: DESCRIBE_CLUSTER_CONFIGS,
    ConfigResourceType.BROKER_LOGGER: DESCRIBE_CLUSTER_CONFIGS,
    ConfigResourceType.CLIENT_METRICS: DESCRIBE_CLUSTER_CONFIGS,
    ConfigResourceType.GROUP: Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.GROUP),
}
"""Checks by the type of a resource."""

CONFIGS: Final = Items(
    "resources",
    "results",
    (("resource_type", "resource_type"), ("resource_name", "resource_name")),
    message_field="error_message",
)
ALTERED_CONFIGS: Final = Items(
    "resources",
    "responses",
    (("resource_type", "resource_type"), ("resource_name", "resource_name")),
    message_field="error_message",
)
ALTERED_QUOTAS: Final = Items(
    "entries",
    "entries",
    (),
    message_field="error_message",
    inner=Items(
        "entity",
        "entity",
        (("entity_type", "entity_type"), ("entity_name", "entity_name")),
        code_field=None,
        keeps_null=True,  # the default of its type
    ),
)
NAMED_TWICE: Final = RefusedItem(INVALID_REQUEST, "Each resource must appear at most once.")
OPERATIONS: Final = frozenset(int(operation) for operation in ConfigOperation)
DENIED_BROKER: Final = RefusedItem(CLUSTER_AUTHORIZATION_FAILED, "")
"""As in Kafka 4.4, this answer has no text."""
NODE_ID: Final = re.compile(r"[+-]?[0-9]+")


def describe_question(_exchange: Exchange, resource: Message) -> tuple[Check, str] | None:
    """Return the check for the type of a resource."""
    check = DESCRIBE_CHECKS.get(resource.resource_type)
    if check is None:
        raise RefuseRequestError(INVALID_REQUEST)
    return check, _name_of(check, resource)


def alter_question(exchange: Exchange, resource: Message) -> tuple[Check, str] | RefusedItem:
    """Return the check for a resource, or its refusal if a broker would reject it before the check.

    Source: `ConfigAdminManager.preprocess` of Kafka 4.4.0.
    """
    kind = resource.resource_type
    check = ALTER_CHECKS.get(ConfigResourceType.from_code(kind))
    if kind == ConfigResourceType.BROKER_LOGGER and exchange.header.api_key != ApiKey.ALTER_CONFIGS:
        check = ALTER_CLUSTER_CONFIGS
    fault = _fault_of_changes(resource.configs)
    if fault is None and check is None:
        fault = f"Unknown resource type {kind}"
    if fault is None and kind == ConfigResourceType.BROKER:
        # a broker checks the client before the values; the controller checks it again, as the step does
        if not exchange.allows(ALTER_CLUSTER_CONFIGS, CLUSTER_NAME):
            return DENIED_BROKER
        fault = _fault_of_broker(resource)
    if fault is not None or check is None:
        return RefusedItem(INVALID_REQUEST, fault)
    return check, _name_of(check, resource)


def _fault_of_changes(changes: list[Message]) -> str | None:
    operations = [change.get("config_operation", ConfigOperation.SET) for change in changes]
    if not OPERATIONS.issuperset(operations):
        # this would make a controller of Kafka 4.3.1 resign
        raise RefuseRequestError(UNKNOWN_SERVER_ERROR)
    names = [change.name for change in changes]
    if len(set(names)) < len(names):
        return "Error due to duplicate config keys"
    nulls = [
        change.name
        for change, operation in zip(changes, operations, strict=True)
        if change.value is None and operation != ConfigOperation.DELETE
    ]
    return f"Null value not supported for : {', '.join(nulls)}" if nulls else None


def _fault_of_broker(resource: Message) -> str | None:
    name = resource.resource_name
    if name and not NODE_ID.fullmatch(name):
        return f"Node id must be an integer, but it is: {name}"
    elsewhere = sorted(UNCHANGED_HERE.intersection(change.name for change in resource.configs))
    return f"Cannot update these configs here: {', '.join(elsewhere)}" if elsewhere else None


def _name_of(check: Check, resource: Message) -> str:
    return CLUSTER_NAME if check.resource_type is ResourceType.CLUSTER else str(resource.resource_name)


SETTING_ROWS: Final[tuple[Row, ...]] = (
    Row(
        ApiKey.DESCRIBE_CONFIGS,
        Refusal(top_field=None, items=CONFIGS),
        (Strip(CONFIGS, describe_question, "resource_name"),),
        custom_handler=describe_configs_upstream,
    ),
    *[
        Row(
            api_key,
            Refusal(top_field=None, items=ALTERED_CONFIGS),
            (Strip(ALTERED_CONFIGS, alter_question, "resource_name", repeated=NAMED_TWICE),),
            custom_handler=handler,
        )
        for api_key, handler in (
            (ApiKey.ALTER_CONFIGS, replace_configs_upstream),
            (ApiKey.INCREMENTAL_ALTER_CONFIGS, None),
        )
    ],
    Row(ApiKey.LIST_CONFIG_RESOURCES, TOP, (Gate(DESCRIBE_CLUSTER_CONFIGS, cluster),)),
    Row(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        Refusal(extra={"error_message": None, "entries": None}),
        (Gate(DESCRIBE_CLUSTER_CONFIGS, cluster),),
    ),
    Row(
        ApiKey.ALTER_CLIENT_QUOTAS,
        Refusal(top_field=None, items=ALTERED_QUOTAS),
        (Gate(ALTER_CLUSTER_CONFIGS, cluster),),
    ),
)
