"""Streams groups (KIP-1071): heartbeats of members, on which a broker creates the topics of the group.

On any heartbeat a broker creates the missing internal topics of the group, if the sender may `CREATE` them.
Upstream would create the topics with kustos' own rights, and a heartbeat names the topics only when its
member joins. So the guard looks up once which internal topics the group of a member needs: a group keeps its
topology as long as it exists. The guard forwards a heartbeat if all these topics exist, or if its user may
create the missing topics.

Sources: `KafkaApis.handleStreamsGroupHeartbeat`, `.handleStreamsGroupDescribe` and
`GroupMetadataManager.maybeUpdateTopology` of Kafka 4.4.0.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kustos.acl import AclOperation, ResourceType
from kustos.protocol.codes import INVALID_REQUEST, NONE, TOPIC_AUTHORIZATION_FAILED
from kustos.protocol.common import CREATE_TOPIC
from kustos.protocol.effects import AllTopics, Ask, Effects, Handler, ListTopics, Relay, Reply, UpstreamAnswer
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.handlers.groups import describe_members, own_description
from kustos.protocol.perform import pass_again, pass_gate
from kustos.protocol.shapes import shortened
from kustos.protocol.steps import Row, gates_of
from kustos.protocol.topic_names import INTERNAL_TOPICS, is_topic_name
from kustos.protocol.topic_patterns import ClusterTopics
from kustos.protocol.turns import allowed_names
from kustos.wire import ApiKey, ErrorCode, Message

STREAMS_INVALID_TOPOLOGY: Final = ErrorCode.streams_invalid_topology.value
MAY_CREATE: Final = Check(AclOperation.CREATE, ResourceType.TOPIC, log_if_allowed=False, log_if_denied=False)
"""The check for heartbeats that create no topic; it is not logged."""

NO_EXPRESSIONS: Final = "Regular expressions for source topics are not supported yet."
"""`GroupCoordinatorService`'s text. A broker that supports such expressions would resolve them with its own
authorizer, and with an engine that does not always terminate (see `quoted_patterns`)."""

HIDDEN_TOPICS: Final = "The described group uses topics that the client is not authorized to describe."


def topics_of(topology: Message | None) -> list[str]:
    """Return the names of all topics of a topology, each once."""
    return list(dict.fromkeys(_topics_of(topology)))


def _topics_of(topology: Message | None) -> Iterator[str]:
    for part in (topology.subtopologies if topology is not None else None) or ():
        yield from part.source_topics
        yield from part.repartition_sink_topics
        yield from (topic.name for topic in part.repartition_source_topics)
        yield from (topic.name for topic in part.state_changelog_topics)


def internal_topics_of(topology: Message | None) -> Iterator[str]:
    """Yield the topics of a topology that a broker creates."""
    for part in (topology.subtopologies if topology is not None else None) or ():
        yield from (topic.name for topic in (*part.repartition_source_topics, *part.state_changelog_topics))


def has_expressions(topology: Message | None) -> bool:
    """Return whether a topology has regular expressions for topics; no broker supports them yet."""
    parts = (topology.subtopologies if topology is not None else None) or ()
    return any(part.source_topic_regex for part in parts)


def streams_group_heartbeat(exchange: Exchange, row: Row) -> Handler:
    """Forward a heartbeat unless upstream would create topics that the user may not create."""
    of_group, of_topics = gates_of(row)
    yield from pass_gate(exchange, of_group)
    request = exchange.request
    fault = fault_of(topics_of(request.topology))
    if fault is not None:
        return refused(exchange, STREAMS_INVALID_TOPOLOGY, fault)
    yield from pass_gate(exchange, of_topics)
    if has_expressions(request.topology):
        return refused(exchange, INVALID_REQUEST, NO_EXPRESSIONS)
    member = (request.group_id, request.member_id)
    if request.member_epoch < 0:
        exchange.topologies.forget(member)
        return Relay()
    joins = request.member_epoch == 0 or request.topology is not None
    internal = None if joins else exchange.topologies.find(member)
    if internal is None:
        internal = (yield from stored_topics(exchange)).union(internal_topics_of(request.topology))
    denied = yield from uncreatable(exchange, internal, joins=joins)
    yield from pass_again(exchange, (of_group, of_topics))
    if denied:
        names = ", ".join(sorted(denied))
        return refused(exchange, TOPIC_AUTHORIZATION_FAILED, f"Unauthorized to CREATE on topics {names}.")
    answer: UpstreamAnswer = yield Ask()
    if answer.message.error_code == NONE:
        exchange.topologies.keep(member, internal, internal)
    else:
        exchange.topologies.forget(member)
    return Reply(answer.body)


def fault_of(names: Iterable[str]) -> str | None:
    """Return the reason why brokers refuse a topology with these topics, None if they accept it."""
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        return f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
    illegal = [name for name in names if not is_topic_name(name)]
    return f"Topic names {','.join(illegal)} are not valid topic names." if illegal else None


def refused(exchange: Exchange, code: int, text: str) -> Reply:
    """Return the answer that refuses a heartbeat."""
    return Reply(exchange.response_codec.new(error_code=code, error_message=shortened(text)))


def stored_topics(exchange: Exchange) -> Effects[frozenset[str]]:
    """Return upstream's internal topics of the group; raise `RefuseRequestError` with upstream's error."""
    group = yield from own_description(exchange, ApiKey.STREAMS_GROUP_DESCRIBE)
    return frozenset(internal_topics_of(group.topology))


def uncreatable(exchange: Exchange, internal: frozenset[str], *, joins: bool) -> Effects[frozenset[str]]:
    """Return the missing internal topics of the group that the user may not create.

    A user that may create all of them does not wait for a lookup: the cached list of topics then suffices,
    since it only determines the checks to log.
    """
    if not internal:
        return frozenset()
    all_topics: ClusterTopics = yield AllTopics()
    missing = internal - all_topics.name_set
    creatable: frozenset[str] = frozenset()
    if not joins:
        creatable = yield from allowed_names(exchange, MAY_CREATE, internal, listing=True)
    if creatable != internal:
        missing = internal - (yield ListTopics(internal)).keys()
    if not missing or exchange.allows_cluster(AclOperation.CREATE, log_if_denied=False):
        return frozenset()
    return missing - (yield from allowed_names(exchange, CREATE_TOPIC, sorted(missing)))


def streams_group_describe(exchange: Exchange, row: Row) -> Handler:
    """Describe streams groups; an error replaces each group that uses a hidden topic.

    As in a broker, only the topology that the group uses is checked, and not the description of the topology
    that a member has sent (KIP-1331), which also names the sink topics.
    """

    def used(group: Message) -> set[str]:
        return set(_topics_of(group.topology))

    return (yield from describe_members(exchange, row, used, HIDDEN_TOPICS))
