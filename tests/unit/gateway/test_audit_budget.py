"""No principal fills the audit log, and each decision is in exactly one event."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import AclOperation, KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext, Decision, ShadowDecision
from kustos.gateway.audit import budget as audit_budget
from kustos.gateway.audit import summaries
from kustos.gateway.audit.budget import BURST_SHARE, EVENT_BYTES, LEASE_SHARE, AuditBudget
from kustos.gateway.audit.events import AuditEvents, RequestEvents
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.rings import AuditRings
from kustos.gateway.audit.summaries import SUMMARY_MS, DecisionBudgets
from kustos.protocol import Decided
from kustos.runtime import SystemEntropy
from testkit.gateway.audit import (
    ALLOWED,
    CONTEXT,
    DENIED,
    EVENTS,
    ControlledSink,
    context_of,
    decided,
    until,
    willing,
)

EACH = EVENT_BYTES + 1
"""The cost of an event of a name of one character."""

ROOM = 50 * EACH
"""The hourly budget that gives this burst."""

HOUR_MS = 3_600_000


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return 1_795_235_215_815 + self.now_ms


def budgets_of(
    denied: int = ROOM, allowed: int = 2**30, now_ms: Callable[[], int] = lambda: 0
) -> DecisionBudgets:
    return DecisionBudgets(denied, allowed, now_ms)


def admit(budgets: DecisionBudgets, context: AuthorizableRequestContext, *items: Decided) -> list[Decided]:
    return list(budgets.admit(context, items, 0, 7))


def taken(budgets: DecisionBudgets) -> list[summaries.Summary]:
    return budgets.summaries.take(is_end=True)


def summarized(budgets: DecisionBudgets) -> int:
    return budgets.summaries.denied + budgets.summaries.allowed


def use(name: str, operation: AclOperation = AclOperation.READ, references: int = 1) -> Decided:
    item = decided(name, ALLOWED)
    return item._replace(action=replace(item.action, operation=operation, reference_count=references))


SHADOWS = st.sampled_from(
    [
        None,
        ShadowDecision(ALLOWED, "", "new"),
        ShadowDecision(DENIED, "", "new"),
        ShadowDecision(None, "Error"),
    ]
)
ITEMS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([ALLOWED, DENIED]), st.booleans(), SHADOWS, SHADOWS),
    max_size=40,
)


@given(ITEMS)
def test_a_request_is_summarized_like_its_single_decisions(
    items: list[tuple[str, Decision, bool, ShadowDecision | None, ShadowDecision | None]],
) -> None:
    context = context_of("alice")
    at_once, one_by_one = (budgets_of(ROOM, 3 * EACH) for _ in range(2))
    named = [
        decided(name, decision)._replace(listing=listing, shadow=shadow, candidate=candidate)
        for name, decision, listing, shadow, candidate in items
    ]
    together = admit(at_once, context, *named)
    assert together == [each for item in named for each in admit(one_by_one, context, item)]
    assert summarized(at_once) == summarized(one_by_one) == len(named) - len(together)
    assert taken(at_once) == taken(one_by_one)


REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(["alice", "bob"]),
        st.lists(
            st.tuples(
                st.sampled_from("abcdefgh"),
                st.sampled_from([ALLOWED, DENIED]),
                st.sampled_from([AclOperation.READ, AclOperation.DESCRIBE, AclOperation.ALTER]),
                st.booleans(),
                st.integers(0, 3),
            ),
            max_size=6,
        ),
        st.sampled_from([0, SUMMARY_MS - 1, SUMMARY_MS, HOUR_MS // 5]),
    ),
    max_size=30,
)


@given(REQUESTS, st.integers(1, 4))
def test_every_decision_is_in_exactly_one_event(
    requests: list[tuple[str, list[tuple[str, Decision, AclOperation, bool, int]], int]], names_max: int
) -> None:
    """Allowed decisions have names up to a limit; all events stay within the budget plus a few first ones."""
    clock = Clock()
    budgets = budgets_of(ROOM, 3 * EACH, clock.monotonic_ms)
    asked: Counter[Any] = Counter()
    reported: Counter[Any] = Counter()
    with patch.object(summaries, "DISTINCT_NAMES_MAX", names_max):

        def tell(who: str, item: Decided, count: int) -> None:
            kind = (who, item.action.operation, item.decision.allowed, item.listing)
            for what, number in (("decisions", count), ("references", item.action.reference_count)):
                reported[(*kind, what)] += number
                if item.decision.allowed and not item.listing:
                    reported[(*kind, item.name, what)] += number

        for who, made, pause_ms in requests:
            items = [
                use(name, operation, references)._replace(decision=decision, listing=listing)
                for name, decision, operation, listing, references in made
            ]
            for item in items:
                kind = (who, item.action.operation, item.decision.allowed, item.listing)
                for what, number in (("decisions", 1), ("references", item.action.reference_count)):
                    asked[(*kind, what)] += number
                    if item.decision.allowed and not item.listing:
                        asked[(*kind, item.name, what)] += number
            for item in budgets.admit(context_of(who), items, clock.now_ms, 7):
                tell(who, item, 1)
            clock.now_ms += pause_ms
            for each in budgets.summaries.take():
                tell(each.context.principal.name, each.decided, each.decided.decision_count or 0)
        for each in taken(budgets):
            tell(each.context.principal.name, each.decided, each.decided.decision_count or 0)
    nameless = {key for key in reported if None in key}
    if not nameless:
        assert reported == asked
    exact = {key: count for key, count in reported.items() if len(key) == 5}
    assert exact == {key: count for key, count in asked.items() if len(key) == 5}
    assert all(count <= asked[key] for key, count in reported.items() if key not in nameless)
    assert len(budgets.summaries) == 0
    assert taken(budgets) == []


@pytest.mark.parametrize("text", ["x", "\x01", "\u2028", "é", "\U0001f600"])
@pytest.mark.parametrize("characters", [1, 249, 20_000])
@pytest.mark.parametrize("client_id", ["", "\x00" * 255, "c" * 255])
def test_no_input_writes_more_than_the_budget(text: str, characters: int, client_id: str) -> None:
    budgets = budgets_of(100 * ROOM)
    context = replace(context_of("mallory"), client_id=client_id)
    names = (f"{number}{text * characters}" for number in range(2_000))
    admitted = admit(budgets, context, *(decided(name, DENIED) for name in names))
    assert admitted.pop(), "the first beyond the budget"
    lines = EVENTS.json_lines(RequestEvents(0, 1, context, tuple(admitted), 7, latency_us=9))
    assert 0 < sum(len(line.encode()) for line in lines) <= 10 * ROOM


def test_a_flood_of_one_principal_does_not_use_the_budget_of_another() -> None:
    budgets = budgets_of()
    for number in range(1000):
        admit(budgets, context_of("mallory"), decided(f"{number}", DENIED))
    assert len(admit(budgets, context_of("alice"), decided("t", DENIED))) == 1
    assert admit(budgets, context_of("mallory"), decided("t", DENIED), decided("used", ALLOWED)) == [
        decided("used", ALLOWED)
    ]
    [summary] = taken(budgets)
    assert summary.context.principal.name == "mallory"
    assert summary.decided.name == "t", "the last"
    written = 5 + 1
    assert summary.decided.action.reference_count == 1001 - written
    assert summary.decided.decision_count == 1001 - written
    assert summary.decided.distinct_names == 1001 - written
    assert budgets.summaries.denied == 1001 - written


def test_different_denials_have_separate_summaries() -> None:
    budgets = budgets_of(0)
    here, there = (
        context_of("alice"),
        AuthorizableRequestContext(context_of("alice").principal, "h", request_type=1),
    )
    for _ in range(3):
        admit(budgets, here, decided("a", DENIED), decided("b", DENIED))
        admit(budgets, there, decided("a", DENIED))
    found = taken(budgets)
    assert [(s.context.request_type, s.decided.action.reference_count) for s in found] == [(3, 5), (1, 2)]
    assert [s.decided.distinct_names for s in found] == [2, 1]


def test_a_denial_is_not_summarized_with_probes() -> None:
    budgets = budgets_of(0)
    refusal, probe = decided("a", DENIED), decided("a", DENIED, log_if_denied=False)
    assert admit(budgets, context_of("alice"), refusal, probe, probe, refusal) == [refusal, probe]
    found = [each.decided for each in taken(budgets)]
    assert [(each.is_probe, each.action.reference_count) for each in found] == [(False, 1), (True, 1)]


def test_use_beyond_the_budget_is_one_event_a_minute_for_each_name_with_exact_counts() -> None:
    clock = Clock()
    budgets = budgets_of(allowed=2 * EACH, now_ms=clock.monotonic_ms)
    alice = context_of("alice")
    for _ in range(100):
        admit(budgets, alice, use("a", references=3), use("b"), use("a", AclOperation.WRITE))
    clock.now_ms = SUMMARY_MS - 1
    assert budgets.summaries.take() == []
    clock.now_ms = SUMMARY_MS
    found = {
        (each.decided.name, each.decided.action.operation): each.decided for each in budgets.summaries.take()
    }
    assert {key: (each.decision_count, each.distinct_names) for key, each in found.items()} == {
        ("a", AclOperation.READ): (98, 1),
        ("b", AclOperation.READ): (98, 1),
        ("a", AclOperation.WRITE): (99, 1),
    }
    assert found["a", AclOperation.READ].action.reference_count == 3 * 98
    assert len(admit(budgets, alice, use("c"), use("c"))) == 1, "the first of a minute is an event at once"


def test_names_beyond_the_limit_are_counted_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "DISTINCT_NAMES_MAX", 3)
    budgets = budgets_of(allowed=0)
    names = "abcdefgh" * 5
    assert [each.name for each in admit(budgets, context_of("alice"), *map(use, names))] == list("abcd")
    admit(budgets, context_of("bob"), use("z"), use("z"))
    found = [
        (each.decided.name, each.decided.distinct_names, each.decided.decision_count)
        for each in taken(budgets)
    ]
    assert found == [("a", 1, 4), ("b", 1, 4), ("c", 1, 4), (None, 3, 24), ("z", 1, 1)]


def test_uses_of_different_rules_hosts_and_days_have_separate_summaries() -> None:
    budgets = budgets_of(allowed=0)
    alice, item = context_of("alice"), use("a")
    other_rule = item._replace(decision=replace(ALLOWED))
    for _ in range(2):
        admit(budgets, alice, item, other_rule)
        admit(budgets, replace(alice, host="10.0.0.9"), item)
        budgets.admit(alice, [item], summaries.DAY_MS, 7)
    assert [each.decided.decision_count for each in taken(budgets)] == [1, 1, 1, 1]


def test_changes_have_a_budget_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use that exceeds its budget, or that is not kept, hides no change."""
    budgets = budgets_of(allowed=0)
    alice, change = context_of("alice"), use("t", AclOperation.DELETE)
    for _ in range(100):
        admit(budgets, alice, use("t"))
        assert admit(budgets, alice, change) == [change]
    monkeypatch.setattr(summaries, "CHANGES_BYTES_PER_HOUR", 2 * EACH)
    budgets = budgets_of(allowed=2**40)
    written = [len(admit(budgets, alice, change)) for _ in range(10)]
    assert written == [1] * 3 + [0] * 7


