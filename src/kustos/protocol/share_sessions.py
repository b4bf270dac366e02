"""The partitions in the share sessions of one connection (KIP-932), denied ones included.

A member of a share group has one session at each broker, identified by its group and member id. As with fetch
sessions, a ShareFetch names only the changed partitions and the broker serves the whole session. So the guard
records each session that upstream opened for this connection and authorizes the whole session again at every
ShareFetch. The guard never forwards requests of a member without a session on this connection, since the
session may belong to another client. A ShareAcknowledge also increments the session's epoch.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kustos.protocol.fetch_sessions import Sessions
from kustos.wire import Message

MEMBER_ID_LENGTH_MAX: Final = 36
"""In UTF-16 units, as in Java: the length of a UUID in its canonical text form."""

RENEWS_SINCE_VERSION: Final = 2
"""The first version in which a member may renew its locks (KIP-1222)."""

RENEW: Final = 4
"""The highest type of acknowledgement."""

SharePartition: TypeAlias = tuple[bytes, int]
"""A topic id and a partition index."""

MemberKey: TypeAlias = tuple[str, str]
"""A group id and a member id."""


@dataclass(slots=True)
class ShareSession:
    """One session: all its partitions, in order."""

    session_id: MemberKey
    epoch: int
    partitions: dict[SharePartition, None] = field(default_factory=dict)
    upstream: set[SharePartition] = field(default_factory=set)
    """The partitions in upstream's session: the allowed partitions of the last ShareFetch."""


class ShareSessions(Sessions[MemberKey, ShareSession]):
    """The share sessions of one connection."""

    __slots__ = ()


def is_member_id(member_id: str | None) -> bool:
    """Return whether brokers accept this member id."""
    return bool(member_id) and len((member_id or "").encode("utf-16-le")) // 2 <= MEMBER_ID_LENGTH_MAX


def named_partitions(topics: Iterable[Message]) -> dict[SharePartition, Message]:
    """Return the partitions that a request names, in order; the last mention of a partition counts."""
    return {
        (topic.topic_id, partition.partition_index): partition
        for topic in topics
        for partition in topic.partitions
    }


def forgotten_partitions(request: Message) -> list[SharePartition]:
    """Return the partitions that a ShareFetch removes from its session."""
    return [(topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions]


def acknowledges(named: dict[SharePartition, Message]) -> bool:
    """Return whether any of the partitions has acknowledgements."""
    return any(partition.acknowledgement_batches for partition in named.values())


def is_acknowledgement(batches: list[Message], version: int, renews: bool) -> bool:
    """Return whether a broker accepts the acknowledgements of one partition.

    Brokers check this before they authorize. Source: `KafkaApis.validateAcknowledgementBatches` of Kafka
    4.3.1.
    """
    highest = RENEW if version >= RENEWS_SINCE_VERSION else RENEW - 1
    previous = -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        is_valid = (
            previous <= first <= last
            and bool(types)
            and (len(types) == 1 or last - first == len(types) - 1)
            and all(0 <= each <= highest for each in types)
            and (renews or RENEW not in types)
        )
        if not is_valid:
            return False
        previous = last
    return True
