"""What each response about a share group must say; see `answers`.

A ShareFetch is told here of a connection without sessions: what it asks for is what it names.
"""

from typing import Any

from testkit.tap.answers import TOP, Coded, by_partition
from testkit.tap.client import INVALID_REQUEST, TOPIC_DENIED, UNKNOWN_SERVER_ERROR, Client, Op, Type
from testkit.tap.frames import Request, code

INITIAL, NOT_FOUND, INVALID_EPOCH = 0, 122, 123
FETCH = 78


def is_member(member_id: str | None) -> bool:
    return member_id is not None and 0 < len(member_id) <= 36


def heartbeat(request: Request, client: Client) -> Coded:
    body = request.body
    refusal = client.refusal(Op.READ, Type.GROUP, str(body.group_id))
    if refusal is None and not is_member(body.member_id):
        return [(TOP, INVALID_REQUEST)]
    names = body.subscribed_topic_names or ()
    if refusal is None and not all(client.may(Op.DESCRIBE, Type.TOPIC, str(name)) for name in names):
        refusal = TOPIC_DENIED
    return [(TOP, refusal)]


def refused(request: Request, client: Client) -> int | None:
    """Return the code that refuses the request of a member that has no session, whatever it names."""
    body = request.body
    if body.group_id is None:
        return INVALID_REQUEST
    refusal = client.refusal(Op.READ, Type.GROUP, str(body.group_id))
    if refusal is not None:
        return refusal
    sizes = [int(getattr(body, name, 0)) for name in ("min_bytes", "max_bytes", "max_records")]
    waits = bool(getattr(body, "max_wait", 0))
    if not is_member(body.member_id):
        return INVALID_REQUEST
    if getattr(body, "is_renew_ack", False) and request.api_key == FETCH and (any(sizes) or waits):
        return INVALID_REQUEST
    if body.share_session_epoch != INITIAL:
        return NOT_FOUND
    if request.api_key != FETCH:
        return INVALID_EPOCH
    partitions = [
        (topic.topic_id, partition.partition_index) for topic in body.topics for partition in topic.partitions
    ]
    if any(partition.acknowledgement_batches for topic in body.topics for partition in topic.partitions):
        return INVALID_REQUEST
    return UNKNOWN_SERVER_ERROR if len(set(partitions)) < len(partitions) else None


def fetch(request: Request, client: Client) -> Coded:
    refusal = refused(request, client)
    if refusal is not None or getattr(request.body, "is_renew_ack", False):
        return [(TOP, refusal)]
    below = by_partition(
        request.body.topics, "partitions", "partition_index", lambda key: client.topic_refusal(Op.READ, key)
    )
    return [(TOP, None), *below]


def offsets(request: Request, client: Client) -> Coded:
    expected: Coded = []
    for group in request.body.groups:
        group_id = str(group.group_id)
        whole = client.refusal(Op.DESCRIBE, Type.GROUP, group_id)
        expected.append(((group_id,), whole))
        for topic in group.topics or () if whole is None else ():
            refusal = client.refusal(Op.DESCRIBE, Type.TOPIC, str(topic.topic_name))
            expected += [((group_id, str(topic.topic_name), index), refusal) for index in topic.partitions]
    return expected


def answered_offsets(request: Request, body: Any) -> Coded:
    answered: Coded = []
    for asked, group in zip(request.body.groups, body.groups, strict=True):
        group_id = str(group.group_id)
        answered.append(((group_id,), code(group)))
        for topic in group.topics if asked.topics is not None else ():
            answered += [
                ((group_id, str(topic.topic_name), each.partition_index), code(each))
                for each in topic.partitions
            ]
    return answered


def altered(request: Request, client: Client) -> Coded:
    refusal = client.refusal(Op.READ, Type.GROUP, str(request.body.group_id))
    expected: Coded = [(TOP, refusal)]
    for topic in request.body.topics if refusal is None else ():
        denied = client.refusal(Op.READ, Type.TOPIC, str(topic.topic_name))
        expected += [((str(topic.topic_name), each.partition_index), denied) for each in topic.partitions]
    return expected


def answered_altered(request: Request, body: Any) -> Coded:
    return [
        (TOP, code(body)),
        *[
            ((str(topic.topic_name), each.partition_index), code(each))
            for topic in body.responses
            for each in topic.partitions
        ],
    ]


def deleted(request: Request, client: Client) -> Coded:
    refusal = client.refusal(Op.DELETE, Type.GROUP, str(request.body.group_id))
    topics = [str(topic.topic_name) for topic in request.body.topics] if refusal is None else []
    return [(TOP, refusal), *[((name,), client.refusal(Op.READ, Type.TOPIC, name)) for name in topics]]


def answered_deleted(request: Request, body: Any) -> Coded:
    return [(TOP, code(body)), *[((str(topic.topic_name),), code(topic)) for topic in body.responses]]
