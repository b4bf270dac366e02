"""The audit log loses nothing in mode `block`, and counts what it loses in mode `drop`."""

import asyncio
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.authorizer.audit import AUDITED_NAME_CHARACTERS_MAX, audited_name
from kustos.gateway.audit import log as audit_log
from kustos.gateway.audit import sink_writer
from kustos.gateway.audit.errors import AuditLogClosedError, EventsLostError
from kustos.gateway.audit.events import RequestEvents
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.sink_writer import BATCH_MAX_EVENTS, OnFull
from testkit.gateway.audit import CONTEXT, EVENTS, ControlledSink, decided, refusing, request, until, willing

TOPICS = [f"topic-{number}" for number in range(10)]


def is_full(log: AuditLog) -> bool:
    return log.is_full


def put(log: AuditLog, *names: str) -> None:
    log.record(CONTEXT, [decided(name) for name in names], 5)


async def test_everything_recorded_is_written_in_order_when_close_returns() -> None:
    first, second = willing("first"), willing("second")
    log = AuditLog(EVENTS, [first, second])
    for at in range(3000):
        put(log, f"{at}a", f"{at}b")
    await log.close()
    assert first.names == second.names == [f"{at}{half}" for at in range(3000) for half in "ab"]
    assert [writer.written for writer in log.writers] == [6000, 6000]
    assert first.closed
    assert second.closed


async def test_the_list_of_decisions_may_be_reused() -> None:
    sink = willing()
    log = AuditLog(EVENTS, [sink])
    mine = [decided("a")]
    log.record(CONTEXT, mine, 5)
    mine.clear()
    await log.close()
    assert sink.names == ["a"]


async def test_a_full_queue_stops_the_traffic_until_it_is_written() -> None:
    sink = ControlledSink()
    log = AuditLog(EVENTS, [sink], queue_max_events=3)
    put(log, "a", "b")
    assert not is_full(log)
    put(log, "c")
    assert is_full(log)
    put(log, "d")  # decided before the check for space: kept, too
    await sink.tried.wait()
    assert is_full(log), "events being written still count"
    sink.may_write.set()
    await until(sink.answered, lambda: not log.is_full)
    await log.close()
    assert sink.names == ["a", "b", "c", "d"]
    assert log.writers[0].dropped == 0


