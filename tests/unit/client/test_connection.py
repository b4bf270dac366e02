"""A connection to correct and incorrect peers, over a loopback socket."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from kustos.client import (
    CannotConnectError,
    ConnectionClosedError,
    ConnectionLimits,
    KafkaConnection,
    ProtocolViolationError,
    RequestTimedOutError,
    UnsupportedVersionError,
    choose_version,
)
from kustos.client.connection import ELEMENTS_PER_TURN
from kustos.wire import PartReader, peek_api, request_codec, response_codec, response_frame
from kustos.wire.api_keys import ApiKey
from testkit.ports import free_port

TOPICS = 3500
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

VERSIONS = {
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.DESCRIBE_ACLS: (1, 3),
    ApiKey.DELETE_ACLS: (1, 3),
    ApiKey.METADATA: (0, 12),
}


def versions_answer(frame: bytes, highest: int = 4) -> bytes:
    """Answer ApiVersions as a broker that knows versions up to `highest` (KIP-511)."""
    _, version, correlation_id = peek_api(frame)
    known = version <= highest
    codec = response_codec(ApiKey.API_VERSIONS, version if known else 0)
    item = codec.struct("ApiVersion")
    offered = dict(VERSIONS) if known else {}
    offered[ApiKey.API_VERSIONS] = (0, highest)
    answer = codec.new(
        error_code=0 if known else 35,
        api_keys=[item(api_key=int(k), min_version=a, max_version=b) for k, (a, b) in offered.items()],
    )
    return response_frame(ApiKey.API_VERSIONS, codec, correlation_id, codec.encode(answer))


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    size = struct.unpack(">i", await reader.readexactly(4))[0]
    return await reader.readexactly(size)


def describe_answer(correlation_id: int, message: str | None = None) -> bytes:
    codec = response_codec(ApiKey.DESCRIBE_ACLS, 3)
    return response_frame(
        ApiKey.DESCRIBE_ACLS, codec, correlation_id, codec.encode(codec.new(error_message=message))
    )


@asynccontextmanager
async def peer(serve: Serve, highest: int = 4) -> AsyncIterator[int]:
    """A node that answers ApiVersions and then does as `serve` says; yields its port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                frame = await read_frame(reader)
                writer.write(versions_answer(frame, highest))
                if peek_api(frame)[1] <= highest:
                    break
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def ask(connection: KafkaConnection, timeout_ms: int | None = None) -> str | None:
    message = request_codec(ApiKey.DESCRIBE_ACLS, 3).new(
        resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
    )
    answer = await connection.send(ApiKey.DESCRIBE_ACLS, 3, message, timeout_ms=timeout_ms)
    text: str | None = answer.error_message
    return text


async def read_until_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.mark.parametrize("highest", [0, 2, 3, 4])
async def test_versions_are_negotiated_down_to_what_the_peer_knows(highest: int) -> None:
    async with peer(read_until_end, highest) as port, await KafkaConnection.open("127.0.0.1", port) as link:
        assert link.versions[ApiKey.DESCRIBE_ACLS] == (1, 3)
        assert link.choose_version(ApiKey.METADATA) == 12
        assert link.choose_version(ApiKey.METADATA, cap=9) == 9
        with pytest.raises(UnsupportedVersionError, match="`CreateAcls`"):
            link.choose_version(ApiKey.CREATE_ACLS)


def test_no_common_version_is_an_error_that_names_both_sides() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"offers 90\.\.91"):
        choose_version({ApiKey.METADATA: (90, 91)}, ApiKey.METADATA)


async def test_many_requests_in_flight_get_each_its_own_answer() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = [peek_api(await read_frame(reader))[2] for _ in range(20)]
        data = b"".join(describe_answer(number, f"answer {number}") for number in asked)
        for at in range(0, len(data), 7):  # in crumbs: frames need not come whole
            writer.write(data[at : at + 7])
            await writer.drain()
        await reader.read()

    async with peer(serve) as port, await KafkaConnection.open("127.0.0.1", port) as link:
        answers = await asyncio.gather(*(ask(link) for _ in range(20)))
        assert answers == [f"answer {number}" for number in range(1, 21)]
        assert link.in_flight == 0


async def test_what_is_in_flight_is_bounded() -> None:
    full, go = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = [await read_frame(reader) for _ in range(2)]
        full.set()
        await go.wait()
        for frame in first:
            writer.write(describe_answer(peek_api(frame)[2]))
        for _ in range(3):
            writer.write(describe_answer(peek_api(await read_frame(reader))[2]))
        await reader.read()

    limits = ConnectionLimits(max_in_flight=2)
    async with peer(serve) as port, await KafkaConnection.open("127.0.0.1", port, limits=limits) as link:
        tasks = [asyncio.create_task(ask(link)) for _ in range(5)]
        await full.wait()
        assert link.in_flight == 2
        go.set()
        await asyncio.gather(*tasks)


