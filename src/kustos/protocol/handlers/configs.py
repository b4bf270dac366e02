"""Settings: described item by item, changed resource by resource (`ControllerApis`)."""

from collections import Counter
from collections.abc import Mapping

from kustos.acl import CLUSTER_NAME, AclOperation, ResourceType
from kustos.metadata.control import ConfigOperation, ConfigResourceType
from kustos.protocol.codes import (
    DENIED_CODE,
    INVALID_REQUEST,
    MESSAGES,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
)
from kustos.protocol.common import CLUSTER_ACTION
from kustos.protocol.effects import Ask, Effects, Handler, Relay, Reply
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.perform import merged, served, strip
from kustos.protocol.steps import RefuseRequestError, Row, Strip
from kustos.protocol.turns import allowed_each, begin_item, each
from kustos.wire import Message

ALTER_CLUSTER_CONFIGS = Check(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER)
ALTER_CHECKS = {
    ConfigResourceType.TOPIC: Check(AclOperation.ALTER_CONFIGS, ResourceType.TOPIC),
    ConfigResourceType.BROKER: ALTER_CLUSTER_CONFIGS,
    ConfigResourceType.CLIENT_METRICS: ALTER_CLUSTER_CONFIGS,
    ConfigResourceType.GROUP: Check(AclOperation.ALTER_CONFIGS, ResourceType.GROUP),
}
"""Checks by resource type; log levels need CLUSTER_ACTION."""

ALTER_CLUSTER = Check(AclOperation.ALTER, ResourceType.CLUSTER, log_if_allowed=False)
GOVERNING = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
"""Settings that can grant every right, as the creation of ACLs can. So changing them also needs ALTER. Kafka
does not require it, since it does not read these settings while running."""

AUTHORIZER_SETTINGS = GOVERNING | {"authorizer.class.name"}
"""Settings of the authorizer: a gateway reports its own values to clients instead of the brokers'."""

UPSTREAM_ADDRESSES = frozenset(
    {
        "listeners",
        "advertised.listeners",
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
    }
)
"""Settings of a broker that hold addresses of upstream's nodes. Their values are hidden like passwords, since
clients get the addresses to connect to from Metadata."""

UNCHANGED_HERE = AUTHORIZER_SETTINGS | UPSTREAM_ADDRESSES | {"listener.security.protocol.map"}
"""Settings of a broker that no client may change through the gateway: kustos has its own authorizer, and it
connects to the addresses that the brokers advertise, with its own credentials."""

DESCRIBED_RESOURCES_MAX = 100
"""Most resources that one request may describe: a node has three, but for each mention kustos encodes a
hundred settings while all other clients wait."""


def alter_configs(exchange: Exchange, _row: Row) -> Handler:
    """Serve the resources that the client may alter; refuse the others one by one.

    An unknown operation fails the whole request as a server fault, as in Kafka.
    """
    valid, answers = yield from _valid_resources(exchange)
    kept = []
    codes = yield from _denied_codes(exchange, valid)
    for resource, code in zip(valid, codes, strict=True):
        yield from begin_item(exchange)
        if code is None:
            kept.append(resource)
        else:
            answers.append(_answer(exchange, resource, code, MESSAGES[code]))
    if any((yield from each(exchange, kept, _has_unknown_operation))):
        raise RefuseRequestError(UNKNOWN_SERVER_ERROR)
    answer = yield from served(exchange, exchange.request.replace(resources=kept))
    return Reply(answer.replace(responses=[*answers, *answer.responses]))


def _valid_resources(exchange: Exchange) -> Effects[tuple[list[Message], list[Message]]]:
    """Return the valid resources, and the answers to the invalid ones."""
    valid: dict[tuple[int, str], Message] = {}
    loggers, answers = [], []
    twice: set[tuple[int, str]] = set()
    for resource in exchange.request.resources:
        yield from begin_item(exchange)
        kind, key = resource.resource_type, (resource.resource_type, resource.resource_name)
        if kind == ConfigResourceType.BROKER_LOGGER:
            loggers.append(resource)
        elif ConfigResourceType.from_code(kind) is ConfigResourceType.UNKNOWN:
            answers.append(_answer(exchange, resource, UNSUPPORTED_VERSION, f"Unknown resource type {kind}."))
        elif key in valid:
            twice.add(key)
            del valid[key]
            answers.append(_answer(exchange, resource, INVALID_REQUEST, "Duplicate resource."))
        elif key not in twice:
            valid[key] = resource
    return [*loggers, *valid.values()], answers


def _question(resource: Message) -> tuple[Check, str]:
    if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
        return CLUSTER_ACTION, CLUSTER_NAME
    check = ALTER_CHECKS[ConfigResourceType(resource.resource_type)]
    return check, CLUSTER_NAME if check.resource_type is ResourceType.CLUSTER else resource.resource_name


