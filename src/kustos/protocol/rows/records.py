"""Records: to write, read and find them, and the brokers that have them."""

from typing import Final

from kustos.acl import AclOperation
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
from kustos.protocol.escapes.fetch import TOPIC_IDS_SINCE_VERSION, fetch
from kustos.protocol.escapes.metadata import metadata
from kustos.protocol.escapes.produce import produce
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import Rewrite, Row, Strip
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

RECORD_ROWS: Final[tuple[Row, ...]] = (
    Row(
        ApiKey.PRODUCE,
        Refusal(top_field=None, items=PRODUCED),
        (Strip(PRODUCED, WRITE_TOPIC, "name", counts_inner=True), Rewrite("node_endpoints", "node_id")),
        escape=produce,
        pipelined=True,
    ),
    Row(
        ApiKey.FETCH,
        # clients without the top-level code look for it at the partitions (FetchRequest.getErrorResponse)
        Refusal(items=FETCHED, both_below=TOPIC_IDS_SINCE_VERSION),
        escape=fetch,
    ),
    Row(
        ApiKey.LIST_OFFSETS,
        Refusal(top_field=None, items=PARTITIONS_OF_TOPIC),
        (Strip(PARTITIONS_OF_TOPIC, DESCRIBE_TOPIC, "name"),),
    ),
    Row(
        ApiKey.METADATA,
        Refusal(items=TOPIC_ENTRIES, both_below=EVERY_VERSION),
        escape=metadata,
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
    ),
)
