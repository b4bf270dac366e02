"""AlterConfigs upstream: it unsets the dynamic settings of a resource that a request does not name (KIP-226).

So a request can unset a protected setting without naming it. IncrementalAlterConfigs (KIP-339) changes only
the settings that it names.

Sources: `ConfigAdminManager.preprocess` and `ConfigurationControlManager.legacyAlterConfigs` of Kafka 4.3.1.
"""

from typing import Final, TypeAlias

from kustos.metadata.control import ConfigResourceType
from kustos.protocol.codes import INVALID_REQUEST, MESSAGES, UNKNOWN_SERVER_ERROR
from kustos.protocol.effects import Ask, Effects, Handler, Relay, Reply, UpstreamAnswer
from kustos.protocol.exchange import Exchange
from kustos.protocol.handlers.configs import DESCRIBED_RESOURCES_MAX, UNCHANGED_HERE
from kustos.protocol.perform import merged, strip
from kustos.protocol.steps import RefuseRequestError, Row, Strip
from kustos.protocol.turns import begin_item
from kustos.wire import ApiKey, Message, request_codec

DESCRIBE_VERSION: Final = 1
"""The lowest version that returns the source of a setting; every broker supports it."""

DYNAMIC_SOURCES: Final = frozenset({2, 3})
"""`ConfigSource` of dynamic settings: of one broker, and of all brokers. Other settings are in a broker's own
file."""

Key: TypeAlias = tuple[int, str]


def replace_configs_upstream(exchange: Exchange, row: Row) -> Handler:
    """Let upstream replace the settings of a resource, unless this would unset a protected setting.

    Raise `RefuseRequestError` for a request with too many brokers.
    """
    [step] = [step for step in row.steps if isinstance(step, Strip)]
    whole = exchange.request
    kept, denied = yield from strip(exchange, step, whole)
    brokers = [each for each in kept.resources if each.resource_type == ConfigResourceType.BROKER]
    if brokers:
        refusals = yield from refused_brokers(exchange, brokers)
        if not exchange.is_still_allowed():
            # keep earlier refusals: the lookup did not include items that only now are allowed
            denied = (yield from strip(exchange, step, whole))[1] | denied
        left = []
        for index, resource in enumerate(whole.resources):
            yield from begin_item(exchange)
            if index not in denied and _key(resource) in refusals:
                denied[index] = refusals[_key(resource)]
            elif index not in denied:
                left.append(resource)
        kept = whole.replace(resources=left)
    if not denied:
        return Relay()
    response = None
    if kept.resources:
        answer: UpstreamAnswer = yield Ask(kept)
        response = answer.message
    return Reply((yield from merged(exchange, step.items, denied, response)))


def refused_brokers(exchange: Exchange, brokers: list[Message]) -> Effects[dict[Key, Message]]:
    """Return the answers to brokers with a dynamic protected setting, or without a description."""
    if len(brokers) > DESCRIBED_RESOURCES_MAX:
        raise RefuseRequestError(INVALID_REQUEST)
    codec = request_codec(ApiKey.DESCRIBE_CONFIGS, DESCRIBE_VERSION)
    resource = codec.root.ELEMENTS["resources"]
    names = sorted(UNCHANGED_HERE)
    question = codec.new(
        resources=[
            resource(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                configuration_keys=names,
            )
            for each in brokers
        ],
        include_synonyms=True,
    )
    answer: UpstreamAnswer = yield Ask(question, DESCRIBE_VERSION, ApiKey.DESCRIBE_CONFIGS)
    described = {_key(result): result for result in answer.message.results}
    refusals = {_key(each): _refusal(exchange, each, described.get(_key(each))) for each in brokers}
    return {key: refusal for key, refusal in refusals.items() if refusal is not None}


def _refusal(exchange: Exchange, broker: Message, described: Message | None) -> Message | None:
    if described is None:
        code, text = UNKNOWN_SERVER_ERROR, MESSAGES[UNKNOWN_SERVER_ERROR]
    elif described.error_code:
        code, text = described.error_code, described.error_message
    else:
        dynamic = sorted(config.name for config in described.configs if _is_dynamic(config))
        if not dynamic:
            return None
        code = INVALID_REQUEST
        text = (
            f"Cannot unset these configs here: {', '.join(dynamic)}. AlterConfigs unsets what it does not "
            "name, use IncrementalAlterConfigs"
        )
    return exchange.response_codec.root.ELEMENTS["responses"](
        error_code=code,
        error_message=text,
        resource_type=broker.resource_type,
        resource_name=broker.resource_name,
    )


def _is_dynamic(config: Message) -> bool:
    """Return whether a setting has a dynamic value, in effect or overridden."""
    return not DYNAMIC_SOURCES.isdisjoint(
        (config.config_source, *(synonym.source for synonym in config.synonyms))
    )


def _key(resource: Message) -> Key:
    return resource.resource_type, resource.resource_name
