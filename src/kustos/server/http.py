"""Metrics and health over HTTP, on a listener of their own inside the node's event loop.

`/metrics`: Prometheus' text. `/health`: 200 while the event loop turns. `/ready`: 200 when everything is
ready, else 503; its JSON says what is and what is not. There is no authentication here, so strangers must not
block others: if there are too many connections, the one that has been silent longest is closed, and each
request has to arrive soon.
"""

import asyncio
import math
import re
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import h11
import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from kustos.client import NodeAddress, supervised
from kustos.gateway.listener import listening_socket
from kustos.gateway.metrics import GatewayMetrics
from kustos.runtime import naming_the_setting

CONNECTIONS_MAX: Final = 64
"""Scrapers and probes are few; for each connection beyond, the one that has been silent longest is closed."""

REQUEST_HEAD_TIMEOUT_S: Final = 10.0
"""How long the head of a request may take, from the connection or from its first byte; as in nginx and
Envoy, a probe takes milliseconds."""

KEEP_ALIVE_S: Final = 75
"""Longer than the usual scrape interval of 15 to 60 s, so that scrapers keep their connections."""

REQUEST_HEAD_MAX_BYTES: Final = 16 * 1024
"""As much as Node.js takes; probes and scrapers send some hundred bytes."""

STOP_TIMEOUT_S: Final = 2
"""How long stopping waits for requests in flight."""

REST_PER_TEXT: Final = 9.0
"""How long no metrics are written after some were, as a multiple of the time that it took: they may take a
tenth of the event loop, however many scrapers there are."""

REST_MAX_S: Final = 1.0
"""The longest such rest: scrapers wait ten seconds."""

Readiness = Callable[[], Mapping[str, bool]]
Details = Callable[[], Mapping[str, object]]


class SharedText:
    """A text that takes a while to write: whoever wants it meanwhile, or within a rest, gets the next one.

    So each gets a text that was begun after the request, and strangers cannot have it written all the time.
    """

    def __init__(self, write: Callable[[], Awaitable[bytes]]) -> None:
        self._write: Final = write
        self._next: asyncio.Task[bytes] | None = None
        self._turn: Final = asyncio.Lock()
        self._rest_ends_s = 0.0

    async def read(self) -> bytes:
        """Return the text as of a moment from now on."""
        if self._next is None or self._next.done():
            self._next = asyncio.get_running_loop().create_task(self._written())
        # others wait for the same: one that goes must not end it
        return await asyncio.shield(self._next)

    async def _written(self) -> bytes:
        async with self._turn:
            await asyncio.sleep(self._rest_ends_s - time.perf_counter())
            self._next = None
            begun_s = time.perf_counter()
            try:
                return await self._write()
            finally:
                now_s = time.perf_counter()
                self._rest_ends_s = now_s + min(REST_PER_TEXT * (now_s - begun_s), REST_MAX_S)


_DISPUTED_LINE_END: Final = re.compile(rb"[^\r]\n|\n[ \t]")
"""A line that ends with LF alone, or goes on in the next one (RFC 9112, sections 2.2 and 5.2)."""

_VERSIONS: Final = frozenset({b"1.0", b"1.1"})
_EMPTY_BODY: Final = (b"content-length", b"0")


