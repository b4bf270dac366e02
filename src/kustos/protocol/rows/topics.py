"""Topics and their records: create, delete, enlarge and describe topics; write, read and locate records."""

from dataclasses import replace
from typing import Final

from kustos.acl import AclOperation, ResourceType
from kustos.protocol.codes import INVALID_REQUEST
from kustos.protocol.common import (
    DELETE_TOPIC,
    DESCRIBE_TOPIC,
    EVERY_VERSION,
    PARTITIONS_OF_TOPIC,
    TOPIC_ENTRIES,
    TOPIC_NAME_OR_ID,
    WRITE_TOPIC,
    partitions,
)
from kustos.protocol.exchange import Check
from kustos.protocol.handlers.fetch import TOPIC_IDS_SINCE_VERSION, fetch
from kustos.protocol.handlers.metadata import metadata
from kustos.protocol.handlers.produce import produce
from kustos.protocol.handlers.topics import create_topics, delete_topics, describe_topic_partitions
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import RefusedItem, Rewrite, Row, Strip
from kustos.wire import ApiKey

PRODUCED: Final = Items(
    "topic_data",
    "responses",
    TOPIC_NAME_OR_ID,
    code_field=None,
    inner=partitions("partition_data", "index", "partition_responses", "index", base_offset=-1),
)
FETCHED: Final = Items(
    "topics",
    "responses",
    (("topic", "topic"), ("topic_id", "topic_id")),
    code_field=None,
    inner=partitions(
        "partitions", "partition", "partitions", "partition_index", high_watermark=-1, records=b""
    ),
)
DELETED_RECORDS: Final = Items(
    "topics",
    "topics",
    (("name", "name"),),
    code_field=None,
    inner=partitions("partitions", "partition_index", "partitions", "partition_index", low_watermark=-1),
)
EPOCHS: Final = Items(
    "topics",
    "topics",
    (("topic", "topic"),),
    code_field=None,
    inner=partitions("partitions", "partition", "partitions", "partition"),
)

DELETED: Final = Items("topics", "responses", TOPIC_NAME_OR_ID)
DELETED_BY_NAME: Final = Items("topic_names", "responses", (("", "name"),))
ENLARGED: Final = Items("topics", "results", (("name", "name"),), message_field="error_message")
ALTER_TOPIC: Final = Check(AclOperation.ALTER, ResourceType.TOPIC)
NAMED_TWICE: Final = RefusedItem(INVALID_REQUEST, "Duplicate topic name.")

TOPIC_ROWS: Final[tuple[Row, ...]] = (
    Row(
        ApiKey.PRODUCE,
        Refusal(top_field=None, items=PRODUCED),
        (Strip(PRODUCED, WRITE_TOPIC, "name", counts_inner=True), Rewrite("node_endpoints", "node_id")),
        custom_handler=produce,
        pipelined=True,
        repeatable=True,
    ),
    Row(
        ApiKey.FETCH,
        # versions without the top-level code have it at the partitions (FetchRequest.getErrorResponse)
        Refusal(items=FETCHED, both_below=TOPIC_IDS_SINCE_VERSION),
        custom_handler=fetch,
    ),
    Row(
        ApiKey.LIST_OFFSETS,
        Refusal(top_field=None, items=PARTITIONS_OF_TOPIC),
        (Strip(PARTITIONS_OF_TOPIC, DESCRIBE_TOPIC, "name"),),
        repeatable=True,
    ),
    Row(
        ApiKey.METADATA,
        Refusal(items=TOPIC_ENTRIES, both_below=EVERY_VERSION),
        custom_handler=metadata,
        repeatable=True,
        large_list="topics",
    ),
    Row(
        ApiKey.DELETE_RECORDS,
        Refusal(top_field=None, items=DELETED_RECORDS),
        (Strip(DELETED_RECORDS, DELETE_TOPIC, "name"),),
    ),
    Row(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        Refusal(top_field=None, items=EPOCHS),
        (Strip(EPOCHS, DESCRIBE_TOPIC, "topic", unless_cluster=AclOperation.CLUSTER_ACTION),),
        repeatable=True,
    ),
    Row(ApiKey.CREATE_TOPICS, Refusal(top_field=None, items=TOPIC_ENTRIES), custom_handler=create_topics),
    Row(
        ApiKey.DELETE_TOPICS,
        Refusal(top_field=None, items=DELETED, other_items=DELETED_BY_NAME),
        custom_handler=delete_topics,
    ),
    Row(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        Refusal(top_field=None, items=TOPIC_ENTRIES),
        custom_handler=describe_topic_partitions,
    ),
    Row(
        ApiKey.CREATE_PARTITIONS,
        Refusal(top_field=None, items=ENLARGED),
        (
            # a controller sends no text with the code of a denied topic
            Strip(replace(ENLARGED, messages={}), ALTER_TOPIC, "name", once=True, repeated=NAMED_TWICE),
        ),
    ),
)
