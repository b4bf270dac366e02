"""Topics: to create, delete and describe them."""

from typing import Final

from kustos.protocol.escapes.topics import create_topics, delete_topics, describe_topic_partitions
from kustos.protocol.rows.common import TOPIC_ENTRIES, TOPIC_NAME_OR_ID
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import Row
from kustos.wire import ApiKey

DELETED: Final = Items("topics", "responses", TOPIC_NAME_OR_ID)
DELETED_BY_NAME: Final = Items("topic_names", "responses", (("", "name"),))

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
)
