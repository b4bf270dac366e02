"""Nobody fills the audit log with what came to nothing, and what had an effect is always in it."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.authorizer import AuthorizableRequestContext, Decision, ShadowDecision
from kustos.gateway.audit import budget as audit_budget
from kustos.gateway.audit.budget import EVENT_BYTES, AuditBudget
from kustos.gateway.audit.entries import AuditEntry
from kustos.gateway.audit.log import AuditLog
from kustos.protocol import Decided
from testkit.gateway.audit import ALLOWED, DENIED, EVENTS, context_of, decided, until, willing

BURST = 5 * (EVENT_BYTES + 1)
"""Room for five events of names of one character."""

ROOM = 50 * (EVENT_BYTES + 1)
"""What an hour must have so that this is the room at once."""

HOUR_MS = 3_600_000


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return 1_795_235_215_815 + self.now_ms


def admit(budget: AuditBudget, context: AuthorizableRequestContext, *items: Decided) -> list[Decided]:
    return list(budget.admit(context, items, 0, 7))


SHADOWS = st.sampled_from(
    [
        None,
        ShadowDecision(ALLOWED, "", "new"),
        ShadowDecision(DENIED, "", "new"),
        ShadowDecision(None, "Error"),
    ]
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.sampled_from([ALLOWED, DENIED]), st.booleans(), SHADOWS, SHADOWS
        ),
        max_size=40,
    )
)
def test_a_listing_is_summed_up_as_its_names_would_be_one_by_one(
    items: list[tuple[str, Decision, bool, ShadowDecision | None, ShadowDecision | None]],
) -> None:
    context = context_of("alice")
    at_once, one_by_one = (AuditBudget(ROOM, lambda: 0) for _ in range(2))
    named = [
        decided(name, decision)._replace(listing=listing, shadow=shadow, candidate=candidate)
        for name, decision, listing, shadow, candidate in items
    ]
    together = admit(at_once, context, *named)
    assert together == [each for item in named for each in admit(one_by_one, context, item)]
    assert at_once.summarized == one_by_one.summarized == len(named) - len(together)
    assert at_once.take_summaries() == one_by_one.take_summaries()


NAMES = st.sampled_from("abcdefgh")
REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(["alice", "bob"]),
        st.lists(st.tuples(NAMES, st.sampled_from([ALLOWED, DENIED]), st.booleans()), max_size=6),
        st.sampled_from([0, 60_000, HOUR_MS // 5]),
    ),
    max_size=30,
)


@given(REQUESTS)
def test_every_decision_is_in_an_event_and_every_use_has_its_own(
    requests: list[tuple[str, list[tuple[str, object, bool]], int]],
) -> None:
    clock = Clock()
    budget = AuditBudget(ROOM, clock.monotonic_ms)
    asked: Counter[tuple[str, bool]] = Counter()
    written: Counter[tuple[str, bool]] = Counter()
    in_vain: Counter[str] = Counter()
    for name, items, pause_ms in requests:
        made = [
            Decided(decided(topic, decision).action, decision, listing, topic)  # type: ignore[arg-type]
            for topic, decision, listing in items
        ]
        asked.update((name, item.decision.allowed) for item in made)
        admitted = admit(budget, context_of(name), *made)
        uses = [item for item in made if item.decision.allowed and not item.listing]
        assert [item for item in admitted if item in uses] == uses
        written.update((name, item.decision.allowed) for item in admitted)
        in_vain[name] += len(admitted) - len(uses)
        clock.now_ms += pause_ms
    for name, count in in_vain.items():
        assert count * (EVENT_BYTES + 1) <= BURST + ROOM * clock.now_ms / HOUR_MS + 1e-6, name
    for summary in budget.take_summaries():
        name, item = summary.context.principal.name, summary.decided
        assert 1 <= (item.distinct_names or 0) <= item.action.reference_count
        written[name, item.decision.allowed] += item.action.reference_count
    assert written == asked
    assert budget.take_summaries() == []


@pytest.mark.parametrize("text", ["x", "\x01", "\u2028", "é", "\U0001f600"])
@pytest.mark.parametrize("characters", [1, 249, 20_000])
@pytest.mark.parametrize("client_id", ["", "\x00" * 255, "c" * 255])
def test_no_choice_of_bytes_writes_more_than_the_budget(text: str, characters: int, client_id: str) -> None:
    budget = AuditBudget(100 * ROOM, Clock().monotonic_ms)
    context = replace(context_of("mallory"), client_id=client_id)
    names = (f"{number}{text * characters}" for number in range(2_000))
    admitted = admit(budget, context, *(decided(name, DENIED) for name in names))
    lines = EVENTS.json_lines(AuditEntry(0, 1, context, tuple(admitted), 7, latency_us=9))
    assert 0 < sum(len(line.encode()) for line in lines) <= 10 * ROOM


def test_one_principals_flood_takes_nothing_from_another() -> None:
    budget = AuditBudget(ROOM, Clock().monotonic_ms)
    for number in range(1000):
        admit(budget, context_of("mallory"), decided(f"{number}", DENIED))
    assert len(admit(budget, context_of("alice"), decided("t", DENIED))) == 1
    assert admit(budget, context_of("mallory"), decided("t", DENIED), decided("used", ALLOWED)) == [
        decided("used", ALLOWED)
    ]
    [summary] = budget.take_summaries()
    assert summary.context.principal.name == "mallory"
    assert summary.decided.name == "t", "the last"
    assert summary.decided.action.reference_count == 1001 - 5
    assert summary.decided.distinct_names == 1001 - 5
    assert budget.summarized == 1001 - 5


def test_different_denials_are_told_apart() -> None:
    budget = AuditBudget(0, Clock().monotonic_ms)
    here, there = (
        context_of("alice"),
        AuthorizableRequestContext(context_of("alice").principal, "h", request_type=1),
    )
    for _ in range(3):
        admit(budget, here, decided("a", DENIED), decided("b", DENIED))
        admit(budget, there, decided("a", DENIED))
    summaries = budget.take_summaries()
    assert [(s.context.request_type, s.decided.action.reference_count) for s in summaries] == [(3, 6), (1, 3)]
    assert [s.decided.distinct_names for s in summaries] == [2, 1]


def test_a_refusal_is_not_gathered_with_probes() -> None:
    budget = AuditBudget(0, Clock().monotonic_ms)
    refusal, probe = decided("a", DENIED), decided("a", DENIED, log_if_denied=False)
    admit(budget, context_of("alice"), refusal, probe, probe)
    summaries = [each.decided for each in budget.take_summaries()]
    assert [(each.is_probe, each.action.reference_count) for each in summaries] == [(False, 1), (True, 2)]


def test_principals_beyond_the_limit_share_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_budget, "PRINCIPALS_MAX", 2)
    clock = Clock()
    budget = AuditBudget(ROOM, clock.monotonic_ms)

    def admitted() -> int:
        return sum(len(admit(budget, context_of(f"user-{n}"), decided("t", DENIED))) for n in range(20))

    assert admitted() == 2 + 5
    assert {each.context.principal.name for each in budget.take_summaries()} >= {"user-10", "user-19"}
    clock.now_ms = HOUR_MS
    assert len(admit(budget, context_of("somebody"), decided("t", DENIED))) == 1


async def test_what_is_gathered_is_written_in_time_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kustos.gateway.audit.log.SUMMARY_S", 0)
    sink = willing()
    log = AuditLog([sink], denied_bytes_per_hour=10 * (EVENT_BYTES + 1))
    for name in "abc":
        log.record(context_of("alice"), [decided(name, DENIED)], 5)
    await until(sink.answered, lambda: sink.names == ["a", "c"])
    monkeypatch.setattr("kustos.gateway.audit.log.SUMMARY_S", 3600)
    for name in "de":
        log.record(context_of("alice"), [decided(name, DENIED), decided("used", ALLOWED)], 5)
    await log.close()
    assert sink.names == ["a", "c", "used", "used", "e"]
    assert log.budget.summarized == 4
