"""Decides which decisions get their own event, and summarizes the others.

Theory of operation. The oldest audit files are deleted, so a principal that can cause events without limit
can have evidence deleted. Therefore each principal has three budgets: for denials and names filtered out of
lists, for plain use, and for changes. A decision within its budget is an event. Beyond it, the first decision
of a kind is an event at once, so that it is on record before it takes effect. Equal decisions are gathered,
and become one event a minute after the first. That event has the exact sums of their decisions and
references.

Allowed decisions of a kind have the same principal, host, API, operation, resource name, rule and day. So the
record of who uses which resource, how often and by which rule stays exact. The number of such kinds has a
limit for each principal, because clients choose names. Beyond the limit, and for denials, a kind covers all
names and hosts.

`log_if_denied` and decisions in the shadow are part of each kind, so no refusal hides behind a probe.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from kustos.acl import AclOperation
from kustos.authorizer import AuthorizableRequestContext
from kustos.authorizer.audit import AUDITED_NAME_CHARACTERS_MAX, audited_name
from kustos.gateway.audit.budget import Account, AuditBudget, PrincipalKey, key_of, name_bytes, request_bytes
from kustos.protocol import Decided

USE_OPERATIONS: Final = frozenset(
    {
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    }
)
"""The operations of plain use, which programs repeat. All other operations are changes, which people make."""

USE_BURST_SHARE: Final = 1.0
"""A principal can use the budget of a whole hour at once: by default 1.3 million events, or four minutes
of 5,000 requests a second."""

CHANGES_BYTES_PER_HOUR: Final = 2**30
"""The budget of changes: 1.3 million an hour, more than any administrator makes. It is not a setting, because
operators who lower the budget of plain use still want each change."""

SUMMARY_MS: Final = 60_000
"""How long equal decisions are collected: the longest time that an operator waits for their number."""

DISTINCT_NAMES_MAX: Final = 1000
"""The names that are distinguished for a principal in a minute, and the names that are counted in a summary
without a name. A number that reaches this limit is a lower bound."""

KINDS_MAX: Final = 16_384
"""Kinds that are collected at the same time, about 16 MB: the ring has space for all of their summaries.
Decisions of further kinds are events."""

NAMED_KINDS_MAX: Final = KINDS_MAX // 2
"""The kinds with names: principals that use many names must leave space for the summaries of others."""

COUNTED_NAMES_MAX: Final = 262_144
"""Names that are counted in all summaries together, about 20 MB."""

NAME_CHARACTERS_MAX: Final = 255
"""The longest name that is distinguished; Kafka's topics have 249 characters at most."""

COUNT_MAX: Final = 2**31 - 1
"""The largest number that an event can hold."""

DAY_MS: Final = 86_400_000


class Summary(NamedTuple):
    """One event that replaces many; its time and offset are the ones of the last decision."""

    context: AuthorizableRequestContext
    decided: Decided
    time_ms: int
    acl_offset: int


@dataclass(slots=True)
class Gathered:
    """The decisions of one kind since its first one."""

    since_ms: int
    owner: PrincipalKey | None
    """The principal whose name limit this kind counts against; None for a kind without a name."""
    last: Summary
    """The last request of the kind, with its first decision."""
    decided: Decided
    decisions: int = 0
    references: int = 0
    names: set[int] = field(default_factory=set)

    def summary(self) -> Summary | None:
        """Return the event of the gathered decisions, None without gathered decisions."""
        if not self.decisions:
            return None
        last = self.decided
        names = 1 if self.owner is not None else len(self.names)
        decided = last._replace(
            action=replace(last.action, reference_count=min(self.references, COUNT_MAX)),
            # a use must not count for a name that is only the last of many
            name=None if names > 1 and last.decision.allowed and not last.listing else last.name,
            distinct_names=names,
            decision_count=min(self.decisions, COUNT_MAX),
        )
        return self.last._replace(decided=decided)


