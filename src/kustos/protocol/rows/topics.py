"""Topics: to create, delete, enlarge and describe them."""

from dataclasses import replace
from typing import Final

from kustos.acl import AclOperation, ResourceType
from kustos.protocol.codes import INVALID_REQUEST
from kustos.protocol.common import TOPIC_ENTRIES, TOPIC_NAME_OR_ID
from kustos.protocol.escapes.topics import create_topics, delete_topics, describe_topic_partitions
from kustos.protocol.exchange import Check
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import RefusedItem, Row, Strip
from kustos.wire import ApiKey

DELETED: Final = Items("topics", "responses", TOPIC_NAME_OR_ID)
DELETED_BY_NAME: Final = Items("topic_names", "responses", (("", "name"),))
ENLARGED: Final = Items("topics", "results", (("name", "name"),), message_field="error_message")
ALTER_TOPIC: Final = Check(AclOperation.ALTER, ResourceType.TOPIC)
NAMED_TWICE: Final = RefusedItem(INVALID_REQUEST, "Duplicate topic name.")

TOPIC_ROWS: Final[tuple[Row, ...]] = (
    Row(ApiKey.CREATE_TOPICS, Refusal(top_field=None, items=TOPIC_ENTRIES), escape=create_topics),
    Row(
        ApiKey.DELETE_TOPICS,
        Refusal(top_field=None, items=DELETED, other_items=DELETED_BY_NAME),
        escape=delete_topics,
    ),
    Row(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        Refusal(top_field=None, items=TOPIC_ENTRIES),
        escape=describe_topic_partitions,
    ),
    Row(
        ApiKey.CREATE_PARTITIONS,
        Refusal(top_field=None, items=ENLARGED),
        (
            # a controller adds no text to the code of a denied topic
            Strip(replace(ENLARGED, messages={}), ALTER_TOPIC, "name", once=True, repeated=NAMED_TWICE),
        ),
    ),
)
