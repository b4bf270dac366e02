"""CreateTopics, DeleteTopics, DescribeTopicPartitions: the order of the checks reveals no hidden name.

Sources: `ControllerApis.createTopics` and `.deleteTopics`, `DescribeTopicPartitionsRequestHandler` of
Kafka 4.3.1.
"""

from collections import Counter

from kustos.acl import AclOperation, ResourceType
from kustos.protocol.codes import (
    INVALID_REQUEST,
    MESSAGES,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kustos.protocol.common import CREATE_TOPIC, DELETE_TOPIC, DESCRIBE_TOPIC
from kustos.protocol.effects import Ask, Effects, Handler, ListTopics, Reply, ResolveTopicIds, UpstreamAnswer
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.perform import annotate
from kustos.protocol.steps import Operations, RefuseRequestError, Row
from kustos.protocol.turns import allowed_names, begin_item, each
from kustos.wire import ZERO_UUID, Message

DESCRIBE_CONFIGS = Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, log_if_denied=False)
HIDDEN_CONFIGS = {
    "topic_config_error_code": TOPIC_AUTHORIZATION_FAILED,
    "num_partitions": -1,
    "replication_factor": -1,
    "configs": [],
}
"""The replacement for the configuration of a new topic that its creator may not read."""
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
IDS_SINCE_VERSION = 6
TOPIC_OPERATIONS = Operations(
    "topics", "name", ResourceType.TOPIC, "topic_authorized_operations", None, with_errors=True
)


def create_topics(exchange: Exchange, _row: Row) -> Handler:
    """Create the allowed topics; return their configurations only if the client may read them."""
    topics = exchange.request.topics
    counts = Counter(topic.name for topic in topics)
    answers: dict[str, tuple[int, str]] = {}
    for name, count in counts.items():
        if count > 1:
            answers[name] = (INVALID_REQUEST, "Duplicate topic name.")
        elif name == CLUSTER_METADATA_TOPIC:
            text = f"Creation of internal topic {name} is prohibited."
            answers[name] = (INVALID_REQUEST, text)
    valid = [name for name in counts if name not in answers]
    everything = exchange.allows_cluster(AclOperation.CREATE, log_if_denied=False)
    allowed = frozenset(valid) if everything else (yield from allowed_names(exchange, CREATE_TOPIC, valid))
    shown = yield from allowed_names(exchange, DESCRIBE_CONFIGS, valid, listing=True)
    for name in valid:
        if name not in allowed:
            answers.setdefault(name, (TOPIC_AUTHORIZATION_FAILED, "Authorization failed."))
    sent = [topic for topic in topics if topic.name not in answers]
    if not sent and topics:
        response = exchange.response_codec.new()
    else:
        answer: UpstreamAnswer = yield Ask(exchange.request.replace(topics=sent) if answers else None)
        response = answer.message
        redacted = yield from hide_configs(exchange, response, shown)
        if not answers:
            return Reply(response if redacted else answer.body)
    entry = exchange.response_codec.root.ELEMENTS["topics"]
    created = {topic.name: topic for topic in response.topics}
    response.topics = yield from each(
        exchange,
        [name for name in counts if name in created or name in answers],
        lambda name: (
            created.get(name)
            or entry.fit(name=name, error_code=answers[name][0], error_message=answers[name][1])
        ),
    )
    return Reply(response)


def hide_configs(exchange: Exchange, response: Message, shown: frozenset[str]) -> Effects[bool]:
    """Hide configurations that the client may not read (from version 5 on); return whether any was hidden."""
    hidden = [
        topic
        for topic in response.topics
        if topic.error_code == 0 and topic.name not in shown and "configs" in topic.FIELDS
    ]

    def hide_one(topic: Message) -> None:
        for name, value in HIDDEN_CONFIGS.items():
            setattr(topic, name, value)

    yield from each(exchange, hidden, hide_one)
    return bool(hidden)


def delete_topics(exchange: Exchange, _row: Row) -> Handler:
    """Delete the allowed topics; reveal that a topic is missing only to clients that may describe it."""
    named, with_ids, answers = yield from valid_topics(exchange)
    known = exchange.topic_names = (yield ResolveTopicIds(frozenset(with_ids))) if with_ids else {}
    existing = (yield ListTopics(frozenset(named))) if named else {}
    names = [*named, *(known[topic_id] for topic_id in with_ids if topic_id in known)]
    if exchange.allows_cluster(AclOperation.DELETE, log_if_denied=False):
        describable = deletable = frozenset(names)
    else:
        describable = yield from allowed_names(exchange, DESCRIBE_TOPIC, dict.fromkeys(names))
        deletable = yield from allowed_names(exchange, DELETE_TOPIC, dict.fromkeys(names))
    entry = exchange.response_codec.root.ELEMENTS["responses"]
    sent: set[str | bytes] = set()
    for topic_name in named:
        yield from begin_item(exchange)
        if topic_name in describable and topic_name in deletable:
            # the controller may know topics that this broker does not know yet
            sent.add(topic_name)
        elif topic_name in describable and topic_name not in existing:
            answers.append(undeleted(entry, UNKNOWN_TOPIC_OR_PARTITION, topic_name))
        else:
            answers.append(undeleted(entry, TOPIC_AUTHORIZATION_FAILED, topic_name))
    for topic_id in with_ids:
        yield from begin_item(exchange)
        name: str | None = known.get(topic_id)
        if name is None:
            answers.append(undeleted(entry, UNKNOWN_TOPIC_ID, None, topic_id))
        elif name in deletable:
            sent.add(topic_id)
        else:
            shown = name if name in describable else None
            answers.append(undeleted(entry, TOPIC_AUTHORIZATION_FAILED, shown, topic_id))
    if not sent:
        return Reply(exchange.response_codec.new(responses=answers))
    answer: UpstreamAnswer = yield Ask(only(exchange, sent) if answers else None)
    response = answer.message
    response.responses += answers
    return Reply(response if answers else answer.body)


