"""Random requests of every API and version, mostly with names from one small model cluster."""

import struct
from functools import cache
from random import Random
from typing import Any

from kustos.acl import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.wire import Message, MessageCodec, request_codec, request_frame
from kustos.wire.schemas import Field, Kind, Struct, schema_of
from testkit.protocol.cluster_model import Model
from testkit.protocol.driver import PRINCIPAL

EXISTING = ["alpha-topic", "bravo-topic", "delta-topic", "hidden-gamma", "prefixed-one", "prefixed-two"]
MISSING_TOPICS = ["missing-topic", "absent!topic", "__cluster_metadata"]
TOPICS = [*EXISTING, *MISSING_TOPICS]
GROUPS = ["group-one", "group-two", "group-three", "group-nobody"]
TRANSACTIONS = ["tx-one", "tx-two"]
UNKNOWN_ID = b"\x42" * 16


def model() -> Model:
    """Return the small model cluster."""
    made = Model()
    for name in EXISTING:
        made.create(name)
    made.groups = {"group-one": EXISTING[:2], "group-two": [EXISTING[3]], "group-three": []}
    made.transactions = {"tx-one": EXISTING[2:4], "tx-two": []}
    return made


def batch(*, transactional: bool = False, length: int = 49, magic: int = 2) -> bytes:
    """Return the header of an empty record batch."""
    attributes = 0x10 if transactional else 0
    return struct.pack(">qiibIhiqqqhii", 0, length, 0, magic, 0, attributes, 0, 0, 0, -1, -1, -1, 0)


def allow(kind: ResourceType, name: str, operation: AclOperation, *, deny: bool = False) -> AclBinding:
    pattern = PatternType.PREFIXED if name == "prefixed" else PatternType.LITERAL
    permission = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
    entry = AccessControlEntry(PRINCIPAL, "*", operation, permission)
    return AclBinding(ResourcePattern(kind, name, pattern), entry)


KINDS = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.USER,
)
ALL_ALLOWED = [allow(kind, "*", AclOperation.ALL) for kind in KINDS]
OPERATIONS = [op for op in AclOperation if op not in {AclOperation.UNKNOWN, AclOperation.ANY}]
NAMES = {
    ResourceType.TOPIC: [*TOPICS, "prefixed", "*"],
    ResourceType.GROUP: [*GROUPS, "*"],
    ResourceType.CLUSTER: [CLUSTER_NAME],
    ResourceType.TRANSACTIONAL_ID: [*TRANSACTIONS, "*"],
    ResourceType.USER: ["User:bob", "Group:bob", "*"],
}


def random_acls(random: Random) -> list[AclBinding]:
    """Return random rights on random resources, with occasional denials."""
    acls: dict[AclBinding, None] = {}
    for _ in range(random.randrange(1, 14)):
        kind = random.choice((ResourceType.TOPIC, ResourceType.TOPIC, *KINDS))
        operation = random.choice((AclOperation.ALL, AclOperation.DESCRIBE, *OPERATIONS))
        name = random.choice(NAMES[kind])
        acls[allow(kind, name, operation, deny=random.random() < 0.15)] = None
    return list(acls)


TOPIC_FIELDS = {
    "source_topics",
    "repartition_sink_topics",
    "name",
    "topic",
    "topic_names",
    "subscribed_topic_names",
    "topic_name",
}
APIS_OF_TOPICS = frozenset({*range(29), 34, 35, 37, 43, 45, 46, 47, 61, *range(68, 94)})
"""The APIs where such a field is a topic's name."""
INDEX_FIELDS = {"partition", "partition_index", "index", "partition_indexes", "partitions"}
RECORDS = [batch(), batch(), batch(), batch(transactional=True), b"junk"]
POOLS: dict[str, list[Any]] = {
    "group_id": GROUPS,
    "groups": GROUPS,
    "group_ids": GROUPS,
    "groups_names": GROUPS,
    "config_operation": [0, 1, 2, 3],
    "key": [*GROUPS, *TRANSACTIONS],
    "coordinator_keys": [*GROUPS, *TRANSACTIONS],
    "key_type": [0, 0, 1, 1, 2, 3],
    "transactional_id": TRANSACTIONS,
    "v3_and_below_transactional_id": TRANSACTIONS,
    "transactional_ids": TRANSACTIONS,
    "transactional_id_pattern": ["", "tx-.*", ".*two", "["],
    "records": RECORDS,
    "acks": [-1, 1, -1, 1, 0],
    "session_id": [0],
    "session_epoch": [0, -1],
    "share_session_epoch": [0, 0, 0, -1, 1],
    "member_id": ["member", "member", "member", "member", "", "m" * 37],
    "is_renew_ack": [False, False, False, True],
    "replica_id": [-1, -1, -1, 3],
    "resource_name": [*TOPICS, *GROUPS, "1", ""],
    "client_software_name": ["client-1.0"],
    "client_software_version": ["client-1.0"],
    "principal_type": ["User", "User", "User", "Group"],
    "principal_name": ["alice", "bob"],
    "owner_principal_type": ["User", "User", "Group"],
    "owner_principal_name": ["alice", "bob", "bob", ""],
    "operation": [2],
    "permission_type": [2],
    "resource_type": [2],
    "resource_type_filter": [2],
    "pattern_type_filter": [3],
    "resource_pattern_type": [3],
}
POOLS |= {field: [0, 1, 2] for field in INDEX_FIELDS}
"""Values for meaningful fields, by field name."""

