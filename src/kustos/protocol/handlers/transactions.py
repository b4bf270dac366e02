"""InitProducerId, whose check depends on the request; AddPartitionsToTxn, which adds all partitions or none;
and ListTransactions, whose pattern kustos matches itself.

Sources: `KafkaApis.handleInitProducerIdRequest`, `.handleAddPartitionsToTxnRequest`,
`.handleListTransactionsRequest` and `TransactionStateManager.listTransactionStates` of Kafka 4.3.1.
"""

from collections import Counter
from typing import Final

from kustos.acl import AclOperation, ResourceType
from kustos.extras import ExtraMissingError
from kustos.protocol.codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REGULAR_EXPRESSION,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from kustos.protocol.common import WRITE_TOPIC, WRITE_TRANSACTION
from kustos.protocol.effects import Ask, Effects, GiveWay, Handler, ListTopics, Relay, Reply, UpstreamAnswer
from kustos.protocol.exchange import ITEMS_PER_TURN, Check, Exchange
from kustos.protocol.perform import finish
from kustos.protocol.steps import RefuseRequestError, Row
from kustos.protocol.topic_names import INTERNAL_TOPICS
from kustos.protocol.topic_patterns import TopicPattern, TopicPatternError
from kustos.protocol.turns import allowed_each, begin_item, each
from kustos.wire import ErrorCode, Message

TWO_PHASE_COMMIT = Check(AclOperation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID)
OPERATION_NOT_ATTEMPTED: Final = ErrorCode.operation_not_attempted.value

BETWEEN_BROKERS_SINCE: Final = 4
"""From this version on brokers send AddPartitionsToTxn, for transactions of many clients (KIP-890)."""


def init_producer_id(exchange: Exchange, _row: Row) -> Handler:
    """Return a producer id to a client that may write in the transaction, or, without one, write anything."""
    yield from ()
    request = exchange.request
    name = request.transactional_id
    if name is not None:
        allowed = exchange.allows(WRITE_TRANSACTION, name)
        if allowed and request.get("enable2_pc", False):
            allowed = exchange.allows(TWO_PHASE_COMMIT, name)
        if not allowed:
            raise RefuseRequestError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not exchange.allows_cluster(
        AclOperation.IDEMPOTENT_WRITE, log_if_denied=False
    ) and not exchange.allows_on_some(AclOperation.WRITE, ResourceType.TOPIC):
        raise RefuseRequestError(CLUSTER_AUTHORIZATION_FAILED)
    return Relay()


def add_partitions(exchange: Exchange, _row: Row) -> Handler:
    """Add the partitions if all their topics are allowed; else refuse all, each with its own error."""
    if exchange.version >= BETWEEN_BROKERS_SINCE:
        if not exchange.allows_cluster(AclOperation.CLUSTER_ACTION):
            raise RefuseRequestError(CLUSTER_AUTHORIZATION_FAILED)
        return Relay()
    request = exchange.request
    if not exchange.allows(WRITE_TRANSACTION, request.v3_and_below_transactional_id):
        raise RefuseRequestError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    topics = request.v3_and_below_topics
    counts: Counter[str] = Counter()
    for topic in topics:
        yield from begin_item(exchange)
        counts[topic.name] += len(topic.partitions)
    external = [name for name, count in counts.items() if count and name not in INTERNAL_TOPICS]
    verdicts = yield from allowed_each(exchange, [(WRITE_TOPIC, name, counts[name]) for name in external])
    allowed = frozenset(name for name, verdict in zip(external, verdicts, strict=True) if verdict)
    if all(name in allowed for name, count in counts.items() if count):
        return Relay()
    # nothing goes upstream any more: the lookup only determines the errors of allowed partitions
    partition_counts = (yield ListTopics(allowed)) if allowed else {}
    result = exchange.response_codec.root.ELEMENTS["results_by_topic_v3_and_below"]
    partition_result = result.ELEMENTS["results_by_partition"]

    def refused(partition: tuple[str, int]) -> Message:
        name, index = partition
        code = TOPIC_AUTHORIZATION_FAILED
        if name in allowed:
            exists = 0 <= index < partition_counts.get(name, 0)
            code = OPERATION_NOT_ATTEMPTED if exists else UNKNOWN_TOPIC_OR_PARTITION
        return partition_result(partition_index=index, partition_error_code=code)

    wanted = list(dict.fromkeys((topic.name, index) for topic in topics for index in topic.partitions))
    by_topic: dict[str, list[Message]] = {}
    for (name, _), item in zip(wanted, (yield from each(exchange, wanted, refused)), strict=True):
        by_topic.setdefault(name, []).append(item)
    results = yield from each(
        exchange, list(by_topic.items()), lambda item: result(name=item[0], results_by_partition=item[1])
    )
    return Reply(exchange.response_codec.root(results_by_topic_v3_and_below=results))


def list_transactions(exchange: Exchange, row: Row) -> Handler:
    """List matching transactions that the client may describe; upstream gets no pattern."""
    request = exchange.request
    text = request.get("transactional_id_pattern")
    if not text:
        answer: UpstreamAnswer = yield Ask()
        return (yield from finish(exchange, row, answer, None))
    # RE2 takes up to some milliseconds to compile an expression, and one turn handles dozens of requests
    yield GiveWay()
    try:
        pattern = TopicPattern.compile(text)
    except TopicPatternError:
        raise RefuseRequestError(INVALID_REGULAR_EXPRESSION) from None
    except ExtraMissingError:
        raise RefuseRequestError(UNSUPPORTED_VERSION) from None
    answer = yield Ask(request.replace(transactional_id_pattern=""))
    listed = answer.message
    listed.transaction_states = yield from matching(exchange, pattern, listed.transaction_states)
    yield from finish(exchange, row, answer, None)
    return Reply(listed)


def matching(exchange: Exchange, pattern: TopicPattern, states: list[Message]) -> Effects[list[Message]]:
    """Return the transactions whose ids match; an id that is too long for one turn never matches."""
    found: list[Message] = []
    for state in states:
        name = state.transactional_id
        cost = pattern.cost_of(name)
        yield from begin_item(exchange, min(cost, ITEMS_PER_TURN))
        if cost <= max(ITEMS_PER_TURN, pattern.cost) and pattern.matches(name):
            found.append(state)
    return found
