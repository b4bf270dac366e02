"""Metadata: three kinds of request, and auto-creation of topics.

The first request upstream disables auto-creation; a second request creates the missing topics that the client
may CREATE. So no lookup creates a topic unchecked, and only missing topics need the check, as in
`KafkaApis.handleTopicMetadataRequest`. Versions before 4 always auto-create; kustos sends them upstream as
version 4, which can disable it.
"""

from functools import partial

from kustos.acl import AclOperation, ResourceType
from kustos.protocol.codes import (
    INVALID_REQUEST,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kustos.protocol.common import CREATE_TOPIC, DESCRIBE_TOPIC
from kustos.protocol.effects import Ask, Effects, Handler, Reply, ResolveTopicIds, UpstreamAnswer
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.perform import annotate, annotate_cluster, rewrite
from kustos.protocol.steps import (
    ClusterOperations,
    Operations,
    RefuseRequestError,
    Rewrite,
    Row,
)
from kustos.protocol.turns import allowed_names, begin_item, each, next_names, read_through
from kustos.wire import (
    ZERO_UUID,
    ApiKey,
    ItemReader,
    Message,
    MessageCodec,
    converted,
    request_codec,
    response_codec,
)

LISTED_TOPIC = Check(AclOperation.DESCRIBE, ResourceType.TOPIC, log_if_denied=False)
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
LARGE_TOPIC_BYTES = 16 * 1024
"""The size from which a topic is read in parts: about 500 partitions, which take a millisecond."""

MISSING = frozenset({UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC})


def metadata(exchange: Exchange, _row: Row) -> Handler:
    """Handle a Metadata request of any kind."""
    request = exchange.request
    if request.topics is None or (exchange.version == 0 and not request.topics):
        response = yield from ask_upstream(exchange, None, creating=False)
        yield from annotate(exchange, TOPIC_OPERATIONS, response)
        return (yield from finished(exchange, response))
    ids = requested_ids(exchange)
    check_names(exchange, has_ids=bool(ids))
    if ids:
        return (yield from by_id(exchange, ids))
    return (yield from by_name(exchange))


def check_names(exchange: Exchange, *, has_ids: bool) -> None:
    """Raise `RefuseRequestError` if this version does not allow a topic without a name or with an id."""
    nameless = None in [topic.name for topic in exchange.request.topics]
    if exchange.version < NAMES_MAY_BE_NULL_SINCE:
        if has_ids or nameless:
            raise RefuseRequestError(INVALID_REQUEST)
    elif nameless and not has_ids:
        # entries without an id are ignored if others have one; alone they make Kafka's handler fail
        raise RefuseRequestError(UNKNOWN_SERVER_ERROR)


def requested_ids(exchange: Exchange) -> list[bytes]:
    """Return the topic ids of the request."""
    if "topic_id" not in exchange.codec.root.ELEMENTS["topics"].FIELDS:
        return []
    return [topic.topic_id for topic in exchange.request.topics if topic.topic_id != ZERO_UUID]


def by_id(exchange: Exchange, ids: list[bytes]) -> Handler:
    """Answer for topics by id; entries without one are ignored, as in Kafka."""
    names = exchange.topic_names = yield ResolveTopicIds(frozenset(ids))
    known = dict.fromkeys(names[topic_id] for topic_id in ids if topic_id in names)
    allowed = yield from allowed_names(exchange, DESCRIBE_TOPIC, known)
    sent = {topic_id: None for topic_id in ids if names.get(topic_id) in allowed}
    item = exchange.codec.root.ELEMENTS["topics"]
    topics = yield from each(exchange, list(sent), lambda topic_id: item(topic_id=topic_id, name=None))
    response = yield from ask_upstream(exchange, topics, creating=False)
    yield from annotate(exchange, TOPIC_OPERATIONS, response)
    entry = exchange.response_codec.root.ELEMENTS["topics"]
    found: dict[bytes, Message] = {
        topic.topic_id: topic for topic in response.topics if topic.topic_id in sent
    }

    def answered(topic_id: bytes) -> Message:
        if topic_id in found:
            return found[topic_id]
        is_denied = topic_id in names and topic_id not in sent
        code = TOPIC_AUTHORIZATION_FAILED if is_denied else UNKNOWN_TOPIC_ID
        return entry(error_code=code, name=None, topic_id=topic_id)

    response.topics = yield from each(exchange, list(dict.fromkeys(ids)), answered)
    return (yield from finished(exchange, response))


def by_name(exchange: Exchange) -> Handler:
    """Answer for topics by name; create the missing ones if the client may."""
    request = exchange.request
    names = list(dict.fromkeys(topic.name for topic in request.topics))
    described = yield from allowed_names(exchange, DESCRIBE_TOPIC, names)
    sent = [name for name in names if name in described]
    item = exchange.codec.root.ELEMENTS["topics"]
    topics = yield from each(exchange, sent, lambda name: item.fit(name=name))
    response = yield from ask_upstream(exchange, topics, creating=False)
    found = {topic.name: topic for topic in response.topics if topic.name in described}
    may_create = request.get("allow_auto_topic_creation", True) and exchange.auto_creates_topics
    missing = [name for name in sent if name in found and found[name].error_code in MISSING]
    refused: set[str] = set()
    if may_create and missing:
        creatable = yield from creatable_names(exchange, missing)
        refused = set(missing) - creatable
        if creatable:
            to_create = [name for name in missing if name in creatable]
            topics = yield from each(exchange, to_create, lambda name: item.fit(name=name))
            created = yield from ask_upstream(exchange, topics, creating=True)
            found |= {topic.name: topic for topic in created.topics if topic.name in creatable}
    response.topics = [found[name] for name in sent if name in found and name not in refused]
    yield from annotate(exchange, TOPIC_OPERATIONS, response)
    entry = exchange.response_codec.root.ELEMENTS["topics"]
    shown = {topic.name: topic for topic in response.topics}
    response.topics = yield from each(
        exchange,
        [name for name in names if name in shown or name in refused or name not in described],
        lambda name: shown.get(name) or entry(error_code=TOPIC_AUTHORIZATION_FAILED, name=name),
    )
    return (yield from finished(exchange, response))


def creatable_names(exchange: Exchange, missing: list[str]) -> Effects[frozenset[str]]:
    """Return the missing topics that this client may create."""
    if exchange.allows_cluster(AclOperation.CREATE, log_if_denied=False):
        return frozenset(missing)
    return (yield from allowed_names(exchange, CREATE_TOPIC, missing))


def ask_upstream(exchange: Exchange, topics: list[Message] | None, *, creating: bool) -> Effects[Message]:
    """Request these topics from upstream, and return the response in the client's version.

    `topics` None means all topics; the response then has the topics that the client may describe.
    """
    version = max(exchange.version, ASKS_NOT_TO_CREATE_SINCE)
    codec = request_codec(ApiKey.METADATA, version)
    message = converted(exchange.request.replace(topics=[]), codec.root)
    message.topics = None if topics is None else (yield from converted_items(exchange, topics, codec))
    message.allow_auto_topic_creation = creating
    answer: UpstreamAnswer = yield Ask(message, version)
    if answer.items is None:
        raise TypeError("the row of Metadata says that its answers are read in turns")
    if topics is None:
        found, response = (yield from visible(exchange, answer.items)), answer.message
    else:
        # one topic may have thousands of partitions
        response = yield from read_through(exchange, answer.items.whole())
        found = response.topics
    if version == exchange.version:
        response.topics = found
        return response
    response.topics = []
    own_codec = response_codec(ApiKey.METADATA, exchange.version)
    response = converted(response, own_codec.root)
    response.topics = yield from converted_items(exchange, found, own_codec)
    return response


def visible(exchange: Exchange, reader: ItemReader) -> Effects[list[Message]]:
    """Return the topics of a listing that the client may describe; only the names of the others are read."""
    found: list[Message] = []
    while part := (yield from next_names(exchange, reader)):
        names = [name or "" for name, _ in part]
        shown = yield from allowed_names(exchange, LISTED_TOPIC, names, listing=True)
        offsets = [offset for _, offset in part]
        ends = (*offsets[1:], reader.position)
        for name, offset, end in zip(names, offsets, ends, strict=True):
            if name not in shown:
                continue
            if end - offset > LARGE_TOPIC_BYTES:
                found.append((yield from read_through(exchange, reader.large_item_at(offset))))
            else:
                yield from begin_item(exchange)
                found.append(reader.item_at(offset))
    return found


def converted_items(exchange: Exchange, topics: list[Message], codec: MessageCodec) -> Effects[list[Message]]:
    """Return the topics in another version."""
    topic_type = codec.root.ELEMENTS["topics"]
    found: list[Message] = []
    for topic in topics:
        partitions = topic.get("partitions")
        # a topic is first copied without its partitions
        yield from begin_item(exchange, 2 if partitions else 1)
        if type(topic) is topic_type:
            found.append(topic)
            continue
        if not partitions:
            found.append(converted(topic, topic_type))
            continue
        convert = partial(converted, message_type=topic_type.ELEMENTS["partitions"])
        made = converted(topic.replace(partitions=[]), topic_type)
        # one topic may have thousands of partitions
        made.partitions = yield from each(exchange, partitions, convert)
        found.append(made)
    return found


def finished(exchange: Exchange, response: Message) -> Effects[Reply]:
    """Return the reply after adding the cluster's operations and the gateway's addresses."""
    annotate_cluster(exchange, CLUSTER_OPERATIONS, response)
    yield from rewrite(exchange, BROKERS, response)
    return Reply(response)
