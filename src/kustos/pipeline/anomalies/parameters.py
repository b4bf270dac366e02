"""The detectors' parameters, each with its reason."""

from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from typing import Final

from kustos.acl import ResourcePattern
from kustos.pipeline.errors import AnomalyInputError

SUPPRESSIONS_MAX: Final = 1000
"""Each is a condition of the plan; for more, join a table of suppressions to the anomalies."""

KINDS: Final = (
    "FIRST_SEEN_ACCESS",
    "NEW_HOST",
    "BRUTE_FORCE",
    "SWEEP",
    "PRIVILEGE_PROBING",
    "MISSING_RIGHT",
    "UNUSUAL_HOURS",
    "TOPIC_ENUMERATION",
    "SUPER_USER_USE",
    "DORMANT_WAKING",
    "PASSWORD_GUESSING",
    "PASSWORD_SPRAYING",
    "LOGIN_AFTER_FAILURES",
)
"""All kinds of anomalies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalyParameters:
    """Thresholds of the detectors; surprises are in nats: minus the logarithm of a probability.

    A surprise of 3 happens by chance once in 20 looks, one of 4.6 once in 100.
    """

    history_days: int = 90
    """How far back habits are learnt: three monthly runs, and people's habits of last year do not count."""
    learning_days: int = 14
    """A principal this young has no habits yet: two weeks show each weekday twice."""
    settled_days: int = 7
    """A resource this young is part of a deploy: its first users are expected."""
    habit_days: int = 4
    """An access on so many days since its first one is a habit by the end of the window, no incident."""
    first_seen_surprise: float = 2.5
    """A principal that uses a new resource on one active day in twelve is no surprise."""
    affinity_weight: float = 2.0
    """A name of one's own team is stronger evidence than chance alone: names are given on purpose."""
    new_host_surprise: float = 2.0
    """Lower than others, since neighbours and company are subtracted first."""
    company_surprise: float = 1.5
    """Taken off for each other principal that came to the same network at the same time."""
    company_days: int = 3
    """How close in time that is: a team moves within days."""
    known_range_surprise: float = 3.0
    """Taken off if the wider network (IPv4 /16, IPv6 /48) is the principal's already: pools grow in there."""
    shared_network_share: float = 0.2
    """A network that this share of all principals came from is a gateway or a node pool of everybody."""
    denials_min: int = 30
    """Fewer denials of a day are ignored, however rare."""
    denials_deviations: float = 2.5
    """Robust deviations above the logarithm of the usual denials of a principal's day, for a short burst."""
    denials_lasting_deviations: float = 1.5
    """The same for denials in two hours or more, which a blip of a rebalance does not last."""
    denials_median: float = 10.0
    """The usual number of denials where the history holds too few days with any."""
    denials_deviation: float = 0.7
    """Its deviation (of the logarithm) there, and the least one ever: a factor of two is never news."""
    denials_days_min: int = 10
    """So many days with denials, of all principals, are enough for a baseline."""
    retried_things: int = 4
    """Operations on names that one client needs: WRITE, DESCRIBE, CREATE of a topic, and the cluster."""
    sweep_days: int = 7
    """How far back the names of a sweep are counted: a day's patience hides nothing, and a week's little."""
    swept_names: int = 10
    """Fewer names, with an administrative operation that is new there, are what a change needs."""
    swept_names_denied: int = 3
    """So many of them denied: one is a typo, and all allowed are a deploy."""
    probed_operations: int = 7
    """Kinds of operations denied in so many days, administrative ones twice: a client that lacks every right
    is denied READ, WRITE, DESCRIBE, IDEMPOTENT_WRITE and CREATE, which are six."""
    failed_logins_min: int = 20
    """Of one name from one address in a day: people give up sooner and request a new password."""
    sprayed_names_min: int = 10
    """Names that fail from one address in a day and never get in: more than one person has."""
    enumerated_topics: int = 15
    """Fewer unfamiliar topics in a day, or denied names of any type, are what a person clicks through."""
    enumeration_surprise: float = 10.0
    """Names come in herds, so the count's own tail must be far out."""
    attempts_per_name: float = 10.0
    """More attempts for a name are retries, not enumeration."""
    hours_surprise: float = 2.6
    """A principal seen on six days or fewer has no usual hours."""
    hours_apart: int = 2
    """Clocks change by one hour and people stay for two: closer than that is no other time."""
    regular_weekdays: int = 4
    """A principal active at an hour on so many weekdays has a weekend; fewer are a schedule of its own."""
    regular_share: float = 0.75
    """Works on a weekday: in this share of the weeks, holidays and failures left aside."""
    super_user_surprise: float = 2.5
    """Nearly all: a new use of a super user is always worth a look once a fortnight is known."""
    dormant_days: int = 21
    """Shorter silences are leave and freezes of changes."""
    daily_share: float = 0.9
    """Active on this share of the days: a program, which takes no leave; people rest at weekends."""
    leave_days: int = 35
    """Four weeks of leave, the weekends around them, and a few days on which nothing is to do."""
    dormant_surprise: float = 4.0
    """By the rate it was used at before: a silence that chance makes once in fifty."""
    periodic_share: float = 0.6
    """An earlier silence of this share of the present one shows a schedule."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 0 or (field.name.endswith("_days") and value < 1):
                raise AnomalyInputError(f"`{field.name}` is `{value}`, which is less than its least value")
        if self.learning_days >= self.history_days:
            raise AnomalyInputError(
                f"`learning_days` is `{self.learning_days}`, which must be less than "
                f"`history_days` (`{self.history_days}`)"
            )


@dataclass(frozen=True, slots=True)
class Window:
    """The days that are judged: `start` included, `end` not; what lies before is history."""

    start: date
    end: date

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise AnomalyInputError(f"the window ends on `{self.end}`, which is not after `{self.start}`")

    @classmethod
    def before(cls, as_of: date, days: int = 30) -> "Window":
        """Return the `days` days that end with the day before `as_of`."""
        return cls(as_of - timedelta(days=days), as_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """A rule for known anomalies; a field of None matches any, and `reason` is for people.

    `principal` may end in `*`: all with this prefix. `resource` matches an anomaly about this one resource,
    or about one whose name has the prefix. `since` and `until` are a maintenance window, which covers
    anomalies that lie in it as a whole. Both need a time zone.
    """

    reason: str
    kind: str | None = None
    principal: str | None = None
    resource: ResourcePattern | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        what = (self.kind, self.principal, self.resource)
        if all(each is None for each in what) and (self.since is None or self.until is None):
            raise AnomalyInputError(
                f"the suppression for `{self.reason}` would hide all, name a kind, a principal or a time"
            )
        if self.kind is not None and self.kind not in KINDS:
            raise AnomalyInputError(f"`{self.kind}` is not a kind of anomaly, take one of {', '.join(KINDS)}")
        for time in (self.since, self.until):
            if time is not None and time.tzinfo is None:
                raise AnomalyInputError(f"time `{time}` of suppression `{self.reason}` has no time zone")
