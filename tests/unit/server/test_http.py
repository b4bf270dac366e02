"""Health checks are answered, whoever else is connected."""

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
    assert endpoint._server is not None
    connections = endpoint._server.server_state.tasks
    await until(lambda: len(connections) == count + 1)
    return asked


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
    stranger = await line(endpoint)
    # once the stranger's time was up, the scraper's would have been too, had it run
    assert await is_ended(stranger)
    assert await status(scraper) == b"HTTP/1.1 200 OK"
