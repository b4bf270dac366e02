"""What is known of the members of groups on one connection, first of all what they subscribe to (KIP-848).

A member says what it subscribes to once, and then nothing of it, for days. Its topics by regular expression
follow the topics and the ACLs, so the guard records what each member on this connection has said. It learns
the subscription of a member that it does not know from upstream, which keeps it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, Generic, Self, TypeAlias, TypeVar

from kustos.protocol.quoted_patterns import shown_to_clients
from kustos.protocol.topic_patterns import ClusterTopics, TopicPattern

MEMBERS_PER_CONNECTION: Final = 16
"""A consumer has one connection to its coordinator, for itself. A member that makes room starts again."""

BYTES_PER_CONNECTION: Final = 1024 * 1024
"""Of the names that are kept for the members on one connection, with what each takes beside its letters. A
request may name thousands of topics, and there are thousands of connections."""

BYTES_PER_NAME: Final = 64

MATCHED_BYTES_MAX: Final = 512 * 1024
"""Of the names that one member gets by its expression: upstream's coordinator keeps them in one record, of
1 MiB at most."""

MemberKey: TypeAlias = tuple[str, str]
"""A group and the id of a member."""

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member has said, and what upstream got.

    `names`: the topics that it named. `pattern`: its expression. `sent`: a digest of all topics that upstream
    knows of it. `version`: the decider's by which they were decided; None if it has none. `topics_number`:
    of the `ClusterTopics` that they are of.
    """

    names: tuple[str, ...] = ()
    pattern: TopicPattern | None = None
    sent: bytes = b""
    version: int | None = None
    topics_number: int | None = None

    def is_current(self, version: int | None, topics: ClusterTopics) -> bool:
        """Return whether nothing can have changed since."""
        return version is not None and self.version == version and self.topics_number == topics.number

    @classmethod
    def kept_upstream(cls, names: Sequence[str], expression: str) -> Self:
        """Return the subscription that upstream's description of a member shows.

        An expression that kustos did not send is resolved by upstream itself: what upstream knows is not what
        the member may have. Raise `TopicPatternError`, `ExtraMissingError`.
        """
        if not expression:
            return cls(tuple(names))
        shown = shown_to_clients(expression)
        if shown is None:
            return cls(tuple(names), TopicPattern.compile(expression))
        text, own_names = shown
        return cls(tuple(own_names), TopicPattern.compile(text), digest_of(sorted(names)))

    def resolved(self, names: Iterable[str], version: int | None, topics: ClusterTopics) -> Self:
        """Return it with the topics that it comes to, in order."""
        return replace(self, sent=digest_of(names), version=version, topics_number=topics.number)


def digest_of(names: Iterable[str]) -> bytes:
    """Return the digest of topics in order."""
    return sha256("\n".join(names).encode()).digest()


@dataclass(slots=True)
class Members(Generic[Kept]):
    """What is known of the members on one connection; the oldest make room."""

    _kept: dict[MemberKey, tuple[Kept, int]] = field(default_factory=dict)
    """With the bytes that it takes."""

    def find(self, member: MemberKey) -> Kept | None:
        """Return what is known of a member, None if nothing."""
        kept = self._kept.get(member)
        return None if kept is None else kept[0]

    def keep(self, member: MemberKey, known: Kept, names: Collection[str]) -> None:
        """Record what is known of a member, and the names in it; even a single one may be too large."""
        self._kept.pop(member, None)
        self._kept[member] = (known, sum(map(len, names)) + BYTES_PER_NAME * len(names))
        while (
            len(self._kept) > MEMBERS_PER_CONNECTION
            or sum(size for _, size in self._kept.values()) > BYTES_PER_CONNECTION
        ):
            del self._kept[next(iter(self._kept))]

    def forget(self, member: MemberKey) -> None:
        """Forget a member: it has left, or upstream must be asked about it again."""
        self._kept.pop(member, None)


class Topologies(Members[frozenset[str]]):
    """The internal topics of the streams group that a member is in."""

    __slots__ = ()


class Subscriptions(Members[Subscription]):
    """What the members of consumer groups on one connection have said."""

    __slots__ = ()


def fits(names: Iterable[str]) -> bool:
    """Return whether upstream can keep that many topics of one member."""
    return sum(map(len, names)) <= MATCHED_BYTES_MAX
