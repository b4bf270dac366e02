"""Large answers and clients that do not read them: the memory that a gateway holds for all of them."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest

from kustos.gateway.listener import connection as client
from kustos.gateway.session.answer_budget import FLOOR_BYTES, SLICE_BYTES, AnswerBudget
from kustos.wire import peek_api, read_request_header, request_codec, response_codec
from kustos.wire.api_keys import ApiKey
from testkit.gateway.gateways import Caller, RunningGateway, running_gateway
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.gateway.sessions import fetch, heartbeat, produce
from testkit.ports import LOOPBACK
from testkit.waiting import wait_until

TOTAL_BYTES = 32 * 2**20
WANTED_BYTES = 8 * 2**20
CLIENTS = 12
FETCHES = 12
"""Of one client: more bytes than the kernel takes, were each answer as small as it can be."""
RECEIVE_BUFFER_BYTES = 64 * 1024
BUFFER_BYTES = 64 * 1024
"""What asyncio keeps for a client before it says that the client does not read."""


class FullBroker(ScriptedBroker):
    """Has as many records as a Fetch asks for; answers none while `is_silent`."""

    is_silent = False
    produced = b""
    """The answers to each Produce but the last, which come with that of the last."""
    produces = 0
    """How many of them come together."""

    def answer(self, frame: bytes) -> bytes | None:
        api_key, version, _ = peek_api(frame)
        if api_key == ApiKey.PRODUCE:
            self.produces -= 1
            self.produced += super().answer(frame) or b""
            return None if self.produces > 0 else self.produced
        if api_key != ApiKey.FETCH:
            return super().answer(frame)
        self.asked.append(api_key)
        codec, made = request_codec(api_key, version), response_codec(api_key, version)
        header = read_request_header(frame, codec.flexible)
        fetch = codec.decode(frame, header.body_offset).message
        self.wanted.append(fetch.max_bytes)
        if self.is_silent:
            return None
        records = bytes(max(0, fetch.max_bytes))
        partition = made.struct("PartitionData").fit(partition_index=0, records=records)
        topic = made.struct("FetchableTopicResponse").fit(topic="alpha-topic", partitions=[partition])
        return self._framed(frame, made, made.root.fit(responses=[topic]))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.wanted: list[int] = []


@asynccontextmanager
async def served(
    total_bytes: int = TOTAL_BYTES,
) -> AsyncIterator[tuple[RunningGateway, FullBroker, AnswerBudget]]:
    broker, budget = FullBroker(1), AnswerBudget(total_bytes)
    await broker.start()
    async with running_gateway([broker], answers=budget) as made:
        yield made, broker, budget


async def until(condition: Callable[[], object], what: str) -> None:
    await asyncio.to_thread(wait_until, condition, what=what)


def buffered(made: RunningGateway) -> int:
    """Return the number of bytes that clients have not read."""
    transports = [each._transport for each in made.connections]
    return sum(each.get_write_buffer_size() for each in transports if each is not None)


def are_stuck(made: RunningGateway, count: int) -> bool:
    """Return whether the given number of clients does not read its answers."""
    return sum(not each._client_reads for each in made.connections) == count


async def silent_caller(made: RunningGateway) -> Caller:
    """Return a client that does not read and has a small receive buffer."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    sock.connect((LOOPBACK, made.port))
    caller = Caller(*await asyncio.open_connection(sock=sock))
    caller.writer.transport.pause_reading()  # type: ignore[attr-defined]
    return caller


@pytest.mark.slow
async def test_bytes_held_for_clients_that_never_read_stay_within_the_budget() -> None:
    async with served() as (made, broker, budget):
        callers = [await silent_caller(made) for _ in range(CLIENTS)]
        for number, caller in enumerate(callers, 1):
            caller.send(*(fetch(number, max_bytes=WANTED_BYTES) for number in range(FETCHES)))
            await until(partial(are_stuck, made, number), "the client is stuck")
            assert budget.used_bytes <= TOTAL_BYTES + number * (FLOOR_BYTES + SLICE_BYTES)
        assert all(FLOOR_BYTES <= wanted <= WANTED_BYTES for wanted in broker.wanted)
        assert broker.wanted[0] == WANTED_BYTES, "the first clients get what they want"
        assert min(broker.wanted) < WANTED_BYTES, "later clients get less"
        assert CLIENTS * BUFFER_BYTES < buffered(made) <= budget.used_bytes
        for caller in callers:
            caller.writer.transport.resume_reading()  # type: ignore[attr-defined]
        for caller in callers:
            assert await caller.correlation_ids(FETCHES) == list(range(FETCHES))
        await until(lambda: budget.used_bytes == 0, "all is given back")
        for caller in callers:
            caller.close()


