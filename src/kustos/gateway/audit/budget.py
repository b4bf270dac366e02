"""Limits how much of the audit log one principal may fill with denials and filtered names.

Theory of operation. The oldest audit files are deleted, so a principal that can cause events without limit
can have evidence deleted. What was allowed and used is always written, one event for each decision. A denial,
or a name in a filtered list, is written while the principal's budget, which refills with time, has room.
Beyond it equal ones (same principal, API, operation, type of resource, result, rule, decisions in the shadow,
and `log_if_denied`, so that no refusal hides behind a probe) become one event a minute: with the sum of their
references, the number of distinct names, and one of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from kustos.acl import KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext
from kustos.authorizer.audit import AUDITED_NAME_CHARACTERS_MAX
from kustos.protocol import Decided

HOUR_S: Final = 3600.0

BURST_SHARE: Final = 0.1
"""The share of its hourly budget that a principal has at once: a flood must not fill the queue of the log,
for which everybody waits in mode `block`. By default some 13,000 events, of the 65,536 that may wait."""

EVENT_BYTES: Final = 800
"""The approximate size of an event as JSON without its name and client id, which clients choose."""

LOGGED_NAME_CHARACTERS_MAX: Final = AUDITED_NAME_CHARACTERS_MAX + 128
"""Of a name that is truncated, with its length and digest."""

ESCAPED_BYTES: Final = 6
"""Bytes of a character in JSON at most: of an escaped one, as `\\u2028`; in UTF-8 it has four at most."""

SUMMARY_S: Final = 60.0
"""How often summaries are written."""

DISTINCT_NAMES_MAX: Final = 1000
"""Distinct names counted in one summary; from there on the number is a lower bound."""

PRINCIPALS_MAX: Final = 10_000
"""Principals with a budget of their own. All others share one, until some were not denied for an hour."""

REFERENCES_MAX: Final = 2**31 - 1
"""The largest number that an event can hold."""


class Summary(NamedTuple):
    """One event in place of many; time and offset are those of the last."""

    context: AuthorizableRequestContext
    decided: Decided
    time_ms: int
    acl_offset: int


@dataclass(slots=True)
class _Gathered:
    last: Summary
    references: int = 0
    names: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _Account:
    room_bytes: float
    at_s: float
    gathered: dict[tuple[object, ...], _Gathered] = field(default_factory=dict)


def written_bytes(text: str) -> int:
    """Return about how many bytes a text takes in a line at most."""
    return len(text) if text.isascii() and text.isprintable() else ESCAPED_BYTES * len(text)


def has_budget(decided: Decided) -> bool:
    """Return whether events of this kind are limited: denials, and names that were filtered."""
    return not decided.decision.allowed or decided.listing


class AuditBudget:
    """Keeps an account for each principal. `monotonic_ms` is the clock by which budgets grow."""

    def __init__(self, bytes_per_hour: int, monotonic_ms: Callable[[], int]) -> None:
        self.summarized = 0
        """Decisions that have no event of their own, since the start."""
        self._bytes_per_hour: Final = float(bytes_per_hour)
        self._burst_bytes: Final = bytes_per_hour * BURST_SHARE
        self._monotonic_ms: Final = monotonic_ms
        self._accounts: dict[tuple[str, str], _Account] = {}

    def admit(
        self,
        context: AuthorizableRequestContext,
        decided: Sequence[Decided],
        time_ms: int,
        acl_offset: int,
    ) -> tuple[Decided, ...]:
        """Return the decisions of a request that get an event of their own; the others are gathered."""
        if not any(has_budget(item) for item in decided):
            return tuple(decided)
        account = self._account(context.principal)
        of_request = EVENT_BYTES + written_bytes(context.client_id or "")
        admitted: list[Decided] = []
        over: list[Decided] = []
        for item in decided:
            if not has_budget(item):
                admitted.append(item)
                continue
            cost = of_request + written_bytes(item.action.resource_name[:LOGGED_NAME_CHARACTERS_MAX])
            if cost <= account.room_bytes:
                account.room_bytes -= cost
                admitted.append(item)
            else:
                over.append(item)
        if over:
            self._gather(account, over, context, time_ms, acl_offset)
        return tuple(admitted)

    def admit_one(self, principal: KafkaPrincipal) -> bool:
        """Return whether one event of the principal has room, and take it; if False the caller counts it."""
        account = self._account(principal)
        cost = EVENT_BYTES + len(principal.name)
        if cost > account.room_bytes:
            return False
        account.room_bytes -= cost
        return True

    def take_summaries(self) -> list[Summary]:
        """Return the gathered summaries, and start over."""
        taken: list[Summary] = []
        for account in self._accounts.values():
            for each in account.gathered.values():
                last = each.last.decided
                action = replace(last.action, reference_count=min(each.references, REFERENCES_MAX))
                decided = last._replace(action=action, distinct_names=len(each.names))
                taken.append(each.last._replace(decided=decided))
            account.gathered.clear()
        return taken

    def _account(self, principal: KafkaPrincipal) -> _Account:
        now_s = self._monotonic_ms() / 1000
        key = (principal.principal_type, principal.name)
        if key not in self._accounts and len(self._accounts) >= PRINCIPALS_MAX:
            self._forget_idle(now_s)
            if len(self._accounts) >= PRINCIPALS_MAX:
                key = ("", "")
        account = self._accounts.get(key)
        if account is None:
            account = self._accounts[key] = _Account(self._burst_bytes, now_s)
        grown = (now_s - account.at_s) / HOUR_S * self._bytes_per_hour
        account.room_bytes = min(account.room_bytes + grown, self._burst_bytes)
        account.at_s = now_s
        return account

    def _forget_idle(self, now_s: float) -> None:
        """Forget accounts that would be full again."""
        self._accounts = {
            key: account
            for key, account in self._accounts.items()
            if account.gathered or now_s - account.at_s < HOUR_S
        }

    def _gather(
        self,
        account: _Account,
        over: Sequence[Decided],
        context: AuthorizableRequestContext,
        time_ms: int,
        acl_offset: int,
    ) -> None:
        """Count decisions in their summaries; a listing has thousands in a row that belong to one."""
        self.summarized += len(over)
        before, gathered = over[0], self._gathered(account, Summary(context, over[0], time_ms, acl_offset))
        for item in over:
            if not _is_alike(item, before):
                gathered.last = gathered.last._replace(decided=before)
                gathered = self._gathered(account, Summary(context, item, time_ms, acl_offset))
            before = item
            action = item.action
            gathered.references += action.reference_count
            if len(gathered.names) < DISTINCT_NAMES_MAX:
                gathered.names.add(hash(action.resource_name))
        gathered.last = gathered.last._replace(decided=before)

    def _gathered(self, account: _Account, one: Summary) -> _Gathered:
        """Return the summary of decisions that are like this one, which becomes its last."""
        action, decision = one.decided.action, one.decided.decision
        key = (
            one.context.principal,
            one.context.request_type,
            action.operation,
            action.resource_type,
            decision.result,
            decision.rule.kind,
            action.log_if_denied,
            one.decided.listing,
            one.decided.name is None,
            one.decided.shadow and one.decided.shadow.result,
            one.decided.candidate and (one.decided.candidate.result, one.decided.candidate.acls_id),
        )
        gathered = account.gathered.get(key)
        if gathered is None:
            gathered = account.gathered[key] = _Gathered(one)
        gathered.last = one
        return gathered


def _is_alike(one: Decided, other: Decided) -> bool:
    """Return whether two decisions of a request belong to one summary for sure; False says nothing."""
    action, than = one.action, other.action
    return (
        one.decision is other.decision
        and action.operation is than.operation
        and action.resource_type is than.resource_type
        and action.log_if_denied is than.log_if_denied
        and one.listing is other.listing
        and (one.name is None) is (other.name is None)
        and one.shadow is other.shadow
        and one.candidate is other.candidate
    )
