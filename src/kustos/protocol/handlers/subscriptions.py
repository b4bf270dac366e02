"""Heartbeats of the consumer group protocol: kustos resolves a topic expression to topics that a member may
describe.

A broker resolves an expression when it is new, when topics were created or deleted, and every ten minutes;
members then get the topics that they may describe. The guard resolves it at the next heartbeat of the member
after topics or ACLs have changed, and adds the topics to this heartbeat even if it has no subscription. For a
subscription from an earlier connection, the guard reads upstream's description of the group.

Sources: `KafkaApis.handleConsumerGroupHeartbeat` and `TopicRegexResolver` of Kafka 4.3.1.
"""

from typing import Final

from kustos.acl import AclOperation, ResourceType
from kustos.extras import ExtraMissingError
from kustos.protocol.codes import (
    INVALID_REGULAR_EXPRESSION,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
)
from kustos.protocol.effects import AllTopics, Ask, Effects, GiveWay, Handler, Relay, Reply, UpstreamAnswer
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.handlers.groups import own_description
from kustos.protocol.perform import pass_again, pass_gate
from kustos.protocol.quoted_patterns import shown_upstream
from kustos.protocol.shapes import shortened
from kustos.protocol.steps import RefuseRequestError, Row, gates_of
from kustos.protocol.subscriptions import MATCHED_BYTES_MAX, MemberKey, Subscription, fits
from kustos.protocol.topic_patterns import ClusterTopics, TopicPattern, TopicPatternError
from kustos.protocol.turns import allowed_names, each
from kustos.wire import ApiKey, ErrorCode, Message

COORDINATOR_LOAD_IN_PROGRESS: Final = ErrorCode.coordinator_load_in_progress.value
DESCRIBE_MATCH = Check(AclOperation.DESCRIBE, ResourceType.TOPIC, log_if_denied=False)


def consumer_group_heartbeat(exchange: Exchange, row: Row) -> Handler:
    """Subscribe a member of a group that it may read to topics that it may describe."""
    for gate in gates_of(row):
        yield from pass_gate(exchange, gate)
    request = exchange.request
    if "subscribed_topic_regex" not in request.FIELDS:
        return Relay()
    member = (request.group_id, request.member_id)
    if request.member_epoch < 0:
        exchange.subscriptions.forget(member)
        # a broker ignores the subscription in a heartbeat that leaves the group
        return (
            Relay()
            if not request.subscribed_topic_regex
            else Relay(request.replace(subscribed_topic_regex=""))
        )
    try:
        return (yield from subscribe(exchange, row, member))
    except TopicPatternError as error:
        return invalid(exchange, str(error))
    except ExtraMissingError:
        raise RefuseRequestError(UNSUPPORTED_VERSION) from None


def subscribe(exchange: Exchange, row: Row, member: MemberKey) -> Handler:
    """Forward a heartbeat with the topics of its expression; raise the errors of `said` and `resolved`."""
    request, subscriptions = exchange.request, exchange.subscriptions
    says_nothing = request.subscribed_topic_names is None and request.subscribed_topic_regex is None
    if says_nothing and request.member_epoch == 0:
        # upstream refuses a member that joins without a subscription
        return Relay()
    known = subscriptions.find(member)
    if known is None and says_nothing:
        known = yield from learned(exchange)
        yield from pass_again(exchange, gates_of(row))
        if known is None:
            return Relay()
    before = known or Subscription()
    if is_new(request.subscribed_topic_regex, before):
        # RE2 takes up to some milliseconds to compile an expression, and one turn handles dozens of requests
        yield GiveWay()
    now = said(request, before)
    if now.pattern is before.pattern is None:
        subscriptions.keep(member, now, now.names)
        return Relay()
    topics: ClusterTopics = yield AllTopics()
    yield from pass_again(exchange, gates_of(row))
    version = exchange.decider_version
    if says_nothing and before.is_current(version, topics):
        return Relay()
    names = yield from resolved(exchange, now, topics)
    now = now.resolved(names, version, topics)
    if says_nothing and now.sent == before.sent:
        subscriptions.keep(member, now, now.names)
        return Relay()
    answer: UpstreamAnswer = yield Ask(heartbeat_for_upstream(request, now, names))
    if answer.message.error_code == NONE:
        subscriptions.keep(member, now, now.names)
    else:
        subscriptions.forget(member)
    return Reply(answer_for_client(answer, now))


