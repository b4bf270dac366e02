"""Offsets and descriptions of groups: the topics of a group are authorized separately.

Sources: `KafkaApis.fetchOffsetsForGroup`, `.handleDescribeShareGroupOffsetsRequest`,
`.handleConsumerGroupDescribe`, `.handleShareGroupDescribe` of Kafka 4.3.1.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Final

from kustos.acl import AclOperation, ResourceType
from kustos.protocol.codes import (
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
)
from kustos.protocol.common import DESCRIBE_TOPIC
from kustos.protocol.effects import Ask, Effects, Handler, Reply, ResolveTopicIds, UpstreamAnswer
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.perform import finish, item_name, merged, strip
from kustos.protocol.quoted_patterns import shown_to_clients
from kustos.protocol.shapes import Items
from kustos.protocol.steps import RefuseRequestError, Row, Strip
from kustos.protocol.turns import allowed_names, answers, begin_item, each
from kustos.wire import ZERO_UUID, ApiKey, ErrorCode, Message, request_codec

DESCRIBE_GROUP = Check(AclOperation.DESCRIBE, ResourceType.GROUP)


def offset_fetch(exchange: Exchange, row: Row) -> Handler:
    """Return the offsets of the groups and topics that the client may describe, group by group.

    Before version 8 an OffsetFetch names one group in its top-level fields.
    """
    [step] = [step for step in row.steps if isinstance(step, Strip)]
    batched = "groups" in exchange.request.FIELDS
    groups = exchange.request.groups if batched else [exchange.request]
    yield from resolve_requested(exchange, groups)
    allowed = yield from allowed_names(exchange, DESCRIBE_GROUP, (group.group_id for group in groups))
    if not batched and not allowed:
        raise RefuseRequestError(GROUP_AUTHORIZATION_FAILED)
    root = exchange.response_codec.root
    topic_type = (root.ELEMENTS["groups"] if batched else root).ELEMENTS["topics"]
    sent: list[Message] = []
    denied: dict[int, dict[int, Message]] = {}
    for index, group in enumerate(groups):
        yield from begin_item(exchange)
        if group.group_id not in allowed:
            continue
        refused = denied[index] = (
            (yield from denied_topics(exchange, step, group, topic_type)) if group.topics else {}
        )
        left = [topic for i, topic in enumerate(group.topics or ()) if i not in refused]
        sent.append(group.replace(topics=left) if refused else group)
    if batched and not sent:
        return Reply(root(groups=(yield from each(exchange, groups, partial(refused_group, exchange)))))
    untouched = len(sent) == len(groups) and not any(denied.values())
    message = exchange.request.replace(groups=sent) if batched else sent[0]
    answer: UpstreamAnswer = yield Ask(None if untouched else message)
    response = answer.message
    yield from resolve_answered(exchange, step, response, batched)
    answers = list(response.groups) if batched else [response]
    by_group: dict[str | None, deque[Message]] = {}
    for answered in answers:
        by_group.setdefault(answered.get("group_id"), deque()).append(answered)
    result: list[Message] = []
    for index, group in enumerate(groups):
        yield from begin_item(exchange)
        if index not in denied:
            result.append(refused_group(exchange, group))
        elif waiting := by_group.get(group.group_id if batched else None):
            result.append((yield from completed(exchange, step, group, waiting.popleft(), denied[index])))
    return Reply(response.replace(groups=result) if batched else result[0])


def resolve_requested(exchange: Exchange, groups: list[Message]) -> Effects[None]:
    """Resolve the topic ids of the request (version 10)."""
    ids = {topic.get("topic_id", ZERO_UUID) for group in groups for topic in group.topics or ()}
    ids.discard(ZERO_UUID)
    if ids:
        exchange.topic_names = yield ResolveTopicIds(frozenset(ids))


def resolve_answered(exchange: Exchange, step: Strip, response: Message, batched: bool) -> Effects[None]:
    """Resolve the topic ids of the answer, which may include topics that the request does not name."""
    groups = response.groups if batched else [response]
    ids = {
        topic.get("topic_id", ZERO_UUID)
        for group in groups
        for topic in group.topics
        if step.name not in topic.FIELDS
    }
    unknown = ids - exchange.topic_names.keys() - {ZERO_UUID}
    if unknown:
        exchange.topic_names |= yield ResolveTopicIds(frozenset(unknown))


def denied_topics(
    exchange: Exchange, step: Strip, group: Message, topic_type: type[Message]
) -> Effects[dict[int, Message]]:
    """Return the answers to the refused topics of the request, by their index."""
    topics = group.topics
    names = yield from each(exchange, topics, lambda topic: topic_name(exchange, step, topic))
    allowed = yield from allowed_names(exchange, DESCRIBE_TOPIC, (name for name in names if name is not None))
    unknown = [index for index, name in enumerate(names) if name is None]
    hidden = [index for index, name in enumerate(names) if name is not None and name not in allowed]
    denied: dict[int, Message] = {}
    for indexes, code in ((unknown, UNKNOWN_TOPIC_ID), (hidden, TOPIC_AUTHORIZATION_FAILED)):
        refused_topics = [topics[index] for index in indexes]
        refusing = yield from answers(exchange, step.items, topic_type, refused_topics, code)
        denied |= zip(indexes, refusing, strict=True)
    return denied


def topic_name(exchange: Exchange, step: Strip, topic: Message) -> str | None:
    """Return the name of a topic of the request or answer, None for an unresolved topic id."""
    return topic.get(step.name) or item_name(exchange, topic, step.name)


def refused_group(exchange: Exchange, group: Message) -> Message:
    """Return the answer for a group that the client may not describe."""
    group_type = exchange.response_codec.root.ELEMENTS["groups"]
    return group_type(group_id=group.group_id, error_code=GROUP_AUTHORIZATION_FAILED)


def completed(
    exchange: Exchange, step: Strip, group: Message, answered: Message, denied: dict[int, Message]
) -> Effects[Message]:
    """Return a group's answer including its denied topics, or without its hidden topics."""
    if answered.get("error_code", 0) != 0:
        return answered
    if group.topics is None:
        names = yield from each(exchange, answered.topics, lambda topic: topic_name(exchange, step, topic))
        shown = yield from allowed_names(
            exchange, DESCRIBE_TOPIC, (name for name in names if name is not None), listing=True
        )
        kept = [topic for topic, name in zip(answered.topics, names, strict=True) if name in shown]
        return answered.replace(topics=kept)
    sent = [topic for index, topic in enumerate(group.topics) if index not in denied]
    sent_keys = set((yield from each(exchange, sent, step.items.key_of_request)))
    keys = yield from each(exchange, answered.topics, step.items.key_of_response)
    topics = [topic for topic, key in zip(answered.topics, keys, strict=True) if key in sent_keys]
    # a broker lists refused topics after answered topics
    return answered.replace(topics=[*topics, *(denied[index] for index in sorted(denied))])


