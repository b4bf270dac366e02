"""Produce and InitProducerId: what the records say of themselves, and answers that nobody waits for.

Sources: `KafkaApis.handleProduceRequest`, `.handleInitProducerIdRequest` of Kafka 4.3.1.
"""

from kio.schema.errors import ErrorCode

from kustos.acl import AclOperation, ResourceType
from kustos.authorizer import AuthorizerError
from kustos.protocol.codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
from kustos.protocol.effects import Answer, Ask, Handler, Hangup, Relay, Reply
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.interpreter import finish, merged, resolve_topic_ids, strip
from kustos.protocol.steps import RefuseRequestError, Row, Strip
from kustos.wire import Message, WireError
from kustos.wire.batch_headers import batch_headers

WRITE_TRANSACTION = Check(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID)
TWO_PHASE_COMMIT = Check(AclOperation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID)
INVALID_RECORD = ErrorCode.invalid_record.value


def produce(exchange: Exchange, row: Row) -> Handler:
    """Write where writing is allowed; without acknowledgement a refusal can only close."""
    request = exchange.request
    silent = request.acks == 0
    yield from resolve_topic_ids(exchange, row)
    step = next(step for step in row.steps if isinstance(step, Strip))
    try:
        check_transaction(exchange)
        kept, denied = strip(exchange, step, request)
    except (RefuseRequestError, AuthorizerError) as refusal:
        if silent:
            # a client that awaits no answer would take one for that to its next request
            return Hangup(f"a Produce with acks=0: {refusal}")
        raise
    if silent:
        if denied:
            reason = f"{len(denied)} topics of a Produce with acks=0 were refused"
            return Hangup(reason, kept if kept.topic_data else None)
        return Relay(expects_answer=False)
    if denied and not kept.topic_data:
        return Reply(merged(exchange, step.items, denied, None))
    answer: Answer = yield Ask(kept if denied else None)
    return finish(exchange, row, answer, denied)


def check_transaction(exchange: Exchange) -> None:
    """Raise `RefuseRequestError` for transactional records without WRITE on the transactional id.

    Whether records are transactional stands in the header of their batch. A batch that cannot be
    read is refused here as upstream would refuse it: what it would be taken for is not known.
    """
    try:
        transactional = any(
            header.is_transactional
            for topic in exchange.request.topic_data
            for partition in topic.partition_data
            for header in batch_headers(records_of(partition))
        )
    except WireError:
        raise RefuseRequestError(INVALID_RECORD) from None
    if not transactional:
        return
    name = exchange.request.transactional_id
    if name is None or not exchange.allows(WRITE_TRANSACTION, name):
        raise RefuseRequestError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def records_of(partition: Message) -> bytes:
    """Return the records of a partition; raise `RefuseRequestError` where there are none."""
    if partition.records is None:
        raise RefuseRequestError(INVALID_RECORD)
    records: bytes = partition.records
    return records


def init_producer_id(exchange: Exchange, _row: Row) -> Handler:
    """Give out a producer id to who may write in this transaction, or anything at all."""
    yield from ()
    request = exchange.request
    name = request.transactional_id
    if name is not None:
        allowed = exchange.allows(WRITE_TRANSACTION, name) and (
            not request.get("enable2_pc", False) or exchange.allows(TWO_PHASE_COMMIT, name)
        )
        if not allowed:
            raise RefuseRequestError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not exchange.allows_cluster(
        AclOperation.IDEMPOTENT_WRITE, log_if_denied=False
    ) and not exchange.allows_on_some(AclOperation.WRITE, ResourceType.TOPIC):
        raise RefuseRequestError(CLUSTER_AUTHORIZATION_FAILED)
    return Relay()
