"""Health checks are answered regardless of other connections."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from kustos.client import NodeAddress
from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.server import http
from kustos.server.http import CONNECTIONS_MAX, HttpEndpoint
from testkit.ports import LOOPBACK

PATIENCE_S = 60.0
METRICS = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"
SCRAPERS = 20
LARGE_BYTES = 16 * 2**20
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
    clients = [await line(endpoint, sent) for _ in range(2 * CONNECTIONS_MAX)]
    assert await status(await line(endpoint)) == b"HTTP/1.1 200 OK"
    assert await is_ended(clients[0])
    for _, writer in clients:
        writer.close()


class GatedEndpoint(HttpEndpoint):
    """Counts how often its metrics are written, each time once it is let."""

    def __init__(self) -> None:
        super().__init__(NodeAddress(LOOPBACK, 0), GatewayMetrics(), dict)
        self.begun = 0
        self.may_write = asyncio.Event()

    async def metrics_text(self) -> bytes:
        self.begun += 1
        begun = self.begun
        await self.may_write.wait()
        return b"%d" % begun


async def metrics_of(asking: Line) -> int:
    asking[1].write(METRICS)
    async with asyncio.timeout(PATIENCE_S):
        assert await asking[0].readline() == b"HTTP/1.1 200 OK\r\n"
        while (await asking[0].readline()).strip():
            pass
        return int(await asking[0].readexactly(1))


async def test_many_scrapers_share_what_is_written_after_they_asked() -> None:
    """Strangers may ask for the metrics as fast as they like, and others are served meanwhile."""
    endpoint = GatedEndpoint()
    await endpoint.start()
    first = asyncio.create_task(metrics_of(await line(endpoint)))
    await until(lambda: endpoint.begun == 1)
    asked = await asking_all(endpoint, SCRAPERS)
    assert endpoint.begun == 1
    endpoint.may_write.set()
    assert await first == 1
    assert set(await asyncio.gather(*asked)) == {2}
    assert await metrics_of(await line(endpoint)) == 3
    await endpoint.stop()


async def until(condition: Callable[[], bool]) -> None:
    """Return once the loop has come to it; the test's own time limit holds."""
    while not condition():  # noqa: ASYNC110 (nothing else tells)
        await asyncio.sleep(0)


async def asking_all(endpoint: HttpEndpoint, count: int) -> list[asyncio.Task[int]]:
    """Return scrapers whose requests the endpoint has read."""
    asked: list[asyncio.Task[int]] = []
    for _ in range(count):
        asking = await line(endpoint)
        asked.append(asyncio.create_task(metrics_of(asking)))
    await until(lambda: endpoint.connections.answering == count + 1)
    return asked


class LargeEndpoint(GatedEndpoint):
    """Its metrics are larger than all buffers of a connection."""

    async def metrics_text(self) -> bytes:
        self.begun += 1
        return bytes(LARGE_BYTES)


async def test_a_client_that_does_not_read_its_answers_gets_no_more_of_them() -> None:
    endpoint = LargeEndpoint()
    await endpoint.start()
    deaf = await line(endpoint, 2 * METRICS)
    await until(lambda: endpoint.begun == 1 and not endpoint.connections.answering)
    deaf[1].write(METRICS)
    probe = await line(endpoint)
    for _ in range(10):
        assert await status(probe) == b"HTTP/1.1 200 OK"
    assert endpoint.begun == 1
    async with asyncio.timeout(PATIENCE_S):
        await deaf[0].readexactly(3 * LARGE_BYTES)
    assert endpoint.begun == 3
    await endpoint.stop()


async def test_a_client_that_never_reads_its_last_answer_does_not_keep_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "KEEP_ALIVE_S", 0.05)
    endpoint = LargeEndpoint()
    await endpoint.start()
    deaf = await line(endpoint, METRICS.replace(b"Host", b"Connection: close\r\nHost"))
    await until(lambda: endpoint.begun == 1)
    async with asyncio.timeout(PATIENCE_S):
        await until(lambda: not endpoint.connections._open)
    deaf[1].close()
    await endpoint.stop()