def _governs(resource: Message) -> bool:
    check = ALTER_CHECKS.get(ConfigResourceType.from_code(resource.resource_type))
    return check is ALTER_CLUSTER_CONFIGS and any(change.name in GOVERNING for change in resource.configs)


def _denied_codes(exchange: Exchange, resources: list[Message]) -> Effects[list[int | None]]:
    """Return the error code for each resource, None if the client may alter it."""
    questions = yield from each(exchange, resources, _question)
    counts = Counter(questions)
    verdicts = yield from allowed_each(exchange, [(*question, count) for question, count in counts.items()])
    allowed = dict(zip(counts, verdicts, strict=True))
    governs = yield from each(exchange, resources, _governs)
    governing = sum(one and allowed[question] for one, question in zip(governs, questions, strict=True))
    may_govern = bool(governing) and exchange.allows(ALTER_CLUSTER, CLUSTER_NAME, governing)
    return [
        None
        if allowed[question] and (may_govern or not governing_one)
        else DENIED_CODE[question[0].resource_type]
        for question, governing_one in zip(questions, governs, strict=True)
    ]


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
    """Serve the resources that the client may describe; refuse the others one by one."""
    [step] = [step for step in row.steps if isinstance(step, Strip)]
    whole = exchange.request
    if len(whole.resources) > DESCRIBED_RESOURCES_MAX:
        raise RefuseRequestError(INVALID_REQUEST)
    kept, denied = yield from strip(exchange, step, whole)
    answer = (yield from served(exchange, kept)) if kept.resources else None
    return Reply((yield from merged(exchange, step.items, denied, answer)))


def describe_configs_upstream(exchange: Exchange, row: Row) -> Handler:
    """Let upstream describe its settings, without its addresses; describe the authorizer's settings locally.

    A request for authorizer settings alone does not go upstream, so clients that know no broker can send it.
    """
    [step] = [step for step in row.steps if isinstance(step, Strip)]
    whole = exchange.request
    kept, denied = yield from strip(exchange, step, whole)
    own = [resource for resource in kept.resources if _requested_keys(resource)]
    if not own and not denied and not any(map(_asks_for_addresses, kept.resources)):
        return Relay()
    if len(own) > DESCRIBED_RESOURCES_MAX:
        raise RefuseRequestError(INVALID_REQUEST)
    left = [resource for resource in kept.resources if not _is_answered_here(resource)]
    answer = exchange.response_codec.new()
    if left:
        passes_whole = len(left) == len(whole.resources)
        answered = yield Ask(None if passes_whole else whole.replace(resources=left))
        answer = answered.message
    results = yield from each(exchange, answer.results, _without_addresses)
    if own:
        described = yield from _described_here(exchange, own)
        results = [_with_own(result, described) for result in results]
        results += [described[_key(each)] for each in own if _is_answered_here(each)]
    return Reply((yield from merged(exchange, step.items, denied, answer.replace(results=results))))


def _described_here(exchange: Exchange, own: list[Message]) -> Effects[dict[tuple[int, str], Message]]:
    """Return this node's description of its authorizer, for each resource."""
    resources = [each.replace(configuration_keys=sorted(_requested_keys(each))) for each in own]
    answer = yield from served(exchange, exchange.request.replace(resources=resources))
    return {_key(result): result for result in answer.results}


def _with_own(result: Message, described: Mapping[tuple[int, str], Message]) -> Message:
    """Return a result from upstream with this node's settings in place of the broker's."""
    own = described.get(_key(result))
    if own is None or result.error_code:
        return result
    others = [config for config in result.configs if config.name not in AUTHORIZER_SETTINGS]
    return result.replace(configs=[*others, *own.configs])


def _asks_for_addresses(resource: Message) -> bool:
    return resource.resource_type == ConfigResourceType.BROKER and not UPSTREAM_ADDRESSES.isdisjoint(
        resource.configuration_keys or UPSTREAM_ADDRESSES
    )


def _without_addresses(result: Message) -> Message:
    """Return a result from upstream with its addresses hidden, as brokers hide passwords."""
    if result.resource_type != ConfigResourceType.BROKER:
        return result
    return result.replace(
        configs=[
            config.replace(
                value=None,
                is_sensitive=True,
                synonyms=[synonym.replace(value=None) for synonym in config.synonyms],
            )
            if config.name in UPSTREAM_ADDRESSES
            else config
            for config in result.configs
        ]
    )


def _key(resource: Message) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _requested_keys(resource: Message) -> frozenset[str]:
    """Return the requested settings of the authorizer: all of them if no key is named, as in Kafka."""
    if resource.resource_type != ConfigResourceType.BROKER:
        return frozenset()
    keys = resource.configuration_keys
    return AUTHORIZER_SETTINGS.intersection(keys) if keys else AUTHORIZER_SETTINGS


def _is_answered_here(resource: Message) -> bool:
    keys = resource.configuration_keys
    return bool(keys) and bool(_requested_keys(resource)) and AUTHORIZER_SETTINGS.issuperset(keys)
