"""Transactions and their producers (KIP-98, KIP-664, KIP-890)."""

from typing import Final

from kustos.acl import AclOperation
from kustos.protocol.codes import INVALID_TOPIC_EXCEPTION
from kustos.protocol.common import (
    CLUSTER_ACTION,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTION,
    PARTITIONS_OF_TOPIC,
    READ_GROUP,
    READ_TOPIC,
    TOP,
    WRITE_TRANSACTION,
    cluster,
    group_of,
)
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.handlers.transactions import add_partitions, init_producer_id, list_transactions
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import Gate, Hide, RefusedItem, Row, Strip
from kustos.protocol.topic_names import TOPIC_NAME, TOPIC_NAME_LENGTH_MAX
from kustos.wire import ApiKey, Message

ADDED_PARTITIONS: Final = Items(
    "v3_and_below_topics",
    "results_by_topic_v3_and_below",
    (("name", "name"),),
    code_field=None,
    inner=Items(
        "partitions", "results_by_partition", (("", "partition_index"),), code_field="partition_error_code"
    ),
)
MARKERS: Final = Items(
    "markers",
    "markers",
    (("producer_id", "producer_id"),),
    code_field=None,
    inner=Items(
        "topics",
        "topics",
        (("name", "name"),),
        code_field=None,
        inner=Items("partition_indexes", "partitions", (("", "partition_index"),)),
    ),
)
PRODUCERS: Final = Items(
    "topics",
    "topics",
    (("name", "name"),),
    code_field=None,
    inner=Items("partition_indexes", "partitions", (("", "partition_index"),), message_field="error_message"),
)
TRANSACTIONS: Final = Items("transactional_ids", "transaction_states", (("", "transactional_id"),))


def transaction_of(request: Message) -> list[str]:
    """Return the one transactional id that a request is about."""
    return [request.transactional_id]


def producers_question(_exchange: Exchange, topic: Message) -> tuple[Check, str] | RefusedItem:
    """Return the check for a topic; an invalid name is refused before the check, as in a broker."""
    name = topic.name
    reason = None
    if not name:
        reason = "the empty string is not allowed"
    elif name in {".", ".."}:
        reason = f"'{name}' is not allowed"
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {TOPIC_NAME_LENGTH_MAX}"
    elif not TOPIC_NAME.fullmatch(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    if reason is not None:
        return RefusedItem(INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")
    return READ_TOPIC, name


TRANSACTION_ROWS: Final[tuple[Row, ...]] = (
    Row(
        ApiKey.INIT_PRODUCER_ID,
        Refusal(extra={"producer_id": -1, "producer_epoch": -1}),
        custom_handler=init_producer_id,
    ),
    Row(ApiKey.ADD_PARTITIONS_TO_TXN, Refusal(items=ADDED_PARTITIONS), custom_handler=add_partitions),
    Row(
        ApiKey.ADD_OFFSETS_TO_TXN,
        TOP,
        (Gate(WRITE_TRANSACTION, transaction_of), Gate(READ_GROUP, group_of)),
    ),
    Row(
        ApiKey.END_TXN,
        Refusal(extra={"producer_id": -1, "producer_epoch": -1}),
        (Gate(WRITE_TRANSACTION, transaction_of),),
    ),
    Row(
        ApiKey.WRITE_TXN_MARKERS,
        Refusal(top_field=None, items=MARKERS),
        # brokers hold CLUSTER_ACTION; administrators who abort a hanging transaction hold ALTER (KIP-664)
        (Gate(CLUSTER_ACTION, cluster, unless_cluster=AclOperation.ALTER),),
    ),
    Row(
        ApiKey.TXN_OFFSET_COMMIT,
        Refusal(top_field=None, items=PARTITIONS_OF_TOPIC),
        (
            Gate(WRITE_TRANSACTION, transaction_of),
            Gate(READ_GROUP, group_of),
            Strip(PARTITIONS_OF_TOPIC, READ_TOPIC, "name"),
        ),
    ),
    Row(
        ApiKey.DESCRIBE_PRODUCERS,
        Refusal(top_field=None, items=PRODUCERS),
        (Strip(PRODUCERS, producers_question, "name"),),
        repeatable=True,
    ),
    Row(
        ApiKey.DESCRIBE_TRANSACTIONS,
        Refusal(top_field=None, items=TRANSACTIONS),
        (
            Strip(TRANSACTIONS, DESCRIBE_TRANSACTION, ""),
            Hide("topics", "topic", DESCRIBE_TOPIC, inside="transaction_states"),
        ),
    ),
    Row(
        ApiKey.LIST_TRANSACTIONS,
        TOP,
        (Hide("transaction_states", "transactional_id", DESCRIBE_TRANSACTION),),
        custom_handler=list_transactions,
    ),
)
