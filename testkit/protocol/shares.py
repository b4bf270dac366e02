"""The model cluster's answers about share groups; it keeps their sessions as a broker does (KIP-932)."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kustos.wire import Message, MessageCodec

if TYPE_CHECKING:
    from testkit.protocol.cluster_model import Model

INITIAL, FINAL, MAX_EPOCH = 0, -1, 2**31 - 1
NOT_FOUND, INVALID_EPOCH, UNKNOWN_TOPIC_ID, INVALID_REQUEST = 122, 123, 100, 42
Partition = tuple[bytes, int]
RECORD: Final = b"a record"


@dataclass
class ShareSession:
    """A broker's session of a member of a share group."""

    partitions: dict[Partition, None] = field(default_factory=dict)
    epoch: int = 1

    def next(self) -> None:
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1


def named(request: Message) -> dict[Partition, bool]:
    """Return the partitions that a request names, and whether each has acknowledgements."""
    return {
        (topic.topic_id, each.partition_index): bool(each.acknowledgement_batches)
        for topic in request.topics
        for each in topic.partitions
    }


def fetch(model: "Model", request: Message, made: MessageCodec) -> Message:
    """Serve a ShareFetch as `SharePartitionManager.newContext` does; every allowed partition has a record."""
    key, epoch = (request.group_id, request.member_id), request.share_session_epoch
    asked = named(request)
    session = model.shares.get(key)
    if epoch == INITIAL:
        if any(asked.values()):
            return made.root(error_code=INVALID_REQUEST)
        model.shares[key] = ShareSession(dict.fromkeys(asked))
        return answered(model, made, dict.fromkeys(asked), {})
    if session is None:
        return made.root(error_code=NOT_FOUND)
    acknowledged = asked if any(asked.values()) else {}
    if epoch == FINAL:
        del model.shares[key]
        return answered(model, made, {}, acknowledged)
    if session.epoch != epoch:
        return made.root(error_code=INVALID_EPOCH)
    session.partitions |= dict.fromkeys(asked)
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            session.partitions.pop((topic.topic_id, index), None)
    session.next()
    fetched = {} if request.get("is_renew_ack", False) else session.partitions
    return answered(model, made, fetched, acknowledged)


def acknowledge(model: "Model", request: Message, made: MessageCodec) -> Message:
    key, epoch = (request.group_id, request.member_id), request.share_session_epoch
    session = model.shares.get(key)
    if epoch == INITIAL:
        return made.root(error_code=INVALID_EPOCH)
    if session is None:
        return made.root(error_code=NOT_FOUND)
    if epoch == FINAL:
        del model.shares[key]
    elif session.epoch != epoch:
        return made.root(error_code=INVALID_EPOCH)
    else:
        session.next()
    return answered(model, made, dict.fromkeys(named(request)), {})


def answered(
    model: "Model", made: MessageCodec, fetched: dict[Partition, None], acknowledged: dict[Partition, bool]
) -> Message:
    element = made.root.ELEMENTS["responses"]
    below = element.ELEMENTS["partitions"]
    topics: dict[bytes, list[Message]] = {}
    for topic_id, index in {**fetched, **acknowledged}:
        code = 0 if topic_id in model.names else UNKNOWN_TOPIC_ID
        is_fetched, is_acknowledged = (topic_id, index) in fetched, (topic_id, index) in acknowledged
        item = below.fit(
            partition_index=index,
            error_code=code if is_fetched else 0,
            acknowledge_error_code=code if is_acknowledged else 0,
            records=RECORD if is_fetched and not code else b"",
        )
        topics.setdefault(topic_id, []).append(item)
    endpoint = made.root.ELEMENTS["node_endpoints"](node_id=1, host="upstream", port=1)
    return made.root(
        responses=[element(topic_id=topic_id, partitions=items) for topic_id, items in topics.items()],
        node_endpoints=[endpoint],
    )


def described_offsets(model: "Model", request: Message, made: MessageCodec) -> Message:
    group_type = made.root.ELEMENTS["groups"]
    topic_type = group_type.ELEMENTS["topics"]
    below = topic_type.ELEMENTS["partitions"]
    groups = []
    for group in request.groups:
        if group.topics is None:
            asked = [(name, [0]) for name in model.groups.get(group.group_id, [])]
        else:
            asked = [(topic.topic_name, topic.partitions) for topic in group.topics]
        topics = [
            topic_type(
                topic_name=name,
                topic_id=model.topics.get(name, bytes(16)),
                partitions=[below(partition_index=index) for index in indexes],
            )
            for name, indexes in asked
        ]
        groups.append(group_type(group_id=group.group_id, topics=topics))
    return made.root(groups=groups)


def altered_offsets(_model: "Model", request: Message, made: MessageCodec) -> Message:
    topic_type = made.root.ELEMENTS["responses"]
    below = topic_type.ELEMENTS["partitions"]
    return made.root(
        responses=[
            topic_type(
                topic_name=topic.topic_name,
                partitions=[below(partition_index=each.partition_index) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def deleted_offsets(_model: "Model", request: Message, made: MessageCodec) -> Message:
    topic_type = made.root.ELEMENTS["responses"]
    return made.root(responses=[topic_type(topic_name=topic.topic_name) for topic in request.topics])


SHARED: Final = {
    78: fetch,
    79: acknowledge,
    90: described_offsets,
    91: altered_offsets,
    92: deleted_offsets,
}
"""By API key."""
