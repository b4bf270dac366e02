"""Fetch: the session it belongs to is authorized as a whole, each time.

The forwarded request is made here, never the client's own bytes with a foreign session in them:
partitions that are no longer allowed are forgotten upstream and answered
TOPIC_AUTHORIZATION_FAILED, newly allowed ones are added, and the answer is checked against the set
that was allowed. Sources: KIP-227; `FetchSession` of Kafka 4.3.1.
"""

from dataclasses import dataclass, field

from kustos.acl import AclOperation, ResourceType
from kustos.protocol.codes import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
)
from kustos.protocol.effects import Answer, Ask, Handler, Hangup, Reply, ResolveTopicIds
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    Partition,
    Topic,
    forgotten_of,
    in_version,
    is_named,
    next_epoch,
    partitions_of,
    topic_items,
    topic_of,
)
from kustos.protocol.interpreter import rewrite
from kustos.protocol.steps import Rewrite, Row
from kustos.wire import Message

READ_TOPIC = Check(AclOperation.READ, ResourceType.TOPIC)
TOPIC_IDS_SINCE_VERSION = 13


@dataclass(slots=True)
class Plan:
    """What one Fetch comes to: the partitions asked for, and why some of them are refused."""

    session: FetchSession | None
    """The session that goes on; None for a full Fetch."""
    wanted: dict[Partition, Message]
    """All partitions that the answer may speak of, in order."""
    changed: dict[Partition, Message]
    """Those whose position the client gave in this request."""
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
    refuse_partitions(exchange, plan)
    known = exchange.fetch_sessions.find(request.get("session_id", 0)) is not None
    if not plan.allowed and not known:
        return Reply(answer_with(exchange, plan, None))
    answer: Answer = yield Ask(forwarded(exchange, plan))
    response = answer.message
    strangers = answered_partitions(response) - plan.allowed
    if strangers:
        return Hangup(f"upstream answered a Fetch for {len(strangers)} partitions that were not allowed")
    remember(exchange, plan, response)
    changed = rewrite(exchange, Rewrite("node_endpoints", "node_id"), response)
    if response.get("error_code", 0) != 0 or not plan.refused:
        return Reply(response if changed else answer.body)
    return Reply(answer_with(exchange, plan, response))


def open_plan(exchange: Exchange) -> Plan | int:
    """Return what is asked for, or the error code of a session that does not fit."""
    request = exchange.request
    asked = partitions_of(request.topics)
    session_id, epoch = request.get("session_id", 0), request.get("session_epoch", FINAL_EPOCH)
    if epoch in {INITIAL_EPOCH, FINAL_EPOCH}:
        return Plan(None, asked, asked)
    session = exchange.fetch_sessions.find(session_id)
    if session is None:
        return FETCH_SESSION_ID_NOT_FOUND
    if epoch != session.epoch:
        return INVALID_FETCH_SESSION_EPOCH
    if session.uses_topic_ids != (exchange.version >= TOPIC_IDS_SINCE_VERSION):
        return FETCH_SESSION_TOPIC_ID_ERROR
    made = exchange.codec.root.ELEMENTS["topics"].ELEMENTS["partitions"]
    wanted = in_version(session.partitions, made) | asked
    for partition in forgotten_of(request):
        wanted.pop(partition, None)
    return Plan(session, wanted, asked)


def refuse_partitions(exchange: Exchange, plan: Plan) -> None:
    """Decide on every partition wanted, by topic, with Kafka's reference counts."""
    request = exchange.request
    if replica_id(request) >= 0:
        # a follower's fetch is the cluster's own business, whatever the topics (KafkaApis.handleFetchRequest)
        if not exchange.allows_cluster(AclOperation.CLUSTER_ACTION):
            plan.refused = dict.fromkeys(plan.wanted, TOPIC_AUTHORIZATION_FAILED)
        return
    by_name: dict[str, list[Partition]] = {}
    for partition in plan.wanted:
        topic = partition[0]
        name = topic if isinstance(topic, str) else exchange.topic_names.get(topic)
        if name is None:
            plan.refused[partition] = UNKNOWN_TOPIC_ID
        else:
            by_name.setdefault(name, []).append(partition)
    verdicts = exchange.allows_each([(READ_TOPIC, name, len(each)) for name, each in by_name.items()])
    for partitions, allowed in zip(by_name.values(), verdicts, strict=True):
        if not allowed:
            plan.refused.update(dict.fromkeys(partitions, TOPIC_AUTHORIZATION_FAILED))


def replica_id(request: Message) -> int:
    """Return who fetches: -1 for a consumer."""
    if "replica_id" in request.FIELDS:
        return int(request.replica_id)
    state = request.get("replica_state")
    return -1 if state is None else int(state.replica_id)


def forwarded(exchange: Exchange, plan: Plan) -> Message | None:
    """Return the request to send upstream, None where the client's own bytes say just that."""
    request = exchange.request
    allowed = plan.allowed
    if plan.session is None:
        # a full Fetch that names an old session closes it: only one of this connection's own
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
    topics = grouped({partition: state for partition, state in sent.items() if partition in allowed})
    values: dict[str, object] = dict(changes)
    values["topics"] = topic_items(root.ELEMENTS["topics"], topics)
    if "forgotten_topics_data" in root.FIELDS:
        indexes: dict[Topic, list[object]] = {}
        for topic, index in forgotten:
            indexes.setdefault(topic, []).append(index)
        values["forgotten_topics_data"] = topic_items(root.ELEMENTS["forgotten_topics_data"], indexes)
    return request.replace(**values)


def grouped(partitions: dict[Partition, Message]) -> dict[Topic, list[object]]:
    """Return partition items by topic, in order."""
    topics: dict[Topic, list[object]] = {}
    for (topic, _), item in partitions.items():
        topics.setdefault(topic, []).append(item)
    return topics


def answered_partitions(response: Message) -> set[Partition]:
    """Return the partitions that a response speaks of."""
    return {
        (topic_of(topic), partition.partition_index)
        for topic in response.responses
        for partition in topic.partitions
    }


def remember(exchange: Exchange, plan: Plan, response: Message) -> None:
    """Bring our record of the session up to what upstream's answer says of its own."""
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
        sessions.make_room()


def answer_with(exchange: Exchange, plan: Plan, response: Message | None) -> Message:
    """Return the answer with the refused partitions in it.

    In the order asked for where the Fetch was full; at the end of an incremental answer.
    """
    codec = exchange.response_codec
    base = codec.new() if response is None else response
    element = codec.root.ELEMENTS["responses"]
    made = element.ELEMENTS["partitions"]
    found = {
        (topic_of(topic), partition.partition_index): partition
        for topic in base.responses
        for partition in topic.partitions
    }
    items: dict[Partition, Message] = {}
    for partition in plan.wanted:
        if partition in plan.refused:
            items[partition] = refused_partition(made, partition[1], plan.refused[partition])
        elif partition in found:
            items[partition] = found[partition]
    return base.replace(responses=topic_items(element, grouped(items)))


def refused_partition(made: type[Message], index: int, code: int) -> Message:
    """Return the answer for one partition (`FetchResponse.partitionResponse`)."""
    return made.fit(partition_index=index, error_code=code, high_watermark=-1, records=b"")


def failure(exchange: Exchange, code: int) -> Message:
    """Return the answer to a Fetch whose session does not fit."""
    return exchange.response_codec.root.fit(error_code=code)
