"""Metadata: three ways to ask, and topics that come to be by being asked for.

Upstream is asked without auto-creation first; what turns out to be missing is created only for those
who may CREATE it, by a second request. So nobody creates a topic by looking, and the check falls on
missing topics only, as in `KafkaApis.handleTopicMetadataRequest`. Versions before 4 always
auto-create; they are asked upstream as version 4, which can say no.
"""

from kustos.acl import AclOperation, ResourceType
from kustos.protocol.codes import (
    INVALID_REQUEST,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kustos.protocol.convert import converted
from kustos.protocol.effects import Answer, Ask, Asking, Handler, Reply, ResolveTopicIds
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.interpreter import annotate, annotate_cluster, hide, rewrite
from kustos.protocol.steps import (
    ClusterOperations,
    Hide,
    Operations,
    RefuseRequestError,
    Rewrite,
    Row,
)
from kustos.wire import ZERO_UUID, Message, request_codec, response_codec
from kustos.wire.api_keys import ApiKey

DESCRIBE_TOPIC = Check(AclOperation.DESCRIBE, ResourceType.TOPIC)
CREATE_TOPIC = Check(AclOperation.CREATE, ResourceType.TOPIC)
LISTED_TOPICS = Hide("topics", "name", Check(AclOperation.DESCRIBE, ResourceType.TOPIC, log_if_denied=False))
TOPIC_OPERATIONS = Operations(
    "topics",
    "name",
    ResourceType.TOPIC,
    "topic_authorized_operations",
    "include_topic_authorized_operations",
    with_errors=True,
)
CLUSTER_OPERATIONS = ClusterOperations(
    "cluster_authorized_operations", "include_cluster_authorized_operations"
)
BROKERS = Rewrite("brokers", "node_id")
ASKS_NOT_TO_CREATE_SINCE = 4
NAMES_MAY_BE_NULL_SINCE = 12
INVALID_TOPIC = 17
MISSING = frozenset({UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC})


def metadata(exchange: Exchange, _row: Row) -> Handler:
    """Handle a Metadata request of any kind."""
    request = exchange.request
    if request.topics is None or (exchange.version == 0 and not request.topics):
        response = yield from ask_upstream(exchange, None, creating=False)
        hide(exchange, LISTED_TOPICS, response)
        annotate(exchange, TOPIC_OPERATIONS, response)
        return finished(exchange, response)
    check_names(exchange)
    if any(topic.get("topic_id", ZERO_UUID) != ZERO_UUID for topic in request.topics):
        return (yield from by_id(exchange))
    return (yield from by_name(exchange))


def check_names(exchange: Exchange) -> None:
    """Raise `RefuseRequestError` where this version has no topic without a name or with an id."""
    topics = exchange.request.topics
    has_ids = any(topic.get("topic_id", ZERO_UUID) != ZERO_UUID for topic in topics)
    nameless = any(topic.name is None for topic in topics)
    if exchange.version < NAMES_MAY_BE_NULL_SINCE:
        if has_ids or nameless:
            raise RefuseRequestError(INVALID_REQUEST)
    elif nameless and not has_ids:
        # entries without an id count for nothing beside those with one; alone they trip Kafka's handler up
        raise RefuseRequestError(UNKNOWN_SERVER_ERROR)


def by_id(exchange: Exchange) -> Handler:
    """Answer for topics by their ids; entries without one do not count, as in Kafka."""
    ids = [topic.topic_id for topic in exchange.request.topics if topic.topic_id != ZERO_UUID]
    names = exchange.topic_names = yield ResolveTopicIds(frozenset(ids))
    allowed = exchange.allowed_names(DESCRIBE_TOPIC, dict.fromkeys(names[i] for i in ids if i in names))
    sent = {topic_id: None for topic_id in ids if names.get(topic_id) in allowed}
    item = exchange.codec.root.ELEMENTS["topics"]
    topics = [item(topic_id=topic_id, name=None) for topic_id in sent]
    response = yield from ask_upstream(exchange, topics, creating=False)
    annotate(exchange, TOPIC_OPERATIONS, response)
    entry = exchange.response_codec.root.ELEMENTS["topics"]
    found = {topic.topic_id: topic for topic in response.topics if topic.topic_id in sent}
    response.topics = []
    for topic_id in dict.fromkeys(ids):
        if topic_id in found:
            response.topics.append(found[topic_id])
        else:
            known = topic_id in names and topic_id not in sent
            code = TOPIC_AUTHORIZATION_FAILED if known else UNKNOWN_TOPIC_ID
            response.topics.append(entry(error_code=code, name=None, topic_id=topic_id))
    return finished(exchange, response)


def by_name(exchange: Exchange) -> Handler:
    """Answer for topics by their names, creating the missing ones for those who may."""
    request = exchange.request
    names = list(dict.fromkeys(topic.name for topic in request.topics))
    described = exchange.allowed_names(DESCRIBE_TOPIC, names)
    sent = [name for name in names if name in described]
    item = exchange.codec.root.ELEMENTS["topics"]
    response = yield from ask_upstream(exchange, [item.fit(name=name) for name in sent], creating=False)
    found = {topic.name: topic for topic in response.topics if topic.name in described}
    may_create = request.get("allow_auto_topic_creation", True) and exchange.auto_creates_topics
    missing = [name for name in sent if name in found and found[name].error_code in MISSING]
    refused: set[str] = set()
    if may_create and missing:
        creatable = creatable_names(exchange, missing)
        refused = set(missing) - creatable
        if creatable:
            topics = [item.fit(name=name) for name in missing if name in creatable]
            created = yield from ask_upstream(exchange, topics, creating=True)
            found |= {topic.name: topic for topic in created.topics if topic.name in creatable}
    response.topics = [found[name] for name in sent if name in found and name not in refused]
    annotate(exchange, TOPIC_OPERATIONS, response)
    entry = exchange.response_codec.root.ELEMENTS["topics"]
    shown = {topic.name: topic for topic in response.topics}
    response.topics = [
        shown[name] if name in shown else entry(error_code=TOPIC_AUTHORIZATION_FAILED, name=name)
        for name in names
        if name in shown or name in refused or name not in described
    ]
    return finished(exchange, response)


def creatable_names(exchange: Exchange, missing: list[str]) -> frozenset[str]:
    """Return the missing topics that this client may create."""
    if exchange.allows_cluster(AclOperation.CREATE, log_if_denied=False):
        return frozenset(missing)
    return exchange.allowed_names(CREATE_TOPIC, missing)


def ask_upstream(exchange: Exchange, topics: list[Message] | None, *, creating: bool) -> Asking[Message]:
    """Ask for these topics (None: all), and return the response in the client's version."""
    version = max(exchange.version, ASKS_NOT_TO_CREATE_SINCE)
    codec = request_codec(ApiKey.METADATA, version)
    asked = exchange.request.replace(topics=topics or [])
    message = converted(asked, codec.root)
    if topics is None:
        message.topics = None
    message.allow_auto_topic_creation = creating
    answer: Answer = yield Ask(message, version)
    if version == exchange.version:
        return answer.message
    made = response_codec(ApiKey.METADATA, exchange.version).root
    return converted(answer.message, made)


def finished(exchange: Exchange, response: Message) -> Reply:
    """Return the reply with the cluster's operations and the gateway's addresses in it."""
    annotate_cluster(exchange, CLUSTER_OPERATIONS, response)
    rewrite(exchange, BROKERS, response)
    return Reply(response)