async def test_pipelined_requests_are_read_no_faster_than_they_are_answered(endpoint: HttpEndpoint) -> None:
    reader, writer = await asyncio.open_connection(LOOPBACK, endpoint.port)
    writer.write(LARGE_BYTES // len(HEALTH) * HEALTH)
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(100):
            await reader.readuntil(b'{"alive":true}')
    (connection,) = endpoint.connections._open
    buffered, _ = connection._http.trailing_data
    # asyncio reads 256 KiB at once
    assert 0 < len(buffered) < 2**20
    writer.close()


async def test_a_client_that_ends_its_side_gets_its_answers() -> None:
    endpoint = GatedEndpoint()
    await endpoint.start()
    reader, writer = await line(endpoint, 2 * METRICS)
    writer.write_eof()
    await until(lambda: endpoint.begun == 1)
    probe = await line(endpoint)
    for _ in range(10):
        assert await status(probe) == b"HTTP/1.1 200 OK"
    endpoint.may_write.set()
    async with asyncio.timeout(PATIENCE_S):
        assert (await reader.read()).count(b"HTTP/1.1 200 OK") == 2
    await endpoint.stop()


class FailingEndpoint(HttpEndpoint):
    """Its metrics cannot be written."""

    async def metrics_text(self) -> bytes:
        raise OSError("injected")


async def test_an_answer_that_fails_is_an_error_and_the_next_request_is_served() -> None:
    endpoint = FailingEndpoint(NodeAddress(LOOPBACK, 0), GatewayMetrics(), dict)
    await endpoint.start()
    asking = await line(endpoint, METRICS)
    async with asyncio.timeout(PATIENCE_S):
        assert await asking[0].readline() == b"HTTP/1.1 500 Internal Server Error\r\n"
        await asking[0].readuntil(b"\r\n\r\nInternal Server Error")
    assert await status(asking) == b"HTTP/1.1 200 OK"
    await endpoint.stop()


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        (b"HEAD /health", (b"200", 0)),
        (b"HEAD /other", (b"404", 0)),
        (b"GET /health?verbose=1", (b"200", 1)),
        (b"GET /metrics/", (b"200", 1)),
        (b"GET /", (b"404", 1)),
        (b"GET /metrics//", (b"404", 1)),
        (b"POST /ready", (b"405", 1)),
    ],
)
async def test_a_head_has_no_body_and_a_query_changes_nothing(
    endpoint: HttpEndpoint, request_line: bytes, expected: tuple[bytes, int]
) -> None:
    asking = await line(endpoint, request_line + b" HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        head, _, body = (await asking[0].read()).partition(b"\r\n\r\n")
    assert (head.split()[1], bool(body)) == expected
    assert b"\r\ncontent-length: " in head.lower()


@pytest.mark.slow
async def test_a_probe_that_keeps_asking_outlives_strangers(endpoint: HttpEndpoint) -> None:
    probe = await line(endpoint)
    for _ in range(CONNECTIONS_MAX + 10):
        assert await status(probe) == b"HTTP/1.1 200 OK"
        await line(endpoint)
    assert await status(probe) == b"HTTP/1.1 200 OK"


def be_hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give requests little time from now on: what is answered before must not have to be so fast."""
    monkeypatch.setattr(http, "REQUEST_HEAD_TIMEOUT_S", 0.05)


@pytest.mark.parametrize("sent", [b"", b"GET /hea"])
@pytest.mark.parametrize("answered", [0, 1])
async def test_a_request_that_is_not_there_in_time_ends_its_connection(
    endpoint: HttpEndpoint, monkeypatch: pytest.MonkeyPatch, sent: bytes, answered: int
) -> None:
    if not answered:
        be_hasty(monkeypatch)
    slow = await line(endpoint)
    for _ in range(answered):
        assert await status(slow) == b"HTTP/1.1 200 OK"
    be_hasty(monkeypatch)
    # after an answer the first byte of the next request starts the time
    slow[1].write(sent or b"G" * answered)
    assert await is_ended(slow)


async def test_a_connection_is_kept_between_two_questions(
    endpoint: HttpEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    scraper = await line(endpoint)
    assert await status(scraper) == b"HTTP/1.1 200 OK"
    be_hasty(monkeypatch)
    other = await line(endpoint)
    # once the stranger's time was up, the scraper's would have been too, had it run
    assert await is_ended(other)
    assert await status(scraper) == b"HTTP/1.1 200 OK"
