"""What each response must say: the items asked for, and Kafka's code on every denied one.

An expectation is a list of (key, code); code None: allowed, so any code but an authorization error. The
key `TOP` is the response itself. `LISTED` expectations name nothing beforehand: whatever is answered
must be visible.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from kustos.acl import CLUSTER_NAME
from testkit.tap.client import (
    GROUP_DENIED,
    ILLEGAL_SASL_STATE,
    INVALID_PRINCIPAL_TYPE,
    INVALID_RECORD,
    INVALID_REQUEST,
    TOKEN_DENIED,
    TOPIC_DENIED,
    TRANSACTION_DENIED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    Client,
    Op,
    Type,
)
from testkit.tap.frames import Request, code, is_transactional, topic_key

Key = tuple[Any, ...]
Coded = list[tuple[Key, int | None]]
TOP: Key = ()
NO_TOPIC = bytes(16)


def by_partition(
    topics: Iterable[Any], partitions: str, index: str, refusal: Callable[[str | bytes], int | None]
) -> Coded:
    """Return what a list of topics and partitions is to be answered, by the topic's refusal."""
    expected: Coded = []
    for topic in topics:
        key = topic_key(topic)
        for partition in getattr(topic, partitions):
            expected.append(((key, getattr(partition, index) if index else partition), refusal(key)))
    return expected


def answered_by_partition(topics: str, partitions: str, index: str) -> Callable[[Any], Coded]:
    """Return the reader of such a response."""
    return lambda body: [
        ((topic_key(topic), getattr(partition, index)), code(partition))
        for topic in getattr(body, topics)
        for partition in getattr(topic, partitions)
    ]


def answered_items(items: str, key: Callable[[Any], Key]) -> Callable[[Any], Coded]:
    return lambda body: [(key(item), code(item)) for item in getattr(body, items)]


def answered_top(body: Any) -> Coded:
    return [(TOP, code(body))]


def produce(request: Request, client: Client) -> Coded:
    body = request.body
    flags = [
        None if partition.records is None else is_transactional(partition.records)
        for topic in body.topic_data
        for partition in topic.partition_data
    ]
    whole = INVALID_RECORD if None in flags else None
    if whole is None and any(flags):
        whole = transaction_refusal(body.transactional_id, client)
    return by_partition(
        body.topic_data, "partition_data", "index", lambda key: whole or client.topic_refusal(Op.WRITE, key)
    )


def transaction_refusal(name: str | None, client: Client) -> int | None:
    """Return the code for who writes in a transaction; nobody writes in one without a name."""
    return TRANSACTION_DENIED if name is None else client.refusal(Op.WRITE, Type.TRANSACTIONAL_ID, str(name))


def fetch(request: Request, client: Client) -> Coded:
    return fetched(request, client, [
        (topic_key(topic), partition.partition)
        for topic in request.body.topics
        for partition in topic.partitions
    ])  # fmt: skip


def fetched(request: Request, client: Client, partitions: Iterable[Key]) -> Coded:
    """Return what these partitions, of a request or of a whole session, are to be answered."""
    body = request.body
    replica = body.replica_id if hasattr(body, "replica_id") else body.replica_state.replica_id

    def refusal(topic: str | bytes) -> int | None:
        if replica >= 0:
            return None if client.may_cluster(Op.CLUSTER_ACTION) else TOPIC_DENIED
        return client.topic_refusal(Op.READ, topic)

    return [(key, refusal(key[0])) for key in dict.fromkeys(partitions)]


def metadata(request: Request, client: Client) -> Coded:
    body = request.body
    topics = body.topics or ()
    ids = [topic.topic_id for topic in topics if getattr(topic, "topic_id", None)]
    nameless = any(topic.name is None for topic in topics)
    if (nameless and not ids) or (request.version < 12 and (nameless or ids)):
        keys = [topic_key(topic) for topic in topics]
        # what is merely nameless trips Kafka's handler up since version 12
        wrong = INVALID_REQUEST if request.version < 12 else UNKNOWN_SERVER_ERROR
        return [(("" if key == NO_TOPIC else key,), wrong) for key in keys]
    if ids:
        return [((key.bytes,), client.topic_refusal(Op.DESCRIBE, key.bytes)) for key in dict.fromkeys(ids)]
    creates = getattr(body, "allow_auto_topic_creation", True) and client.auto_creates_topics

    def refusal(name: str) -> int | None:
        if not client.may(Op.DESCRIBE, Type.TOPIC, name):
            return TOPIC_DENIED
        if not creates or name in set(client.topic_names.values()) or client.may_cluster(Op.CREATE):
            return None
        return client.refusal(Op.CREATE, Type.TOPIC, name)

    return [((name,), refusal(name)) for name in dict.fromkeys(str(topic.name) for topic in topics)]


def offset_commit(request: Request, client: Client) -> Coded:
    whole = client.refusal(Op.READ, Type.GROUP, str(request.body.group_id))
    return by_partition(
        request.body.topics,
        "partitions",
        "partition_index",
        lambda key: whole or client.topic_refusal(Op.READ, key),
    )


