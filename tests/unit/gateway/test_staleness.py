"""The gate that closes when the metadata is too old, on a clock that the test advances."""

import asyncio
import time
from typing import Any

import pytest
from structlog.testing import capture_logs

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import AuthorizerNotReadyError
from kustos.gateway.quorum.staleness import StalenessGate
from kustos.runtime import SystemClock
from kustos.runtime.clock import SINCE_BOOT
from testkit.acls.one_line import authorizer_of

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
ALICE, ROOT = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "root")


class Loop:
    """The part of an event loop that a gate uses, and its clock."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.timers: list[tuple[float, Any]] = []

    @property
    def now_ms(self) -> int:
        return round(self.now_s * 1000)

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return 0

    def call_later(self, delay_s: float, callback: Any) -> "Loop":
        self.timers.append((self.now_s + delay_s, callback))
        return self

    def cancel(self) -> None:
        self.timers.clear()

    def pass_time(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self.timers and min(self.timers)[0] <= end_s:
            when_s, callback = self.timers.pop(0)
            self.now_s = when_s
            callback()
        self.now_s = end_s


def gate_on(loop: Loop, max_staleness_ms: int = 10_000) -> StalenessGate:
    made: asyncio.AbstractEventLoop = loop  # type: ignore[assignment]
    return StalenessGate(max_staleness_ms, made, loop)


def test_the_gate_is_closed_until_the_metadata_is_current() -> None:
    gate = gate_on(Loop())
    assert not gate.is_open
    assert gate.staleness_ms is None


def test_the_gate_is_open_while_the_metadata_is_recent_measured_from_the_request() -> None:
    loop = Loop()
    gate = gate_on(loop)
    gate.fresh(loop.now_ms - 4_000)
    assert gate.is_open
    assert gate.staleness_ms == 4_000
    loop.pass_time(5.99)
    assert gate.is_open
    loop.pass_time(0.01)
    assert not gate.is_open


def test_a_stale_answer_does_not_open_the_gate() -> None:
    loop = Loop()
    gate = gate_on(loop)
    gate.fresh(loop.now_ms - 10_000)
    assert not gate.is_open


def test_the_gate_logs_a_lost_quorum_then_denial_then_recovery() -> None:
    loop = Loop()
    gate = gate_on(loop)
    with capture_logs() as logs:
        for _ in range(5):
            gate.fresh(loop.now_ms)
            loop.pass_time(4)
        assert logs == []
        loop.pass_time(1)
        loop.pass_time(100)
        gate.fresh(loop.now_ms)
    assert [each["log_level"] for each in logs] == ["warning", "error", "info"]
    assert logs[0]["denied_at_ms"] == logs[1]["max_staleness_ms"] == 10_000
    assert logs[1]["staleness_ms"] == 10_000
    assert gate.is_open
    loop.pass_time(200)
    assert not gate.is_open


def test_a_failed_gate_stays_closed() -> None:
    loop = Loop()
    gate = gate_on(loop)
    gate.fresh(loop.now_ms)
    gate.fail()
    gate.fresh(loop.now_ms)
    assert not gate.is_open
    assert loop.timers == []


def test_a_closed_gate_decides_for_super_users_only() -> None:
    loop = Loop()
    gate = gate_on(loop)
    authorizer = authorizer_of("ALLOW READ User:alice TOPIC orders", super_users="User:root")
    alice = gate.guarded(authorizer, ALICE, "10.0.0.1")
    root = gate.guarded(authorizer, ROOT, "10.0.0.1")
    for _ in range(2):
        with pytest.raises(AuthorizerNotReadyError, match="too old"):
            alice.decide(READ, TOPIC, "orders")
        with pytest.raises(AuthorizerNotReadyError):
            alice.decide_by_resource_type(READ, TOPIC)
        assert root.decide(READ, TOPIC, "orders").allowed
        assert root.decide_by_resource_type(READ, TOPIC).allowed
        gate.fresh(loop.now_ms)
        assert alice.decide(READ, TOPIC, "orders").allowed
        assert alice.decide_by_resource_type(READ, TOPIC).allowed
        assert not alice.decide(READ, TOPIC, "others").allowed
        # no timer has to fire: one that was frozen lags
        loop.now_s += 10


def test_a_suspended_node_resumes_with_a_closed_gate() -> None:
    """The timers and the clock of an event loop may stop during suspension."""
    loop = Loop()
    gate = gate_on(loop)
    gate.fresh(loop.now_ms)
    loop.now_s += 86_400
    assert not gate.is_open
    assert gate.staleness_ms == 86_400_000


def test_the_system_clock_includes_suspension() -> None:
    assert getattr(time, "CLOCK_BOOTTIME", SINCE_BOOT) == SINCE_BOOT
    before_ms = time.clock_gettime_ns(SINCE_BOOT) // 1_000_000
    now_ms = SystemClock().monotonic_ms()
    assert before_ms <= now_ms <= time.clock_gettime_ns(SINCE_BOOT) // 1_000_000
