"""Produce: checks of record headers, and requests without an answer.

The header of each batch determines whether its records are transactional, regardless of the request's fields.
A broker adds the partitions of transactional records to the transaction itself (KIP-890), so the guard checks
the transactional id before the topics.

Source: `KafkaApis.handleProduceRequest` of Kafka 4.3.1.
"""

from itertools import islice

from kustos.authorizer import AuthorizerError
from kustos.protocol.codes import TRANSACTIONAL_ID_AUTHORIZATION_FAILED
from kustos.protocol.common import WRITE_TRANSACTION
from kustos.protocol.effects import (
    Ask,
    Effects,
    Handler,
    Hangup,
    Reply,
    Silence,
    UpstreamAnswer,
)
from kustos.protocol.exchange import Exchange
from kustos.protocol.limits import BATCHES
from kustos.protocol.perform import finish, merged, resolve_topic_ids, strip
from kustos.protocol.steps import RefuseRequestError, Row, Strip
from kustos.protocol.turns import begin_item
from kustos.wire import ErrorCode, Message, WireError, batch_headers

INVALID_RECORD = ErrorCode.invalid_record.value
NO_ACKNOWLEDGEMENT = 0
LEADER_ACKNOWLEDGEMENT = 1
"""The `acks` value that requests an acknowledgement by the leader only."""


def produce(exchange: Exchange, row: Row) -> Handler:
    """Write to the allowed partitions; with acks=0 a refusal closes the connection."""
    request = exchange.request
    silent = request.acks == NO_ACKNOWLEDGEMENT
    yield from resolve_topic_ids(exchange, row)
    step = next(step for step in row.steps if isinstance(step, Strip))
    try:
        yield from check_transaction(exchange)
        kept, denied = yield from strip(exchange, step, request)
    except (RefuseRequestError, AuthorizerError) as refusal:
        if silent:
            # a client that expects no answer would match an answer to its next request
            return Hangup(f"a Produce with acks=0: {refusal}")
        raise
    if silent:
        return (yield from write_silently(kept, denied))
    if denied and not kept.topic_data:
        return Reply((yield from merged(exchange, step.items, denied, None)))
    answer: UpstreamAnswer = yield Ask(kept if denied else None)
    return (yield from finish(exchange, row, answer, denied))


def write_silently(kept: Message, denied: dict[int, Message]) -> Handler:
    """Write the allowed partitions for a client that expects no answer; close on any failure, as Kafka does.

    Upstream still gets acks=1: without an answer kustos would not know when the request is done, and it could
    outlive the ACL that allowed it.
    """
    errors = 0
    if kept.topic_data:
        answer: UpstreamAnswer = yield Ask(kept.replace(acks=LEADER_ACKNOWLEDGEMENT))
        errors = sum(
            partition.error_code != 0
            for topic in answer.message.responses
            for partition in topic.partition_responses
        )
    if denied or errors:
        return Hangup(f"a Produce with acks=0: {len(denied)} topics were refused, {errors} partitions failed")
    return Silence()


def check_transaction(exchange: Exchange) -> Effects[None]:
    """Raise `RefuseRequestError` for transactional records whose transaction the client may not write.

    This function reads all headers. It refuses unreadable batches, as upstream would, since it cannot
    determine whether they are transactional. It also refuses requests with too many batches.
    """
    headers = (
        header
        for topic in exchange.request.topic_data
        for partition in topic.partition_data
        for header in batch_headers(records_of(partition))
    )
    transactional = False
    try:
        for header in islice(headers, BATCHES):
            yield from begin_item(exchange)
            transactional |= header.is_transactional
        if next(headers, None) is not None:
            raise RefuseRequestError(INVALID_RECORD)
    except WireError:
        raise RefuseRequestError(INVALID_RECORD) from None
    name = exchange.request.transactional_id
    if transactional and (name is None or not exchange.allows(WRITE_TRANSACTION, name)):
        raise RefuseRequestError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def records_of(partition: Message) -> bytes:
    """Return the records of a partition; raise `RefuseRequestError` if it has no records."""
    if partition.records is None:
        raise RefuseRequestError(INVALID_RECORD)
    records: bytes = partition.records
    return records
