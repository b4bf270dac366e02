"""A draining gateway on real sockets: it delivers pending answers and starts nothing new."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kustos.gateway.listener.connection import ClientConnection
from kustos.gateway.session.client_session import STOPS
from kustos.wire import peek_api, request_codec
from kustos.wire.api_keys import ApiKey
from testkit.gateway.gateways import Caller, RunningGateway, handshake, running_gateway
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.gateway.sessions import World, fetch, heartbeat, produce, request
from testkit.protocol.random_requests import ALL_ALLOWED
from testkit.waiting import wait_until
from tests.unit.gateway.test_client import SASL
from tests.unit.gateway.test_tls_transport import Certificates

PATIENT_MS = 600_000
"""Longer than the time limit of a test: a test that waits for it fails."""
LARGE_BYTES = 16 * 2**20
"""More than the kernel takes for a client that does not read."""
KERNEL_BYTES = 1_500_000
"""Less than the kernel takes, and more than it has brought to a client that does not read."""


class HoldingBroker(ScriptedBroker):
    """Answers Produce, Heartbeat, JoinGroup and fetches only on command."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.held: list[tuple[Any, bytes]] = []
        self.padding = b""

    def answer(self, frame: bytes) -> bytes | None:
        api_key, _, _ = peek_api(frame)
        if api_key not in {
            ApiKey.PRODUCE,
            ApiKey.HEARTBEAT,
            ApiKey.JOIN_GROUP,
            ApiKey.FETCH,
            ApiKey.SHARE_FETCH,
        }:
            return super().answer(frame)
        self.asked.append(api_key)
        answered = self.world.answer(frame)
        assert answered is not None
        self.held.append((self.asker, answered + self.padding))
        return None

    def release(self) -> None:
        for asker, answered in self.held:
            asker.write(len(answered).to_bytes(4, "big") + answered)
        self.held.clear()


@asynccontextmanager
async def served(
    drain_timeout_ms: int = PATIENT_MS, **settings: Any
) -> AsyncIterator[tuple[RunningGateway, HoldingBroker]]:
    broker = HoldingBroker(1)
    await broker.start()
    async with running_gateway([broker], drain_timeout_ms=drain_timeout_ms, **settings) as made:
        yield made, broker


async def until(condition: Callable[[], object], what: str) -> None:
    await asyncio.to_thread(wait_until, condition, what=what)


async def begun(made: RunningGateway) -> asyncio.Task[None]:
    """Begin to stop; return once the gateway takes no more connections."""
    stopping = asyncio.ensure_future(made.gateway.stop())
    await until(lambda: not made.gateway.is_open, "the gateway stops")
    return stopping


def share_fetch(correlation_id: int, topic_id: bytes, *, acknowledges: bool) -> bytes:
    codec = request_codec(ApiKey.SHARE_FETCH, 1)
    batch = codec.struct("AcknowledgementBatch")(first_offset=0, last_offset=0, acknowledge_types=[1])
    partition = codec.struct("FetchPartition").fit(
        partition_index=0, acknowledgement_batches=[batch] if acknowledges else []
    )
    topic = codec.struct("FetchTopic").fit(topic_id=topic_id, partitions=[partition])
    epoch = 1 if acknowledges else 0
    return request(
        ApiKey.SHARE_FETCH,
        1,
        correlation_id,
        group_id="group-one",
        member_id="m",
        share_session_epoch=epoch,
        topics=[topic],
    )


def join(correlation_id: int) -> bytes:
    return request(ApiKey.JOIN_GROUP, 5, correlation_id, group_id="group-one", protocol_type="consumer")


async def test_a_drain_delivers_pending_answers_and_starts_nothing_new() -> None:
    async with served() as (made, broker):
        producer, other = await Caller.at(made.port), await Caller.at(made.port)
        producer.send(produce(1), produce(2), produce(3))
        other.send(heartbeat(4), heartbeat(5))
        await until(lambda: len(broker.held) >= 2, "the first requests are with the broker")
        stopping = await begun(made)
        producer.send(produce(6))
        other.send(heartbeat(7))
        with pytest.raises(ConnectionRefusedError):
            await Caller.at(made.port)
        assert not stopping.done()
        while not stopping.done():
            # a pipelined Produce follows
            broker.release()
            await asyncio.sleep(0)
        await stopping
        assert await producer.correlation_ids(3) == [1, 2, 3]
        assert await producer.is_closed()
        assert await other.correlation_ids(1) == [4]
        assert await other.is_closed()
        assert broker.asked.count(ApiKey.PRODUCE) == 3
        assert broker.asked.count(ApiKey.HEARTBEAT) == 1
        assert made.counted["connections"] == 0


