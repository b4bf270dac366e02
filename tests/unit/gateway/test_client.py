"""One client connection on real sockets: from the login to each of its ends."""

import asyncio
import socket
import weakref
from typing import Any

import pytest
from structlog.testing import capture_logs

from kustos.auth import SaslServerSettings
from kustos.gateway.listener import admission as listener
from kustos.gateway.listener import connection as client_module
from kustos.gateway.listener.connection import ClientConnection
from kustos.gateway.upstream.addresses import NoPortForBrokerError
from kustos.gateway.upstream.cluster import UpstreamUnavailableError
from kustos.runtime import garbage_collection_paused
from kustos.wire import peek_api
from kustos.wire.api_keys import ApiKey
from testkit.gateway.gateways import Caller, RunningGateway, handshake, running_gateway, token
from testkit.gateway.scripted_brokers import ScriptedBroker, cluster_of
from testkit.gateway.sessions import Pipe, heartbeat, request, versions
from testkit.waiting import wait_until

SASL = SaslServerSettings(failed_authentication_delay_ms=20)
REAUTHENTICATING = SaslServerSettings(connections_max_reauth_ms={"PLAIN": 60_000})


async def broker() -> ScriptedBroker:
    made = ScriptedBroker(1)
    await made.start()
    return made


async def until(condition: Any, what: str) -> None:
    await asyncio.to_thread(wait_until, condition, what=what)


def only(served: RunningGateway) -> Any:
    (connection,) = served.connections
    return connection


async def test_requests_of_an_unauthenticated_client_reach_no_broker() -> None:
    async with running_gateway([await broker()], sasl=SASL) as served:
        before = len(served.brokers[0].asked)
        for first in ([heartbeat(1)], [handshake(1), heartbeat(2)], [versions(1), heartbeat(2)]):
            caller = await Caller.at(served.port)
            caller.send(*first, heartbeat(9))
            for _ in first[:-1]:
                assert await caller.frame() is not None
            while (answer := await caller.frame()) is not None:
                assert answer[:4] == (2).to_bytes(4, "big"), "a refusal of the frame itself, if any"
        assert served.contexts == []
        assert len(served.brokers[0].asked) == before
        assert served.counted["connections"] == 0


@pytest.mark.parametrize("sasl", [SASL, None])
async def test_a_closed_connection_is_freed_without_the_garbage_collector(
    sasl: SaslServerSettings | None,
) -> None:
    async with running_gateway([await broker()], sasl=sasl) as served:
        with garbage_collection_paused():
            caller = await Caller.at(served.port)
            frames = [versions(1), heartbeat(4)] if sasl is None else [handshake(2), token(3), heartbeat(4)]
            caller.send(*frames)
            for _ in frames:
                assert await caller.frame() is not None
            kept = [weakref.ref(only(served)), weakref.ref(only(served)._session)]
            assert None not in [each() for each in kept]
            caller.close()
            # what many changes spare from the collector, clients included, must not be lost for ever
            await until(lambda: [each() for each in kept] == [None, None], "nothing of it is left")


@pytest.mark.parametrize("piece", [1, 7, 10_000])
async def test_a_login_and_requests_may_arrive_in_any_pieces(piece: int) -> None:
    async with running_gateway([await broker()], sasl=SASL) as served:
        caller = await Caller.at(served.port)
        frames = [versions(1), handshake(2), token(3), heartbeat(4), versions(5), heartbeat(6)]
        stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
        for at in range(0, len(stream), piece):
            caller.writer.write(stream[at : at + piece])
            await asyncio.sleep(0)
        assert await caller.correlation_ids(6) == [1, 2, 3, 4, 5, 6]
        assert served.counted["received"] == len(stream)
        caller.close()