def learned(exchange: Exchange) -> Effects[Subscription | None]:
    """Return a member's subscription from an earlier connection, None if upstream does not know the member.

    Raise `RefuseRequestError` with upstream's error, `TopicPatternError`, `ExtraMissingError`.
    """
    try:
        group = yield from own_description(exchange, ApiKey.CONSUMER_GROUP_DESCRIBE)
    except RefuseRequestError as refusal:
        if refusal.code != TOPIC_AUTHORIZATION_FAILED:
            raise
        # an upstream that authorizes this user hides a group with other topics (`kustos.upstream.identity`);
        # clients answer this error with a full heartbeat, and keep their assignment
        raise RefuseRequestError(COORDINATOR_LOAD_IN_PROGRESS) from None
    for member in group.members:
        if member.member_id == exchange.request.member_id:
            yield GiveWay()  # the next step compiles an expression
            return Subscription.kept_upstream(
                member.subscribed_topic_names, member.subscribed_topic_regex or ""
            )
    return None


def is_new(text: str | None, before: Subscription) -> bool:
    """Return whether a heartbeat changes the member's expression."""
    return bool(text) and (before.pattern is None or before.pattern.text != text)


def said(request: Message, before: Subscription) -> Subscription:
    """Return a member's subscription after this heartbeat; raise `TopicPatternError`, `ExtraMissingError`."""
    names, text = request.subscribed_topic_names, request.subscribed_topic_regex
    pattern = before.pattern
    if is_new(text, before):
        pattern = TopicPattern.compile(text or "")
    elif text == "":
        pattern = None
    return Subscription(before.names if names is None else tuple(dict.fromkeys(names)), pattern)


def resolved(exchange: Exchange, now: Subscription, topics: ClusterTopics) -> Effects[list[str]]:
    """Return the topics of a subscription, in order; raise `TopicPatternError` for too many topics."""
    if now.pattern is None:
        return sorted(now.names)
    matching = yield from matches(exchange, now.pattern, topics)
    matched = yield from allowed_names(exchange, DESCRIBE_MATCH, matching, listing=True)
    if not fits(matched):
        raise TopicPatternError(f"it matches topics whose names have more than {MATCHED_BYTES_MAX} bytes")
    return sorted(matched.union(now.names))


def matches(exchange: Exchange, pattern: TopicPattern, topics: ClusterTopics) -> Effects[tuple[str, ...]]:
    """Return the topics that match; matches that are not cached are computed in turns."""
    known = topics.known_matches(pattern)
    if known is not None:
        return known
    verdicts = yield from each(exchange, topics.names, pattern.matches, pattern.cost)
    found = tuple(name for name, matched in zip(topics.names, verdicts, strict=True) if matched)
    topics.keep_matches(pattern, found)
    return found


def heartbeat_for_upstream(request: Message, now: Subscription, names: list[str]) -> Message:
    """Return the heartbeat with the topics by name, and an expression that quotes the member's."""
    kept = "" if now.pattern is None else shown_upstream(now.pattern.text, now.names)
    return request.replace(subscribed_topic_names=names, subscribed_topic_regex=kept)


def answer_for_client(answer: UpstreamAnswer, now: Subscription) -> Message | bytes:
    """Return upstream's answer; if its error text quotes the expression, replace it with the member's."""
    text = answer.message.error_message
    if text is None or now.pattern is None:
        return answer.body
    said_upstream = shown_upstream(now.pattern.text, now.names)
    return answer.message.replace(error_message=text.replace(said_upstream, now.pattern.text))


def invalid(exchange: Exchange, reason: str) -> Reply:
    """Return the answer to an invalid expression, which may be from an earlier heartbeat."""
    text = exchange.request.subscribed_topic_regex
    quoted = "" if text is None else f"`{text}` "
    sentence = shortened(f"SubscribedTopicRegex {quoted}is not a valid regular expression: {reason}.")
    return Reply(exchange.response_codec.new(error_code=INVALID_REGULAR_EXPRESSION, error_message=sentence))
