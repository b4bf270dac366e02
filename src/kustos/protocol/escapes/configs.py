"""Settings of the node itself: read item by item, changed resource by resource (`ControllerApis`)."""

from kustos.acl import CLUSTER_NAME, AclOperation, ResourceType
from kustos.metadata.control import ConfigOperation, ConfigResourceType
from kustos.protocol.codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    DENIED_CODE,
    INVALID_REQUEST,
    MESSAGES,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
)
from kustos.protocol.effects import Handler, Reply, Serve
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.interpreter import merged, strip
from kustos.protocol.steps import RefuseRequestError, Row, Strip
from kustos.wire import Message

CLUSTER_ACTION = Check(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
ALTER_CLUSTER_CONFIGS = Check(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER)
ALTER_CHECKS = {
    ConfigResourceType.TOPIC: Check(AclOperation.ALTER_CONFIGS, ResourceType.TOPIC),
    ConfigResourceType.BROKER: ALTER_CLUSTER_CONFIGS,
    ConfigResourceType.CLIENT_METRICS: ALTER_CLUSTER_CONFIGS,
    ConfigResourceType.GROUP: Check(AclOperation.ALTER_CONFIGS, ResourceType.GROUP),
}
"""By the type of a resource; log levels are asked about with CLUSTER_ACTION."""

ALTER_CLUSTER = Check(AclOperation.ALTER, ResourceType.CLUSTER, log_if_allowed=False)
GOVERNING = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
"""Settings that say who may do everything: whoever could set them could do everything, as whoever may make
ACLs can. So they need ALTER too, where Kafka, which does not read them while it runs, needs it not."""

DESCRIBED_RESOURCES_MAX = 100
"""Resources that one request may ask to see: a node has three, but each time it is named it is a hundred
settings to write, with all other clients waiting."""


def alter_configs(exchange: Exchange, _row: Row) -> Handler:
    """Serve the resources that may be changed, refuse the others one by one.

    An operation that nobody knows fails the whole request, as a fault of the server's: so Kafka does.
    """
    asked, answers = _told_apart(exchange)
    kept = []
    for resource in asked:
        code = _denied_code(exchange, resource)
        if code is None:
            kept.append(resource)
        else:
            answers.append(_answer(exchange, resource, code, MESSAGES[code]))
    if any(_has_unknown_operation(resource) for resource in kept):
        raise RefuseRequestError(UNKNOWN_SERVER_ERROR)
    exchange.request = exchange.request.replace(resources=kept)
    served: Message = yield Serve(exchange.request)
    return Reply(served.replace(responses=[*answers, *served.responses]))


def _told_apart(exchange: Exchange) -> tuple[list[Message], list[Message]]:
    """Return the resources that are asked about, and the answers to those that make no sense."""
    asked: dict[tuple[int, str], Message] = {}
    loggers, answers = [], []
    twice: set[tuple[int, str]] = set()
    for resource in exchange.request.resources:
        kind, key = resource.resource_type, (resource.resource_type, resource.resource_name)
        if kind == ConfigResourceType.BROKER_LOGGER:
            loggers.append(resource)
        elif ConfigResourceType.from_code(kind) is ConfigResourceType.UNKNOWN:
            answers.append(_answer(exchange, resource, UNSUPPORTED_VERSION, f"Unknown resource type {kind}."))
        elif key in asked:
            twice.add(key)
            del asked[key]
            answers.append(_answer(exchange, resource, INVALID_REQUEST, "Duplicate resource."))
        elif key not in twice:
            asked[key] = resource
    return [*loggers, *asked.values()], answers


def _denied_code(exchange: Exchange, resource: Message) -> int | None:
    if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
        return None if exchange.allows(CLUSTER_ACTION, CLUSTER_NAME) else CLUSTER_AUTHORIZATION_FAILED
    check = ALTER_CHECKS[ConfigResourceType(resource.resource_type)]
    is_cluster = check.resource_type is ResourceType.CLUSTER
    name = CLUSTER_NAME if is_cluster else resource.resource_name
    allowed = exchange.allows(check, name)
    if allowed and is_cluster and any(change.name in GOVERNING for change in resource.configs):
        allowed = exchange.allows(ALTER_CLUSTER, CLUSTER_NAME)
    return None if allowed else DENIED_CODE[check.resource_type]


def _has_unknown_operation(resource: Message) -> bool:
    if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
        return False
    known = {int(operation) for operation in ConfigOperation}
    return any(change.config_operation not in known for change in resource.configs)


def _answer(exchange: Exchange, resource: Message, code: int, message: str) -> Message:
    return exchange.response_codec.root.ELEMENTS["responses"](
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def describe_configs(exchange: Exchange, row: Row) -> Handler:
    """Serve the resources that may be seen, refuse the others one by one."""
    [step] = [step for step in row.steps if isinstance(step, Strip)]
    whole = exchange.request
    if len(whole.resources) > DESCRIBED_RESOURCES_MAX:
        raise RefuseRequestError(INVALID_REQUEST)
    kept, denied = strip(exchange, step, whole)
    served = None
    if kept.resources:
        exchange.request = kept
        served = yield Serve(kept)
        exchange.request = whole
    return Reply(merged(exchange, step.items, denied, served))