@pytest.mark.behaviour("B254")
async def test_a_failed_login_is_answered_after_a_delay_without_reading_more() -> None:
    settings = SaslServerSettings(failed_authentication_delay_ms=300)
    async with running_gateway([await broker()], sasl=settings) as served:
        caller = await Caller.at(served.port)
        caller.send(handshake(1))
        await caller.frame()
        began_s = asyncio.get_running_loop().time()
        caller.send(token(2, "wrong"), token(3), heartbeat(4))
        while served.counted["failed logins"] == 0:  # noqa: ASYNC110 (a later check may be too late)
            await asyncio.sleep(0)
        assert not only(served)._transport.is_reading()
        answer = await caller.frame()
        assert asyncio.get_running_loop().time() - began_s >= 0.299
        assert answer is not None
        assert answer[:6] == (2).to_bytes(4, "big") + (58).to_bytes(2, "big")
        assert await caller.is_closed()
        assert served.counted["logins"] == 0
        assert served.contexts == []


@pytest.mark.behaviour("B255")
@pytest.mark.parametrize("reset", [False, True])
async def test_a_client_may_disconnect_before_its_failed_login_is_answered(reset: bool) -> None:
    settings = SaslServerSettings(failed_authentication_delay_ms=300)
    async with running_gateway([await broker()], sasl=settings) as served:
        failures: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        left, other = await Caller.at(served.port), await Caller.at(served.port)
        left.send(handshake(1))
        await left.frame()
        left.send(token(2, "wrong"))
        await until(lambda: served.counted["failed logins"] == 1, "the login failed")
        if reset:
            linger = (1).to_bytes(4, "little") + bytes(4)
            left.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        left.writer.transport.abort()
        assert await other.log_in() is not None
        other.send(heartbeat(1))
        assert await other.correlation_ids(1) == [1]
        await until(lambda: served.counted["connections"] == 1, "it is counted out")
        last = await Caller.at(served.port)
        assert await last.log_in("wrong") is not None, "the delay of another one has passed, too"
        assert failures == []
        assert served.counted["failed logins"] == 2


async def test_connections_leave_file_descriptors_for_other_uses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "descriptor_limit", lambda: listener.DESCRIPTORS_RESERVED + 5)
    async with running_gateway([await broker()], sasl=SASL) as served:
        first, second = await Caller.at(served.port), await Caller.at(served.port)
        assert await first.log_in() is not None
        assert await second.log_in() is not None
        with capture_logs() as logs:
            for _ in range(5):
                assert await (await Caller.at(served.port)).is_closed()
        assert served.counted["rejected"] == 5
        logged = [entry for entry in logs if entry["event"] == "connections are rejected"]
        assert [entry["reason"] for entry in logged] == [
            "there are no file descriptors for more connections (RLIMIT_NOFILE)"
        ]
        first.close()
        await until(lambda: served.counted["connections"] == 1, "the first has left")
        assert await (await Caller.at(served.port)).log_in() is not None


@pytest.mark.parametrize("limit", ["max_connections", "max_connections_per_ip"])
async def test_the_number_of_connections_is_limited(limit: str) -> None:
    limits: dict[str, Any] = {limit: 3}
    async with running_gateway([await broker()], **limits) as served:
        callers = [await Caller.at(served.port) for _ in range(3)]
        for caller in callers:
            caller.send(heartbeat(1))
            assert await caller.correlation_ids(1) == [1]
        assert await (await Caller.at(served.port)).is_closed()
        callers[0].close()
        await until(lambda: served.counted["connections"] == 2, "one is gone")
        caller = await Caller.at(served.port)
        caller.send(heartbeat(2))
        assert await caller.correlation_ids(1) == [2]


async def test_a_long_client_id_is_truncated_in_decisions() -> None:
    async with running_gateway([await broker()]) as served:
        caller = await Caller.at(served.port)
        name = "n" * 32_767
        plain = heartbeat(1)
        at = plain.index(b"\0\x06client")
        caller.send(plain[:at] + len(name).to_bytes(2, "big") + name.encode() + plain[at + 8 :])
        assert await caller.correlation_ids(1) == [1]
        assert [context.client_id for context in served.contexts] == [name[:255]]
        caller.close()


class TalkativeBroker(ScriptedBroker):
    """Answers a heartbeat with a megabyte."""

    def answer(self, frame: bytes) -> bytes | None:
        api_key, _, correlation_id = peek_api(frame)
        if api_key != ApiKey.HEARTBEAT:
            return super().answer(frame)
        return (4 + 2**20).to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + bytes(2**20)


