"""Share groups: heartbeats of members, ShareFetch and ShareAcknowledge.

Each request authorizes its whole share session, and its acknowledgements by partition. As with Fetch, the
guard removes partitions that are no longer allowed from upstream's session, adds newly allowed partitions,
and checks that the answer has only allowed partitions. Unlike with Fetch, acknowledgements may name
partitions outside the session, and upstream knows every session, even a session of denied partitions only,
since the member counts the session's epochs.
Sources: KIP-932, KIP-1222; `KafkaApis.handleShareFetchRequest`, `.handleShareAcknowledgeRequest` and
`SharePartitionManager.newContext` of Kafka 4.3.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kustos.protocol.codes import (
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    NONE,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
)
from kustos.protocol.common import READ_GROUP
from kustos.protocol.effects import (
    Ask,
    Effects,
    Handler,
    Hangup,
    Relay,
    Reply,
    ResolveTopicIds,
    UpstreamAnswer,
)
from kustos.protocol.exchange import Exchange
from kustos.protocol.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from kustos.protocol.perform import by_topic, pass_gate, refused_by_topic, rewrite
from kustos.protocol.share_sessions import (
    MemberKey,
    SharePartition,
    ShareSession,
    acknowledges,
    forgotten_partitions,
    is_acknowledgement,
    is_member_id,
    named_partitions,
)
from kustos.protocol.steps import RefuseRequestError, Rewrite, Row, gates_of
from kustos.protocol.turns import each
from kustos.wire import ZERO_UUID, ErrorCode, Message

SHARE_SESSION_NOT_FOUND = ErrorCode.share_session_not_found.value
INVALID_SHARE_SESSION_EPOCH = ErrorCode.invalid_share_session_epoch.value
ENDPOINTS = Rewrite("node_endpoints", "node_id")
NOTHING_TO_FETCH = ("max_bytes", "min_bytes", "max_records", "max_wait")
"""The fields that must be 0 in a ShareFetch that renews locks."""


@dataclass(slots=True)
class SharePlan:
    """The plan of one ShareFetch."""

    session: ShareSession | None
    """The continued session; None if the request begins or ends one."""
    named: dict[SharePartition, Message]
    """The partitions in this request."""
    held: dict[SharePartition, None]
    """The partitions to fetch: the session's partitions after the requested changes."""
    renews: bool
    """Whether the request renews locks and fetches nothing."""
    refused: dict[SharePartition, int] = field(default_factory=dict)

    @property
    def upstream(self) -> set[SharePartition]:
        """The partitions that upstream's session should have: the allowed partitions.

        A request that renews locks adds no partition, since upstream would answer for it too.
        """
        allowed = {partition for partition in self.held if partition not in self.refused}
        if self.session is None or not self.renews:
            return allowed
        return {each for each in allowed if each in self.session.upstream or each in self.named}

    @property
    def allowed_named(self) -> dict[SharePartition, Message]:
        """The named partitions that may go upstream."""
        return {key: item for key, item in self.named.items() if key not in self.refused}


def share_group_heartbeat(exchange: Exchange, row: Row) -> Handler:
    """Let a member of a group that it may read subscribe to topics that it may describe.

    A broker refuses every heartbeat while share groups are disabled, and an invalid member id before it
    checks topics. So kustos sends such a heartbeat upstream without its topics.
    """
    of_group, of_topics = gates_of(row)
    yield from pass_gate(exchange, of_group)
    if not is_member_id(exchange.request.member_id):
        return Relay(exchange.request.replace(subscribed_topic_names=None))
    yield from pass_gate(exchange, of_topics)
    return Relay()


def share_fetch(exchange: Exchange, _row: Row) -> Handler:
    """Handle a ShareFetch of any kind."""
    request = exchange.request
    member = require_member(exchange)
    renews = request.get("is_renew_ack", False)
    if renews and any(getattr(request, name) for name in NOTHING_TO_FETCH):
        raise RefuseRequestError(INVALID_REQUEST)
    plan = open_plan(exchange, member, renews=renews)
    plan.refused = yield from refuse_partitions(exchange, {**plan.held, **plan.named})
    answer: UpstreamAnswer = yield Ask((yield from forwarded(exchange, plan)))
    response = answer.message
    unexpected = answered_partitions(response) - plan.upstream - plan.allowed_named.keys()
    if unexpected:
        return Hangup(
            f"upstream answered a ShareFetch for {len(unexpected)} partitions that were not allowed"
        )
    remember(exchange, plan, member, failed=response.error_code != NONE)
    changed = yield from rewrite(exchange, ENDPOINTS, response)
    if response.error_code != NONE or not plan.refused:
        return Reply(response if changed else answer.body)
    refusals = yield from refused_partitions(exchange, plan)
    return Reply(response.replace(responses=[*response.responses, *refusals]))