def test_principals_beyond_the_limit_share_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_budget, "PRINCIPALS_MAX", 2)
    clock = Clock()
    budgets = budgets_of(now_ms=clock.monotonic_ms)

    def admitted() -> int:
        return sum(
            len(admit(budgets, context_of(f"user-{n}"), decided("t", DENIED))) for n in [*range(20)] * 2
        )

    firsts = 18
    own = 2 * 2
    assert admitted() == own + 5 + firsts
    assert {each.context.principal.name for each in taken(budgets)} >= {"user-10", "user-19"}
    clock.now_ms = HOUR_MS
    assert len(admit(budgets, context_of("somebody"), decided("t", DENIED))) == 1


class Watched(OrderedDict[Any, Any]):
    """A table that counts the entries that are read."""

    looks = 0

    def __iter__(self) -> Iterator[Any]:
        for key in super().__iter__():
            self.looks += 1
            yield key

    def __getitem__(self, key: Any) -> Any:
        self.looks += 1
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        self.looks += 1
        return super().get(key, default)

    def popitem(self, last: bool = True) -> tuple[Any, Any]:
        self.looks += 1
        return super().popitem(last)


@pytest.mark.parametrize("minutes", [0, 2 * 60 * BURST_SHARE], ids=["all in use", "all may be forgotten"])
def test_a_further_principal_costs_constant_work(monkeypatch: pytest.MonkeyPatch, minutes: float) -> None:
    monkeypatch.setattr(audit_budget, "PRINCIPALS_MAX", 500)
    clock = Clock()
    budget = AuditBudget(ROOM, clock.monotonic_ms)
    budget._accounts = table = Watched()  # type: ignore[misc]
    for number in range(500):
        budget.admit_one(KafkaPrincipal("User", f"early-{number}"))
    clock.now_ms = int(minutes * 60_000)
    for number in range(2_000):
        table.looks = 0
        budget.admit_one(KafkaPrincipal("User", f"late-{number}"))
        assert table.looks <= 4
    assert len(table) == 500