class Summaries:
    """The kinds of decisions that are being gathered, oldest first. Each decision takes constant time."""

    def __init__(self, monotonic_ms: Callable[[], int]) -> None:
        self.denied = 0
        """Denials and filtered names without their own event, since the start."""
        self.allowed = 0
        """Allowed decisions without their own event, since the start."""
        self._monotonic_ms: Final = monotonic_ms
        # an OrderedDict, as in `budget`
        self._kinds: Final[OrderedDict[tuple[object, ...], Gathered]] = OrderedDict()
        self._named: Final[Counter[PrincipalKey]] = Counter()
        self._named_kinds = 0
        self._counted_names = 0

    def __len__(self) -> int:
        return len(self._kinds)

    @property
    def due_ms(self) -> int:
        """The milliseconds until the first summary is due; 0 or less if it is due now."""
        if not self._kinds:
            return SUMMARY_MS
        return self._kinds[next(iter(self._kinds))].since_ms + SUMMARY_MS - self._monotonic_ms()

    def gathered(self, one: Summary, *, by_name: bool) -> Gathered | None:
        """Return the gathered decisions of this kind, None if this decision must be an event.

        `by_name`: names are distinguished.
        """
        item = one.decided
        kind = _kind_of(one)
        # the id of a decision is unique while `last` holds the decision
        named = (*kind, one.context.host, item.name, id(item.decision))
        found = self._kinds.get(named) if by_name else None
        if found is not None:
            found.last = one
            return found
        owner = key_of(one.context.principal)
        if by_name and self._may_name(owner, item.name):
            self._named[owner] += 1
            self._named_kinds += 1
            self._kinds[named] = Gathered(self._monotonic_ms(), owner, one, item)
            return None
        found = self._kinds.get(kind)
        if found is not None:
            found.last = one
        elif len(self._kinds) < KINDS_MAX:
            self._kinds[kind] = Gathered(self._monotonic_ms(), None, one, item)
        return found

    def _may_name(self, owner: PrincipalKey, name: str | None) -> bool:
        return (
            len(self._kinds) < KINDS_MAX
            and self._named_kinds < NAMED_KINDS_MAX
            and self._named[owner] < DISTINCT_NAMES_MAX
            and (name is None or len(name) <= NAME_CHARACTERS_MAX)
        )

    def add(self, gathered: Gathered, item: Decided) -> None:
        """Count a decision that gets no event."""
        gathered.decided = item
        gathered.decisions += 1
        gathered.references += item.action.reference_count
        names = gathered.names
        count = len(names)
        if gathered.owner is None and count < DISTINCT_NAMES_MAX:
            if self._counted_names < COUNTED_NAMES_MAX or not names:
                names.add(hash(item.action.resource_name))
            self._counted_names += len(names) - count

    def take(self, kinds_max: int = KINDS_MAX, *, is_end: bool = False) -> list[Summary]:
        """Return the due summaries, or all summaries (`is_end`), of at most `kinds_max` kinds."""
        taken: list[Summary] = []
        for _ in range(kinds_max):
            if not self._kinds or not (is_end or self.due_ms <= 0):
                break
            _, gathered = self._kinds.popitem(last=False)
            self._counted_names -= len(gathered.names)
            if (owner := gathered.owner) is not None:
                self._named_kinds -= 1
                self._named[owner] -= 1
                if not self._named[owner]:
                    del self._named[owner]
            if (summary := gathered.summary()) is not None:
                taken.append(summary)
        return taken


