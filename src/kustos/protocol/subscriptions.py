"""What is known of the members of groups on one connection, first of all what they subscribe to (KIP-848).

A member says what it subscribes to once, and then nothing of it, for days. Its topics by regular expression
are to follow the topics and the ACLs, so the guard records what each member on this connection has said. A
member that it does not know is asked once to say all again: `COORDINATOR_LOAD_IN_PROGRESS` is what clients
answer with a whole heartbeat, without giving up anything.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeAlias, TypeVar

from kustos.protocol.topic_patterns import ClusterTopics, TopicPattern

MEMBERS_PER_CONNECTION: Final = 16
"""A consumer has one connection to its coordinator, for itself. A member that makes room is asked again."""

MATCHED_BYTES_MAX: Final = 512 * 1024
"""Of the names that one member gets by its expression: upstream's coordinator keeps them in one record, of
1 MiB at most."""

MemberKey: TypeAlias = tuple[str, str]
"""A group and the id of a member."""

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member has said, and what upstream was told.

    `names`: the topics that it named. `pattern`: its expression. `sent`: all topics that upstream knows of
    it. `version`: the decider's by which they were decided; None if it has none. `topics`: those they are of.
    """

    names: tuple[str, ...] = ()
    pattern: TopicPattern | None = None
    sent: frozenset[str] = frozenset()
    version: int | None = None
    topics: ClusterTopics | None = None

    def is_current(self, version: int | None, topics: ClusterTopics) -> bool:
        """Return whether nothing can have changed since."""
        return version is not None and self.version == version and self.topics is topics


@dataclass(slots=True)
class Members(Generic[Kept]):
    """What is known of the members on one connection; the oldest make room."""

    _kept: dict[MemberKey, Kept] = field(default_factory=dict)

    def find(self, member: MemberKey) -> Kept | None:
        """Return what is known of a member, None if nothing."""
        return self._kept.get(member)

    def keep(self, member: MemberKey, known: Kept) -> None:
        """Record what is known of a member."""
        self._kept.pop(member, None)
        self._kept[member] = known
        if len(self._kept) > MEMBERS_PER_CONNECTION:
            del self._kept[next(iter(self._kept))]

    def forget(self, member: MemberKey) -> None:
        """Forget a member: it has left, or has to say all again."""
        self._kept.pop(member, None)


Topologies: TypeAlias = Members[frozenset[str]]
"""The internal topics of the streams group that a member is in."""


@dataclass(slots=True)
class Subscriptions(Members[Subscription]):
    """What the members of consumer groups on one connection have said."""

    _asked: dict[MemberKey, None] = field(default_factory=dict)

    def forget(self, member: MemberKey) -> None:
        """Forget what a member has said: it has left, or has to say it again."""
        Members.forget(self, member)
        self._asked.pop(member, None)

    def ask(self, member: MemberKey) -> bool:
        """Return whether a member is to say all again; false if it was just asked, and has not."""
        if member in self._asked:
            return False
        self._asked[member] = None
        if len(self._asked) > MEMBERS_PER_CONNECTION:
            del self._asked[next(iter(self._asked))]
        return True


def fits(names: Iterable[str]) -> bool:
    """Return whether upstream can keep that many topics of one member."""
    return sum(map(len, names)) <= MATCHED_BYTES_MAX