MOSTLY_EMPTY = frozenset({"acknowledgement_batches", "source_topic_regex"})
"""Lists that make most requests senseless: nothing is acknowledged before it was fetched, and brokers take no
expressions of streams groups."""

SETTINGS = [*(f"setting-{number}" for number in range(12)), "super.users", "listeners"]

NULLS = {"value": 0.1, "records": 0.02, "transactional_id": 0.7}
"""The share of nulls in these nullable fields, if not the default: requests should be meaningful."""


def pool(api_key: int, field: str, made: Model) -> list[Any] | None:
    """Return the values to choose from for a field, None if any value will do."""
    if field in TOPIC_FIELDS and api_key in APIS_OF_TOPICS:
        return TOPICS
    if field == "topic_id":
        return [*made.topics.values(), *made.topics.values(), UNKNOWN_ID, bytes(16)]
    if field == "resource_type" and api_key in {32, 33, 44}:
        return [*[2, 4, 8, 16, 32] * 5, 99]
    if field == "name" and api_key in {33, 44}:
        return SETTINGS
    if field == "partition_index" and api_key == 75:
        return [0, 1, -1]
    return POOLS.get(field)


def scalar(kind: str, random: Random) -> Any:
    plain: dict[str, Any] = {
        "bool": random.random() < 0.5,
        "string": random.choice(("", "text")),
        "bytes": b"xyz",
    }
    plain |= {"uuid": bytes(16), "float64": 1.5}
    return plain.get(kind, random.choice((0, 1, 5)))


def random_struct(codec: MessageCodec, made: Struct, api_key: int, random: Random, world: Model) -> Message:
    values: dict[str, Any] = {}
    for field in made.fields:
        is_tagged = field.tag is not None
        if is_tagged and random.random() < 0.7:
            continue
        if field.nullable and not is_tagged and random.random() < NULLS.get(field.name, 0.3):
            values[field.name] = None
            continue

        def one(field: Field = field) -> Any:
            if field.element is not None:
                return random_struct(codec, field.element, api_key, random, world)
            # a streams group names its topics by index, too
            is_index = (field.kind, field.name) == ("int16", "source_topics")
            values = None if is_index else pool(api_key, field.name, world)
            return scalar(field.kind, random) if values is None else random.choice(values)

        count = random.choice((0, 1, 2, 3, 4)) if random.random() < 0.8 else 2
        if field.name in MOSTLY_EMPTY and random.random() < 0.9:
            count = 0
        values[field.name] = [one() for _ in range(count)] if field.is_array else one()
    return codec.struct(made.name)(**values)


@cache
def schema(api_key: int, version: int, kind: Kind) -> Struct:
    """Return the schema of an existing message."""
    found = schema_of(api_key, version, kind)
    assert found is not None
    return found


def random_request(api_key: int, version: int, random: Random, world: Model) -> Message:
    made = schema(api_key, version, "request")
    return random_struct(request_codec(api_key, version), made, api_key, random, world)


def numbered(frame: bytes, correlation_id: int) -> bytes:
    """Return a request with another correlation id."""
    return frame[:4] + correlation_id.to_bytes(4, "big") + frame[8:]


def frame_of(api_key: int, version: int, message: Message, correlation_id: int = 77) -> bytes:
    """Return the canonical frame of a request, without length prefix."""
    codec = request_codec(api_key, version)
    return request_frame(codec, api_key, correlation_id, "client", codec.encode(message))[4:]