class DecisionBudgets:
    """The three budgets of each principal, and the summaries of the decisions that exceed them.

    `monotonic_ms` is the clock by which budgets grow and summaries are due.
    """

    def __init__(
        self, denied_bytes_per_hour: int, allowed_bytes_per_hour: int, monotonic_ms: Callable[[], int]
    ) -> None:
        self.denied: Final = AuditBudget(denied_bytes_per_hour, monotonic_ms)
        self.use: Final = AuditBudget(allowed_bytes_per_hour, monotonic_ms, USE_BURST_SHARE)
        self._changes: Final = AuditBudget(CHANGES_BYTES_PER_HOUR, monotonic_ms, USE_BURST_SHARE)
        self.summaries: Final = Summaries(monotonic_ms)

    def admit(
        self,
        context: AuthorizableRequestContext,
        decided: Sequence[Decided],
        time_ms: int,
        acl_offset: int,
    ) -> tuple[Decided, ...]:
        """Return the decisions of a request that get their own event; the others are gathered."""
        of_request = request_bytes(context)
        accounts: dict[AuditBudget, Account] = {}
        admitted: list[Decided] = []
        excess: _Excess | None = None
        for item in decided:
            budget = self._budget_of(item)
            account = accounts.get(budget)
            if account is None:
                account = accounts[budget] = budget.account(context.principal)
            if account.room_bytes >= of_request and account.take(of_request + name_bytes(item)):
                admitted.append(item)
                continue
            if excess is None:
                excess = _Excess(self.summaries, context, time_ms, acl_offset)
            if not excess.gather(item, by_name=budget is not self.denied):
                admitted.append(item)
        if self.use in accounts:
            self.use.lend(accounts[self.use])
        return tuple(admitted)

    def repeated_bytes(self, context: AuthorizableRequestContext, decided: Sequence[Decided]) -> int | None:
        """Return the size of the events of a request that is only plain use; None for any other request."""
        if all(self._budget_of(item) is self.use for item in decided):
            return request_bytes(context) * len(decided) + sum(map(name_bytes, decided))
        return None

    def _budget_of(self, item: Decided) -> AuditBudget:
        if item.listing or not item.decision.allowed:
            return self.denied
        return self.use if item.action.operation in USE_OPERATIONS else self._changes


class _Excess:
    """The decisions of one request that exceed a budget."""

    __slots__ = ("_acl_offset", "_before", "_context", "_gathered", "_summaries", "_time_ms")

    def __init__(
        self, summaries: Summaries, context: AuthorizableRequestContext, time_ms: int, acl_offset: int
    ) -> None:
        client_id = context.client_id
        if client_id is not None and len(client_id) > AUDITED_NAME_CHARACTERS_MAX:
            # summaries keep the context for a minute
            context = replace(context, client_id=audited_name(client_id))
        self._summaries = summaries
        self._context = context
        self._time_ms = time_ms
        self._acl_offset = acl_offset
        self._before: Decided | None = None
        self._gathered: Gathered | None = None

    def gather(self, item: Decided, *, by_name: bool) -> bool:
        """Count a decision in its summary; return False for the first of a kind, which must be an event."""
        before, gathered = self._before, self._gathered
        # a list has thousands of consecutive names of one kind
        if by_name or gathered is None or before is None or not _is_alike(item, before):
            one = Summary(self._context, item, self._time_ms, self._acl_offset)
            gathered = self._gathered = self._summaries.gathered(one, by_name=by_name)
        self._before = None if by_name else item
        if gathered is None:
            return False
        self._summaries.add(gathered, item)
        if by_name:
            self._summaries.allowed += 1
        else:
            self._summaries.denied += 1
        return True


def _kind_of(one: Summary) -> tuple[object, ...]:
    """Return the properties that all decisions of one summary share, apart from names."""
    item = one.decided
    action, decision = item.action, item.decision
    return (
        one.context.principal,
        one.context.request_type,
        one.time_ms // DAY_MS,
        action.operation,
        action.resource_type,
        decision.result,
        decision.rule.kind,
        action.log_if_allowed,
        action.log_if_denied,
        item.listing,
        item.name is None,
        item.shadow and item.shadow.result,
        item.candidate and (item.candidate.result, item.candidate.acls_id),
    )


def _is_alike(one: Decided, other: Decided) -> bool:
    """Return True if two decisions of a request are of one kind without a name; False means unknown."""
    action, than = one.action, other.action
    return (
        one.decision is other.decision
        and action.operation is than.operation
        and action.resource_type is than.resource_type
        and action.log_if_allowed is than.log_if_allowed
        and action.log_if_denied is than.log_if_denied
        and one.listing is other.listing
        and (one.name is None) is (other.name is None)
        and one.shadow is other.shadow
        and one.candidate is other.candidate
    )