@given(
    st.lists(
        st.tuples(st.sampled_from("abcde"), st.sampled_from([0, 1, 40_000, HOUR_MS // 5, HOUR_MS])),
        max_size=60,
    )
)
def test_evicted_accounts_do_not_increase_the_budget(events: list[tuple[str, int]]) -> None:
    """A principal with its own account is treated as if all principals had one."""
    clock = Clock()
    with patch.object(audit_budget, "PRINCIPALS_MAX", 2):
        small, large = AuditBudget(ROOM, clock.monotonic_ms), AuditBudget(ROOM, clock.monotonic_ms)
        for name, pause_ms in events:
            clock.now_ms += pause_ms
            principal = KafkaPrincipal("User", name)
            account = small.account(principal)
            with patch.object(audit_budget, "PRINCIPALS_MAX", 100):
                expected = large.account(principal)
            if account is not small._shared:
                assert account.room_bytes == pytest.approx(expected.room_bytes)
            else:
                expected.take(EVENT_BYTES)
                continue
            assert account.take(EVENT_BYTES) is expected.take(EVENT_BYTES)


def test_memory_for_many_principals_and_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "KINDS_MAX", 8)
    monkeypatch.setattr(summaries, "NAMED_KINDS_MAX", 4)
    monkeypatch.setattr(summaries, "COUNTED_NAMES_MAX", 10)
    budgets = budgets_of(denied=0, allowed=0)
    asked = written = 0
    for number in range(20):
        items = [
            *(use(f"{name}") for name in range(5)),
            *(decided(f"{name}", DENIED) for name in range(5)),
        ] * 2
        asked += len(items)
        written += len(admit(budgets, context_of(f"user-{number}"), *items))
        assert len(budgets.summaries) <= 8
        assert budgets.summaries._counted_names <= 10 + 8
    counts = [each.decided.decision_count or 0 for each in taken(budgets)]
    assert written + sum(counts) == asked
    assert budgets.summaries._counted_names == budgets.summaries._named_kinds == 0
    assert not budgets.summaries._named


def test_summaries_are_taken_a_few_at_a_time() -> None:
    clock = Clock()
    budgets = budgets_of(allowed=0, now_ms=clock.monotonic_ms)
    names = [use(f"{number}") for number in range(100)]
    admit(budgets, context_of("alice"), *names, *names)
    clock.now_ms = SUMMARY_MS
    assert [len(budgets.summaries.take(30)) for _ in range(5)] == [30, 30, 30, 10, 0]


async def test_repeated_requests_take_from_the_same_budget(tmp_path: Path) -> None:
    """This includes the fast path and several connections."""
    clock, sink = Clock(), willing()
    rings = AuditRings.open(tmp_path, "node", (), AuditEvents.of_node(1, SystemEntropy()))
    cost = audit_budget.request_bytes(CONTEXT) + len("orders")
    log = AuditLog(EVENTS, [sink], rings=rings, allowed_bytes_per_hour=600 * cost + 1, clock=clock)
    again = [log.recorder(CONTEXT, [decided("orders")]) for _ in range(3)]

    def repeat(count: int) -> None:
        for number in range(count):
            again[number % 3](number, 7, 40)

    repeat(2_000)
    assert log.budgets.summaries.allowed == 2_000 - 600 - 1
    clock.now_ms += 30 * 60_000
    repeat(1_000)
    assert log.budgets.summaries.allowed == 2_000 - 600 - 1 + 1_000 - 300
    clock.now_ms += 10 * HOUR_MS
    before = log.budgets.summaries.allowed
    repeat(2_000)
    assert 2_000 - (log.budgets.summaries.allowed - before) <= 600 * (1 + LEASE_SHARE) + 1
    await log.close()
    summarized = [each for each in sink.events if each["decision_count"]]
    assert len(sink.names) - len(summarized) + sum(each["decision_count"] for each in summarized) == 5_000
    assert sum(each["reference_count"] for each in sink.events) == 5_000


async def test_summaries_are_written_in_time_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "SUMMARY_MS", 0)
    sink = willing()
    log = AuditLog(EVENTS, [sink], denied_bytes_per_hour=10 * EACH)
    alice = context_of("alice")
    for name in "abc":
        log.record(alice, [decided(name, DENIED)], 5)
    await until(sink.answered, lambda: sink.names == ["a", "b", "c"])
    monkeypatch.setattr(summaries, "SUMMARY_MS", HOUR_MS)
    for name in "de":
        log.record(alice, [decided(name, DENIED), decided("used", ALLOWED)], 5)
    await log.close()
    assert sink.names == ["a", "b", "c", "d", "used", "used", "e"]
    assert log.budgets.summaries.denied == 2


async def test_a_full_log_accepts_summaries_once_it_has_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "SUMMARY_MS", 0)
    monkeypatch.setattr("kustos.gateway.audit.log.FULL_RETRY_S", 0.01)
    sink = ControlledSink()
    log = AuditLog(EVENTS, [sink], allowed_bytes_per_hour=0, queue_max_events=1)
    log.record(context_of("alice"), [decided("a"), decided("a"), decided("a")], 5)
    await sink.tried.wait()
    assert log.is_full
    log._write_due_summaries()
    assert log.writers[0].depth == 1, "the summary waits"
    sink.may_write.set()
    await until(sink.answered, lambda: len(sink.names) == 2)
    assert [each["decision_count"] for each in sink.events] == [None, 2]
    await log.close()


def test_a_flood_of_allowed_names_needs_days_to_fill_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test uses a thousandth of the default limits."""
    monkeypatch.setattr(summaries, "DISTINCT_NAMES_MAX", 1)
    clock = Clock()
    budgets = DecisionBudgets(104_858, 2**30 // 1000, clock.monotonic_ms)
    by_hour: Counter[int] = Counter()
    for second in range(3 * 3600):
        clock.now_ms = second * 1000
        flood = [use(f"{second}-{number}") for number in range(10)]
        admitted = budgets.admit(context_of("mallory"), flood, clock.wall_ms(), 7)
        by_hour[second // 3600] += EVENT_BYTES * (len(admitted) + len(budgets.summaries.take()))
    assert by_hour[0] < 2.2 * 2**30 / 1000
    assert by_hour[2] < 1.2 * 2**30 / 1000, "so that 100 GiB take more than 80 hours"
