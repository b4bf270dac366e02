"""Incomplete requests on real sockets: the memory that a gateway holds for all of them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kustos.auth import PlainServer, PlainUsers
from kustos.gateway.session import request_budget
from kustos.gateway.session.request_budget import FLOOR_BYTES, OWNERS_PART, RequestBudget
from kustos.protocol import frame_bytes_max
from kustos.runtime import SystemEntropy
from kustos.wire import request_codec, request_frame
from kustos.wire.api_keys import ApiKey
from testkit.gateway.gateways import Caller, RunningGateway, handshake, running_gateway
from testkit.gateway.sessions import heartbeat
from testkit.waiting import wait_until
from tests.unit.gateway.test_client import SASL, broker

ROOM_BYTES = 40 * FLOOR_BYTES
PART_BYTES = 30 * FLOOR_BYTES
LARGE_BYTES = 2 * PART_BYTES
ATTEMPTS = 20
"""A busy machine may exceed the minimum time even for a complete request."""


@asynccontextmanager
async def served(**settings: Any) -> AsyncIterator[tuple[RunningGateway, RequestBudget]]:
    budget = RequestBudget(ROOM_BYTES)
    async with running_gateway([await broker()], requests=budget, **settings) as made:
        yield made, budget


async def until(condition: Callable[[], object], what: str) -> None:
    await asyncio.to_thread(wait_until, condition, what=what)


def large(correlation_id: int) -> bytes:
    """A request with its length, of some size."""
    frame = heartbeat(correlation_id, "g" * 30_000) + bytes(LARGE_BYTES)
    return len(frame).to_bytes(4, "big") + frame


def beginning(api_key: int, size: int) -> bytes:
    return size.to_bytes(4, "big") + api_key.to_bytes(2, "big")


@pytest.mark.parametrize("crumbs", [False, True])
async def test_a_frame_over_the_limit_of_its_api_closes_the_connection_at_its_first_bytes(
    crumbs: bool,
) -> None:
    limit = frame_bytes_max(ApiKey.LIST_GROUPS)
    assert limit is not None
    async with served() as (made, _):
        caller = await Caller.at(made.port)
        sent = beginning(ApiKey.LIST_GROUPS, limit + 1)
        for part in [sent[at : at + 1] for at in range(len(sent))] if crumbs else [sent]:
            caller.writer.write(part)
            await caller.writer.drain()
        assert await caller.is_closed()
        caller = await Caller.at(made.port)
        caller.writer.write(beginning(ApiKey.PRODUCE, limit + 1) + bytes(FLOOR_BYTES))
        await until(lambda: made.counted["received"] > FLOOR_BYTES, "its bytes are there")
        caller.send()
        assert made.counted["connections"] == 1, "records are larger"
        caller.close()


async def test_requests_over_the_budget_wait_and_are_all_answered() -> None:
    async with served() as (made, budget):
        callers = [await Caller.at(made.port) for _ in range(4)]
        frames = [large(number) for number in range(4)]
        for caller, frame in zip(callers, frames, strict=True):
            caller.writer.write(frame[:PART_BYTES])
        await until(lambda: budget.waiting >= 2, "some wait")
        caller = await Caller.at(made.port)
        caller.send(heartbeat(7))
        assert await caller.correlation_ids(1) == [7], "small requests never wait"
        for caller, frame in zip(callers, frames, strict=True):
            caller.writer.write(frame[PART_BYTES:])
        for number, caller in enumerate(callers):
            assert await caller.correlation_ids(1) == [number]
        assert (budget.used_bytes, budget.waiting) == (0, 0)


async def test_a_client_with_an_unfinished_request_is_closed_while_others_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_budget, "FINISH_S", 0.05)
    async with served() as (made, budget):
        slow = [await Caller.at(made.port) for _ in range(3)]
        for caller in slow:
            caller.writer.write(large(1)[:PART_BYTES])
        await until(lambda: budget.ended >= 2, "clients that block others are closed")
        for _ in range(ATTEMPTS):
            caller = await Caller.at(made.port)
            caller.writer.write(large(9))
            if await caller.correlation_ids(1) == [9]:
                break
        else:
            raise AssertionError("a client that sends its whole request is closed, too")
        for each in slow:
            each.close()
        await until(lambda: budget.used_bytes == 0, "all is given back")


async def test_many_connections_of_one_principal_take_one_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_budget, "FINISH_S", 0.5)
    async with served(sasl=SASL) as (made, budget):
        honest = await Caller.at(made.port)
        assert await honest.log_in("b0b-s3cret", user="bob") is not None
        flood = [await Caller.at(made.port) for _ in range(30)]
        for caller in flood:
            assert await caller.log_in() is not None
        for caller in flood:
            caller.writer.write(large(1)[:PART_BYTES])
        await until(lambda: budget.waiting + budget.ended > 25, "most of them wait, or have waited too long")
        honest.writer.write(large(9))
        assert await honest.correlation_ids(1) == [9]
        assert budget.waiting > 5, "most of them still wait"
        for caller in flood:
            caller.close()
        await until(lambda: budget.used_bytes == 0, "all is given back")


@pytest.fixture
def no_client_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no connection be closed as slow, however long a test takes."""
    monkeypatch.setattr(request_budget, "FINISH_S", 3600.0)