def share_acknowledge(exchange: Exchange, _row: Row) -> Handler:
    """Forward the acknowledgements for allowed topics."""
    request = exchange.request
    member = require_member(exchange)
    if request.share_session_epoch == INITIAL_EPOCH:
        raise RefuseRequestError(INVALID_SHARE_SESSION_EPOCH)
    session = session_of(exchange, member)
    named = named_partitions(request.topics)
    refused = yield from refuse_partitions(exchange, named)
    allowed = {key: item for key, item in named.items() if key not in refused}
    message = None
    if refused:
        topic_type = exchange.codec.root.ELEMENTS["topics"]
        message = request.replace(topics=(yield from by_topic(exchange, topic_type, allowed.items())))
    answer: UpstreamAnswer = yield Ask(message)
    response = answer.message
    unexpected = answered_partitions(response) - allowed.keys()
    if unexpected:
        return Hangup(f"upstream acknowledged for {len(unexpected)} partitions that were not allowed")
    if response.error_code != NONE or request.share_session_epoch == FINAL_EPOCH:
        exchange.share_sessions.close(member)
    else:
        session.epoch = next_epoch(session.epoch)
    changed = yield from rewrite(exchange, ENDPOINTS, response)
    if response.error_code != NONE or not refused:
        return Reply(response if changed else answer.body)
    element = exchange.response_codec.root.ELEMENTS["responses"]
    made = element.ELEMENTS["partitions"]

    def refusal(key: SharePartition) -> tuple[SharePartition, Message]:
        code = acknowledgement_code(exchange, refused[key], named[key])
        return key, made(partition_index=key[1], error_code=code)

    refusals = yield from each(exchange, list(refused), refusal)
    topics = yield from by_topic(exchange, element, refusals)
    return Reply(response.replace(responses=[*response.responses, *topics]))


def require_member(exchange: Exchange) -> MemberKey:
    """Return the group and member of the request; raise `RefuseRequestError` unless it may read the group."""
    group_id, member_id = exchange.request.group_id, exchange.request.member_id
    if group_id is None:
        raise RefuseRequestError(INVALID_REQUEST)
    if not exchange.allows(READ_GROUP, group_id):
        raise RefuseRequestError(GROUP_AUTHORIZATION_FAILED)
    if not is_member_id(member_id):
        raise RefuseRequestError(INVALID_REQUEST)
    return group_id, member_id


def session_of(exchange: Exchange, member: MemberKey) -> ShareSession:
    """Return the session that a request continues or ends; raise `RefuseRequestError`."""
    session = exchange.share_sessions.find(member)
    epoch = exchange.request.share_session_epoch
    if session is None:
        raise RefuseRequestError(SHARE_SESSION_NOT_FOUND)
    if epoch not in {FINAL_EPOCH, session.epoch}:
        raise RefuseRequestError(INVALID_SHARE_SESSION_EPOCH)
    return session


def open_plan(exchange: Exchange, member: MemberKey, *, renews: bool) -> SharePlan:
    """Return the plan of a ShareFetch; raise `RefuseRequestError` for an invalid session."""
    request = exchange.request
    named = named_partitions(request.topics)
    if request.share_session_epoch == INITIAL_EPOCH:
        if acknowledges(named):
            raise RefuseRequestError(INVALID_REQUEST)
        if len(named) < sum(len(topic.partitions) for topic in request.topics):
            # a broker of 4.3.1 first removes the old session, then fails
            exchange.share_sessions.close(member)
            raise RefuseRequestError(UNKNOWN_SERVER_ERROR)
        return SharePlan(None, named, dict.fromkeys(named), renews)
    session = session_of(exchange, member)
    if request.share_session_epoch == FINAL_EPOCH:
        return SharePlan(None, named, {}, renews)
    held = session.partitions | dict.fromkeys(named)
    for partition in forgotten_partitions(request):
        held.pop(partition, None)
    return SharePlan(session, named, held, renews)