def offset_fetch(request: Request, client: Client) -> Coded:
    body = request.body
    expected: Coded = []
    for group in getattr(body, "groups", (body,)):
        group_id = str(group.group_id)
        whole = client.refusal(Op.DESCRIBE, Type.GROUP, group_id)
        if request.version >= 2:
            expected.append(((group_id,), whole))
        if whole is None or request.version < 2:
            topics = by_partition(
                group.topics or (),
                "partition_indexes",
                "",
                lambda key: client.topic_refusal(Op.DESCRIBE, key),
            )
            if whole is None:
                # a broker lists the topics that it refuses behind the others
                topics.sort(key=lambda each: each[1] is not None)
            expected += [((group_id, *key), whole or refusal) for key, refusal in topics]
    return expected


def answered_offset_fetch(request: Request, body: Any) -> Coded:
    answered: Coded = []
    for group in getattr(body, "groups", (body,)):
        group_id = str(getattr(group, "group_id", getattr(request.body, "group_id", "")))
        if hasattr(group, "error_code"):
            answered.append(((group_id,), code(group)))
        read = answered_by_partition("topics", "partitions", "partition_index")
        if group not in all_topic_groups(request, body):
            answered += [((group_id, *key), each) for key, each in read(group)]
    return answered


def all_topic_groups(request: Request, body: Any) -> list[Any]:
    """Return the groups of an answer for which all offsets were asked."""
    asked = getattr(request.body, "groups", (request.body,))
    answered = getattr(body, "groups", (body,))
    return [theirs for ours, theirs in zip(asked, answered, strict=False) if ours.topics is None]


def find_coordinator(request: Request, client: Client) -> Coded:
    body = request.body
    keys = [(str(key),) for key in body.coordinator_keys] if hasattr(body, "coordinator_keys") else [TOP]
    names = [key[0] if key else str(body.key) for key in keys]
    match getattr(body, "key_type", 0):
        case 0:
            codes = [client.refusal(Op.DESCRIBE, Type.GROUP, name) for name in names]
        case 1:
            codes = [client.refusal(Op.DESCRIBE, Type.TRANSACTIONAL_ID, name) for name in names]
        case 2 if request.version < 6:
            codes = [INVALID_REQUEST] * len(keys)
        case 2:
            codes = [client.refusal(Op.CLUSTER_ACTION, Type.CLUSTER, CLUSTER_NAME)] * len(keys)
        case _:
            codes = [INVALID_REQUEST] * len(keys)
    return list(zip(keys, codes, strict=True))


def answered_coordinators(body: Any) -> Coded:
    return (
        answered_items("coordinators", by("key"))(body)
        if hasattr(body, "coordinators")
        else answered_top(body)
    )


def create_topics(request: Request, client: Client) -> Coded:
    names = [str(topic.name) for topic in request.body.topics]

    def refusal(name: str) -> int | None:
        if names.count(name) > 1 or name == "__cluster_metadata":
            return INVALID_REQUEST
        return None if client.may_cluster(Op.CREATE) else client.refusal(Op.CREATE, Type.TOPIC, name)

    return [((name,), refusal(name)) for name in dict.fromkeys(names)]


def delete_topics(request: Request, client: Client) -> Coded:
    body = request.body
    asked: list[tuple[str | None, bytes | None]]
    if hasattr(body, "topics"):
        asked = [
            (None if t.name is None else str(t.name), t.topic_id.bytes if t.topic_id else None)
            for t in body.topics
        ]
    else:
        asked = [(str(name), None) for name in body.topic_names]
    everything = client.may_cluster(Op.DELETE)
    existing = set(client.topic_names.values())

    def refusal(name: str | None, topic_id: bytes | None) -> int | None:
        if (name is None) == (topic_id is None) or asked.count((name, topic_id)) > 1:
            return INVALID_REQUEST
        real = client.topic_names.get(topic_id) if topic_id is not None else name
        if real is None:
            return UNKNOWN_TOPIC_ID
        if name is not None and not everything and not client.may(Op.DESCRIBE, Type.TOPIC, name):
            return TOPIC_DENIED
        if real not in existing:
            return UNKNOWN_TOPIC_OR_PARTITION
        return None if everything else client.refusal(Op.DELETE, Type.TOPIC, real)

    def key(name: str | None, topic_id: bytes | None) -> Key:
        if name is not None and topic_id is not None:
            return name, topic_id
        return (name,) if topic_id is None else (topic_id,)

    neither = [pair for pair in asked if pair == (None, None)]
    both = [pair for pair in asked if None not in pair]
    others = [pair for pair in dict.fromkeys(asked) if pair not in neither and pair not in both]
    return [(key(*pair), refusal(*pair)) for pair in (*neither, *both, *others)]


def answered_delete_topics(request: Request, body: Any) -> Coded:
    ids = {t.topic_id.bytes for t in getattr(request.body, "topics", ()) if t.topic_id and t.name is None}

    def key(item: Any) -> Key:
        name = None if item.name is None else str(item.name)
        topic_id = item.topic_id.bytes if getattr(item, "topic_id", None) else None
        if name is not None and topic_id is not None and code(item) == INVALID_REQUEST:
            return name, topic_id
        return (topic_id,) if topic_id in ids else (name,)

    return [(key(item), code(item)) for item in body.responses]


