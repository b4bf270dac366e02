"""Frequent logins do not fill the audit log, and each login is in exactly one event."""

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import KafkaPrincipal
from kustos.authorizer import SecurityEvent, SecurityEventType, SecurityResult
from kustos.gateway.audit import repeated_logins
from kustos.gateway.audit.budget import BURST_SHARE, EVENT_BYTES, AuditBudget
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.repeated_logins import RepeatedLogins
from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.gateway.metrics.observer import FixedPosition, GatewayObserver
from testkit.gateway.audit import EVENTS, ControlledSink, failure
from tests.unit.gateway.test_audit_security import SUCCESS

FEW_LOGINS = 3


def budget_of(logins: int, now_ms: Callable[[], int] = lambda: 0) -> AuditBudget:
    """Return a budget for the given number of logins of `alice` at once."""
    return AuditBudget(int((EVENT_BYTES + 5) * logins / BURST_SHARE) + 1, now_ms)


def login(name: str = "alice", host: str = "10.0.0.1", at_ms: int = 1) -> SecurityEvent:
    return SecurityEvent(
        event_type=SecurityEventType.LOGIN,
        result=SecurityResult.SUCCESS,
        time_ms=at_ms,
        first_time_ms=at_ms,
        listener_name="CLIENTS",
        security_protocol="SASL_PLAINTEXT",
        host=host,
        mechanism="PLAIN",
        principal=KafkaPrincipal("User", name),
    )


def test_logins_beyond_the_budget_are_one_event_of_a_window_whatever_their_addresses() -> None:
    logins = RepeatedLogins(budget_of(FEW_LOGINS))
    events = [logins.add(login(host=f"10.0.0.{number}", at_ms=number)) for number in range(100)]
    assert [each is not None for each in events] == [True] * (FEW_LOGINS + 1) + [False] * 96
    [summary] = logins.end_window()
    assert (summary.attempt_count, summary.first_time_ms, summary.time_ms) == (96, 4, 99)
    assert (summary.principal, summary.host, summary.result) == (
        KafkaPrincipal("User", "alice"),
        None,
        SecurityResult.SUCCESS,
    )
    assert logins.counted == 96
    assert logins.add(login(at_ms=200)) is not None, "the first of the next window is seen at once"
    assert logins.end_window() == []


def test_other_principals_have_their_own_budget_which_refills() -> None:
    now_ms = 0
    logins = RepeatedLogins(budget_of(FEW_LOGINS, lambda: now_ms))
    for _ in range(10):
        logins.add(login())
    assert logins.add(login("robin")) is not None
    assert logins.add(login()) is None
    now_ms = 3_600_000
    assert logins.add(login()) is not None


@given(logins=st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=60))
def test_each_login_is_in_exactly_one_event_beyond_the_limit_of_principals(
    logins: list[tuple[str, bool]],
) -> None:
    with patch.object(repeated_logins, "KINDS_MAX", 2):
        frequent, events = RepeatedLogins(budget_of(1)), list[SecurityEvent]()
        for at_ms, (name, ends_window) in enumerate(logins):
            reported = frequent.add(login(name, at_ms=at_ms))
            events += [] if reported is None else [reported]
            events += frequent.end_window() if ends_window else []
        events += frequent.end_window()
    assert sum(each.attempt_count for each in events) == len(logins)


async def test_a_flood_of_logins_is_few_events_and_leaves_space_for_failures() -> None:
    sink = ControlledSink()
    sink.may_write.set()
    log = AuditLog(EVENTS, [sink], denied_bytes_per_hour=10 * 3 * (EVENT_BYTES + 5))
    metrics = GatewayMetrics()
    metrics.watch(acl_count=lambda: 0, metadata_offset=lambda: 0, audit=log)
    observer = GatewayObserver(log, metrics, FixedPosition(1))
    for _ in range(1000):
        assert observer.login_ended(SUCCESS)
    log.security.count(failure())
    assert b"kustos_audit_summarized_logins_total 996.0" in metrics.text()
    await log.close()
    assert sum(each.attempt_count for each in sink.security if each.failure is None) == 1000
    assert len(sink.security) == 6


def test_counted_logins_with_other_groups_are_not_one_event() -> None:
    logins = RepeatedLogins(budget_of(0))
    for groups in ("Group:ops", "Group:dev", "Group:ops"):
        logins.add(replace(login(), detail=groups))
        logins.add(replace(login(), detail=groups))
    assert {each.detail: each.attempt_count for each in logins.end_window()} == {
        "Group:ops": 3,
        "Group:dev": 1,
    }
