"""CreateTopics, DeleteTopics, DescribeTopicPartitions: what a name gives away decides the order.

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
from kustos.protocol.effects import Answer, Ask, Handler, ListTopics, Reply, ResolveTopicIds
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.interpreter import annotate
from kustos.protocol.steps import Operations, RefuseRequestError, Row
from kustos.wire import ZERO_UUID, Message

CREATE_TOPIC = Check(AclOperation.CREATE, ResourceType.TOPIC)
DELETE_TOPIC = Check(AclOperation.DELETE, ResourceType.TOPIC)
DESCRIBE_TOPIC = Check(AclOperation.DESCRIBE, ResourceType.TOPIC)
DESCRIBE_CONFIGS = Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, log_if_denied=False)
HIDDEN_CONFIGS = {
    "topic_config_error_code": TOPIC_AUTHORIZATION_FAILED,
    "num_partitions": -1,
    "replication_factor": -1,
    "configs": [],
}
"""What stands for the configuration of a topic that was made by someone who may not see it."""
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
IDS_SINCE_VERSION = 6
TOPIC_OPERATIONS = Operations(
    "topics", "name", ResourceType.TOPIC, "topic_authorized_operations", None, with_errors=True
)


def create_topics(exchange: Exchange, _row: Row) -> Handler:
    """Create what may be created; the configuration of what was is shown to those who may see it."""
    topics = exchange.request.topics
    counts = Counter(topic.name for topic in topics)
    answers: dict[str, tuple[int, str]] = {}
    for name, count in counts.items():
        if count > 1:
            answers[name] = (INVALID_REQUEST, "Duplicate topic name.")
        elif name == CLUSTER_METADATA_TOPIC:
            text = f"Creation of internal topic {name} is prohibited."
            answers[name] = (INVALID_REQUEST, text)
    asked = [name for name in counts if name not in answers]
    everything = exchange.allows_cluster(AclOperation.CREATE, log_if_denied=False)
    allowed = frozenset(asked) if everything else exchange.allowed_names(CREATE_TOPIC, asked)
    shown = exchange.allowed_names(DESCRIBE_CONFIGS, asked, listing=True)
    for name in asked:
        if name not in allowed:
            answers.setdefault(name, (TOPIC_AUTHORIZATION_FAILED, "Authorization failed."))
    sent = [topic for topic in topics if topic.name not in answers]
    if not sent and topics:
        response = exchange.response_codec.new()
    else:
        answer: Answer = yield Ask(exchange.request.replace(topics=sent) if answers else None)
        response = answer.message
        redacted = hide_configs(response, shown)
        if not answers:
            return Reply(response if redacted else answer.body)
    entry = exchange.response_codec.root.ELEMENTS["topics"]
    created = {topic.name: topic for topic in response.topics}
    response.topics = [
        created[name]
        if name in created
        else entry.fit(name=name, error_code=answers[name][0], error_message=answers[name][1])
        for name in counts
        if name in created or name in answers
    ]
    return Reply(response)


def hide_configs(response: Message, shown: frozenset[str]) -> bool:
    """Take away the configurations that may not be seen; return whether any was (version 5 on)."""
    hidden = [
        topic
        for topic in response.topics
        if topic.error_code == 0 and topic.name not in shown and "configs" in topic.FIELDS
    ]
    for topic in hidden:
        for name, value in HIDDEN_CONFIGS.items():
            setattr(topic, name, value)
    return bool(hidden)


def delete_topics(exchange: Exchange, _row: Row) -> Handler:
    """Delete what may be deleted; only those who may describe a topic learn that there is none."""
    named, ided, answers = sorted_out(exchange)
    known = exchange.topic_names = (yield ResolveTopicIds(frozenset(ided))) if ided else {}
    existing = (yield ListTopics(frozenset(named))) if named else frozenset()
    names = [*named, *(known[topic_id] for topic_id in ided if topic_id in known)]
    if exchange.allows_cluster(AclOperation.DELETE, log_if_denied=False):
        describable = deletable = frozenset(names)
    else:
        describable = exchange.allowed_names(DESCRIBE_TOPIC, dict.fromkeys(names))
        deletable = exchange.allowed_names(DELETE_TOPIC, dict.fromkeys(names))
    entry = exchange.response_codec.root.ELEMENTS["responses"]
    sent: set[str | bytes] = set()
    for asked in named:
        if asked in describable and asked not in existing:
            answers.append(undeleted(entry, UNKNOWN_TOPIC_OR_PARTITION, asked))
        elif asked in describable and asked in deletable:
            sent.add(asked)
        else:
            answers.append(undeleted(entry, TOPIC_AUTHORIZATION_FAILED, asked))
    for topic_id in ided:
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
    answer: Answer = yield Ask(only(exchange, sent) if answers else None)
    response = answer.message
    response.responses += answers
    return Reply(response if answers else answer.body)


def undeleted(made: type[Message], code: int, name: str | None, topic_id: bytes = ZERO_UUID) -> Message:
    """Return the answer for a topic that is not deleted; from version 5 on it says why."""
    return made.fit(name=name, topic_id=topic_id, error_code=code, error_message=MESSAGES[code])


def sorted_out(exchange: Exchange) -> tuple[list[str], list[bytes], list[Message]]:
    """Return the names and the ids asked for once, and the answers to what makes no sense."""
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
        if topic.name is None and topic.topic_id == ZERO_UUID:
            refuse(None, ZERO_UUID, "Neither topic name nor id were specified.")
        elif topic.name is None:
            ids.append(topic.topic_id)
        elif topic.topic_id == ZERO_UUID:
            names.append(topic.name)
        else:
            refuse(topic.name, topic.topic_id, "You may not specify both topic name and topic id.")
    for name, count in Counter(names).items():
        if count > 1:
            refuse(name, ZERO_UUID, "Duplicate topic name.")
    for topic_id, count in Counter(ids).items():
        if count > 1:
            refuse(None, topic_id, "Duplicate topic id.")
    once = [name for name, count in Counter(names).items() if count == 1]
    return once, [topic_id for topic_id, count in Counter(ids).items() if count == 1], answers


def only(exchange: Exchange, sent: set[str | bytes]) -> Message:
    """Return the request with only these topics, given by name or by id."""
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
    """Describe page by page; the allowed names are sent explicitly, so the cursor names no other."""
    request = exchange.request
    cursor = request.cursor
    everything = not request.topics
    names = (yield ListTopics(None)) if everything else {topic.name for topic in request.topics}
    if cursor is not None:
        missing = not everything and cursor.topic_name not in names
        if missing or cursor.partition_index < 0:
            raise RefuseRequestError(INVALID_REQUEST)
        names = {name for name in names if java_order(name) >= java_order(cursor.topic_name)}
    ordered = sorted(names, key=java_order)
    allowed = exchange.allowed_names(DESCRIBE_TOPIC, ordered, listing=everything)
    entry = exchange.response_codec.root.ELEMENTS["topics"]
    denied = [
        entry(name=name, error_code=TOPIC_AUTHORIZATION_FAILED)
        for name in ordered
        if name not in allowed and not everything
    ]
    if not allowed:
        return Reply(exchange.response_codec.new(topics=denied))
    item = exchange.codec.root.ELEMENTS["topics"]
    kept = cursor if cursor is not None and cursor.topic_name in allowed else None
    answer: Answer = yield Ask(
        request.replace(topics=[item(name=name) for name in ordered if name in allowed], cursor=kept)
    )
    response = answer.message
    if everything:
        # a topic that went away in between was not asked for by name
        response.topics = [topic for topic in response.topics if topic.error_code == 0]
    annotate(exchange, TOPIC_OPERATIONS, response)
    response.topics += denied
    return Reply(response)


def java_order(name: str) -> bytes:
    """Return a sort key that orders as Java's `String.compareTo` does."""
    return name.encode("utf-16-be", "surrogatepass")
