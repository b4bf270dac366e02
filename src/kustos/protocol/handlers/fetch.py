"""Fetch: each request authorizes the whole fetch session.

This module builds the forwarded request, so the client's own bytes never go upstream with another
connection's session. It removes partitions that are no longer allowed from upstream's session and answers
them with TOPIC_AUTHORIZATION_FAILED, adds newly allowed partitions, and checks that the answer has only
allowed partitions. An answer without refused partitions is forwarded while it arrives, each partition after
its check; other answers are collected and rebuilt.
Sources: KIP-227; `FetchSession` of Kafka 4.3.1.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from kustos.acl import AclOperation
from kustos.protocol.codes import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    TOPIC_AUTHORIZATION_FAILED,
)
from kustos.protocol.effects import (
    Ask,
    AskStreamed,
    Effects,
    Handler,
    Hangup,
    Reply,
    ResolveTopicIds,
    Streamed,
    StreamedAnswer,
)
from kustos.protocol.exchange import Exchange
from kustos.protocol.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    Partition,
    forgotten_of,
    in_version,
    is_named,
    next_epoch,
    partitions_of,
    topic_of,
)
from kustos.protocol.perform import by_topic, refused_by_topic, rewrite
from kustos.protocol.steps import Rewrite, Row
from kustos.protocol.turns import each
from kustos.wire import MalformedMessageError, Message, Shape

TOPIC_IDS_SINCE_VERSION = 13
SHAPE = Shape("responses", "partitions", "records")


@dataclass(slots=True)
class FetchPlan:
    """The plan of one Fetch: the requested partitions, and the codes of the refused ones."""

    session: FetchSession | None
    """The continued session; None for a full Fetch."""
    wanted: dict[Partition, Message]
    """All partitions that the answer may have, in order."""
    changed: dict[Partition, Message]
    """The partitions named in this request."""
    refused: dict[Partition, int] = field(default_factory=dict)

    @property
    def allowed(self) -> set[Partition]:
        """The partitions that upstream may answer for."""
        return {partition for partition in self.wanted if partition not in self.refused}


def fetch(exchange: Exchange, _row: Row) -> Handler:
    """Handle a Fetch of any kind."""
    request = exchange.request
    plan = open_plan(exchange)
    if isinstance(plan, int):
        return Reply(failure(exchange, plan))
    if exchange.version >= TOPIC_IDS_SINCE_VERSION:
        ids = frozenset(topic for topic, _ in plan.wanted if isinstance(topic, bytes) and is_named(topic))
        if ids:
            exchange.topic_names = yield ResolveTopicIds(ids)
    yield from refuse_partitions(exchange, plan)
    known = exchange.fetch_sessions.find(request.get("session_id", 0)) is not None
    if not plan.allowed and not known:
        return Reply((yield from answer_with(exchange, plan, None)))
    message = yield from forwarded(exchange, plan)
    if plan.refused:
        answer = yield Ask(message)
    else:
        answer = yield AskStreamed(message, SHAPE, only(plan.wanted), endpoints_of(exchange))
        if isinstance(answer, StreamedAnswer):
            remember(exchange, plan, answer.message)
            return Streamed()
    response = answer.message
    unexpected = answered_partitions(response) - plan.allowed
    if unexpected:
        return Hangup(f"upstream answered a Fetch for {len(unexpected)} partitions that were not allowed")
    remember(exchange, plan, response)
    changed = yield from rewrite(exchange, Rewrite("node_endpoints", "node_id"), response)
    if response.get("error_code", 0) != 0 or not plan.refused:
        return Reply(response if changed else answer.body)
    return Reply((yield from answer_with(exchange, plan, response)))


def only(allowed: Container[Partition]) -> Callable[[Message, Message], None]:
    """Return a check that the answer has only these partitions."""

    def check(topic: Message, partition: Message) -> None:
        if (topic_of(topic), partition.partition_index) not in allowed:
            raise MalformedMessageError("upstream answered a Fetch for a partition that was not allowed")

    return check


def endpoints_of(exchange: Exchange) -> Callable[[Message], Sequence[Message]]:
    """Return a function that gives the possible ends of an answer: with the gateway's addresses, or without.

    A client that gets no addresses requests metadata, as before KIP-951.
    """

    def end(response: Message) -> Sequence[Message]:
        endpoints = response.get("node_endpoints") or ()
        if not endpoints:
            return ()
        for each_endpoint in endpoints:
            exchange.advertise(each_endpoint, each_endpoint.node_id)
        return response, response.replace(node_endpoints=[])

    return end


def open_plan(exchange: Exchange) -> FetchPlan | int:
    """Return the plan of a Fetch, or the error code of an invalid session."""
    request = exchange.request
    requested = partitions_of(request.topics)
    session_id, epoch = request.get("session_id", 0), request.get("session_epoch", FINAL_EPOCH)
    if epoch in {INITIAL_EPOCH, FINAL_EPOCH}:
        return FetchPlan(None, requested, requested)
    session = exchange.fetch_sessions.find(session_id)
    if session is None:
        return FETCH_SESSION_ID_NOT_FOUND
    if epoch != session.epoch:
        return INVALID_FETCH_SESSION_EPOCH
    if session.uses_topic_ids != (exchange.version >= TOPIC_IDS_SINCE_VERSION):
        return FETCH_SESSION_TOPIC_ID_ERROR
    partition_type = exchange.codec.root.ELEMENTS["topics"].ELEMENTS["partitions"]
    wanted = in_version(session.partitions, partition_type) | requested
    for partition in forgotten_of(request):
        wanted.pop(partition, None)
    return FetchPlan(session, wanted, requested)


def refuse_partitions(exchange: Exchange, plan: FetchPlan) -> Effects[None]:
    """Decide on all wanted partitions, by topic, with Kafka's reference counts."""
    request = exchange.request
    if replica_id(request) >= 0:
        # a follower's fetch needs CLUSTER_ACTION, for any topics (KafkaApis.handleFetchRequest)
        if not exchange.allows_cluster(AclOperation.CLUSTER_ACTION):
            plan.refused = dict.fromkeys(plan.wanted, TOPIC_AUTHORIZATION_FAILED)
        return
    plan.refused |= yield from refused_by_topic(exchange, plan.wanted)