def refuse_partitions(
    exchange: Exchange, partitions: Mapping[SharePartition, object]
) -> Effects[dict[SharePartition, int]]:
    """Decide on the partitions, by topic, with Kafka's reference counts; return the refused ones' codes."""
    ids = frozenset(topic_id for topic_id, _ in partitions if topic_id != ZERO_UUID)
    if ids:
        exchange.topic_names = yield ResolveTopicIds(ids)
    return (yield from refused_by_topic(exchange, partitions))


def forwarded(exchange: Exchange, plan: SharePlan) -> Effects[Message | None]:
    """Return the request to send upstream, None if the client's own bytes are equivalent."""
    request, named = exchange.request, plan.allowed_named
    forgotten: set[SharePartition] = set()
    added: set[SharePartition] = set()
    if plan.session is not None:
        before, after = plan.session.upstream, plan.upstream
        added = after - before - named.keys()
        forgotten = (before | named.keys()) - after
    is_same = plan.session is None or forgotten == set(forgotten_partitions(request))
    if is_same and not added and len(named) == len(plan.named):
        return None
    root = exchange.codec.root
    topic_type = root.ELEMENTS["topics"]
    partition_type = topic_type.ELEMENTS["partitions"]
    more = yield from each(
        exchange,
        [key for key in plan.held if key in added],
        lambda key: (key, partition_type(partition_index=key[1])),
    )
    indexes = [(key, key[1]) for key in forgotten]
    return request.replace(
        topics=(yield from by_topic(exchange, topic_type, [*named.items(), *more])),
        forgotten_topics_data=(
            yield from by_topic(exchange, root.ELEMENTS["forgotten_topics_data"], indexes)
        ),
    )


def answered_partitions(response: Message) -> set[SharePartition]:
    """Return the partitions in a response."""
    return set(named_partitions(response.responses))


def remember(exchange: Exchange, plan: SharePlan, member: MemberKey, *, failed: bool) -> None:
    """Update our record of the session from upstream's answer."""
    sessions, epoch = exchange.share_sessions, exchange.request.share_session_epoch
    if failed or epoch == FINAL_EPOCH:
        sessions.close(member)
    elif plan.session is None:
        sessions.open(ShareSession(member, next_epoch(epoch), plan.held, plan.upstream))
    else:
        plan.session.epoch = next_epoch(epoch)
        plan.session.upstream = plan.upstream
        plan.session.partitions = plan.held
        sessions.evict_oldest()


def refused_partitions(exchange: Exchange, plan: SharePlan) -> Effects[list[Message]]:
    """Return the answers for the refused partitions: to the fetch and to any acknowledgements."""
    element = exchange.response_codec.root.ELEMENTS["responses"]
    made = element.ELEMENTS["partitions"]
    acknowledged = acknowledges(plan.named)

    def refusal(key: SharePartition) -> tuple[SharePartition, Message] | None:
        is_fetched = key in plan.held and not plan.renews
        is_acknowledged = acknowledged and key in plan.named
        if not is_fetched and not is_acknowledged:
            return None
        code = plan.refused[key]
        return key, made(
            partition_index=key[1],
            error_code=code if is_fetched else NONE,
            acknowledge_error_code=acknowledgement_code(exchange, code, plan.named[key])
            if is_acknowledged
            else NONE,
            records=b"",
        )

    refusals = yield from each(exchange, list(plan.refused), refusal)
    return (yield from by_topic(exchange, element, [one for one in refusals if one is not None]))


def acknowledgement_code(exchange: Exchange, code: int, partition: Message) -> int:
    """Return the error code for a partition's acknowledgements; INVALID_REQUEST takes precedence."""
    batches, renews = partition.acknowledgement_batches, exchange.request.get("is_renew_ack", False)
    if code == UNKNOWN_TOPIC_ID or is_acknowledgement(batches, exchange.version, renews):
        return code
    return INVALID_REQUEST
