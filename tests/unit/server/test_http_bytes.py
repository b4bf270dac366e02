"""The HTTP endpoint over a real socket, byte by byte: requests cannot be smuggled."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from kustos.client import NodeAddress
from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.server import http
from kustos.server.http import REQUEST_HEAD_MAX_BYTES, HttpEndpoint
from testkit.ports import LOOPBACK

PATIENCE_S = 10.0
HIDDEN = b"GET /health HTTP/1.1\r\nHost: hidden\r\n\r\n"
GET = b"GET /health HTTP/1.1\r\nHost: here\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

REFUSED = {
    "length beside chunks (RFC 9112, 6.1)": GET + b"Content-Length: 6\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks beside length": GET + CHUNKED + b"Content-Length: 60\r\n\r\n0\r\n\r\n",
    "chunks": GET + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks that are none": GET + CHUNKED + b"\r\nno chunk\r\n",
    "a coding before chunked": GET + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "an unknown coding": GET + b"Transfer-Encoding: identity\r\n\r\n",
    "chunks in HTTP/1.0": b"GET /health HTTP/1.0\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "a body": GET + b"Content-Length: 4\r\n\r\nbody",
    "a body of POST": b"POST /health HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nbody",
    "a body that never comes": GET + b"Content-Length: 400\r\n\r\n",
    "a request as a body": GET + b"Content-Length: %d\r\n\r\n" % len(HIDDEN),
    "an expected body (RFC 9110, 10.1.1)": GET + b"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n",
    "two lengths": GET + b"Content-Length: 0\r\nContent-Length: 60\r\n\r\n",
    "a list of lengths": GET + b"Content-Length: 0, 60\r\n\r\n",
    "a signed length": GET + b"Content-Length: +0\r\n\r\n",
    "a negative length": GET + b"Content-Length: -1\r\n\r\n",
    "a hexadecimal length": GET + b"Content-Length: 0x0\r\n\r\n",
    "a folded line (RFC 9112, 5.2)": GET + b"A: b\r\n c\r\n\r\n",
    "a folded line with a tabulator": GET + b"Transfer-Encoding:\r\n\tchunked\r\n\r\n",
    "a line that ends with LF (RFC 9112, 2.2)": GET + b"A: b\n\r\n",
    "a head that ends with LF": b"GET /health HTTP/1.1\nHost: here\n\n",
    "CR in a line": GET + b"A: b\rc\r\n\r\n",
    "NUL in a line": GET + b"A: b\0c\r\n\r\n",
    "a space before the colon (RFC 9112, 5.1)": GET + b"Content-Length : 60\r\n\r\n",
    "a space before the first field": b"GET /health HTTP/1.1\r\n Host: here\r\n\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "two hosts": GET + b"Host: there\r\n\r\n",
    "another version": b"GET /health HTTP/2.0\r\nHost: here\r\n\r\n",
    "no version": b"GET /health\r\n\r\n",
    "bytes": b"\x16\x03\x01\x02\x00\r\n\r\n",
    "a large head": GET + b"A: " + REQUEST_HEAD_MAX_BYTES * b"b" + b"\r\n\r\n",
    "a large target": b"GET /" + REQUEST_HEAD_MAX_BYTES * b"h" + b" HTTP/1.1\r\nHost: here\r\n\r\n",
    "many fields": GET + REQUEST_HEAD_MAX_BYTES // 4 * b"a: \r\n" + b"\r\n",
}

ANSWERED = {
    "plain": (GET + b"\r\n", b"200"),
    "an empty body": (GET + b"Content-Length: 0\r\n\r\n", b"200"),
    "an empty body twice": (GET + 2 * b"Content-Length: 0\r\n" + b"\r\n", b"200"),
    "an expectation without a body": (GET + b"Expect: 100-continue\r\n\r\n", b"200"),
    "a proxy's form of the target": (b"GET http://here/health HTTP/1.1\r\nHost: here\r\n\r\n", b"404"),
    "another method": (b"DELETE /health HTTP/1.1\r\nHost: here\r\n\r\n", b"405"),
    "a wish for a tunnel": (b"CONNECT here:1 HTTP/1.1\r\nHost: here\r\n\r\n", b"404"),
    "a wish for another protocol": (GET + b"Connection: upgrade\r\nUpgrade: h2c\r\n\r\n", b"200"),
}


@pytest.fixture
async def endpoint() -> AsyncIterator[HttpEndpoint]:
    made = HttpEndpoint(NodeAddress(LOOPBACK, 0), GatewayMetrics(), dict)
    await made.start()
    yield made
    await made.stop()


async def statuses(endpoint: HttpEndpoint, *pieces: bytes) -> tuple[list[bytes], bytes]:
    """Return the status of each answer until the endpoint closes, and everything that it sent."""
    reader, writer = await asyncio.open_connection(LOOPBACK, endpoint.port)
    async with asyncio.timeout(PATIENCE_S):
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            sent = await reader.read()
        finally:
            writer.close()
    return re.findall(rb"HTTP/1.1 (\d+)", sent), sent


def cut(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


async def test_a_request_whose_end_could_be_disputed_is_refused_and_ends_the_connection(
    endpoint: HttpEndpoint,
) -> None:
    for name, request in REFUSED.items():
        answers, sent = await statuses(endpoint, request + HIDDEN)
        assert answers == [b"400"], name
        assert b"connection: close" in sent.lower(), name
        assert (await statuses(endpoint, request))[0] == [b"400"], name
        # an answer to HEAD has no body
        answers, sent = await statuses(endpoint, request.replace(b"GET ", b"HEAD "))
        assert answers == [b"400"], name
        assert sent.endswith(b"\r\n\r\n"), name


async def test_it_is_refused_however_its_bytes_come(endpoint: HttpEndpoint) -> None:
    for name, request in REFUSED.items():
        if len(request) >= REQUEST_HEAD_MAX_BYTES:
            continue
        try:
            answers, _ = await statuses(endpoint, *cut(request))
        except ConnectionError:
            # the endpoint closed before the last bytes came, and the reset overtook its answer
            continue
        assert answers in ([b"400"], []), name


async def test_a_request_without_a_body_is_answered_and_so_is_the_next(endpoint: HttpEndpoint) -> None:
    last = GET + b"Connection: close\r\n\r\n"
    for name, (request, status) in ANSWERED.items():
        assert (await statuses(endpoint, request + last))[0] == [status, b"200"], name
        assert (await statuses(endpoint, *cut(request + last)))[0] == [status, b"200"], name


async def test_what_follows_an_answered_request_is_read_as_strictly(endpoint: HttpEndpoint) -> None:
    for name, request in REFUSED.items():
        answers, _ = await statuses(endpoint, GET + b"\r\n", request + HIDDEN)
        assert answers[-1:] == [b"400"], name
        assert answers in ([b"200", b"400"], [b"400"]), name


async def test_a_head_that_comes_byte_by_byte_must_be_whole_in_time(
    endpoint: HttpEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "REQUEST_HEAD_TIMEOUT_S", 0.05)
    reader, writer = await asyncio.open_connection(LOOPBACK, endpoint.port)
    async with asyncio.timeout(PATIENCE_S):
        try:
            writer.write(GET)
            while not reader.at_eof():
                writer.write(b"A: b\r\n")
                await writer.drain()
                await asyncio.sleep(0)
            assert await reader.read() == b""
        except ConnectionError:
            pass
        finally:
            writer.close()
