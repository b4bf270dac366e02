"""What was written down: decisions and logins by the minute, and what really happened."""

from dataclasses import dataclass, field
from typing import NamedTuple

MINUTES = 24 * 60

Resource = tuple[str, str]
CLUSTER: Resource = ("CLUSTER", "kafka-cluster")


class Decision(NamedTuple):
    """Decisions of one day that differ in nothing but their time."""

    day: int
    who: str
    host: str
    operation: str
    resource: Resource
    is_allowed: bool
    is_listing: bool
    is_super: bool


@dataclass(slots=True)
class Times:
    """How often, in which hours, and between which minutes of the day."""

    count: int = 0
    hours: int = 0
    first: int = MINUTES
    last: int = 0


class Login(NamedTuple):
    """Logins as a claimed name from an address, within a minute of the story."""

    minute: int
    name: str
    host: str
    succeeded: bool
    attempts: int


@dataclass(frozen=True, slots=True)
class Incident:
    """What happened, to whom (a principal, or None), from where, and on which days it left traces."""

    what: str
    who: str | None
    host: str | None
    days: frozenset[int]
    is_attack: bool


@dataclass(slots=True)
class Ledger:
    """The book of a story; minutes count from its first midnight in UTC."""

    decisions: dict[Decision, Times] = field(default_factory=dict)
    logins: list[Login] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)

    def decided(
        self,
        minute: float,
        who: str,
        host: str,
        operation: str,
        resource: Resource,
        count: int = 1,
        *,
        is_allowed: bool = True,
        is_listing: bool = False,
        is_super: bool = False,
    ) -> int:
        """Write down decisions at a minute; return its day."""
        day, at = divmod(int(minute), MINUTES)
        if day < 0 or count < 1:
            return day
        key = Decision(day, f"User:{who}", host, operation, resource, is_allowed, is_listing, is_super)
        times = self.decisions.setdefault(key, Times())
        times.count += count
        times.hours |= 1 << at // 60
        times.first, times.last = min(times.first, at), max(times.last, at)
        return day

    def logged_in(self, minute: float, name: str, host: str, *, succeeded: bool, attempts: int = 1) -> int:
        """Write down logins at a minute; return its day."""
        self.logins.append(Login(int(minute), name, host, succeeded, attempts))
        return int(minute) // MINUTES

    def happened(
        self, what: str, who: str | None, days: set[int], *, is_attack: bool, host: str | None = None
    ) -> None:
        """Write down what really happened."""
        name = None if who is None else f"User:{who}"
        self.incidents.append(Incident(what, name, host, frozenset(days), is_attack))
