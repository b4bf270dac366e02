"""Share groups: their members, sessions, records and offsets (KIP-932)."""

from typing import Final

from kustos.protocol.common import (
    DELETE_GROUP,
    DESCRIBE_TOPIC,
    GROUP_OPERATIONS,
    READ_GROUP,
    READ_TOPIC,
    TOP,
    TOP_WITH_MESSAGE,
    group_of,
    subscribed_topics,
)
from kustos.protocol.handlers.groups import GROUP_ITEMS, offset_fetch, share_group_describe
from kustos.protocol.handlers.shares import share_acknowledge, share_fetch, share_group_heartbeat
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import Gate, Row, Strip
from kustos.wire import ApiKey

UNSHARED_GROUPS: Final = Items("groups", "groups", (("group_id", "group_id"),))
SHARE_OFFSETS_OF_TOPIC: Final = Items(
    "topics",
    "topics",
    (("topic_name", "topic_name"),),
    code_field=None,
    inner=Items(
        "partitions",
        "partitions",
        (("", "partition_index"),),
        message_field="error_message",
        extra={"start_offset": -1, "lag": -1},
    ),
)
ALTERED_OFFSETS: Final = Items(
    "topics",
    "responses",
    (("topic_name", "topic_name"),),
    code_field=None,
    inner=Items(
        "partitions", "partitions", (("partition_index", "partition_index"),), message_field="error_message"
    ),
)
DELETED_OFFSETS: Final = Items(
    "topics", "responses", (("topic_name", "topic_name"),), message_field="error_message"
)


SHARE_ROWS: Final[tuple[Row, ...]] = (
    Row(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        TOP,
        (Gate(READ_GROUP, group_of), Gate(DESCRIBE_TOPIC, subscribed_topics)),
        custom_handler=share_group_heartbeat,
        repeatable=True,
    ),
    Row(
        ApiKey.SHARE_GROUP_DESCRIBE,
        Refusal(top_field=None, items=GROUP_ITEMS),
        (GROUP_OPERATIONS,),
        custom_handler=share_group_describe,
    ),
    Row(ApiKey.SHARE_FETCH, TOP, custom_handler=share_fetch),
    Row(ApiKey.SHARE_ACKNOWLEDGE, TOP, custom_handler=share_acknowledge),
    Row(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        Refusal(top_field=None, items=UNSHARED_GROUPS),
        (Strip(SHARE_OFFSETS_OF_TOPIC, DESCRIBE_TOPIC, "topic_name"),),
        custom_handler=offset_fetch,
    ),
    Row(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        TOP_WITH_MESSAGE,
        (Gate(READ_GROUP, group_of), Strip(ALTERED_OFFSETS, READ_TOPIC, "topic_name", yields=True)),
    ),
    Row(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        TOP_WITH_MESSAGE,
        (Gate(DELETE_GROUP, group_of), Strip(DELETED_OFFSETS, READ_TOPIC, "topic_name", yields=True)),
    ),
)