def replica_id(request: Message) -> int:
    """Return the id of the fetching replica, -1 for a consumer."""
    if "replica_id" in request.FIELDS:
        return int(request.replica_id)
    state = request.get("replica_state")
    return -1 if state is None else int(state.replica_id)


def forwarded(exchange: Exchange, plan: FetchPlan) -> Effects[Message | None]:
    """Return the request to send upstream, None if the client's own bytes are equivalent."""
    request = exchange.request
    allowed = plan.allowed
    if plan.session is None:
        # a full Fetch that names an old session closes it; allow this only for this connection's sessions
        known = exchange.fetch_sessions.find(request.get("session_id", 0)) is not None
        foreign = request.get("session_id", 0) != 0 and not known
        if not plan.refused and not foreign:
            return None
        sent = dict(plan.wanted)
        forgotten: set[Partition] = set()
        changes = {"session_id": 0} if foreign else {}
    else:
        upstream = plan.session.upstream
        sent = {
            partition: state
            for partition, state in plan.wanted.items()
            if partition in plan.changed or partition not in upstream
        }
        forgotten = upstream - allowed
        changes = {}
        if (
            set(sent) == set(plan.changed)
            and sent.keys() <= allowed
            and forgotten == set(forgotten_of(request))
        ):
            return None
    root = exchange.codec.root
    kept = [(partition, state) for partition, state in sent.items() if partition in allowed]
    values: dict[str, object] = dict(changes)
    values["topics"] = yield from by_topic(exchange, root.ELEMENTS["topics"], kept)
    if "forgotten_topics_data" in root.FIELDS:
        indexes = [(partition, partition[1]) for partition in forgotten]
        topic_type = root.ELEMENTS["forgotten_topics_data"]
        values["forgotten_topics_data"] = yield from by_topic(exchange, topic_type, indexes)
    return request.replace(**values)


def answered_partitions(response: Message) -> set[Partition]:
    """Return the partitions in a response."""
    return {
        (topic_of(topic), partition.partition_index)
        for topic in response.responses
        for partition in topic.partitions
    }


def remember(exchange: Exchange, plan: FetchPlan, response: Message) -> None:
    """Update our record of the session from upstream's answer."""
    sessions, request = exchange.fetch_sessions, exchange.request
    session_id = response.get("session_id", 0)
    failed = response.get("error_code", 0) != 0
    if plan.session is None:
        if failed:
            return
        sessions.close(request.get("session_id", 0))
        if session_id != 0:
            uses_ids = exchange.version >= TOPIC_IDS_SINCE_VERSION
            sessions.open(FetchSession(session_id, uses_ids, 1, plan.wanted, plan.allowed))
    elif failed or session_id != plan.session.session_id:
        sessions.close(plan.session.session_id)
    else:
        plan.session.epoch = next_epoch(plan.session.epoch)
        plan.session.partitions = plan.wanted
        plan.session.upstream = plan.allowed
        sessions.evict_oldest()


def answer_with(exchange: Exchange, plan: FetchPlan, response: Message | None) -> Effects[Message]:
    """Return the answer including the refused partitions.

    They are in request order in the answer to a full Fetch, and at the end of an incremental answer.
    """
    codec = exchange.response_codec
    base = codec.new() if response is None else response
    element = codec.root.ELEMENTS["responses"]
    partition_type = element.ELEMENTS["partitions"]
    found = {
        (topic_of(topic), partition.partition_index): partition
        for topic in base.responses
        for partition in topic.partitions
    }

    def answered(partition: Partition) -> Message | None:
        code = plan.refused.get(partition)
        return found.get(partition) if code is None else refused_partition(partition_type, partition[1], code)

    each_answered = yield from each(exchange, list(plan.wanted), answered)
    items = [
        (partition, item)
        for partition, item in zip(plan.wanted, each_answered, strict=True)
        if item is not None
    ]
    return base.replace(responses=(yield from by_topic(exchange, element, items)))


def refused_partition(partition_type: type[Message], index: int, code: int) -> Message:
    """Return the answer for one partition (`FetchResponse.partitionResponse`)."""
    return partition_type.fit(partition_index=index, error_code=code, high_watermark=-1, records=b"")


def failure(exchange: Exchange, code: int) -> Message:
    """Return the answer to a Fetch with an invalid session."""
    return exchange.response_codec.root.fit(error_code=code)
