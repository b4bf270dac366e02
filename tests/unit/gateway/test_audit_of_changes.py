"""The event of an ACL change waits for the change's offset, and is written whatever the outcome."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kustos.acl import KafkaPrincipal
from kustos.authorizer import (
    SUCCESS,
    AclCreateResult,
    AclDeleteResult,
    AuthorizableRequestContext,
    KafkaApiError,
)
from kustos.gateway.apis.acls import AclApis
from kustos.gateway.apis.purgatory import ALTER_ACLS, DelayedFuturePurgatory
from kustos.gateway.audit import log as audit_log
from kustos.gateway.audit.errors import AuditLogClosedError
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.gateway.metrics.observer import FixedPosition, GatewayObserver
from kustos.gateway.store import large_work
from kustos.protocol import Decided, admin
from kustos.wire import ErrorCode, Message
from kustos.wire.api_keys import ApiKey
from testkit.acls.specified_authorizer import SpecAuthorizer
from testkit.gateway.audit import DENIED, EVENTS, ControlledSink, decided, until
from tests.unit.gateway.test_acl_apis import CREATED, DELETED, ORDERS, creation, deletion

Written = list[tuple[str, int | None]]


class OffsetSink(ControlledSink):
    """Gives the name and the offset of the change of each event."""

    @property
    def offsets(self) -> Written:
        return [(each["resource_name"], each["change_offset"]) for each in self.decisions]


def sink() -> OffsetSink:
    ready = OffsetSink()
    ready.may_write.set()
    return ready


def context_of(api_key: int) -> AuthorizableRequestContext:
    return AuthorizableRequestContext(KafkaPrincipal("User", "ann"), "10.0.0.1", request_type=api_key)


CREATING = context_of(ApiKey.CREATE_ACLS)


async def test_a_held_event_is_written_once_with_its_first_outcome() -> None:
    kept = sink()
    log = AuditLog(EVENTS, [kept])
    first, second = (log.hold(CREATING, [decided(name)], 5) for name in ("first", "second"))
    log.record(CREATING, [decided("other")], 5)
    await until(kept.answered, lambda: kept.names == ["other"])
    second(44)
    second(45)
    first(None)
    first(9)
    await log.close()
    assert kept.offsets == [("other", None), ("second", 44), ("first", None)]


async def test_close_writes_held_events() -> None:
    kept = sink()
    log = AuditLog(EVENTS, [kept])
    released = [log.hold(CREATING, [decided(f"{number}")], 5) for number in range(3)]
    await log.close()
    assert kept.offsets == [("0", None), ("1", None), ("2", None)]
    for release in released:
        release(7)
    assert len(kept.offsets) == 3
    with pytest.raises(AuditLogClosedError):
        log.hold(CREATING, [decided("late")], 5)


async def test_an_event_is_held_no_longer_than_its_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "HELD_MAX_S", 0.0)
    kept = sink()
    log = AuditLog(EVENTS, [kept])
    release = log.hold(CREATING, [decided("slow")], 5)
    await until(kept.answered, lambda: kept.offsets == [("slow", None)])
    release(7)
    await log.close()
    assert kept.offsets == [("slow", None)]


async def test_the_number_of_held_events_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "HELD_MAX", 2)
    kept = sink()
    log = AuditLog(EVENTS, [kept])
    one, two, three = (log.hold(CREATING, [decided(name)], 5) for name in ("one", "two", "three"))
    await until(kept.answered, lambda: kept.offsets == [("three", None)])
    for offset, release in enumerate((one, two, three)):
        release(offset)
    log.hold(CREATING, [decided("four")], 5)(3)
    await log.close()
    assert kept.offsets == [("three", None), ("one", 0), ("two", 1), ("four", 3)]


async def test_a_log_without_sinks_holds_nothing() -> None:
    log = AuditLog(EVENTS, [])
    log.hold(CREATING, [decided("a")], 5)(7)
    await log.close()


@pytest.mark.parametrize(
    ("api_key", "decisions", "own_log", "waits"),
    [
        (ApiKey.CREATE_ACLS, [decided("a")], True, True),
        (ApiKey.DELETE_ACLS, [decided("a")], True, True),
        (ApiKey.CREATE_ACLS, [decided("a", DENIED)], True, False),
        (ApiKey.CREATE_ACLS, [decided("a")], False, False),
        (ApiKey.DESCRIBE_ACLS, [decided("a")], True, False),
        (ApiKey.FETCH, [decided("a")], True, False),
    ],
)
async def test_only_allowed_changes_of_a_local_log_are_held(
    api_key: int, decisions: list[Decided], own_log: bool, waits: bool
) -> None:
    kept = sink()
    log = AuditLog(EVENTS, [kept])
    observer = GatewayObserver(log, GatewayMetrics(), FixedPosition(5), own_log)
    written_at = observer.decided(context_of(api_key), decisions, 5)
    assert (written_at is not None) is waits
    if written_at is None:
        await until(kept.answered, lambda: kept.names == ["a"])
    else:
        written_at(12)
    await log.close()
    assert kept.offsets == [("a", 12 if waits else None)]


Offsets = list[int | None]


def apis_of(**methods: Any) -> AclApis:
    authorizer: Any = SpecAuthorizer()
    for name, method in methods.items():
        setattr(authorizer, name, method)
    return AclApis(authorizer, DelayedFuturePurgatory(ALTER_ACLS, 60_000))


async def answering(results: Sequence[object]) -> Sequence[object]:
    return results


REFUSED = KafkaApiError(ErrorCode.invalid_request, "no")


@pytest.mark.parametrize(
    ("results", "offset"),
    [
        ([AclCreateResult(change_offset=31), AclCreateResult(change_offset=31)], 31),
        ([AclCreateResult(REFUSED), AclCreateResult(change_offset=31)], 31),
        ([AclCreateResult(REFUSED), AclCreateResult(REFUSED)], None),
        ([SUCCESS, SUCCESS], None),
        ([], None),
        (None, None),
        ([AclCreateResult(change_offset=None), 7], None),
    ],
)
async def test_a_creation_reports_its_offset(results: Any, offset: int | None) -> None:
    reported: Offsets = []
    apis = apis_of(create_acls=lambda *_: answering(results))
    await apis.create(CREATED, creation("a", "b"), CREATING, reported.append)
    assert reported == [offset]


async def test_a_deletion_reports_its_offset() -> None:
    reported: Offsets = []
    apis = apis_of(delete_acls=lambda *_: answering([AclDeleteResult.of([], 8), AclDeleteResult.of([], 8)]))
    await apis.delete(DELETED, deletion("a", "b"), CREATING, reported.append)
    assert reported == [8]


def breaking(*_: object) -> object:
    raise RuntimeError("no")


async def failing(*_: object) -> object:
    raise RuntimeError("later")


@pytest.mark.parametrize("method", [breaking, failing, lambda *_: 7, lambda *_: [SUCCESS]])
async def test_a_change_that_fails_or_returns_no_offset_reports_none(method: Callable[..., object]) -> None:
    reported: Offsets = []
    await apis_of(create_acls=method).create(CREATED, creation("a"), CREATING, reported.append)
    await apis_of(delete_acls=method).delete(DELETED, deletion("a"), CREATING, reported.append)
    assert set(reported) == {None}
    assert len(reported) >= 2


async def test_a_change_without_an_authorizer_reports_immediately() -> None:
    reported: Offsets = []
    apis = AclApis(None, DelayedFuturePurgatory(ALTER_ACLS, 60_000))
    await apis.create(CREATED, creation("a"), CREATING, reported.append)
    await apis.delete(DELETED, deletion("a"), CREATING, reported.append)
    assert reported == [None, None]


async def test_a_client_that_disconnects_before_its_items_are_read_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: Offsets = []
    reading, go_on = threading.Event(), threading.Event()

    def read(_item: Message) -> object:
        reading.set()
        assert go_on.wait(30)
        return ORDERS

    monkeypatch.setattr(large_work, "LARGE_ITEMS_MIN", 1)
    monkeypatch.setattr(admin, "creation_of", read)
    apis = apis_of(create_acls=lambda *_: pytest.fail("nobody asked for it any more"))
    asked = asyncio.ensure_future(apis.create(CREATED, creation("a"), CREATING, reported.append))
    assert await asyncio.to_thread(reading.wait, 30)
    asked.cancel()
    go_on.set()
    await asyncio.wait([asked])
    assert reported == [None]


async def test_a_change_reports_its_offset_after_its_client_disconnects() -> None:
    loop = asyncio.get_running_loop()
    begun, change, reported = asyncio.Event(), loop.create_future(), loop.create_future()

    async def slow(*_: object) -> Sequence[object]:
        begun.set()
        return [AclCreateResult(change_offset=await change)]

    asked = asyncio.ensure_future(
        apis_of(create_acls=slow).create(CREATED, creation("a"), CREATING, reported.set_result)
    )
    await begun.wait()
    asked.cancel()
    await asyncio.wait([asked])
    assert not reported.done()
    change.set_result(77)
    async with asyncio.timeout(30):
        assert await reported == 77


async def test_a_change_canceled_by_shutdown_is_reported() -> None:
    reported: Offsets = []
    begun, never = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def slow(*_: object) -> object:
        begun.set()
        return await never

    authorizer: Any = SpecAuthorizer()
    authorizer.create_acls = slow
    purgatory = DelayedFuturePurgatory(ALTER_ACLS, 60_000)
    asked = asyncio.ensure_future(
        AclApis(authorizer, purgatory).create(CREATED, creation("a"), CREATING, reported.append)
    )
    await begun.wait()
    await purgatory.close()
    await asyncio.wait([asked])
    assert reported == [None]
