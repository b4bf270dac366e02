"""What each response about a transaction must say; see `answers`."""

import re
from typing import Any

from kustos.acl import CLUSTER_NAME
from testkit.tap.answers import (
    TOP,
    Coded,
    answered_top,
    by_partition,
    offset_commit,
    transaction_refusal,
)
from testkit.tap.client import CLUSTER_DENIED, INTERNAL, INVALID_TOPIC, TOPIC_DENIED, Client, Op, Type
from testkit.tap.frames import Request, code, topic_key


def init_producer_id(request: Request, client: Client) -> Coded:
    name = request.body.transactional_id
    if name is None:
        allowed = client.may_cluster(Op.IDEMPOTENT_WRITE) or client.may_some(Op.WRITE, Type.TOPIC)
        return [(TOP, None if allowed else CLUSTER_DENIED)]
    refusal = transaction_refusal(name, client)
    if refusal is None and getattr(request.body, "enable2_pc", False):
        refusal = client.refusal(Op.TWO_PHASE_COMMIT, Type.TRANSACTIONAL_ID, str(name))
    return [(TOP, refusal)]


def add_partitions(request: Request, client: Client) -> Coded:
    body = request.body
    if request.version >= 4:
        return [(TOP, client.refusal(Op.CLUSTER_ACTION, Type.CLUSTER, CLUSTER_NAME))]
    whole = transaction_refusal(body.v3_and_below_transactional_id, client)

    def refusal(key: str | bytes) -> int | None:
        return TOPIC_DENIED if key in INTERNAL else client.refusal(Op.WRITE, Type.TOPIC, str(key))

    expected = by_partition(body.v3_and_below_topics, "partitions", "", lambda key: whole or refusal(key))
    # one that is denied has all of them refused, each once
    return list(dict(expected).items()) if whole is None and any(dict(expected).values()) else expected


def answered_partitions_of_transaction(request: Request, body: Any) -> Coded:
    if request.version >= 4:
        return answered_top(body)
    return [
        ((topic_key(topic), partition.partition_index), int(partition.partition_error_code))
        for topic in body.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    ]


def add_offsets(request: Request, client: Client) -> Coded:
    body = request.body
    refusal = transaction_refusal(body.transactional_id, client)
    return [(TOP, refusal or client.refusal(Op.READ, Type.GROUP, str(body.group_id)))]


def end_transaction(request: Request, client: Client) -> Coded:
    return [(TOP, transaction_refusal(request.body.transactional_id, client))]


def markers(request: Request, client: Client) -> Coded:
    allowed = client.may_cluster(Op.ALTER) or client.may_cluster(Op.CLUSTER_ACTION)
    return [
        ((int(marker.producer_id), str(topic.name), index), None if allowed else CLUSTER_DENIED)
        for marker in request.body.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    ]


def answered_markers(body: Any) -> Coded:
    return [
        ((int(marker.producer_id), str(topic.name), partition.partition_index), code(partition))
        for marker in body.markers
        for topic in marker.topics
        for partition in topic.partitions
    ]


def commit_in_transaction(request: Request, client: Client) -> Coded:
    whole = transaction_refusal(request.body.transactional_id, client)
    return [(key, whole or refusal) for key, refusal in offset_commit(request, client)]


def producers(request: Request, client: Client) -> Coded:
    def refusal(key: str | bytes) -> int | None:
        is_possible = re.fullmatch(r"[\w.-]{1,249}", str(key), re.ASCII) and key not in {".", ".."}
        return client.refusal(Op.READ, Type.TOPIC, str(key)) if is_possible else INVALID_TOPIC

    return by_partition(request.body.topics, "partition_indexes", "", refusal)


def transactions(request: Request, client: Client) -> Coded:
    return [
        ((str(name),), client.refusal(Op.DESCRIBE, Type.TRANSACTIONAL_ID, str(name)))
        for name in request.body.transactional_ids
    ]
