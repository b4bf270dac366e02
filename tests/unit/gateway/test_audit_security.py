"""Security events on their way into the log: counted, held until known, and never lost at the end."""

from pathlib import Path

import pytest

from kustos.acl import KafkaPrincipal
from kustos.authorizer import SecurityResult
from kustos.gateway.audit import security as audit_security
from kustos.gateway.audit.errors import AuditLogClosedError
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.rings import AuditRings
from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.gateway.metrics.observer import FixedPosition, GatewayObserver
from kustos.gateway.session.logins import LOG_IS_FULL, Login
from testkit.gateway.audit import CONTEXT, EVENTS, ControlledSink, decided, failure, until, willing

SUCCESS = Login(
    listener_name="CLIENTS",
    security_protocol="SASL_SSL",
    host="10.0.0.1",
    mechanism="PLAIN",
    claimed_name="alice",
    is_reauthentication=False,
    principal=KafkaPrincipal("User", "alice"),
)


async def test_a_window_reports_its_count_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_security, "WINDOW_S", 0.01)
    sink = willing()
    log = AuditLog(EVENTS, [sink])
    for _ in range(3):
        log.security.count(failure())
    await until(sink.answered, lambda: len(sink.security) == 2)
    assert [each.attempt_count for each in sink.security] == [1, 2]
    await log.close()
    assert len(sink.security) == 2


async def test_a_full_log_admits_no_login_and_only_counts_failures() -> None:
    sink = ControlledSink()
    log = AuditLog(EVENTS, [sink], queue_max_events=1)
    observer = GatewayObserver(log, GatewayMetrics(), FixedPosition(1))
    assert observer.login_ended(SUCCESS)
    observer.decided(CONTEXT, [decided("a")], 5)
    assert log.is_full
    depth = log.writers[0].depth
    assert not observer.login_ended(SUCCESS)
    for _ in range(100):
        log.security.count(failure())
    assert log.writers[0].depth == depth
    sink.may_write.set()
    await log.close()
    reported = [(each.failure, each.attempt_count) for each in sink.security]
    assert reported == [(None, 1), (LOG_IS_FULL, 1), ("wrong", 100)]


async def test_a_change_is_reported_when_known_and_as_unknown_after_a_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sink = willing()
    log = AuditLog(EVENTS, [sink])
    event = failure("quick")
    settle = log.security.hold([event])
    settle([event])
    await until(sink.answered, lambda: len(sink.security) == 1)
    monkeypatch.setattr(audit_security, "CHANGE_MAX_S", 0.01)
    slow = failure("slow")
    settle = log.security.hold([slow])
    await until(sink.answered, lambda: len(sink.security) == 2)
    settle([slow])
    monkeypatch.undo()
    log.security.hold([failure("at the end")])
    await log.close()
    assert [(each.claimed_name, each.result) for each in sink.security] == [
        ("quick", SecurityResult.FAILURE.value),
        ("slow", SecurityResult.UNKNOWN.value),
        ("slow", SecurityResult.FAILURE.value),
        ("at the end", SecurityResult.UNKNOWN.value),
    ]


async def test_the_number_of_held_changes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_security, "CHANGES_MAX", 1)
    sink = willing()
    log = AuditLog(EVENTS, [sink])
    log.security.hold([failure("first")])
    log.security.hold([failure("second")])([failure("second")])
    await log.close()
    assert [(each.claimed_name, each.result) for each in sink.security] == [
        ("second", SecurityResult.UNKNOWN.value),
        ("second", SecurityResult.FAILURE.value),
        ("first", SecurityResult.UNKNOWN.value),
    ]


async def test_a_closed_log_rejects_events_so_no_change_takes_effect() -> None:
    log = AuditLog(EVENTS, [willing()])
    await log.close()
    with pytest.raises(AuditLogClosedError):
        log.security.record(failure())
    with pytest.raises(AuditLogClosedError):
        log.security.count(failure())
    with pytest.raises(AuditLogClosedError):
        log.security.hold([failure()])


async def test_an_empty_change_is_held_like_any_other(tmp_path: Path) -> None:
    rings = AuditRings.open(tmp_path, "node", (), EVENTS)
    sink = willing()
    log = AuditLog(EVENTS, [sink], rings=rings)
    log.security.hold([])([])
    log.security.hold([])([failure("one")])
    log.security.hold([failure("two")])([])
    await until(sink.answered, lambda: len(sink.security) == 1)
    assert rings.own.is_empty
    await log.close()
    assert [each.claimed_name for each in sink.security] == ["one"]
