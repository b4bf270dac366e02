"""What each request needs before it may go upstream, from Kafka's own authorization facts.

A need is a tuple of alternatives, one of which must be allowed. Upstream trusts whoever connects, so a
request with a need that is not met must never be there.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from kustos.acl import CLUSTER_NAME
from testkit.tap.answers import topology_topics
from testkit.tap.client import INTERNAL, Client, Op, Question, Type
from testkit.tap.daily_answers import STAYING, resource_key, right_to_alter
from testkit.tap.frames import Request, is_transactional, topic_key

Need = tuple[Question, ...]
NEVER: Need = ()
"""No ACL lets it through."""


def on_cluster(*operations: Op) -> Need:
    return tuple((operation, Type.CLUSTER, CLUSTER_NAME) for operation in operations)


def topics(client: Client, items: Any, operation: Op) -> list[Need]:
    """Return the needs of topics named or given by id; an unknown id names nothing that exists."""
    names = [client.topic_names.get(key) if isinstance(key, bytes) else key for key in map(topic_key, items)]
    return [((operation, Type.TOPIC, name),) for name in names if name is not None]


def produce(request: Request, client: Client) -> list[Need]:
    body = request.body
    needs = topics(client, body.topic_data, Op.WRITE)
    payloads = [partition.records for topic in body.topic_data for partition in topic.partition_data]
    if any(is_transactional(records or b"") is not False for records in payloads):
        needs += in_transaction(body.transactional_id)
    return needs


def fetch(request: Request, client: Client) -> list[Need]:
    body = request.body
    replica = body.replica_id if hasattr(body, "replica_id") else body.replica_state.replica_id
    # a topic without partitions asks for nothing
    asked = [topic for topic in body.topics if topic.partitions]
    return [on_cluster(Op.CLUSTER_ACTION)] if replica >= 0 else topics(client, asked, Op.READ)


def metadata(request: Request, client: Client) -> list[Need]:
    body = request.body
    if not body.topics:
        return []
    needs = topics(client, body.topics, Op.DESCRIBE)
    creates = getattr(body, "allow_auto_topic_creation", True) and client.auto_creates_topics
    existing = set(client.topic_names.values())
    for topic in body.topics:
        if creates and topic.name is not None and topic.name not in existing:
            needs.append((*on_cluster(Op.CREATE), (Op.CREATE, Type.TOPIC, str(topic.name))))
    return needs


def offset_fetch(request: Request, client: Client) -> list[Need]:
    needs: list[Need] = []
    for group in getattr(request.body, "groups", (request.body,)):
        needs.append(((Op.DESCRIBE, Type.GROUP, str(group.group_id)),))
        needs += topics(client, group.topics or (), Op.DESCRIBE)
    return needs


def find_coordinator(request: Request, client: Client) -> list[Need]:
    body = request.body
    keys = body.coordinator_keys if hasattr(body, "coordinator_keys") else (body.key,)
    match getattr(body, "key_type", 0):
        case 0:
            return [((Op.DESCRIBE, Type.GROUP, str(key)),) for key in keys]
        case 1:
            return [((Op.DESCRIBE, Type.TRANSACTIONAL_ID, str(key)),) for key in keys]
        case 2:
            return [on_cluster(Op.CLUSTER_ACTION)] * len(keys)
    return [()] if keys else []


def create_topics(request: Request, client: Client) -> list[Need]:
    names = [str(topic.name) for topic in request.body.topics]
    return [(*on_cluster(Op.CREATE), (Op.CREATE, Type.TOPIC, name)) for name in names]


def delete_topics(request: Request, client: Client) -> list[Need]:
    body = request.body
    keys = (
        [topic_key(t) for t in body.topics] if hasattr(body, "topics") else list(map(str, body.topic_names))
    )
    needs: list[Need] = []
    for key in keys:
        name = client.topic_names.get(key) if isinstance(key, bytes) else key
        if name is not None:
            needs.append((*on_cluster(Op.DELETE), (Op.DELETE, Type.TOPIC, name)))
        if isinstance(key, str):
            needs.append((*on_cluster(Op.DELETE), (Op.DESCRIBE, Type.TOPIC, key)))
    return needs


def in_transaction(name: str | None) -> list[Need]:
    """Return the need of who writes in a transaction; nobody writes in one without a name."""
    return [NEVER] if name is None else [((Op.WRITE, Type.TRANSACTIONAL_ID, str(name)),)]


def init_producer_id(request: Request, client: Client) -> list[Need]:
    name = request.body.transactional_id
    if name is not None:
        in_two_phases = ((Op.TWO_PHASE_COMMIT, Type.TRANSACTIONAL_ID, str(name)),)
        return in_transaction(name) + [in_two_phases] * getattr(request.body, "enable2_pc", False)
    return [] if client.may_some(Op.WRITE, Type.TOPIC) else [on_cluster(Op.IDEMPOTENT_WRITE)]


def describe_configs(request: Request, client: Client) -> list[Need]:
    kinds = {2: Type.TOPIC, 32: Type.GROUP}

    def need(resource: Any) -> Need:
        if resource.resource_type in kinds:
            return ((Op.DESCRIBE_CONFIGS, kinds[resource.resource_type], str(resource.resource_name)),)
        # kustos asks for settings that stay before others of a broker are replaced
        asks_itself = resource.resource_type == 4 and set(resource.configuration_keys or ()) == STAYING
        operations = (Op.DESCRIBE_CONFIGS, *[Op.ALTER_CONFIGS] * asks_itself)
        return on_cluster(*operations) if resource.resource_type in {4, 8, 16} else NEVER

    return [need(resource) for resource in request.body.resources]


def read_group(request: Request, client: Client) -> list[Need]:
    return [((Op.READ, Type.GROUP, str(request.body.group_id)),)]


def describe_groups(field: str) -> Callable[[Request, Client], list[Need]]:
    return lambda request, client: [
        ((Op.DESCRIBE, Type.GROUP, str(name)),) for name in getattr(request.body, field)
    ]


QUOTED = re.compile(r"(/\\Q((?!\\E).|\\E\\\\E\\Q)*\\E(\|/[\w.-]+)*)?", re.DOTALL)
"""A quotation behind a slash, and names behind slashes."""


def consumer_group_heartbeat(request: Request, client: Client) -> list[Need]:
    body = request.body
    needs = read_group(request, client)
    needs += [((Op.DESCRIBE, Type.TOPIC, str(name)),) for name in body.subscribed_topic_names or ()]
    # upstream would resolve a regular expression with the rights of whoever forwards it; no topic has a slash
    expression = getattr(body, "subscribed_topic_regex", None) or ""
    return needs if QUOTED.fullmatch(expression) else [*needs, ()]


def streams_group_heartbeat(request: Request, client: Client) -> list[Need]:
    parts = () if request.body.topology is None else request.body.topology.subtopologies
    expressions = [NEVER for part in parts if part.source_topic_regex]
    named: list[Need] = [((Op.DESCRIBE, Type.TOPIC, name),) for name in topology_topics(request)]
    return [*read_group(request, client), *named, *expressions]


def describe_groups_of_members(request: Request, client: Client) -> list[Need]:
    # kustos asks so for itself, too, once a member may read its group
    names = map(str, request.body.group_ids)
    return [((Op.DESCRIBE, Type.GROUP, name), (Op.READ, Type.GROUP, name)) for name in names]


def share_group_heartbeat(request: Request, client: Client) -> list[Need]:
    names = request.body.subscribed_topic_names or ()
    return [*read_group(request, client), *[((Op.DESCRIBE, Type.TOPIC, str(name)),) for name in names]]


def shared(request: Request, client: Client) -> list[Need]:
    asked = [topic for topic in request.body.topics if topic.partitions]
    return [*read_group(request, client), *topics(client, asked, Op.READ)]


def share_group_offsets(operation: Op) -> Callable[[Request, Client], list[Need]]:
    return lambda request, client: [
        ((operation, Type.GROUP, str(request.body.group_id)),),
        *[((Op.READ, Type.TOPIC, str(topic.topic_name)),) for topic in request.body.topics],
    ]


def described_share_offsets(request: Request, client: Client) -> list[Need]:
    needs: list[Need] = []
    for group in request.body.groups:
        needs.append(((Op.DESCRIBE, Type.GROUP, str(group.group_id)),))
        needs += [((Op.DESCRIBE, Type.TOPIC, str(topic.topic_name)),) for topic in group.topics or ()]
    return needs


def add_partitions(request: Request, client: Client) -> list[Need]:
    body = request.body
    if request.version >= 4:
        return [on_cluster(Op.CLUSTER_ACTION)]
    asked = [topic for topic in body.v3_and_below_topics if topic.partitions]
    internal = [NEVER for topic in asked if topic.name in INTERNAL]
    return [*in_transaction(body.v3_and_below_transactional_id), *topics(client, asked, Op.WRITE), *internal]


def cluster(operation: Op) -> Callable[[Request, Client], list[Need]]:
    return lambda request, client: [on_cluster(operation)]


def named_once(needs: Callable[[Request, Client], list[Need]]) -> Callable[[Request, Client], list[Need]]:
    """Return the needs of an API in which nothing may be named twice."""
    return lambda request, client: [
        *needs(request, client),
        *[NEVER for count in Counter(str(topic.name) for topic in request.body.topics).values() if count > 1],
    ]


def altered_configs(request: Request, client: Client) -> list[Need]:
    rights = [right_to_alter(request, resource) for resource in request.body.resources]
    named = Counter(map(resource_key, request.body.resources))
    twice = [NEVER for count in named.values() if count > 1]
    return [*twice, *[NEVER if right is None else (right,) for right in rights]]


def list_transactions(request: Request, client: Client) -> list[Need]:
    # a broker compiles it, and on some expressions never ends
    return [NEVER] if getattr(request.body, "transactional_id_pattern", None) else []


def nothing(request: Request, client: Client) -> list[Need]:
    return []


def never(request: Request, client: Client) -> list[Need]:
    return [()]


NEEDS: dict[int, Callable[[Request, Client], list[Need]]] = {
    0: produce,
    1: fetch,
    2: lambda request, client: topics(client, request.body.topics, Op.DESCRIBE),
    3: metadata,
    8: lambda request, client: [
        *read_group(request, client),
        *topics(client, request.body.topics, Op.READ),
    ],
    9: offset_fetch,
    10: find_coordinator,
    11: read_group,
    12: read_group,
    13: read_group,
    14: read_group,
    15: describe_groups("groups"),
    16: nothing,
    17: never,
    18: never,
    19: create_topics,
    20: delete_topics,
    21: lambda request, client: topics(client, request.body.topics, Op.DELETE),
    22: init_producer_id,
    23: lambda request, client: [
        (*on_cluster(Op.CLUSTER_ACTION), *need) for need in topics(client, request.body.topics, Op.DESCRIBE)
    ],
    24: add_partitions,
    25: lambda request, client: [
        *in_transaction(request.body.transactional_id),
        *read_group(request, client),
    ],
    26: lambda request, client: in_transaction(request.body.transactional_id),
    27: lambda request, client: [on_cluster(Op.ALTER, Op.CLUSTER_ACTION)],
    28: lambda request, client: [
        *in_transaction(request.body.transactional_id),
        *read_group(request, client),
        *topics(client, request.body.topics, Op.READ),
    ],
    29: never,
    30: never,
    31: never,
    32: describe_configs,
    **dict.fromkeys((33, 44), altered_configs),
    34: cluster(Op.ALTER),
    35: cluster(Op.DESCRIBE),
    36: never,
    37: named_once(lambda request, client: topics(client, request.body.topics, Op.ALTER)),
    **dict.fromkeys((38, 39, 40, 41), never),
    42: lambda request, client: [((Op.DELETE, Type.GROUP, str(name)),) for name in request.body.groups_names],
    43: cluster(Op.ALTER),
    45: cluster(Op.ALTER),
    46: cluster(Op.DESCRIBE),
    47: lambda request, client: [
        ((Op.DELETE, Type.GROUP, str(request.body.group_id)),),
        *topics(client, request.body.topics, Op.READ),
    ],
    48: cluster(Op.DESCRIBE_CONFIGS),
    49: cluster(Op.ALTER_CONFIGS),
    50: never,
    51: never,
    55: cluster(Op.DESCRIBE),
    **dict.fromkeys((57, 80, 81), cluster(Op.ALTER)),
    60: nothing,
    61: lambda request, client: topics(client, request.body.topics, Op.READ),
    **dict.fromkeys((64, 94), cluster(Op.ALTER)),
    65: lambda request, client: [
        ((Op.DESCRIBE, Type.TRANSACTIONAL_ID, str(name)),) for name in request.body.transactional_ids
    ],
    66: list_transactions,
    68: consumer_group_heartbeat,
    69: describe_groups_of_members,
    88: streams_group_heartbeat,
    89: describe_groups_of_members,
    93: read_group,
    **dict.fromkeys((71, 72), nothing),
    74: cluster(Op.DESCRIBE_CONFIGS),
    75: lambda request, client: topics(client, request.body.topics, Op.DESCRIBE) or [()],
    76: share_group_heartbeat,
    77: describe_groups("group_ids"),
    78: shared,
    79: shared,
    90: described_share_offsets,
    91: share_group_offsets(Op.READ),
    92: share_group_offsets(Op.DELETE),
}
"""By API key; what is not here may not go upstream at all."""