class HeadsOnly(h11.Connection):
    """Reads requests that have no body, and refuses any other: nothing can hide behind a request.

    A proxy in front may read disputed bytes differently, and take for a part of one request what is the next
    one here (request smuggling). Every byte here belongs to a head, so the line ends can be checked in the
    stream.
    """

    def __init__(self) -> None:
        super().__init__(h11.SERVER, REQUEST_HEAD_MAX_BYTES)
        self._last_byte = b"\n"
        self._is_disputed = False

    def receive_data(self, data: bytes) -> None:
        """Take bytes; see `h11.Connection.receive_data`."""
        if data:
            self._is_disputed |= _DISPUTED_LINE_END.search(self._last_byte + data) is not None
            self._last_byte = data[-1:]
        super().receive_data(data)

    def next_event(self) -> Any:
        """Return the next event; raise `h11.RemoteProtocolError` for a request that is refused."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            if self._is_disputed:
                raise h11.RemoteProtocolError("a line of the head does not end with CR and LF")
            if event.http_version not in _VERSIONS:
                raise h11.RemoteProtocolError("the version is neither HTTP/1.0 nor HTTP/1.1")
            if any(_announces_body(*field) for field in event.headers):
                raise h11.RemoteProtocolError("a request has no body here")
            if len(event.target) + sum(map(_size_of, event.headers)) > REQUEST_HEAD_MAX_BYTES:
                raise h11.RemoteProtocolError("the head is too large")
        return event


def _announces_body(name: bytes, value: bytes) -> bool:
    return name == b"transfer-encoding" or (name == b"content-length" and (name, value) != _EMPTY_BODY)


def _size_of(field: tuple[bytes, bytes]) -> int:
    """Return the bytes of a header field, with its separators."""
    return sum(map(len, field)) + len(b": \r\n")


class HttpConnection(H11Protocol):
    """A connection that makes room for others and does not wait for its client for ever."""

    last_heard_s = 0.0
    _head_timer: asyncio.TimerHandle | None = None

    def __init__(self, *parts: Any, **named: Any) -> None:
        super().__init__(*parts, **named)
        self.conn = HeadsOnly()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Close the connection that has been silent longest if there are too many."""
        self.last_heard_s = self.loop.time()
        while len(self.connections) >= CONNECTIONS_MAX:
            silent = min(self.connections, key=_last_heard_s)
            self.connections.discard(silent)
            silent.transport.abort()
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes; an incomplete request must be completed in time."""
        self.last_heard_s = self.loop.time()
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._forget_timer()
        if not _is_under_way(self.cycle):
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer."""
        self._forget_timer()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(REQUEST_HEAD_TIMEOUT_S, self.transport.abort)

    def _forget_timer(self) -> None:
        timer, self._head_timer = self._head_timer, None
        if timer is not None:
            timer.cancel()


def _is_under_way(cycle: RequestResponseCycle | None) -> bool:
    """Return whether a complete request is not answered yet; None: there was no request so far."""
    return cycle is not None and not cycle.response_complete


def _last_heard_s(connection: object) -> float:
    """Return when bytes came last; every connection of the server is an `HttpConnection`."""
    return connection.last_heard_s if isinstance(connection, HttpConnection) else -math.inf


class HttpEndpoint:
    """Serves on `listener` between `start` and `stop`; port 0 takes any free one.

    `readiness` returns what must be ready at each call, for example `{"acls": True, "upstream": False}`;
    `details` are shown beside it without effect.
    """

    def __init__(
        self,
        listener: NodeAddress,
        metrics: GatewayMetrics,
        readiness: Readiness,
        details: Details = dict,
    ) -> None:
        self._listener: Final = listener
        self._metrics: Final = metrics
        self._readiness: Final = readiness
        self._details: Final = details
        self._shared: Final = SharedText(self.metrics_text)
        self._server: uvicorn.Server | None = None
        self._socket: socket.socket | None = None
        self._loop: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The bound port; the configured one while nothing is bound."""
        return self._listener.port if self._socket is None else int(self._socket.getsockname()[1])

    async def start(self) -> None:
        """Bind and serve; raise OSError if the address cannot be bound."""
        place = self._listener.host, self._listener.port
        with naming_the_setting(*place, "kustos.http.listener"):
            self._socket = listening_socket(*place)
        config = uvicorn.Config(
            self._application(),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_TIMEOUT_S,
            http=HttpConnection,
            ws="none",
        )
        config.load()
        server = self._server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        # the parts of `Server.serve`, without its signal handlers: the node handles signals
        await server.startup(sockets=[self._socket])
        self._loop = supervised("http-server", server.main_loop)

    async def stop(self) -> None:
        """Take no more requests, finish those in flight, and free the port; twice is harmless."""
        server, self._server = self._server, None
        if server is None or self._loop is None or self._socket is None:
            return
        server.should_exit = True
        await self._loop
        await server.shutdown(sockets=[self._socket])
        self._socket.close()
        self._socket = None

    def _application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/metrics", self._show_metrics, methods=["GET"]),
                Route("/health", _show_health, methods=["GET"]),
                Route("/ready", self._show_readiness, methods=["GET"]),
            ]
        )

    async def metrics_text(self) -> bytes:
        """Return the present metrics in Prometheus' text format."""
        return self._metrics.text()

    async def readiness(self) -> Mapping[str, bool]:
        """Return what must be ready, and whether it is."""
        return self._readiness()

    async def _show_metrics(self, _: Request) -> Response:
        return Response(await self._shared.read(), headers={"content-type": CONTENT_TYPE_LATEST})

    async def _show_readiness(self, _: Request) -> Response:
        parts = dict(await self.readiness())
        is_ready = all(parts.values())
        status = {"ready": is_ready, "parts": parts, **self._details()}
        return JSONResponse(status, status_code=200 if is_ready else 503)


async def _show_health(_: Request) -> Response:
    return JSONResponse({"alive": True})
