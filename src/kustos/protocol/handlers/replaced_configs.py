"""AlterConfigs upstream: what a resource has dynamically and the request does not name is unset (KIP-226).

So a request that names none of the settings that stay as they are could unset one. IncrementalAlterConfigs
(KIP-339) changes only what it names.

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
"""The lowest that says where a setting comes from; every broker has it."""

DYNAMIC_SOURCES: Final = frozenset({2, 3})
"""`ConfigSource`: of one broker, and of all. Others are in a broker's own file."""

Key: TypeAlias = tuple[int, str]


def replace_configs_upstream(exchange: Exchange, row: Row) -> Handler:
    """Let upstream replace the settings of a resource, unless that unsets one that stays as it is.

    Raise `RefuseRequestError` for more brokers than anybody has.
    """
    [step] = [step for step in row.steps if isinstance(step, Strip)]
    whole = exchange.request
    kept, denied = yield from strip(exchange, step, whole)
    brokers = [each for each in kept.resources if each.resource_type == ConfigResourceType.BROKER]
    if brokers:
        refusals = yield from refused_brokers(exchange, brokers)
        if not exchange.is_still_allowed():
            # what only now is allowed was not requested
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
    """Return the answers to brokers that have such a setting dynamically, or that nobody can describe."""
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
    """Return whether a setting has a dynamic value, be it in force or not."""
    return not DYNAMIC_SOURCES.isdisjoint(
        (config.config_source, *(synonym.source for synonym in config.synonyms))
    )


def _key(resource: Message) -> Key:
    return resource.resource_type, resource.resource_name