def undeleted(topic_type: type[Message], code: int, name: str | None, topic_id: bytes = ZERO_UUID) -> Message:
    """Return the answer for a topic that is not deleted, with the reason from version 5 on."""
    return topic_type.fit(name=name, topic_id=topic_id, error_code=code, error_message=MESSAGES[code])


def valid_topics(exchange: Exchange) -> Effects[tuple[list[str], list[bytes], list[Message]]]:
    """Return the names and ids requested exactly once, and the answers to the invalid items."""
    entry = exchange.response_codec.root.ELEMENTS["responses"]
    answers: list[Message] = []
    names: list[str] = []
    ids: list[bytes] = []

    def refuse(name: str | None, topic_id: bytes, text: str) -> None:
        values = {"name": name, "topic_id": topic_id, "error_code": INVALID_REQUEST}
        answers.append(entry.fit(**values, error_message=text))

    if exchange.version < IDS_SINCE_VERSION:
        names = list(exchange.request.topic_names)
    for topic in exchange.request.get("topics") or ():
        yield from begin_item(exchange)
        if topic.name is None and topic.topic_id == ZERO_UUID:
            refuse(None, ZERO_UUID, "Neither topic name nor id were specified.")
        elif topic.name is None:
            ids.append(topic.topic_id)
        elif topic.topic_id == ZERO_UUID:
            names.append(topic.name)
        else:
            refuse(topic.name, topic.topic_id, "You may not specify both topic name and topic id.")
    by_name, by_id = Counter(names), Counter(ids)
    twice = [name for name, count in by_name.items() if count > 1]
    yield from each(exchange, twice, lambda name: refuse(name, ZERO_UUID, "Duplicate topic name."))
    ids_twice = [topic_id for topic_id, count in by_id.items() if count > 1]
    yield from each(exchange, ids_twice, lambda topic_id: refuse(None, topic_id, "Duplicate topic id."))
    once = [name for name, count in by_name.items() if count == 1]
    return once, [topic_id for topic_id, count in by_id.items() if count == 1], answers


def only(exchange: Exchange, sent: set[str | bytes]) -> Message:
    """Return the request with only these topics, identified by name or id."""
    request = exchange.request
    if exchange.version < IDS_SINCE_VERSION:
        return request.replace(topic_names=[name for name in request.topic_names if name in sent])
    kept = [
        topic
        for topic in request.topics
        if (topic.topic_id if topic.name is None else topic.name) in sent
        and (topic.name is None or topic.topic_id == ZERO_UUID)
    ]
    return request.replace(topics=kept)


def describe_topic_partitions(exchange: Exchange, _row: Row) -> Handler:
    """Describe page by page; request the allowed names explicitly, so the cursor names no other topic."""
    request = exchange.request
    cursor = request.cursor
    everything = not request.topics
    names = set((yield ListTopics(None)) if everything else (topic.name for topic in request.topics))
    if cursor is not None:
        missing = not everything and cursor.topic_name not in names
        if missing or cursor.partition_index < 0:
            raise RefuseRequestError(INVALID_REQUEST)
        first = java_order(cursor.topic_name)
        names = {name for name in names if java_order(name) >= first}
    keys = yield from each(exchange, list(names), java_order)
    order = dict(zip(names, keys, strict=True))
    ordered = sorted(order, key=order.__getitem__)
    allowed = yield from allowed_names(exchange, DESCRIBE_TOPIC, ordered, listing=everything)
    entry = exchange.response_codec.root.ELEMENTS["topics"]
    denied = yield from each(
        exchange,
        [name for name in ordered if name not in allowed and not everything],
        lambda name: entry(name=name, error_code=TOPIC_AUTHORIZATION_FAILED),
    )
    if not allowed:
        return Reply(exchange.response_codec.new(topics=denied))
    item = exchange.codec.root.ELEMENTS["topics"]
    kept = cursor if cursor is not None and cursor.topic_name in allowed else None
    sent = [name for name in ordered if name in allowed]
    topics = yield from each(exchange, sent, lambda name: item(name=name))
    answer: UpstreamAnswer = yield Ask(request.replace(topics=topics, cursor=kept))
    response = answer.message
    if everything:
        # the client did not name a topic that was deleted meanwhile
        response.topics = [topic for topic in response.topics if topic.error_code == 0]
    yield from annotate(exchange, TOPIC_OPERATIONS, response)
    response.topics += denied
    return Reply(response)


def java_order(name: str) -> bytes:
    """Return a sort key that orders as Java's `String.compareTo` does."""
    return name.encode("utf-16-be", "surrogatepass")
