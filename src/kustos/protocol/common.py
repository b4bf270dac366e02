"""Checks, shapes of refusals and names of resources that rows and custom handlers of several subjects use."""

from typing import Any, Final

from kustos.acl import CLUSTER_NAME, AclOperation, ResourceType
from kustos.protocol.exchange import Check
from kustos.protocol.shapes import Items, Refusal
from kustos.protocol.steps import Operations
from kustos.wire import Message

READ_GROUP: Final = Check(AclOperation.READ, ResourceType.GROUP)
DELETE_GROUP: Final = Check(AclOperation.DELETE, ResourceType.GROUP)
READ_TOPIC: Final = Check(AclOperation.READ, ResourceType.TOPIC)
CREATE_TOPIC: Final = Check(AclOperation.CREATE, ResourceType.TOPIC)
DELETE_TOPIC: Final = Check(AclOperation.DELETE, ResourceType.TOPIC)
WRITE_TOPIC: Final = Check(AclOperation.WRITE, ResourceType.TOPIC)
DESCRIBE_TOPIC: Final = Check(AclOperation.DESCRIBE, ResourceType.TOPIC)
DESCRIBE_TRANSACTION: Final = Check(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
WRITE_TRANSACTION: Final = Check(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID)
CLUSTER_ACTION: Final = Check(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
DESCRIBE_CLUSTER: Final = Check(AclOperation.DESCRIBE, ResourceType.CLUSTER)
ALTER_CLUSTER: Final = Check(AclOperation.ALTER, ResourceType.CLUSTER)
DESCRIBE_CLUSTER_CONFIGS: Final = Check(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)

TOPIC_NAME_OR_ID: Final = (("name", "name"), ("topic_id", "topic_id"))


def partitions(
    request_list: str, request_index: str, response_list: str, response_index: str, **extra: Any
) -> Items:
    """Return the shape of the partitions below a topic."""
    return Items(request_list, response_list, ((request_index, response_index),), extra=extra)


PARTITIONS_OF_TOPIC: Final = Items(
    "topics",
    "topics",
    TOPIC_NAME_OR_ID,
    code_field=None,
    inner=partitions("partitions", "partition_index", "partitions", "partition_index"),
)
TOPIC_ENTRIES: Final = Items("topics", "topics", TOPIC_NAME_OR_ID)
GROUP_OPERATIONS: Final = Operations(
    "groups", "group_id", ResourceType.GROUP, "authorized_operations", "include_authorized_operations"
)
TOP: Final = Refusal()
TOP_WITH_MESSAGE: Final = Refusal(message_field="error_message")
EVERY_VERSION: Final = 2**15


def group_of(request: Message) -> list[str]:
    """Return the one group that a request is about."""
    return [request.group_id]


def subscribed_topics(request: Message) -> list[str]:
    """Return the topics that a member of a group subscribes to, each once."""
    return list(dict.fromkeys(request.subscribed_topic_names or ()))


def cluster(_request: Message) -> list[str]:
    """Return the name of the one cluster."""
    return [CLUSTER_NAME]