GROUP_ITEMS = Items("group_ids", "groups", (("", "group_id"),))
GROUPS = Strip(GROUP_ITEMS, DESCRIBE_GROUP, name="")
DESCRIBE_VERSION: Final = 0
WITHOUT_MEMBERS: Final = frozenset(
    code.value for code in (ErrorCode.none, ErrorCode.group_id_not_found, ErrorCode.invalid_group_id)
)
"""Codes of a complete description; a nonexistent group has no members."""

HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def consumer_group_describe(exchange: Exchange, row: Row) -> Handler:
    """Describe consumer groups; an error replaces a group with a hidden topic in a current or target
    assignment."""

    def topics_of(group: Message) -> set[str]:
        for member in group.members:
            show_subscription(member)
        return assigned(group, "assignment", "target_assignment")

    return (yield from describe_members(exchange, row, topics_of))


def show_subscription(member: Message) -> None:
    """Restore the member's own expression and topics, which kustos sent upstream in quoted form."""
    kept = shown_to_clients(member.subscribed_topic_regex or "")
    if kept is not None:
        member.subscribed_topic_regex, member.subscribed_topic_names = kept


def share_group_describe(exchange: Exchange, row: Row) -> Handler:
    """Describe share groups, unless a member has a hidden topic."""
    return (yield from describe_members(exchange, row, lambda group: assigned(group, "assignment")))


def describe_members(
    exchange: Exchange, row: Row, topics_of: Callable[[Message], set[str]], text: str = HIDDEN_TOPICS
) -> Handler:
    """Describe groups; an error replaces each group in which `topics_of` finds a hidden topic."""
    kept, denied = yield from strip(exchange, GROUPS, exchange.request)
    if denied and not kept.group_ids:
        return Reply((yield from merged(exchange, GROUP_ITEMS, denied, None)))
    answer: UpstreamAnswer = yield Ask(kept if denied else None)
    response = answer.message
    topics_each = yield from each(exchange, response.groups, topics_of)
    visible = yield from allowed_names(exchange, DESCRIBE_TOPIC, dict.fromkeys(chain(*topics_each)))
    yield from finish(exchange, row, answer, None)
    group_type = exchange.response_codec.root.ELEMENTS["groups"]
    response.groups = [
        group
        if visible.issuperset(topics)
        else group_type(group_id=group.group_id, error_code=TOPIC_AUTHORIZATION_FAILED, error_message=text)
        for group, topics in zip(response.groups, topics_each, strict=True)
    ]
    return Reply((yield from merged(exchange, GROUP_ITEMS, denied, response)))


def own_description(exchange: Exchange, api_key: ApiKey) -> Effects[Message]:
    """Return upstream's description of the request's group; raise `RefuseRequestError` with upstream's error.

    Its cost for upstream is not higher than the cost of requests that a reader of the group may send itself.
    """
    question = request_codec(api_key, DESCRIBE_VERSION).new(group_ids=[exchange.request.group_id])
    answer: UpstreamAnswer = yield Ask(question, DESCRIBE_VERSION, api_key)
    for group in answer.message.groups:
        if group.error_code not in WITHOUT_MEMBERS:
            raise RefuseRequestError(group.error_code)
        described: Message = group
        return described
    raise RefuseRequestError(UNKNOWN_SERVER_ERROR)


def assigned(group: Message, *fields: str) -> set[str]:
    """Return the topics in these assignments of a group's members."""
    return {
        topic.topic_name
        for member in group.members
        for field in fields
        for topic in getattr(member, field).topic_partitions
    }
