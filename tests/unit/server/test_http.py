"""Health checks are answered, whoever else is connected."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kustos.client import NodeAddress
from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.server import http
from kustos.server.http import CONNECTIONS_MAX, HttpEndpoint
from testkit.ports import LOOPBACK

PATIENCE_S = 60.0
HEALTH = b"GET /health HTTP/1.1\r\nHost: here\r\n\r\n"

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
async def endpoint() -> AsyncIterator[HttpEndpoint]:
    made = HttpEndpoint(NodeAddress(LOOPBACK, 0), GatewayMetrics(), dict)
    await made.start()
    yield made
    await made.stop()


async def line(endpoint: HttpEndpoint, sent: bytes = b"") -> Line:
    reader, writer = await asyncio.open_connection(LOOPBACK, endpoint.port)
    writer.write(sent)
    await writer.drain()
    return reader, writer


async def status(asking: Line, request: bytes = HEALTH) -> bytes:
    """Return the first line of the answer."""
    asking[1].write(request)
    async with asyncio.timeout(PATIENCE_S):
        first = await asking[0].readline()
        while (await asking[0].readline()).strip():
            pass
        await asking[0].readexactly(len(b'{"alive":true}'))
    return first.strip()


async def is_ended(asking: Line) -> bool:
    """Return True once the other side has closed."""
    async with asyncio.timeout(PATIENCE_S):
        try:
            return await asking[0].read() == b""
        except ConnectionError:
            return True


@pytest.mark.parametrize("sent", [b"", b"GET /hea", b"GET /metrics HTTP/1.1\r\nHost: here\r\n"])
async def test_strangers_who_say_nothing_do_not_keep_a_probe_from_its_answer(
    endpoint: HttpEndpoint, sent: bytes
) -> None:
    strangers = [await line(endpoint, sent) for _ in range(2 * CONNECTIONS_MAX)]
    assert await status(await line(endpoint)) == b"HTTP/1.1 200 OK"
    assert await is_ended(strangers[0])
    for _, writer in strangers:
        writer.close()


@pytest.mark.slow
async def test_a_probe_that_keeps_asking_outlives_strangers(endpoint: HttpEndpoint) -> None:
    probe = await line(endpoint)
    for _ in range(CONNECTIONS_MAX + 10):
        assert await status(probe) == b"HTTP/1.1 200 OK"
        await line(endpoint)
    assert await status(probe) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize("sent", [b"", b"GET /hea"])
@pytest.mark.parametrize("answered", [0, 1])
async def test_a_request_that_is_not_there_in_time_ends_its_connection(
    endpoint: HttpEndpoint, monkeypatch: pytest.MonkeyPatch, sent: bytes, answered: int
) -> None:
    monkeypatch.setattr(http, "REQUEST_HEAD_TIMEOUT_S", 0.05)
    slow = await line(endpoint)
    for _ in range(answered):
        assert await status(slow) == b"HTTP/1.1 200 OK"
    # after an answer the first byte of the next request starts the time
    slow[1].write(sent or b"G" * answered)
    assert await is_ended(slow)


async def test_a_body_that_never_ends_ends_its_connection(
    endpoint: HttpEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "REQUEST_HEAD_TIMEOUT_S", 0.05)
    request = b"GET /health HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000\r\n\r\n"
    slow = await line(endpoint)
    assert await status(slow, request) == b"HTTP/1.1 200 OK"
    slow[1].write(b"x")
    assert await is_ended(slow)


async def test_a_connection_is_kept_between_two_questions(
    endpoint: HttpEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "REQUEST_HEAD_TIMEOUT_S", 0.05)
    scraper = await line(endpoint)
    assert await status(scraper) == b"HTTP/1.1 200 OK"
    stranger = await line(endpoint)
    # once the stranger's time was up, the scraper's would have been too, had it run
    assert await is_ended(stranger)
    assert await status(scraper) == b"HTTP/1.1 200 OK"