@pytest.mark.parametrize("queue_max_events", [3, 65_536])
async def test_a_full_batch_or_queue_is_written_immediately(
    queue_max_events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the queue would limit the throughput to its size, twenty times a second."""
    monkeypatch.setattr(sink_writer, "LINGER_S", 3600.0)
    sink, enough = willing(), min(queue_max_events, BATCH_MAX_EVENTS)
    log = AuditLog(EVENTS, [sink], queue_max_events=queue_max_events)
    put(log, "lingers")
    await asyncio.sleep(0)
    for at in range(2 * enough):
        put(log, str(at))
    await until(sink.answered, lambda: len(sink.names) >= 2 * enough)
    put(log, "last")
    await log.close()
    assert sink.names == ["lingers", *map(str, range(2 * enough)), "last"]


async def test_a_failing_sink_blocks_traffic_and_gets_all_events_after_recovery() -> None:
    broken, sound = refusing("broken"), willing("sound")
    log = AuditLog(EVENTS, [broken, sound])
    assert bool(log.is_ready)
    put(log, "a")
    await until(broken.answered, lambda: log.is_full)
    assert not bool(log.is_ready)
    put(log, "b")
    broken.refusal = None
    await until(broken.answered, lambda: not log.is_full)
    assert bool(log.is_ready)
    await log.close()
    assert broken.names == sound.names == ["a", "b"]
    assert log.writers[0].failures == broken.refusals >= 1


async def test_a_bug_in_a_sink_is_a_failure_like_any_other() -> None:
    sink = willing()
    sink.refusal = KeyError("a bug")
    log = AuditLog(EVENTS, [sink])
    put(log, "a")
    await until(sink.answered, lambda: log.is_full)
    sink.refusal = None
    await log.close()
    assert sink.names == ["a"]


async def test_mode_drop_never_blocks_and_counts_events_that_a_full_queue_drops() -> None:
    slow, sound = ControlledSink("slow"), willing("sound")
    log = AuditLog(EVENTS, [slow, sound], queue_max_events=2, on_full=OnFull.DROP)
    for name in TOPICS:
        put(log, name)
        assert not is_full(log)
        await until(sound.answered, lambda: sound.names[-1:] == [name])  # noqa: B023
    slow.may_write.set()
    await log.close()
    assert sound.names == TOPICS
    assert slow.names == [TOPICS[0], *TOPICS[-2:]], "the oldest that wait are dropped"
    assert [writer.dropped for writer in log.writers] == [7, 0]


async def test_long_names_are_truncated_before_they_are_queued() -> None:
    sink = ControlledSink()
    log = AuditLog(EVENTS, [sink])
    long_name = "n" * 32_767
    put(log, "short", long_name)
    sink.may_write.set()
    await log.close()
    logged = audited_name(long_name)
    assert sink.names == ["short", logged]
    assert len(logged) < 2 * AUDITED_NAME_CHARACTERS_MAX
    assert audited_name(logged) == logged
    whole, truncated = (
        list(EVENTS.json_lines(RequestEvents(0, 1, CONTEXT, (decided(name),), 77)))
        for name in (long_name, logged)
    )
    assert whole == truncated


async def test_mode_drop_drops_overflow_while_a_sink_fails_and_recovers_without_traffic() -> None:
    broken = refusing()
    log = AuditLog(EVENTS, [broken], queue_max_events=3, on_full=OnFull.DROP)
    put(log, "a", "b")
    await until(broken.answered, lambda: broken.refusals > 0)
    for name in TOPICS:
        put(log, name)
    assert not bool(log.is_ready)
    assert not is_full(log)
    broken.refusal = None
    await until(broken.answered, lambda: log.is_ready)
    await log.close()
    assert broken.names == ["a", "b", *TOPICS[-3:]]
    assert log.writers[0].dropped == len(TOPICS) - 3


async def test_mode_drop_closes_immediately_while_a_sink_fails() -> None:
    broken = refusing()
    log = AuditLog(EVENTS, [broken], on_full=OnFull.DROP)
    put(log, "a", "b")
    await until(broken.answered, lambda: broken.refusals > 0)
    await log.close()
    assert (log.writers[0].dropped, broken.closed) == (2, True)


async def test_mode_drop_writes_other_events_when_one_breaks_a_sink() -> None:
    sink = willing()
    sink.refusal = KeyError("a bug")
    log = AuditLog(EVENTS, [sink], on_full=OnFull.DROP)
    put(log, "a")
    await until(sink.answered, lambda: log.writers[0].dropped == 1)
    sink.refusal = None
    put(log, "b")
    await log.close()
    assert sink.names == ["b"]


async def test_a_closed_log_rejects_decisions() -> None:
    log = AuditLog(EVENTS, [willing()])
    await log.close()
    await log.close()
    assert not bool(log.is_ready)
    with pytest.raises(AuditLogClosedError):
        put(log, "a")


async def test_close_reports_events_that_were_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "CLOSE_TIMEOUT_S", 0.05)
    stuck, sound = ControlledSink("stuck"), willing("sound")
    log = AuditLog(EVENTS, [stuck, sound])
    put(log, "a", "b")
    # valid events must not need that time
    await until(sound.answered, lambda: sound.names == ["a", "b"])
    with pytest.raises(EventsLostError, match="`stuck` did not take 2 events"):
        await log.close()
    assert sound.closed


async def test_mode_drop_reports_events_that_a_stuck_sink_did_not_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit_log, "CLOSE_TIMEOUT_S", 0.05)
    stuck = ControlledSink("stuck")
    log = AuditLog(EVENTS, [stuck], on_full=OnFull.DROP)
    put(log, "a", "b")
    await stuck.tried.wait()
    with pytest.raises(EventsLostError, match="`stuck` did not take 2 events"):
        await log.close()
    assert not stuck.closed, "it is still writing"


async def test_mode_drop_rewrites_a_batch_whose_write_was_canceled() -> None:
    sink = willing()
    sink.refusal = cast("Exception", asyncio.CancelledError())
    log = AuditLog(EVENTS, [sink], on_full=OnFull.DROP)
    put(log, "a", "b")
    await until(sink.answered, lambda: sink.refusals > 0)
    sink.refusal = None
    await log.close()
    assert sink.names == ["a", "b"]
    assert (log.writers[0].written, log.writers[0].dropped) == (2, 0)


async def test_a_log_without_sinks_keeps_nothing() -> None:
    log = AuditLog(EVENTS, [])
    for _ in range(100):
        put(log, "a")
    assert not is_full(log)
    assert bool(log.is_ready)
    await log.close()


def test_an_entry_gives_the_same_events_each_time() -> None:
    assert list(EVENTS.json_lines(request(4, "a", "b"))) == list(EVENTS.json_lines(request(4, "a", "b")))


@given(st.integers(0, 2**64 - 1), st.sets(st.integers(0, 2**62 - 1), min_size=2, max_size=20))
def test_events_of_a_run_have_different_ids_of_version_8(half: int, numbers: set[int]) -> None:
    events = type(EVENTS)(1, half)
    ids = {events.event_id(number) for number in numbers}
    assert len(ids) == len(numbers)
    assert {each.version for each in ids} == {8}
    assert {each.variant for each in ids} == {next(iter(ids)).variant}
