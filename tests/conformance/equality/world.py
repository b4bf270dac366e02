"""The world that both sides are given: who there is, what there is, and who may do what."""

from typing import Any

from kustos.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.wire.record_batch import Record, RecordBatch

PASSWORDS = {
    name: f"{name}-secret"
    for name in (
        "admin",
        "all",
        "nobody",
        "some",
        "mixed",
        "reader",
        "elsewhere",
        "creator",
        "cluster",
        "writer",
        "zed",
    )
}

SUPER, ALL, NOBODY, SOME, MIXED = "admin", "all", "nobody", "some", "mixed"
READER, ELSEWHERE, CREATOR, CLUSTER, ZED = "reader", "elsewhere", "creator", "cluster", "zed"
WRITER = "writer"

EVERYBODY = (SUPER, ALL, NOBODY, SOME, MIXED, READER, ELSEWHERE, CREATOR, CLUSTER)
FEW = (SUPER, NOBODY, SOME, MIXED)
SHARE_KEY = "g-1:MXX3CjeMSyiaDEiVXWhXcg:0"
"""A share of a group: the group, a topic id, a partition."""
THREE = (ALL, NOBODY, SOME)

QUEUE, SHUT_QUEUE = "pay-queue", "x-queue"
TOPICS = {
    "orders": 2,
    "pay-in": 1,
    "pay-secret": 1,
    "other": 1,
    "hidden": 3,
    QUEUE: 2,
    SHUT_QUEUE: 1,
    "pay-txn": 2,
    "x-txn": 1,
}
"""Topics and their partitions; to the last two only transactions write, to the queues nothing later."""

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC, GROUP, THE_CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTION = ResourceType.TRANSACTIONAL_ID
USER, TOKEN = ResourceType.USER, ResourceType.DELEGATION_TOKEN
OP = AclOperation
ANY_HOST, THIS_HOST, OTHER_HOST = "*", "127.0.0.1", "10.9.8.7"