async def test_a_client_that_does_not_read_holds_little_memory_and_loses_nothing() -> None:
    talkative = TalkativeBroker(1)
    await talkative.start()
    async with running_gateway([talkative]) as served:
        caller = await Caller.at(served.port)
        caller.writer.transport.pause_reading()  # type: ignore[attr-defined]
        caller.send(*map(heartbeat, range(100)))
        await until(lambda: served.counted["sent"] and not only(served)._session.client_reads, "it is full")
        connection = only(served)
        held = connection._transport.get_write_buffer_size()
        assert held < 4 * 2**20
        assert len(connection._session._frames) >= 50
        caller.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert await caller.correlation_ids(100) == list(range(100))
        caller.close()


@pytest.mark.slow
async def test_a_client_that_asks_without_reading_is_not_read() -> None:
    async with running_gateway([await broker()]) as served:
        caller = await Caller.at(served.port)
        caller.writer.transport.pause_reading()  # type: ignore[attr-defined]
        caller.send(*[versions(1)] * 80_000)
        await until(lambda: served.counted["sent"] and not only(served)._session.client_reads, "it is full")
        connection = only(served)
        assert not connection._transport.is_reading()
        assert connection._transport.get_write_buffer_size() < 2**18
        assert len(connection._session._frames) < 50_000
        caller.writer.transport.abort()
        await until(lambda: served.counted["connections"] == 0, "the connection is gone")


async def test_a_client_that_never_reads_is_closed_soon_after_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_module, "LAST_ANSWERS_S", 0.05)
    talkative = TalkativeBroker(1)
    await talkative.start()
    async with running_gateway([talkative]) as served:
        caller = await Caller.at(served.port)
        caller.writer.transport.pause_reading()  # type: ignore[attr-defined]
        caller.send(*map(heartbeat, range(30)))
        await until(lambda: served.counted["sent"] and not only(served)._session.client_reads, "it is full")
        connection = only(served)
        connection.close("the test is over")
        await until(lambda: connection._transport is None, "the socket is gone")
        await until(lambda: not any(t.get_write_buffer_size() for t in talkative.open), "upstream's too")


async def test_an_immediate_disconnect_is_not_an_error() -> None:
    async with running_gateway([await broker()]) as served:
        (port,) = [port for (_, node_id), port in served.gateway._ports.items() if node_id is None]
        connection = ClientConnection(port)
        pipe = Pipe(lambda _: None)
        connection.connection_made(pipe)
        assert pipe.closing
        connection.get_buffer(5)[:5] = b"\0\0\0\1x"
        connection.buffer_updated(5)
        connection.connection_lost(None)
        assert served.counted["connections"] == 0


