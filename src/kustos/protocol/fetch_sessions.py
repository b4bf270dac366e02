"""The partitions in the fetch sessions of one connection (KIP-227), denied ones included.

An incremental Fetch names only the changed partitions, possibly none, yet the broker serves the whole
session. So the guard records each session that upstream opened for this connection and authorizes the whole
session again at every Fetch. The guard never forwards a session id that this connection did not get from
upstream, since the session may belong to another client.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from kustos.wire import ZERO_UUID, Message, converted

SESSIONS_PER_CONNECTION: Final = 8
"""A client needs one session per connection; more than a few indicate an error or an attack on memory."""

PARTITIONS_PER_CONNECTION: Final = 200_000
"""About as many as a whole Kafka cluster has; the record of a partition takes about a hundred bytes."""

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
_MAX_EPOCH: Final = 2**31 - 1

Topic: TypeAlias = str | bytes
"""A topic in a Fetch: its name before version 13, its 16-byte id from version 13 on."""

Partition: TypeAlias = tuple[Topic, int]


def next_epoch(epoch: int) -> int:
    """Return the epoch of the next Fetch of a session."""
    return 1 if epoch == _MAX_EPOCH else epoch + 1


@dataclass(slots=True)
class FetchSession:
    """One session: all its partitions, in order, each as last sent upstream."""

    session_id: int
    uses_topic_ids: bool
    epoch: int
    partitions: dict[Partition, Message] = field(default_factory=dict)
    upstream: set[Partition] = field(default_factory=set)
    """The partitions in upstream's session: the allowed partitions of the last Fetch."""


SessionId = TypeVar("SessionId", bound=Hashable)
SessionId_co = TypeVar("SessionId_co", bound=Hashable, covariant=True)
Held = TypeVar("Held", bound="AnySession[Any]")


class AnySession(Protocol[SessionId_co]):
    """A session of either kind: of consumers, or of members of share groups."""

    @property
    def session_id(self) -> SessionId_co:
        """The id or key by which requests name the session."""

    @property
    def partitions(self) -> Mapping[Any, Any]:
        """All its partitions."""


@dataclass(slots=True)
class Sessions(Generic[SessionId, Held]):
    """The sessions of one kind that upstream opened for one connection, oldest first."""

    by_id: dict[SessionId, Held] = field(default_factory=dict)

    def find(self, session_id: SessionId) -> Held | None:
        """Return the session with this id, None if this connection has no such session."""
        return self.by_id.get(session_id)

    def open(self, session: Held) -> None:
        """Add a session that upstream opened; evict the oldest sessions over the limit."""
        self.by_id.pop(session.session_id, None)
        self.by_id[session.session_id] = session
        self.evict_oldest()

    def evict_oldest(self) -> None:
        """Evict the oldest sessions while over the limit, including a single session that is too large."""
        while (
            len(self.by_id) > SESSIONS_PER_CONNECTION
            or sum(len(kept.partitions) for kept in self.by_id.values()) > PARTITIONS_PER_CONNECTION
        ):
            del self.by_id[next(iter(self.by_id))]

    def close(self, session_id: SessionId) -> None:
        """Forget a session."""
        self.by_id.pop(session_id, None)


class FetchSessions(Sessions[int, FetchSession]):
    """The fetch sessions of one connection."""

    # no type alias: each connection creates an instance, which takes a microsecond longer through an alias
    __slots__ = ()


def topic_of(item: Message) -> Topic:
    """Return the name or id of a topic in a Fetch request or response."""
    topic: Topic = item.topic if "topic" in item.FIELDS else item.topic_id
    return topic


def partitions_of(topics: Iterable[Message]) -> dict[Partition, Message]:
    """Return the partitions of a Fetch request in order; the last mention of a partition counts."""
    return {
        (topic_of(topic), partition.partition): partition
        for topic in topics
        for partition in topic.partitions
    }


def in_version(
    partitions: dict[Partition, Message], partition_type: type[Message]
) -> dict[Partition, Message]:
    """Return the partitions in another version of Fetch; a session may change its version."""
    if all(type(item) is partition_type for item in partitions.values()):
        return partitions
    return {partition: converted(item, partition_type) for partition, item in partitions.items()}


def forgotten_of(request: Message) -> list[Partition]:
    """Return the partitions that a Fetch removes from its session."""
    return [
        (topic_of(topic), partition)
        for topic in request.get("forgotten_topics_data") or ()
        for partition in topic.partitions
    ]


def is_named(topic: Topic) -> bool:
    """Return whether the topic has a name or a non-zero id."""
    return topic != ZERO_UUID
