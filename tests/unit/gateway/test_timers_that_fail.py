"""Periodic timers continue after a failure: each fails once here."""

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kustos.gateway.audit import security as security_module
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.listener.pending_logins import PendingLogins
from kustos.gateway.listener.plans import ConnectionSettings
from kustos.gateway.metrics import loop_lag
from kustos.gateway.metrics.loop_lag import LoopLag
from kustos.gateway.session.large_turns import LargeTurns
from testkit.gateway.audit import EVENTS, failure, willing
from testkit.waiting import wait_until
from tests.unit.gateway.test_request_turns import used_up


class InjectedError(Exception):
    """What the tests raise."""


class Timers:
    """Pending callbacks, called one after another; their errors are kept, as the event loop does."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.errors: list[Exception] = []

    def call_later(self, _delay_s: float, callback: Callable[[], None]) -> None:
        self.waiting.append(callback)

    def fire(self) -> None:
        try:
            self.waiting.pop(0)()
        except InjectedError as error:
            self.errors.append(error)


def fails_once(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that raises at its first call and works from then on."""
    errors: Iterator[InjectedError] = iter([InjectedError()])

    def called(*arguments: Any) -> Any:
        for error in errors:
            raise error
        return work(*arguments)

    return called


def test_unauthenticated_clients_are_closed_after_one_fails_to_close() -> None:
    timers, ended, clock = Timers(), list[Any](), SimpleNamespace(now_s=0.0)
    pending: Any = PendingLogins(
        ConnectionSettings(login_timeout_ms=1_000),
        SimpleNamespace(unauthenticated=0),
        fails_once(ended.append),
        lambda: clock.now_s,
        timers.call_later,
    )
    for client in "abc":
        pending.add(client, "10.0.0.1")
    clock.now_s = 2.0
    timers.fire()
    timers.fire()
    assert (len(timers.errors), ended, timers.waiting) == (1, ["b", "c"], [])


def test_the_next_large_request_has_its_turn_after_a_failure() -> None:
    timers, turns_taken = Timers(), list[int]()
    turns = LargeTurns(lambda: 0.0, timers.call_later)
    go_on = fails_once(lambda: turns_taken.append(1))
    for owner in ("alice", "bob"):
        assert not turns.has_come(turns.place(owner), go_on, amid=True)
    timers.fire()
    timers.fire()
    assert (len(timers.errors), turns_taken, timers.waiting) == (1, [1], [])


def test_the_request_budget_keeps_checking_waiting_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = used_up()
    for owner in ("alice", "bob"):
        turns.frame(owner, owner)
    (check,) = turns.timers
    turns.timers.clear()
    monkeypatch.setattr(turns.budget, "_end_slow", fails_once(turns.budget._end_slow))
    with pytest.raises(InjectedError):
        check()
    assert len(turns.timers) == 1


async def happens(condition: Callable[[], object]) -> None:
    await asyncio.to_thread(wait_until, condition, what="the timer goes on")


@pytest.fixture
async def errors() -> list[Any]:
    """The errors of callbacks of the loop."""
    found: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: found.append(context["exception"]))
    return found


async def test_the_event_loop_lag_sampler_continues_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, errors: list[Any]
) -> None:
    monkeypatch.setattr(loop_lag, "SAMPLE_EVERY_S", 0.001)
    lag, samples = LoopLag(asyncio.get_running_loop().time), list[float]()
    monkeypatch.setattr(lag, "late", fails_once(samples.append))
    lag.start()
    await happens(lambda: samples)
    lag.stop()
    assert len(errors) == 1


async def test_a_window_of_failed_logins_ends_after_a_failed_window(
    monkeypatch: pytest.MonkeyPatch, errors: list[Any]
) -> None:
    monkeypatch.setattr(security_module, "WINDOW_S", 0.001)
    sink = willing()
    log = AuditLog(EVENTS, [sink])
    for _ in range(3):
        log.security.count(failure())
    monkeypatch.setattr(log.security, "_is_full", fails_once(lambda: False))
    await happens(lambda: errors)
    log.security._begin_window()
    await happens(lambda: len(sink.security) == 2)
    assert [each.attempt_count for each in sink.security] == [1, 2]
    await log.close()