async def test_a_request_without_answer_times_out_and_ends_the_connection() -> None:
    async with peer(read_until_end) as port, await KafkaConnection.open("127.0.0.1", port) as link:
        other = asyncio.create_task(ask(link))
        with pytest.raises(RequestTimedOutError, match="`DescribeAcls` within 50 ms"):
            await ask(link, timeout_ms=50)
        with pytest.raises(RequestTimedOutError):
            await other
        assert not link.is_open
        with pytest.raises(RequestTimedOutError):
            await ask(link)


async def test_a_cancelled_request_leaves_the_others_their_answers() -> None:
    go = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        numbers = [peek_api(await read_frame(reader))[2] for _ in range(2)]
        go.set()
        await reader.readexactly(1)
        for number in numbers:
            writer.write(describe_answer(number, str(number)))
        await reader.read()

    async with peer(serve) as port, await KafkaConnection.open("127.0.0.1", port) as link:
        first, second = asyncio.create_task(ask(link)), asyncio.create_task(ask(link))
        await go.wait()
        first.cancel()
        third = asyncio.create_task(ask(link))
        assert await second == "2"
        third.cancel()


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (describe_answer(77), ProtocolViolationError, "received answer 77 instead of 1"),
        (struct.pack(">i", -5), ProtocolViolationError, "frame length"),
        (struct.pack(">i", 10_000_000), ProtocolViolationError, "frame length"),
        (struct.pack(">ii", 4, 1), ProtocolViolationError, "ends"),
        (describe_answer(1) + describe_answer(2), None, ""),
        (b"", ConnectionClosedError, "closed the connection"),
    ],
)
async def test_a_peer_that_breaks_the_protocol_is_left(
    answer: bytes, error: type[Exception] | None, text: str
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        writer.write(answer)
        if answer:
            await reader.read()

    limits = ConnectionLimits(max_response_bytes=1_000_000)
    async with peer(serve) as port, await KafkaConnection.open("127.0.0.1", port, limits=limits) as link:
        if error is None:  # the answer that nobody asked for ends what comes after it
            await ask(link)
            with pytest.raises(ProtocolViolationError, match="came without a request"):
                await ask(link)
        else:
            with pytest.raises(error, match=text):
                await asyncio.gather(ask(link), return_exceptions=False)
        assert not link.is_open


async def test_closing_fails_whatever_waits() -> None:
    all_asked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(3):
            await read_frame(reader)
        all_asked.set()
        await reader.read()

    async with peer(serve) as port:
        link = await KafkaConnection.open("127.0.0.1", port)
        waiting = [asyncio.create_task(ask(link)) for _ in range(3)]
        await all_asked.wait()
        link.close()
        link.close()
        for task in waiting:
            with pytest.raises(ConnectionClosedError, match="closed by this client"):
                await task
        await link.wait_closed()


async def test_nobody_there_and_nobody_answering_are_connection_errors() -> None:
    # one that a server has let go may be another's by now
    free = free_port()
    with pytest.raises(CannotConnectError, match=f"`127.0.0.1:{free}`"):
        await KafkaConnection.open("127.0.0.1", free)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(CannotConnectError, match="did not answer within 50 ms"):
        await KafkaConnection.open("127.0.0.1", port, limits=ConnectionLimits(connect_timeout_ms=50))
    server.close()


async def test_a_large_answer_leaves_the_event_loop_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway asks upstream for all topics whenever a client describes them: others have their turns."""
    turns, read = [0], PartReader.read

    def counted(self: PartReader, elements_max: int) -> int:
        count = read(self, elements_max)
        turns[-1] += count
        return count

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, _, correlation_id = peek_api(await read_frame(reader))
        codec = response_codec(ApiKey.METADATA, 12)
        topics = [codec.root.ELEMENTS["topics"](name=f"topic-{number}") for number in range(TOPICS)]
        body = codec.encode(codec.root(topics=topics))
        writer.write(response_frame(ApiKey.METADATA, codec, correlation_id, body))
        await reader.read()

    monkeypatch.setattr(PartReader, "read", counted)
    async with peer(serve) as port, await KafkaConnection.open("127.0.0.1", port) as link:
        asking = asyncio.create_task(link.request(ApiKey.METADATA, lambda codec: codec.root(topics=None)))
        while not asking.done():
            turns.append(0)
            await asyncio.sleep(0)
        assert len(asking.result().topics) == TOPICS
    assert sum(turns) >= TOPICS
    assert max(turns) <= ELEMENTS_PER_TURN