@pytest.mark.parametrize("step", ["drain", "close"])
async def test_a_connection_that_fails_to_end_does_not_keep_the_others(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served() as (made, broker):
        callers = [await Caller.at(made.port) for _ in range(3)]
        for number, caller in enumerate(callers):
            caller.send(produce(number))
        await until(lambda: len(broker.held) == 3, "the requests are with the broker")
        fails = getattr(ClientConnection, step)
        failed: list[ClientConnection] = []

        def first_fails(connection: ClientConnection, *args: Any) -> object:
            failed.append(connection)
            if len(failed) == 1:
                raise RuntimeError("a bug")
            return fails(connection, *args)

        monkeypatch.setattr(ClientConnection, step, first_fails)
        if step == "close":
            made.gateway.close()
        stopping = asyncio.ensure_future(made.gateway.stop())
        await asyncio.sleep(0)
        broker.release()
        if step == "drain":
            assert [await caller.correlation_ids(1) for caller in callers[1:]] == [[1], [2]]
        for caller in callers[1:]:
            assert await caller.is_closed()
        await stopping


async def test_idle_clients_and_long_polls_do_not_delay_a_drain() -> None:
    async with served() as (made, broker):
        callers = [await Caller.at(made.port) for _ in range(3)]
        callers[0].send(fetch(1))
        callers[1].send(join(2))
        await until(lambda: {ApiKey.FETCH, ApiKey.JOIN_GROUP} <= set(broker.asked), "both wait")
        await made.gateway.stop()
        for caller in callers:
            assert await caller.is_closed()


@pytest.mark.parametrize("acknowledges", [False, True])
async def test_a_share_fetch_is_awaited_if_it_acknowledges(acknowledges: bool) -> None:
    world = World(ALL_ALLOWED)
    topic_id = world.world.topics["alpha-topic"]
    world.session.take([share_fetch(1, topic_id, acknowledges=False)])
    await world.settle()
    while await world.learn():
        await world.settle()
    if acknowledges:
        assert world.answer_one()
        world.session.take([share_fetch(1, topic_id, acknowledges=True)])
        await world.settle()
        while await world.learn():
            await world.settle()
    assert world.session.drain() == acknowledges
    world.session.take([heartbeat(2)])
    assert world.answer_one()
    assert set(world.correlation_ids()) == {1}
    assert world.closed == [STOPS]
    assert not world.forwarded


async def test_a_drain_does_not_wait_for_a_login() -> None:
    async with served(sasl=SASL) as (made, _):
        caller = await Caller.at(made.port)
        caller.send(handshake(1))
        assert await caller.correlation_ids(1) == [1]
        await made.gateway.stop()
        assert await caller.is_closed()


async def test_a_drain_times_out_for_a_broker_that_does_not_answer() -> None:
    async with served(drain_timeout_ms=50) as (made, broker):
        caller = await Caller.at(made.port)
        caller.send(produce(1))
        await until(lambda: broker.held, "it is with the broker")
        await made.gateway.stop()
        assert await caller.is_closed()


async def test_a_second_signal_ends_the_drain_immediately() -> None:
    async with served() as (made, broker):
        caller = await Caller.at(made.port)
        caller.send(produce(1))
        await until(lambda: broker.held, "it is with the broker")
        stopping = await begun(made)
        made.gateway.close()
        await stopping
        assert await caller.is_closed()


async def test_a_drain_does_not_wait_for_a_lost_broker() -> None:
    async with served() as (made, broker):
        caller = await Caller.at(made.port)
        caller.send(produce(1))
        await until(lambda: broker.held, "it is with the broker")
        stopping = await begun(made)
        broker.stop()
        await stopping
        assert await caller.is_closed()


@pytest.mark.parametrize("has_tls", [False, True])
async def test_the_last_answer_is_complete_whatever_the_client_sends(has_tls: bool, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    listener = certificates.listener() if has_tls else None
    async with served(tls=listener) as (made, broker):
        broker.padding = bytes(LARGE_BYTES)
        caller = await Caller.at(made.port, certificates.client("alice") if has_tls else None)
        caller.send(heartbeat(1))
        await until(lambda: broker.held, "it is with the broker")
        stopping = await begun(made)
        broker.release()
        size = int.from_bytes(await caller.reader.readexactly(4), "big")
        await until(lambda: made.counted["connections"] == 0, "the rest waits for the client")
        caller.send(*(heartbeat(number) for number in range(2, 2_000)))
        await caller.writer.drain()
        assert size > LARGE_BYTES
        assert len(await caller.reader.readexactly(size)) == size
        assert await caller.is_closed()
        caller.close()
        await stopping
        assert broker.asked.count(ApiKey.HEARTBEAT) == 1


async def test_an_answer_in_the_kernel_buffer_is_delivered_completely() -> None:
    async with served() as (made, broker):
        broker.padding = bytes(KERNEL_BYTES)
        caller = await Caller.at(made.port)
        # otherwise the client's kernel receives everything immediately
        caller.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
        caller.send(heartbeat(1))
        await until(lambda: broker.held, "it is with the broker")
        broker.release()
        [connection] = made.connections
        transport = connection._transport
        assert transport is not None
        await until(lambda: made.counted["answered"] == 1, "it is answered")
        await until(lambda: not transport.get_write_buffer_size(), "the kernel has it")
        caller.send(fetch(2))
        await until(lambda: ApiKey.FETCH in broker.asked, "the drain does not wait for this one")
        caller.send(heartbeat(3))
        await until(lambda: not transport.is_reading(), "the next one stays unread")
        caller.send(heartbeat(4))
        await caller.writer.drain()
        stopping = await begun(made)
        size = int.from_bytes(await caller.reader.readexactly(4), "big")
        assert len(await caller.reader.readexactly(size)) == size > KERNEL_BYTES
        assert await caller.is_closed()
        caller.close()
        await stopping
