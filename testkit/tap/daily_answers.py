"""What each response to an administrator's request must say; see `answers`."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from kustos.acl import CLUSTER_NAME
from testkit.tap.answers import TOP, Coded, by_partition
from testkit.tap.client import INVALID_REQUEST, Client, Op, Type
from testkit.tap.frames import Request, code

LOGGER = 8
STAYING = {
    "super.users",
    "allow.everyone.if.no.acl.found",
    "authorizer.class.name",
    "listeners",
    "advertised.listeners",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
    "listener.security.protocol.map",
}
"""Settings of a broker that clients do not change through kustos."""


def on_topics(operation: Op, index: str = "partition_index") -> Callable[[Request, Client], Coded]:
    """Return the expectation of an API whose partitions are decided by their topics."""
    return lambda request, client: by_partition(
        request.body.topics, "partitions", index, lambda key: client.topic_refusal(operation, key)
    )


def epochs(request: Request, client: Client) -> Coded:
    if client.may_cluster(Op.CLUSTER_ACTION):
        return by_partition(request.body.topics, "partitions", "partition", lambda key: None)
    return on_topics(Op.DESCRIBE, "partition")(request, client)


def answered_epochs(body: Any) -> Coded:
    return [
        ((str(topic.topic), partition.partition), code(partition))
        for topic in body.topics
        for partition in topic.partitions
    ]


def groups(request: Request, client: Client) -> Coded:
    names = dict.fromkeys(map(str, request.body.groups_names))
    return [((name,), client.refusal(Op.DELETE, Type.GROUP, name)) for name in names]


def offsets(request: Request, client: Client) -> Coded:
    refusal = client.refusal(Op.DELETE, Type.GROUP, str(request.body.group_id))
    below = on_topics(Op.READ)(request, client) if refusal is None else []
    return [(TOP, refusal), *below]


def answered_with_top(partitions: Callable[[Any], Coded]) -> Callable[[Request, Any], Coded]:
    """Return the reader of a response with a code at the top, in the versions that have one, and below."""

    def read(request: Request, body: Any) -> Coded:
        top = [(TOP, code(body))] if hasattr(body, "error_code") else []
        return [*top, *partitions(body)]

    return read


def partition_counts(request: Request, client: Client) -> Coded:
    names = [str(topic.name) for topic in request.body.topics]
    return [
        ((name,), INVALID_REQUEST if names.count(name) > 1 else client.refusal(Op.ALTER, Type.TOPIC, name))
        for name in dict.fromkeys(names)
    ]


def resource_key(resource: Any) -> tuple[int, str]:
    return int(resource.resource_type), str(resource.resource_name)


def has_wrong_changes(resource: Any) -> bool:
    """Return whether a broker rejects the changes before any check: duplicate names, or a missing value."""
    changed = [str(change.name) for change in resource.configs]
    nulls = [
        change for change in resource.configs
        if change.value is None and getattr(change, "config_operation", 0) != 1
    ]  # fmt: skip
    return len(set(changed)) < len(changed) or bool(nulls)


def right_to_alter(request: Request, resource: Any) -> tuple[Op, Type, str] | None:
    """Return what altering a resource takes, None where a broker finds it wrong before."""
    kind, name = resource_key(resource)
    if has_wrong_changes(resource):
        return None
    changed = [str(change.name) for change in resource.configs]
    match kind:
        case 2:
            return Op.ALTER_CONFIGS, Type.TOPIC, name
        case 32:
            return Op.ALTER_CONFIGS, Type.GROUP, name
        case 4 if STAYING.intersection(changed) or not re.fullmatch(r"([+-]?[0-9]+)?", name):
            return None
        case 4 | 16:
            return Op.ALTER_CONFIGS, Type.CLUSTER, CLUSTER_NAME
    is_logger = kind == LOGGER and request.api_key == 44
    return (Op.ALTER_CONFIGS, Type.CLUSTER, CLUSTER_NAME) if is_logger else None


def altered_configs(request: Request, client: Client) -> Coded:
    named = Counter(map(resource_key, request.body.resources))

    def refusal(resource: Any) -> int | None:
        right = right_to_alter(request, resource)
        if named[resource_key(resource)] > 1:
            return INVALID_REQUEST
        if right is not None:
            return client.refusal(*right)
        if resource.resource_type == 4 and not has_wrong_changes(resource):
            # since 4.4, a broker checks the client before it looks at its own settings
            return client.refusal(Op.ALTER_CONFIGS, Type.CLUSTER, CLUSTER_NAME) or INVALID_REQUEST
        return INVALID_REQUEST

    return [(resource_key(resource), refusal(resource)) for resource in request.body.resources]


def whole(operation: Op, items: str, below: str, index: str) -> Callable[[Request, Client], Coded]:
    """Return the expectation of an API that one question decides for the answer and each partition in it."""

    def expected(request: Request, client: Client) -> Coded:
        refusal = client.refusal(operation, Type.CLUSTER, CLUSTER_NAME)
        has_top = request.api_key != 43 or request.version >= 1
        top: Coded = [(TOP, refusal)] if has_top else []
        topics = getattr(request.body, items) or ()
        return [*top, *by_partition(topics, below, index, lambda _: refusal)]

    return expected


def answered_elections(body: Any) -> Coded:
    return [
        ((str(topic.topic), partition.partition_id), code(partition))
        for topic in body.replica_election_results
        for partition in topic.partition_result
    ]


def answered_reassignments(body: Any) -> Coded:
    return [
        ((str(topic.name), partition.partition_index), code(partition))
        for topic in body.responses
        for partition in topic.partitions
    ]


def log_dirs(request: Request, client: Client) -> Coded:
    # versions before 3 have no code: what is refused is empty
    refusal = client.refusal(Op.DESCRIBE, Type.CLUSTER, CLUSTER_NAME)
    return [(TOP, refusal)] if request.version >= 3 else []


def answered_log_dirs(request: Request, body: Any) -> Coded:
    return [(TOP, code(body))] if request.version >= 3 else []


def moved_logs(request: Request, client: Client) -> Coded:
    refusal = client.refusal(Op.ALTER, Type.CLUSTER, CLUSTER_NAME)
    topics = [topic for each in request.body.dirs for topic in each.topics]
    return by_partition(topics, "partitions", "", lambda _: refusal)


def answered_moved_logs(body: Any) -> Coded:
    return [
        ((str(topic.topic_name), partition.partition_index), code(partition))
        for topic in body.results
        for partition in topic.partitions
    ]