def describe_configs(request: Request, client: Client) -> Coded:
    kinds = {2: Type.TOPIC, 4: Type.CLUSTER, 8: Type.CLUSTER, 16: Type.CLUSTER, 32: Type.GROUP}
    resources = request.body.resources
    unknown = any(resource.resource_type not in kinds for resource in resources)

    def refusal(resource: Any) -> int | None:
        if unknown:
            return INVALID_REQUEST
        kind = kinds[resource.resource_type]
        name = CLUSTER_NAME if kind is Type.CLUSTER else str(resource.resource_name)
        return client.refusal(Op.DESCRIBE_CONFIGS, kind, name)

    return [
        ((resource.resource_type, str(resource.resource_name)), refusal(resource)) for resource in resources
    ]


def consumer_group_heartbeat(request: Request, client: Client) -> Coded:
    refusal = client.refusal(Op.READ, Type.GROUP, str(request.body.group_id))
    names = request.body.subscribed_topic_names or ()
    if refusal is None and not all(client.may(Op.DESCRIBE, Type.TOPIC, str(name)) for name in names):
        refusal = TOPIC_DENIED
    return [(TOP, refusal)]


def topology_topics(request: Request) -> list[str]:
    """Return every name of a topic in the topology of a streams group."""
    topology = request.body.topology
    found: list[str] = []
    for part in () if topology is None else topology.subtopologies:
        named = (*part.repartition_source_topics, *part.state_changelog_topics)
        found += map(
            str, (*part.source_topics, *part.repartition_sink_topics, *(each.name for each in named))
        )
    return found


INVALID_TOPOLOGY = 130
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def streams_group_heartbeat(request: Request, client: Client) -> Coded:
    refusal = client.refusal(Op.READ, Type.GROUP, str(request.body.group_id))
    names = topology_topics(request)
    if refusal is None and any(LEGAL_NAME.fullmatch(name) is None for name in names):
        refusal = INVALID_TOPOLOGY
    if refusal is None and not all(client.may(Op.DESCRIBE, Type.TOPIC, name) for name in names):
        refusal = TOPIC_DENIED
    return [(TOP, refusal)]


def describe_topic_partitions(request: Request, client: Client) -> Coded:
    body = request.body
    names = {str(topic.name) for topic in body.topics}
    cursor = body.cursor
    if cursor is not None and (cursor.partition_index < 0 or cursor.topic_name not in names):
        return [((str(topic.name),), INVALID_REQUEST) for topic in body.topics]
    order = {name: name.encode("utf-16-be") for name in names}
    first = b"" if cursor is None else order[str(cursor.topic_name)]
    return [
        ((name,), client.refusal(Op.DESCRIBE, Type.TOPIC, name))
        for name in sorted(names, key=order.__getitem__)
        if order[name] >= first
    ]


def one_group(operation: Op) -> Callable[[Request, Client], Coded]:
    return lambda request, client: [(TOP, client.refusal(operation, Type.GROUP, str(request.body.group_id)))]


def groups(field: str) -> Callable[[Request, Client], Coded]:
    return lambda request, client: [
        ((str(name),), GROUP_DENIED if not client.may(Op.DESCRIBE, Type.GROUP, str(name)) else None)
        for name in getattr(request.body, field)
    ]


def whole(operation: Op, items: str | None = None) -> Callable[[Request, Client], Coded]:
    """Return the expectation of an API that one question about the cluster decides."""

    def expected(request: Request, client: Client) -> Coded:
        refusal = client.refusal(operation, Type.CLUSTER, CLUSTER_NAME)
        return [(TOP, refusal)] if items is None else [(TOP, refusal)] * len(getattr(request.body, items))

    return expected


def scram_users(request: Request, client: Client) -> Coded:
    refusal = client.refusal(Op.ALTER, Type.CLUSTER, CLUSTER_NAME)
    users = {str(item.name) for item in (*request.body.deletions, *request.body.upsertions)}
    return [((user,), refusal) for user in sorted(users)]


def create_token(request: Request, client: Client) -> Coded:
    """Return the expectation over a connection that knows who asks, and by no token."""
    body = request.body
    owner_name = getattr(body, "owner_principal_name", None)
    refusal = None
    if owner_name and body.owner_principal_type is None:
        return [(TOP, UNKNOWN_SERVER_ERROR)]
    owner = f"{body.owner_principal_type}:{owner_name}" if owner_name else client.principal
    if owner != client.principal and not client.may(Op.CREATE_TOKENS, Type.USER, owner):
        refusal = TOKEN_DENIED
    elif any(renewer.principal_type != "User" for renewer in body.renewers):
        refusal = INVALID_PRINCIPAL_TYPE
    return [(TOP, refusal)]


def top(refusal: int | None) -> Callable[[Request, Client], Coded]:
    return lambda request, client: [(TOP, refusal)]


def by(field: str) -> Callable[[Any], Key]:
    return lambda item: (str(getattr(item, field)),)


SASL_REFUSED = top(ILLEGAL_SASL_STATE)
