"""OffsetFetch and ConsumerGroupDescribe: groups whose topics are secrets of their own.

Sources: `KafkaApis.fetchOffsetsForGroup`, `.handleConsumerGroupDescribe` of Kafka 4.3.1.
"""

from collections import deque
from typing import Any

from kustos.acl import AclOperation, ResourceType
from kustos.protocol.codes import GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID
from kustos.protocol.effects import Answer, Ask, Asking, Handler, Reply, ResolveTopicIds
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.interpreter import finish, item_name, merged, strip
from kustos.protocol.shapes import Items
from kustos.protocol.steps import RefuseRequestError, Row, Strip
from kustos.wire import ZERO_UUID, Message

DESCRIBE_GROUP = Check(AclOperation.DESCRIBE, ResourceType.GROUP)
DESCRIBE_TOPIC = Check(AclOperation.DESCRIBE, ResourceType.TOPIC)
BATCHED_SINCE_VERSION = 8
OFFSETS_OF_TOPIC = Items(
    "topics",
    "topics",
    (("name", "name"), ("topic_id", "topic_id")),
    code_field=None,
    inner=Items(
        "partition_indexes",
        "partitions",
        (("", "partition_index"),),
        extra={"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""},
    ),
)


def offset_fetch(exchange: Exchange, _row: Row) -> Handler:
    """Give the offsets of the groups and topics that may be described; each group for itself.

    Before version 8 the request itself is the one group.
    """
    batched = exchange.version >= BATCHED_SINCE_VERSION
    groups = exchange.request.groups if batched else [exchange.request]
    yield from resolve_asked(exchange, groups)
    # asked for each mention, as Kafka asks; the verdict on a name is the same within one request
    verdicts = {group.group_id: exchange.allows(DESCRIBE_GROUP, group.group_id) for group in groups}
    allowed = {name for name, verdict in verdicts.items() if verdict}
    if not batched and not allowed:
        raise RefuseRequestError(GROUP_AUTHORIZATION_FAILED)
    root = exchange.response_codec.root
    made = (root.ELEMENTS["groups"] if batched else root).ELEMENTS["topics"]
    sent: list[Message] = []
    denied: dict[int, dict[int, Message]] = {}
    for index, group in enumerate(groups):
        if group.group_id not in allowed:
            continue
        denied[index] = denied_topics(exchange, group, made)
        left = [topic for i, topic in enumerate(group.topics or ()) if i not in denied[index]]
        sent.append(group.replace(topics=left) if denied[index] else group)
    if batched and not sent:
        return Reply(root(groups=[refused_group(exchange, group) for group in groups]))
    untouched = len(sent) == len(groups) and not any(denied.values())
    message = exchange.request.replace(groups=sent) if batched else sent[0]
    answer: Answer = yield Ask(None if untouched else message)
    response = answer.message
    yield from resolve_answered(exchange, response, batched)
    answers = list(response.groups) if batched else [response]
    by_group: dict[str | None, deque[Message]] = {}
    for answered in answers:
        by_group.setdefault(answered.get("group_id"), deque()).append(answered)
    result: list[Message] = []
    for index, group in enumerate(groups):
        if index not in denied:
            result.append(refused_group(exchange, group))
        elif waiting := by_group.get(group.group_id if batched else None):
            result.append(completed(exchange, group, waiting.popleft(), denied[index]))
    return Reply(response.replace(groups=result) if batched else result[0])


def resolve_asked(exchange: Exchange, groups: list[Message]) -> Asking[None]:
    """Resolve the topic ids of the request (version 10)."""
    ids = {topic.get("topic_id", ZERO_UUID) for group in groups for topic in group.topics or ()}
    ids.discard(ZERO_UUID)
    if ids:
        exchange.topic_names = yield ResolveTopicIds(frozenset(ids))


def resolve_answered(exchange: Exchange, response: Message, batched: bool) -> Asking[None]:
    """Resolve the topic ids of the answer, which names topics that nobody asked for by name."""
    groups = response.groups if batched else [response]
    ids = {topic.get("topic_id", ZERO_UUID) for group in groups for topic in group.topics}
    unknown = ids - exchange.topic_names.keys() - {ZERO_UUID}
    if unknown:
        exchange.topic_names |= yield ResolveTopicIds(frozenset(unknown))


def denied_topics(exchange: Exchange, group: Message, made: type[Message]) -> dict[int, Message]:
    """Return the answers to the topics asked for that are refused, by their index."""
    topics = group.topics or []
    names = [item_name(exchange, topic, "name") for topic in topics]
    allowed = exchange.allowed_names(DESCRIBE_TOPIC, (name for name in names if name is not None))
    return {
        index: OFFSETS_OF_TOPIC.answer(
            made, topic, UNKNOWN_TOPIC_ID if name is None else TOPIC_AUTHORIZATION_FAILED
        )
        for index, (topic, name) in enumerate(zip(topics, names, strict=True))
        if name is None or name not in allowed
    }


def refused_group(exchange: Exchange, group: Message) -> Message:
    """Return the answer for a group that may not be described."""
    made = exchange.response_codec.root.ELEMENTS["groups"]
    return made(group_id=group.group_id, error_code=GROUP_AUTHORIZATION_FAILED)


def completed(exchange: Exchange, group: Message, answered: Message, denied: dict[int, Message]) -> Message:
    """Return a group's answer with its denied topics, or without those that may not be seen."""
    if answered.get("error_code", 0) != 0:
        return answered
    if group.topics is None:
        names = {id(topic): item_name(exchange, topic, "name") for topic in answered.topics}
        shown = exchange.allowed_names(
            DESCRIBE_TOPIC, (name for name in names.values() if name is not None), listing=True
        )
        return answered.replace(topics=[topic for topic in answered.topics if names[id(topic)] in shown])
    pool: dict[Any, list[Message]] = {}
    for topic in answered.topics:
        pool.setdefault(OFFSETS_OF_TOPIC.key_of_response(topic), []).append(topic)
    topics: list[Message] = []
    for index, topic in enumerate(group.topics):
        if index in denied:
            topics.append(denied[index])
        elif waiting := pool.get(OFFSETS_OF_TOPIC.key_of_request(topic)):
            topics.append(waiting.pop(0))
    return answered.replace(topics=topics)


GROUP_ITEMS = Items("group_ids", "groups", (("", "group_id"),))
GROUPS = Strip(GROUP_ITEMS, DESCRIBE_GROUP, name="", one_by_one=True)
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def consumer_group_describe(exchange: Exchange, row: Row) -> Handler:
    """Describe groups; one whose assignments name a hidden topic is replaced by an error."""
    kept, denied = strip(exchange, GROUPS, exchange.request)
    if denied and not kept.group_ids:
        return Reply(merged(exchange, GROUP_ITEMS, denied, None))
    answer: Answer = yield Ask(kept if denied else None)
    response = answer.message
    names = [name for group in response.groups for name in set(assigned_topics(group))]
    visible = exchange.allowed_names(DESCRIBE_TOPIC, dict.fromkeys(names))
    finish(exchange, row, answer, None)
    made = exchange.response_codec.root.ELEMENTS["groups"]
    response.groups = [
        group
        if visible.issuperset(assigned_topics(group))
        else made(group_id=group.group_id, error_code=TOPIC_AUTHORIZATION_FAILED, error_message=HIDDEN_TOPICS)
        for group in response.groups
    ]
    return Reply(merged(exchange, GROUP_ITEMS, denied, response))


def assigned_topics(group: Message) -> list[str]:
    """Return the topics that a group's members have or are to have."""
    return [
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    ]