ACLS: tuple[tuple[str, AclPermissionType, AclOperation, ResourceType, str, PatternType, str], ...] = (
    # everything, by one wildcard a type
    *[
        (ALL, ALLOW, OP.ALL, kind, "*", LITERAL, ANY_HOST)
        for kind in (TOPIC, GROUP, TRANSACTION, USER, TOKEN)
    ],
    (ALL, ALLOW, OP.ALL, THE_CLUSTER, "kafka-cluster", LITERAL, ANY_HOST),
    # some topics: one by its name, others by a prefix with a hole in it
    (SOME, ALLOW, OP.ALL, TOPIC, "orders", LITERAL, ANY_HOST),
    (SOME, ALLOW, OP.ALL, TOPIC, "pay-", PREFIXED, ANY_HOST),
    (SOME, DENY, OP.ALL, TOPIC, "pay-secret", LITERAL, ANY_HOST),
    (SOME, ALLOW, OP.ALL, GROUP, "g-", PREFIXED, ANY_HOST),
    (SOME, DENY, OP.READ, GROUP, "g-closed", LITERAL, ANY_HOST),
    (SOME, ALLOW, OP.WRITE, TRANSACTION, "t-", PREFIXED, ANY_HOST),
    (SOME, ALLOW, OP.DESCRIBE, THE_CLUSTER, "kafka-cluster", LITERAL, ANY_HOST),
    # different operations on different topics, and denials that imply nothing
    (MIXED, ALLOW, OP.READ, TOPIC, "*", LITERAL, ANY_HOST),
    (MIXED, DENY, OP.READ, TOPIC, "orders", LITERAL, ANY_HOST),
    (MIXED, DENY, OP.DESCRIBE, TOPIC, "hid", PREFIXED, ANY_HOST),
    (MIXED, ALLOW, OP.WRITE, TOPIC, "other", LITERAL, ANY_HOST),
    (MIXED, ALLOW, OP.DELETE, TOPIC, "orders", LITERAL, ANY_HOST),
    (MIXED, ALLOW, OP.DESCRIBE_CONFIGS, TOPIC, "other", LITERAL, ANY_HOST),
    (MIXED, ALLOW, OP.DESCRIBE, GROUP, "*", LITERAL, ANY_HOST),
    (MIXED, ALLOW, OP.READ, GROUP, "g-open", LITERAL, ANY_HOST),
    (MIXED, ALLOW, OP.READ, GROUP, "g-shared-", PREFIXED, ANY_HOST),
    (MIXED, DENY, OP.READ, TOPIC, SHUT_QUEUE, LITERAL, ANY_HOST),
    (MIXED, ALLOW, OP.DESCRIBE, TRANSACTION, "t-one", LITERAL, ANY_HOST),
    # reads everything that it sees, sees nothing of groups
    (READER, ALLOW, OP.READ, TOPIC, "*", LITERAL, THIS_HOST),
    (READER, ALLOW, OP.DESCRIBE, TOPIC, "*", LITERAL, THIS_HOST),
    # writes a topic that it must not read
    (WRITER, ALLOW, OP.WRITE, TOPIC, "orders", LITERAL, ANY_HOST),
    (WRITER, DENY, OP.READ, TOPIC, "orders", LITERAL, ANY_HOST),
    # everything, but from another machine; here only what a denial from there does not touch
    *[(ELSEWHERE, ALLOW, OP.ALL, kind, "*", LITERAL, OTHER_HOST) for kind in (TOPIC, GROUP, TRANSACTION)],
    (ELSEWHERE, DENY, OP.ALL, TOPIC, "orders", LITERAL, OTHER_HOST),
    (ELSEWHERE, ALLOW, OP.READ, TOPIC, "orders", LITERAL, THIS_HOST),
    # makes topics of one prefix, and sees what it made
    (CREATOR, ALLOW, OP.CREATE, TOPIC, "made-", PREFIXED, ANY_HOST),
    (CREATOR, ALLOW, OP.DESCRIBE, TOPIC, "made-", PREFIXED, ANY_HOST),
    (CREATOR, ALLOW, OP.DESCRIBE, TOPIC, "seen-", PREFIXED, ANY_HOST),
    (CREATOR, ALLOW, OP.DESCRIBE_CONFIGS, TOPIC, "made-shown-", PREFIXED, ANY_HOST),
    # the cluster and nothing in it
    *[
        (CLUSTER, ALLOW, operation, THE_CLUSTER, "kafka-cluster", LITERAL, ANY_HOST)
        for operation in (OP.DESCRIBE, OP.CREATE, OP.ALTER, OP.DESCRIBE_CONFIGS, OP.IDEMPOTENT_WRITE)
    ],
    (CLUSTER, ALLOW, OP.DESCRIBE, TOPIC, "*", LITERAL, ANY_HOST),
    # tokens: made for some, seen by their owner, and seen whoever's they are
    (SOME, ALLOW, OP.CREATE_TOKENS, USER, "User:ze", PREFIXED, ANY_HOST),
    (MIXED, ALLOW, OP.DESCRIBE_TOKENS, USER, "User:nobody", LITERAL, ANY_HOST),
    (MIXED, DENY, OP.DESCRIBE, TOKEN, "*", LITERAL, ANY_HOST),
    (READER, ALLOW, OP.DESCRIBE, TOKEN, "*", LITERAL, ANY_HOST),
    (ELSEWHERE, ALLOW, OP.CREATE_TOKENS, USER, "*", LITERAL, OTHER_HOST),
)


EVERY_ACL: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
"""The filter that every ACL passes."""


def creations() -> list[dict[str, Any]]:
    """Return the ACLs as CreateAcls takes them."""
    return [
        {
            "resource_type": int(kind),
            "resource_name": name,
            "resource_pattern_type": int(pattern),
            "principal": f"User:{user}",
            "host": host,
            "operation": int(operation),
            "permission_type": int(permission),
        }
        for user, permission, operation, kind, name, pattern, host in ACLS
    ]


def records(
    *values: bytes, transactional: bool = False, producer_id: int = -1, producer_epoch: int = 0
) -> bytes:
    """Return a batch of records; the same bytes each time."""
    return RecordBatch(
        base_offset=0,
        partition_leader_epoch=-1,
        records=tuple(Record(offset, value) for offset, value in enumerate(values)),
        attributes=0x10 if transactional else 0,
        last_offset_delta=len(values) - 1,
        base_timestamp_ms=1_700_000_000_000,
        max_timestamp_ms=1_700_000_000_000,
        producer_id=producer_id,
        producer_epoch=producer_epoch if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
    ).encode()
