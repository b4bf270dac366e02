"""The next process writes the unwritten events of a process under their old ids."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import pytest

from kustos.gateway.audit.errors import AuditLogClosedError, EventsLostError
from kustos.gateway.audit.events import AuditEvents
from kustos.gateway.audit.json_files import JsonFilesSink
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.log4j import KafkaLinesSink
from kustos.gateway.audit.ring import AuditRing, AuditRingError
from kustos.gateway.audit.rings import AuditRings
from kustos.gateway.audit.sink_writer import MANY_EVENTS
from kustos.runtime import SystemEntropy
from testkit.gateway.audit import (
    CONTEXT,
    DENIED,
    ControlledSink,
    decided,
    failure,
    refusing,
    until,
    willing,
)


def events() -> AuditEvents:
    return AuditEvents.of_node(1, SystemEntropy())


def rings_of(directory: Path, name: str = "node", living: tuple[str, ...] = ()) -> AuditRings:
    return AuditRings.open(directory / "journals", name, living, events())


async def killed(directory: Path, name: str = "node") -> None:
    """Take three decisions that the sink does not write, and exit without a shutdown."""
    sink = ControlledSink()
    rings = rings_of(directory, name, ("worker-1", "worker-2"))
    log = AuditLog(events(), [sink], rings=rings)
    log.record(CONTEXT, [decided("one"), decided("two")], 7)
    written_at = log.hold(CONTEXT, [decided("three")], 7)
    written_at(12)
    log.hold(CONTEXT, [decided("four")], 7)
    for task in log._tasks:
        task.cancel()
    rings.close()


async def test_the_next_process_writes_the_events_of_a_killed_one(tmp_path: Path) -> None:
    await killed(tmp_path)
    sink = willing()
    log = AuditLog(events(), [sink], rings=rings_of(tmp_path))
    log.record(CONTEXT, [decided("five")], 8)
    await log.close()
    # the event whose change had no outcome yet was put before the last process ended
    assert sink.names == ["one", "two", "three", "four", "five"]
    offsets = [each["change_offset"] for each in sink.events]
    assert offsets == [None, None, 12, None, None], "the event with the outcome counts"
    again = willing()
    log = AuditLog(events(), [again], rings=rings_of(tmp_path))
    log.record(CONTEXT, [decided("six")], 8)
    await log.close()
    assert again.names == ["six"], "written events are not written again"


async def test_recovered_events_are_kept_and_written_like_others(tmp_path: Path) -> None:
    sink = ControlledSink()
    rings = rings_of(tmp_path)
    log = AuditLog(events(), [sink], rings=rings)
    log.record(CONTEXT, [decided("one"), decided("two")], 7)
    again = log.recorder(CONTEXT, [decided("one"), decided("two")])
    again(11, 7, 40)
    again(12, 8, 50)
    for task in log._tasks:
        task.cancel()
    rings.close()
    sink = willing()
    await AuditLog(events(), [sink], rings=rings_of(tmp_path)).close()
    lines = sink.events
    assert sink.names == ["one", "two"] * 3
    assert [line["correlation_id"] for line in lines] == [9, 9, 11, 11, 12, 12]
    assert [line["latency_us"] for line in lines] == [None, None, 40, 40, 50, 50]
    assert [line["acl_offset"] for line in lines] == [7, 7, 7, 7, 8, 8]
    assert len({line["event_id"] for line in lines}) == len(lines)


@pytest.mark.parametrize("has_keeper", [False, True])
async def test_recovered_events_pass_the_same_limits(tmp_path: Path, has_keeper: bool) -> None:
    log = AuditLog(
        events(),
        [sink := willing()],
        rings=rings_of(tmp_path) if has_keeper else None,
        denied_bytes_per_hour=10_000,
    )
    again = log.recorder(CONTEXT, [decided("allowed"), decided("denied", DENIED)])
    for number in range(100):
        again(number, 7, 40)
    assert log.budgets.summaries.denied > 0
    await log.close()
    assert sink.names.count("allowed") == 100
    with pytest.raises(AuditLogClosedError):
        again(100, 7, 40)


async def test_a_kill_loses_the_counts_of_one_minute_and_no_used_name(tmp_path: Path) -> None:
    rings = rings_of(tmp_path)
    log = AuditLog(events(), [ControlledSink()], rings=rings, allowed_bytes_per_hour=0)
    again = log.recorder(CONTEXT, [decided("orders"), decided("payments")])
    for number in range(100):
        again(number, 7, 40)
    for task in log._tasks:
        task.cancel()
    rings.close()
    sink = willing()
    await AuditLog(events(), [sink], rings=rings_of(tmp_path)).close()
    assert sink.names == ["orders", "payments"]


async def test_a_stop_keeps_counts_that_a_failing_sink_rejects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kustos.gateway.audit.log.CLOSE_TIMEOUT_S", 0.05)
    refuser = refusing()
    log = AuditLog(events(), [refuser], rings=rings_of(tmp_path), allowed_bytes_per_hour=0)
    log.record(CONTEXT, [decided("one")] * 5, 7)
    await until(refuser.answered, lambda: log.is_full)
    with pytest.raises(EventsLostError):
        await log.close()
    monkeypatch.undo()
    sink = willing()
    await AuditLog(events(), [sink], rings=rings_of(tmp_path)).close()
    assert sink.names == ["one", "one"]
    assert [each["decision_count"] for each in sink.events] == [None, 4]


async def test_a_restarted_recovery_continues_after_the_written_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kustos.gateway.audit.log.BATCH_MAX_EVENTS", 1)
    await killed(tmp_path, "worker-1")
    stuck = ControlledSink()
    rings = rings_of(tmp_path)
    log = AuditLog(events(), [stuck], rings=rings)
    await stuck.tried.wait()
    assert not rings.left[0].is_empty
    for task in (*log._tasks, log._recovering):
        assert task is not None
        task.cancel()
    rings.close()
    sink = willing()
    await AuditLog(events(), [sink], rings=rings_of(tmp_path)).close()
    # the piece that was in both rings is there twice, with the same ids
    assert sink.names == ["one", "two", "one", "two", "three", "four"]
    assert len({each["event_id"] for each in sink.events}) == 4


async def test_a_stop_leaves_time_for_sinks_after_a_slow_recovery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kustos.gateway.audit.log.CLOSE_TIMEOUT_S", 3.0)
    await killed(tmp_path, "worker-1")
    sink = ControlledSink()
    log = AuditLog(events(), [sink], rings=rings_of(tmp_path))
    await sink.tried.wait()
    log.record(CONTEXT, [decided("five")], 8)
    closing = asyncio.create_task(log.close())
    assert log._recovering is not None
    await asyncio.wait([log._recovering])
    sink.may_write.set()
    await closing
    assert sink.names[-1] == "five"
    assert sink.closed


async def test_an_orderly_stop_writes_more_summaries_than_the_journal_holds(tmp_path: Path) -> None:
    rings = AuditRings(AuditRing.open(tmp_path / "ring", bytes(32), 64 * 1024))
    sink = willing()
    log = AuditLog(events(), [sink], rings=rings, allowed_bytes_per_hour=0)
    for turn in range(10):
        for number in range(20):
            log.record(CONTEXT, [decided(f"{turn}-{number}"), decided(f"{turn}-{number}")], 7)
        await until(sink.answered, lambda: len(sink.names) == log._number)
    await log.close()
    assert len(sink.names) == 400
    assert [each["decision_count"] for each in sink.events[200:]] == [1] * 200


async def test_the_journal_of_a_removed_worker_is_recovered(tmp_path: Path) -> None:
    await killed(tmp_path, "worker-2")
    await killed(tmp_path, "worker-1")
    sink = willing()
    log = AuditLog(events(), [sink], rings=rings_of(tmp_path, living=("worker-1",)))
    await log.close()
    assert len(sink.events) == 4
    assert sorted(path.name for path in (tmp_path / "journals").iterdir()) == ["node", "worker-1"]


async def test_every_sink_gets_recovered_events_in_its_own_format(tmp_path: Path) -> None:
    await killed(tmp_path)
    files = JsonFilesSink(tmp_path / "audit", max_bytes=2**20, max_files=3)
    lines = KafkaLinesSink(tmp_path / "authorizer.log", "TRACE")
    await files.open()
    await lines.open()
    log = AuditLog(events(), [files, lines], rings=rings_of(tmp_path))
    await log.close()
    (path,) = (tmp_path / "audit").glob("audit-*.jsonl")
    assert [json.loads(line)["resource_name"] for line in path.read_text().splitlines()] == [
        "one",
        "two",
        "three",
        "four",
    ]
    text = (tmp_path / "authorizer.log").read_text().splitlines()
    assert [line.partition("Topic:LITERAL:")[2].partition(" ")[0] for line in text] == [
        "one",
        "two",
        "three",
        "four",
    ]
    assert all("is Allowed operation = DESCRIBE" in line for line in text)


async def test_a_recovery_leaves_space_for_started_requests(tmp_path: Path) -> None:
    left = AuditRing.open(tmp_path / "worker-1", bytes(32), 256 * 1024)
    for number in range(100):
        left.put(b'{"event_id":"%d","text":"%s"}\n' % (number, b"x" * 2000), 1)
    left.close()
    own = AuditRing.open(tmp_path / "ring", bytes(32), 64 * 1024)
    rings = AuditRings(own, [AuditRing.open_left(tmp_path / "worker-1", bytes(32))])
    sink = ControlledSink()
    log = AuditLog(events(), [sink], rings=rings)
    await sink.tried.wait()
    assert log.is_full
    log.record(CONTEXT, [decided("begun")] * 20, 7)
    sink.may_write.set()
    await log.close()
    assert len(sink.events) == 120


async def test_a_recovery_of_a_large_request_yields_to_others(tmp_path: Path) -> None:
    left = AuditRing.open(tmp_path / "worker-1", bytes(32))
    left.put(b"".join(b'{"event_id":"%d"}\n' % number for number in range(5_000)), 5_000)
    left.close()
    own = AuditRing.open(tmp_path / "ring", bytes(32))
    sink = ControlledSink()
    rings = AuditRings(own, [AuditRing.open_left(tmp_path / "worker-1", bytes(32))])
    log = AuditLog(events(), [sink], rings=rings)
    turns = 0
    while own.events < 5_000:
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 5_000 / MANY_EVENTS
    sink.may_write.set()
    await log.close()


def fill(log: AuditLog) -> None:
    with suppress(AuditRingError):
        while True:
            log.record(CONTEXT, [decided("other")], 7)


async def test_a_change_settles_in_a_full_ring_and_all_events_are_written(tmp_path: Path) -> None:
    rings = AuditRings(AuditRing.open(tmp_path / "ring", bytes(32), 16 * 1024))
    sink = ControlledSink()
    log = AuditLog(events(), [sink], rings=rings)
    written_at = log.hold(CONTEXT, [decided("acl")], 7)
    report_outcome = log.security.hold([failure("one"), failure("two")])
    fill(log)
    with pytest.raises(AuditRingError, match="no room"):
        log.security.hold([failure("three"), failure("four")])
    written_at(12)
    report_outcome([failure("one"), failure("two")])
    sink.may_write.set()
    await until(sink.answered, lambda: rings.own.is_empty)
    assert [each["resource_name"] for each in sink.decisions if each["resource_name"] != "other"] == ["acl"]
    assert [each.claimed_name for each in sink.security] == ["one", "two"]
    log.record(CONTEXT, [decided("later")], 7)
    await log.close()
    assert sink.names[-1] == "later"


async def test_a_stop_with_a_full_ring_closes_everything_and_reports_lost_events(tmp_path: Path) -> None:
    rings = AuditRings(AuditRing.open(tmp_path / "ring", bytes(32), 16 * 1024))
    sink = ControlledSink()
    log = AuditLog(events(), [sink], rings=rings)
    log.hold(CONTEXT, [decided("acl")], 7)
    log.security.count(failure("one"))
    log.security.count(failure("one"))
    fill(log)
    sink.may_write.set()
    with pytest.raises(EventsLostError, match="no room for"):
        await log.close()
    assert sink.closed
    assert "acl" in sink.names
