"""The state of the group members on one connection, above all their subscriptions (KIP-848).

A member may send its subscription once, and not again for days. The topics that match its regular expression
change with the topics and the ACLs, so the guard records the subscription of each member on this connection.
The guard requests the subscription of an unknown member from upstream, which stores it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, Generic, Self, TypeAlias, TypeVar

from kustos.protocol.quoted_patterns import shown_to_clients
from kustos.protocol.topic_patterns import ClusterTopics, TopicPattern

MEMBERS_PER_CONNECTION: Final = 16
"""A consumer has its own connection to its coordinator. An evicted member is looked up upstream again."""

BYTES_PER_CONNECTION: Final = 1024 * 1024
"""Size of the names kept for the members on one connection, including the overhead of each name. A request
may name thousands of topics, and there are thousands of connections."""

BYTES_PER_NAME: Final = 64

MATCHED_BYTES_MAX: Final = 512 * 1024
"""Size of the names that match one member's expression: upstream's coordinator stores them in one record of
at most 1 MiB."""

MemberKey: TypeAlias = tuple[str, str]
"""A group id and a member id."""

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription that a member sent, and the topics that upstream got for it.

    `names`: the topics that the member named. `pattern`: its expression. `sent`: a digest of all topics sent
    upstream for the member. `version`: the version of the decider for these topics; None if the decider has
    no version. `topics_number`: the number of the `ClusterTopics` that was matched.
    """

    names: tuple[str, ...] = ()
    pattern: TopicPattern | None = None
    sent: bytes = b""
    version: int | None = None
    topics_number: int | None = None

    def is_current(self, version: int | None, topics: ClusterTopics) -> bool:
        """Return whether the topics sent upstream are still correct."""
        return version is not None and self.version == version and self.topics_number == topics.number

    @classmethod
    def kept_upstream(cls, names: Sequence[str], expression: str) -> Self:
        """Return the subscription that upstream's description of a member shows.

        Upstream itself resolved an expression that kustos did not send, so its topics may include topics that
        the member may not read. Raise `TopicPatternError`, `ExtraMissingError`.
        """
        if not expression:
            return cls(tuple(names))
        shown = shown_to_clients(expression)
        if shown is None:
            return cls(tuple(names), TopicPattern.compile(expression))
        text, own_names = shown
        return cls(tuple(own_names), TopicPattern.compile(text), digest_of(sorted(names)))

    def resolved(self, names: Iterable[str], version: int | None, topics: ClusterTopics) -> Self:
        """Return the subscription with its resolved topics, in order."""
        return replace(self, sent=digest_of(names), version=version, topics_number=topics.number)


def digest_of(names: Iterable[str]) -> bytes:
    """Return the digest of an ordered sequence of topics."""
    return sha256("\n".join(names).encode()).digest()


@dataclass(slots=True)
class Members(Generic[Kept]):
    """The recorded state of the members on one connection; the oldest members are evicted first."""

    _kept: dict[MemberKey, tuple[Kept, int]] = field(default_factory=dict)
    """Member → its state and the size of the state in bytes."""

    def find(self, member: MemberKey) -> Kept | None:
        """Return the state of a member, None if it is unknown."""
        kept = self._kept.get(member)
        return None if kept is None else kept[0]

    def keep(self, member: MemberKey, known: Kept, names: Collection[str]) -> None:
        """Record the state of a member and the size of its names; a single state may exceed the limit."""
        self._kept.pop(member, None)
        self._kept[member] = (known, sum(map(len, names)) + BYTES_PER_NAME * len(names))
        while (
            len(self._kept) > MEMBERS_PER_CONNECTION
            or sum(size for _, size in self._kept.values()) > BYTES_PER_CONNECTION
        ):
            del self._kept[next(iter(self._kept))]

    def forget(self, member: MemberKey) -> None:
        """Forget a member that has left or must be looked up upstream again."""
        self._kept.pop(member, None)


class Topologies(Members[frozenset[str]]):
    """The internal topics of the streams group that a member is in."""

    __slots__ = ()


class Subscriptions(Members[Subscription]):
    """The subscriptions of the consumer group members on one connection."""

    __slots__ = ()


def fits(names: Iterable[str]) -> bool:
    """Return whether upstream can store these topic names for one member."""
    return sum(map(len, names)) <= MATCHED_BYTES_MAX