async def test_a_reading_client_gets_its_whole_answer_while_others_do_not_read() -> None:
    async with served(total_bytes=0) as (made, broker, budget):
        others = [await silent_caller(made) for _ in range(3)]
        for other in others:
            other.send(*(fetch(number, max_bytes=WANTED_BYTES) for number in range(FETCHES)))
        await until(partial(are_stuck, made, len(others)), "the others are stuck")
        assert budget.used_bytes > 0
        caller = await Caller.at(made.port)
        for correlation_id in range(20):
            caller.send(fetch(correlation_id, max_bytes=WANTED_BYTES), heartbeat(100))
            answer = await caller.frame()
            assert answer is not None
            assert answer[:4] == correlation_id.to_bytes(4, "big")
            assert FLOOR_BYTES < len(answer) < FLOOR_BYTES + 200
            assert await caller.correlation_ids(1) == [100]
        assert set(broker.wanted) == {FLOOR_BYTES}
        for each in (caller, *others):
            each.close()
        await until(lambda: budget.used_bytes == 0, "all is given back")


@pytest.mark.parametrize(
    ("ends", "is_silent"),
    [
        ("the client", True),
        ("the client", False),
        ("the gateway", True),
        ("the gateway", False),
        # a broker's disconnect is seen when the client reads its last bytes
        ("the broker", True),
    ],
)
async def test_the_budget_is_released_however_a_connection_ends(
    ends: str, is_silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LAST_ANSWERS_S", 0.05)
    async with served() as (made, broker, budget):
        broker.is_silent = is_silent
        callers = [await silent_caller(made) for _ in range(3)]
        for caller in callers:
            caller.send(fetch(1, max_bytes=WANTED_BYTES), fetch(2, max_bytes=WANTED_BYTES))
        await until(lambda: len(broker.wanted) >= 3 and budget.used_bytes > 0, "answers are held or awaited")
        match ends:
            case "the client":
                for caller in callers:
                    caller.writer.transport.abort()
                broker.stop()
            case "the broker":
                broker.stop()
            case "the gateway":
                await made.gateway.stop()
                broker.stop()
        await until(lambda: budget.used_bytes == 0, "all is given back")


async def test_a_pending_broker_answer_stays_reserved_after_its_client_disconnects() -> None:
    async with served() as (made, broker, budget):
        broker.is_silent = True
        caller = await Caller.at(made.port)
        caller.send(fetch(1, max_bytes=WANTED_BYTES))
        await until(lambda: broker.wanted, "its Fetch is with the broker")
        (connection,) = made.connections
        caller.writer.transport.abort()
        await until(lambda: connection._transport is None, "the client is gone")
        assert budget.used_bytes == WANTED_BYTES, "the answer may still come"
        broker.stop()
        await until(lambda: budget.used_bytes == 0, "it is given back")


async def test_answers_in_one_read_do_not_release_the_reservation_of_the_next_request() -> None:
    """Otherwise the whole budget would be promised to any number of clients."""
    async with served() as (made, broker, budget):
        broker.is_silent, broker.produces = True, 2
        caller = await Caller.at(made.port)
        caller.send(produce(1), produce(2), fetch(3, max_bytes=WANTED_BYTES))
        assert await caller.correlation_ids(2) == [1, 2]
        await until(lambda: broker.wanted, "its Fetch is with the broker")
        assert budget.used_bytes == WANTED_BYTES
        caller.close()
        broker.stop()
        await until(lambda: budget.used_bytes == 0, "all is given back")


async def test_a_negative_fetch_size_adds_nothing_to_the_budget() -> None:
    async with served() as (made, broker, budget):
        caller = await Caller.at(made.port)
        caller.send(fetch(1, max_bytes=-(2**31)), fetch(2, max_bytes=0))
        assert await caller.correlation_ids(2) == [1, 2]
        assert broker.wanted == [-(2**31), 0]
        assert budget.used_bytes == 0
        caller.close()