@asynccontextmanager
async def hostile_users(count: int) -> AsyncIterator[tuple[RunningGateway, RequestBudget]]:
    """A gateway whose budget is used up by users who each send a part of a large request."""
    names = [f"mallory-{number}" for number in range(count)]
    users = PlainUsers({"bob": "b0b-s3cret"} | dict.fromkeys(names, "m-s3cret"), SystemEntropy())
    async with served(sasl=SASL, plain=PlainServer.factory(users)) as (made, budget):
        callers = [await Caller.at(made.port) for _ in names]
        for caller, name in zip(callers, names, strict=True):
            assert await caller.log_in("m-s3cret", user=name) is not None
            caller.writer.write(large(1)[:PART_BYTES])
        await until(lambda: budget.waiting >= count - 2, "all is used, and others wait for the turn")
        yield made, budget
        for caller in callers:
            caller.close()
        await until(lambda: budget.used_bytes == 0, "all is given back")


async def logged_in_as_bob(made: RunningGateway) -> Caller:
    caller = await Caller.at(made.port)
    assert await caller.log_in("b0b-s3cret", user="bob") is not None
    return caller


@pytest.mark.usefixtures("no_client_is_slow")
async def test_a_user_within_its_share_does_not_wait_for_users_of_the_whole_budget() -> None:
    async with hostile_users(5) as (made, budget):
        part_bytes = ROOM_BYTES // 6 - FLOOR_BYTES
        frame = heartbeat(9, "g" * 30_000) + bytes(part_bytes - 31_000)
        callers = [await logged_in_as_bob(made) for _ in range(2)]
        for caller in callers:
            sent = len(frame).to_bytes(4, "big") + frame
            caller.writer.write(sent[: part_bytes // 2])
            await until(lambda: budget.active_owners == 6, "it has begun")
            caller.writer.write(sent[part_bytes // 2 :])
            assert await caller.correlation_ids(1) == [9]
        assert budget.waiting > 0, "others still wait"


@pytest.mark.usefixtures("no_client_is_slow")
async def test_an_idle_user_loses_its_turn_long_before_it_is_closed() -> None:
    async with hostile_users(5) as (made, budget):
        honest = await logged_in_as_bob(made)
        for number in range(3):
            honest.writer.write(large(number))
            assert await honest.correlation_ids(1) == [number]
        assert budget.waiting > 0, "others still wait"


def test_requests_waiting_for_answers_exceed_the_limit_by_one_share_at_most() -> None:
    """They are complete, so they are not slow; other principals still have their turn."""
    budget = RequestBudget(ROOM_BYTES, lambda: 0.0, lambda _delay, _callback: None)
    flood = [budget.share(lambda: None, lambda: None) for _ in range(50)]
    honest = budget.share(lambda: None, lambda: None)
    honest.belong_to("bob")
    for share in flood:
        share.belong_to("alice")
        share.hold(FLOOR_BYTES + 1, is_unfinished=True)
        if not share.waits:
            share.hold(PART_BYTES)
    part_bytes = ROOM_BYTES // OWNERS_PART
    begun_bytes = len(flood) * (FLOOR_BYTES + 1)
    assert budget.used_bytes <= ROOM_BYTES + part_bytes + PART_BYTES + begun_bytes
    assert budget.waiting > 40
    honest.hold(PART_BYTES, is_unfinished=True)
    assert not honest.waits
    for share in flood:
        share.hold(0)
    assert budget.waiting == 0, "a waiting frame continues once there is space"


def test_a_client_that_starts_its_next_frame_queues_again_and_is_not_slow() -> None:
    now_s, timers, ended = [0.0], list[Callable[[], None]](), list[str]()
    budget = RequestBudget(ROOM_BYTES, lambda: now_s[0], lambda _delay, callback: timers.append(callback))
    busy = budget.share(lambda: None, lambda: ended.append("busy"))
    slow = budget.share(lambda: None, lambda: ended.append("slow"))
    other = budget.share(lambda: None, lambda: None)
    for share, owner in ((busy, "alice"), (slow, "bob"), (other, "carol")):
        share.belong_to(owner)
    for share in (busy, slow):
        share.hold(20 * FLOOR_BYTES, is_unfinished=True)
    now_s[0] = request_budget.FINISH_S
    busy.hold(20 * FLOOR_BYTES + 1, is_unfinished=True, has_finished=True)
    assert busy.waits is False, "no other frame needs space"
    other.hold(ROOM_BYTES // OWNERS_PART + 1, is_unfinished=True)
    busy.hold(20 * FLOOR_BYTES, is_unfinished=True, has_finished=True)
    assert (other.waits, busy.waits) == (False, True), "the next has its turn"
    now_s[0] += request_budget.FINISH_S
    timers.pop()()
    assert ended == ["slow"]


def test_frames_continue_when_an_unauthenticated_client_releases_its_share() -> None:
    budget = RequestBudget(ROOM_BYTES, lambda: 0.0, lambda _delay, _callback: None)
    unauthenticated, *shares = [budget.share(lambda: None, lambda: None) for _ in range(4)]
    assert unauthenticated.hold(5 * FLOOR_BYTES)
    for owner, share in zip(("alice", "bob", "carol"), shares, strict=True):
        share.belong_to(owner)
        share.hold(ROOM_BYTES // 3, is_unfinished=True)
    shares[0].hold(ROOM_BYTES // 3 + 1, is_unfinished=True)
    assert budget.waiting == 1
    unauthenticated.hold(0)
    assert budget.waiting == 0


async def test_an_unauthenticated_client_holds_nothing_after_its_token_is_read() -> None:
    async with served(sasl=SASL) as (made, budget):
        caller = await Caller.at(made.port)
        # the client id makes it large; it leaves the login where it was
        frame = request_frame(
            request_codec(ApiKey.API_VERSIONS, 0), ApiKey.API_VERSIONS, 1, "c" * 30_000, b""
        )
        caller.writer.write(frame[:-1])
        await until(lambda: budget.unauthenticated_bytes > FLOOR_BYTES, "the bytes are held")
        caller.writer.write(frame[-1:])
        assert await caller.frame() is not None
        assert budget.used_bytes == budget.unauthenticated_bytes == 0
        caller.close()


async def test_unauthenticated_clients_share_one_part_and_are_closed_beyond_it() -> None:
    async with served(sasl=SASL) as (made, budget):
        frame = (12 * FLOOR_BYTES).to_bytes(4, "big") + bytes(6 * FLOOR_BYTES)
        first, second = await Caller.at(made.port), await Caller.at(made.port)
        first.writer.write(frame)
        await until(
            lambda: budget.unauthenticated_bytes > 5 * FLOOR_BYTES, "the first holds more than half of it"
        )
        second.writer.write(frame)
        assert await second.is_closed()
        assert made.counted["handshake: no_room"] == 1
        honest = await Caller.at(made.port)
        assert await honest.log_in() is not None
        honest.send(heartbeat(1))
        assert await honest.correlation_ids(1) == [1]
        first.close()
        await until(lambda: budget.used_bytes == budget.unauthenticated_bytes == 0, "all is given back")


@pytest.mark.parametrize("ends", ["the client", "the gateway", "a drain", "a login", "a refusal"])
async def test_the_budget_is_released_however_a_connection_ends(ends: str) -> None:
    is_unauthenticated = ends in {"a login", "a refusal"}
    async with served(sasl=SASL if is_unauthenticated else None) as (made, budget):
        caller = await Caller.at(made.port)
        if is_unauthenticated:
            caller.send(handshake(1))
            await caller.frame()
        caller.writer.write((20 * FLOOR_BYTES).to_bytes(4, "big") + bytes(3 * FLOOR_BYTES))
        await until(lambda: budget.used_bytes > 2 * FLOOR_BYTES, "the bytes are held")
        match ends:
            case "the client":
                caller.writer.transport.abort()
            case "the gateway":
                made.gateway.close()
            case "a drain":
                await made.gateway.drain()
            case "a login" | "a refusal":
                # the rest of an invalid token, and of another frame after it
                caller.writer.write(bytes(17 * FLOOR_BYTES) + (-1).to_bytes(4, "big", signed=True))
        await until(lambda: budget.used_bytes == 0, "all is given back")
