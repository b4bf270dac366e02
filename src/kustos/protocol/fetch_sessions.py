"""Which partitions the fetch sessions of one connection hold (KIP-227), denied ones included.

An incremental Fetch names only what changed, an empty one nothing at all, yet the broker serves the
whole session. So the guard keeps its own record of each session that upstream opened for this
connection and authorizes the whole of it again at every Fetch. A session id that this connection did
not get from upstream is not found here and never forwarded: it may be another client's.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kustos.protocol.convert import converted
from kustos.wire import ZERO_UUID, Message

SESSIONS_PER_CONNECTION: Final = 8
"""A client needs one session a connection; more than a few are a mistake or an attack on memory."""

PARTITIONS_PER_CONNECTION: Final = 200_000
"""Kafka's clusters hold about as many; the record of a partition takes some hundred bytes."""

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
_MAX_EPOCH: Final = 2**31 - 1

Topic: TypeAlias = str | bytes
"""A topic as a Fetch names it: by name before version 13, by its 16-byte id since."""

Partition: TypeAlias = tuple[Topic, int]


def next_epoch(epoch: int) -> int:
    """Return the epoch that the following Fetch of a session must carry."""
    return 1 if epoch == _MAX_EPOCH else epoch + 1


@dataclass(slots=True)
class FetchSession:
    """One session: all its partitions, in order, with what upstream was last told of each."""

    session_id: int
    uses_topic_ids: bool
    epoch: int
    partitions: dict[Partition, Message] = field(default_factory=dict)
    upstream: set[Partition] = field(default_factory=set)
    """The partitions that upstream's session holds: the allowed ones of the last Fetch."""


@dataclass(slots=True)
class FetchSessions:
    """The sessions of one connection, oldest first."""

    by_id: dict[int, FetchSession] = field(default_factory=dict)

    def find(self, session_id: int) -> FetchSession | None:
        """Return the session with this id, None if this connection has none such."""
        return self.by_id.get(session_id)

    def open(self, session: FetchSession) -> None:
        """Keep a session that upstream opened; the oldest make room, and are then not found."""
        self.by_id.pop(session.session_id, None)
        self.by_id[session.session_id] = session
        self.make_room()

    def make_room(self) -> None:
        """Forget the oldest sessions while there is too much; a session too large by itself goes, too."""
        while (
            len(self.by_id) > SESSIONS_PER_CONNECTION
            or sum(len(kept.partitions) for kept in self.by_id.values()) > PARTITIONS_PER_CONNECTION
        ):
            del self.by_id[next(iter(self.by_id))]

    def close(self, session_id: int) -> None:
        """Forget a session."""
        self.by_id.pop(session_id, None)


def topic_of(item: Message) -> Topic:
    """Return how a topic of a Fetch request or response is named."""
    topic: Topic = item.topic if "topic" in item.FIELDS else item.topic_id
    return topic


def partitions_of(topics: Iterable[Message]) -> dict[Partition, Message]:
    """Return the partitions of a Fetch request in order; a later mention replaces an earlier one."""
    return {
        (topic_of(topic), partition.partition): partition
        for topic in topics
        for partition in topic.partitions
    }


def in_version(partitions: dict[Partition, Message], made: type[Message]) -> dict[Partition, Message]:
    """Return the partitions as a Fetch of another version holds them; a session may change its version."""
    if all(type(item) is made for item in partitions.values()):
        return partitions
    return {partition: converted(item, made) for partition, item in partitions.items()}


def forgotten_of(request: Message) -> list[Partition]:
    """Return the partitions that a Fetch takes out of its session."""
    return [
        (topic_of(topic), partition)
        for topic in request.get("forgotten_topics_data") or ()
        for partition in topic.partitions
    ]


def topic_items(made: type[Message], grouped: dict[Topic, list[object]]) -> list[Message]:
    """Return the items of a list by topic, such as the topics of a request or of a response."""
    by_name = "topic" in made.FIELDS
    return [
        made(**{"topic" if by_name else "topic_id": topic, "partitions": partitions})
        for topic, partitions in grouped.items()
    ]


def is_named(topic: Topic) -> bool:
    """Return whether the topic is given by a name or by an id that can mean one."""
    return topic != ZERO_UUID