async def test_an_upstream_disconnect_closes_the_client_once() -> None:
    async with running_gateway([await broker()]) as served:
        for raw in (b"\0\0\0\4\0\0\0\x63", b"\0\0\0\2\0\0", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"):
            served.brokers[0].answers_raw = raw
            caller = await Caller.at(served.port)
            caller.send(heartbeat(1), heartbeat(2))
            assert await caller.is_closed()
        assert served.counted["upstream failures"] == 4
        served.brokers[0].answers_raw = None
        caller = await Caller.at(served.port)
        caller.send(heartbeat(1))
        assert await caller.correlation_ids(1) == [1]
        served.brokers[0].stop()
        assert await caller.is_closed()
        assert served.counted["upstream failures"] == 5
        assert served.counted["connections"] == 0
        # while it is down a client is turned away, and served again when it is back
        assert await (await Caller.at(served.port)).is_closed()
        await served.brokers[0].start()
        caller = await Caller.at(served.port)
        caller.send(heartbeat(1))
        assert await caller.correlation_ids(1) == [1]


async def test_an_unrequested_answer_closes_the_client() -> None:
    async with running_gateway([await broker()]) as served:
        caller = await Caller.at(served.port)
        caller.send(heartbeat(1))
        assert await caller.correlation_ids(1) == [1]
        for transport in served.brokers[0].open:
            transport.write(b"\0\0\0\6" + bytes(6))
        assert await caller.is_closed()


async def test_a_downgraded_broker_changes_the_offered_versions_for_new_connections() -> None:
    async with running_gateway([await broker()]) as served:
        served.brokers[0].versions[ApiKey.HEARTBEAT] = (0, 2)
        caller = await Caller.at(served.first_port + 1)
        caller.send(heartbeat(4))
        assert await caller.is_closed()
        caller = await Caller.at(served.first_port + 1)
        caller.send(request(ApiKey.HEARTBEAT, 2, 5, group_id="group-one", member_id="m"))
        assert await caller.correlation_ids(1) == [5]
        caller.send(heartbeat(6))
        assert await caller.is_closed()


async def test_an_api_versions_request_opens_no_upstream_connection() -> None:
    async with running_gateway([await broker()]) as served:
        accepted = served.brokers[0].connections
        caller = await Caller.at(served.port)
        caller.send(versions(1))
        caller.send(versions(2))
        assert await caller.correlation_ids(2) == [1, 2]
        assert served.brokers[0].connections == accepted
        # the first other request is answered after all earlier ones, and one connection serves all
        caller.send(versions(3), heartbeat(4), versions(5), heartbeat(6))
        assert await caller.correlation_ids(4) == [3, 4, 5, 6]
        assert served.brokers[0].connections == accepted + 1


async def test_api_versions_are_not_answered_while_the_broker_is_lost() -> None:
    async with running_gateway([await broker()]) as served:
        caller = await Caller.at(served.port)
        caller.send(heartbeat(1))
        assert await caller.correlation_ids(1) == [1]
        served.brokers[0].stop()
        assert await caller.is_closed()
        for _ in range(2):
            # a client that got an answer would take the broker for alive, and come back without a pause
            caller = await Caller.at(served.port)
            caller.send(versions(1))
            assert await caller.is_closed()
        await served.brokers[0].start()
        caller = await Caller.at(served.port)
        caller.send(versions(1), heartbeat(2))
        assert await caller.correlation_ids(2) == [1, 2]


async def test_the_bootstrap_port_works_without_one_broker() -> None:
    brokers = [ScriptedBroker(0), ScriptedBroker(1), ScriptedBroker(2)]
    await cluster_of(*brokers)
    async with running_gateway(brokers) as served:
        brokers[1].stop()
        for number in range(6):
            caller = await Caller.at(served.port)
            caller.send(heartbeat(number))
            assert await caller.correlation_ids(1) == [number]
            caller.close()
        caller = await Caller.at(served.first_port + 1)
        caller.send(heartbeat(7))
        assert await caller.is_closed()
        assert brokers[0].asked.count(ApiKey.HEARTBEAT) + brokers[2].asked.count(ApiKey.HEARTBEAT) == 6
        assert min(brokers[0].asked.count(12), brokers[2].asked.count(12)) >= 1


async def test_a_gateway_that_cannot_start_leaves_nothing_open() -> None:
    far = ScriptedBroker(77)
    await far.start()
    served = RunningGateway([far])
    with pytest.raises(NoPortForBrokerError, match="broker `77`"):
        await served.gateway.start()
    await served.gateway.stop()
    far.stop()
    strange = ScriptedBroker(1, versions={ApiKey.API_VERSIONS: (0, 3)})
    await strange.start()
    with pytest.raises(UpstreamUnavailableError, match="Metadata"):
        await RunningGateway([strange]).gateway.start()
    strange.stop()
    near = await broker()
    taken = RunningGateway([near])
    taken.first_port = near.port - 1
    plan = taken.gateway._plans[0]
    object.__setattr__(plan, "port", near.port)
    with pytest.raises(OSError, match="in use"):
        await taken.gateway.start()
    bound = taken.first_port
    await taken.gateway.stop()
    near.stop()
    assert not taken.gateway.is_open
    with pytest.raises(ConnectionRefusedError):
        await Caller.at(bound)
