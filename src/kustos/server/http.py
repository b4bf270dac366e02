"""Metrics and health over HTTP, on a separate listener in the node's event loop.

`/metrics`: metrics in Prometheus' text format. `/health`: 200 while the event loop runs. `/ready`: 200 when
all parts are ready, else 503, with the state of each part as JSON. h11 parses and writes the messages.

There is no authentication, so no client may block others: if there are too many connections, the one that has
been idle longest is closed; each request has a deadline; a connection processes one request at a time, and
none while its client does not read.
"""

import asyncio
import json
import re
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import h11
from prometheus_client import CONTENT_TYPE_LATEST

from kustos.client import NodeAddress, as_transport, one_shot
from kustos.gateway.listener import listening_socket
from kustos.gateway.metrics import GatewayMetrics
from kustos.runtime import naming_the_setting

CONNECTIONS_MAX: Final = 64
"""The maximum number of connections: there are few scrapers and probes. For each further connection, the one
that has been idle longest is closed."""

REQUEST_HEAD_TIMEOUT_S: Final = 10.0
"""The time limit for the head of a request, from the connection or from its first byte, as in nginx and
Envoy; a probe takes milliseconds."""

KEEP_ALIVE_S: Final = 75
"""The idle time limit: longer than the usual scrape interval of 15 to 60 s, so that scrapers keep their
connections."""

REQUEST_HEAD_MAX_BYTES: Final = 16 * 1024
"""The maximum size of a head, as in Node.js; probes and scrapers send some hundred bytes."""

STOP_TIMEOUT_S: Final = 2
"""The time that `stop` waits for requests in flight."""

REST_PER_TEXT: Final = 9.0
"""The pause after writing metrics, as a multiple of the time that it took: they may take a tenth of the event
loop, for any number of scrapers."""

REST_MAX_S: Final = 1.0
"""The longest such pause: scrapers wait ten seconds."""

Readiness = Callable[[], Mapping[str, bool]]
Details = Callable[[], Mapping[str, object]]


class SharedText:
    """A text that is expensive to write: requests during a write or a pause share the next text.

    So each request gets a text that was started after it, and unauthenticated clients cannot keep the process
    busy with writing.
    """

    def __init__(self, write: Callable[[], Awaitable[bytes]]) -> None:
        self._write: Final = write
        self._next: asyncio.Task[bytes] | None = None
        self._turn: Final = asyncio.Lock()
        self._rest_ends_s = 0.0

    async def read(self) -> bytes:
        """Return a text that is started after this call."""
        if self._next is None or self._next.done():
            self._next = asyncio.get_running_loop().create_task(self._written())
        # other requests wait for the same text: a cancelled one must not cancel it
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
"""A line that ends with LF alone, or continues in the next one (RFC 9112, sections 2.2 and 5.2)."""

_VERSIONS: Final = frozenset({b"1.0", b"1.1"})
_EMPTY_BODY: Final = (b"content-length", b"0")


class HeadsOnly(h11.Connection):
    """Parses requests without a body, and refuses all others, so no bytes can hide after a request.

    A proxy may parse ambiguous bytes differently, and treat bytes as part of one request that are the next
    request here (request smuggling). Every accepted byte belongs to a head, so the line ends can be checked
    in the stream.
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


class Answer(NamedTuple):
    """The answer to a request."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    fields: Mapping[str, str] = MappingProxyType({})
    """More fields of its head."""

    @classmethod
    def of_status(cls, status: HTTPStatus, **fields: str) -> "Answer":
        """Return an answer with only a status."""
        return cls(status, status.phrase.encode(), fields=fields)

    @classmethod
    def of_json(cls, content: Mapping[str, object], status: HTTPStatus = HTTPStatus.OK) -> "Answer":
        """Return an answer in JSON."""
        return cls(status, json.dumps(content, separators=(",", ":")).encode(), "application/json")


Respond = Callable[[h11.Request], Awaitable[Answer]]


class Connections:
    """The connections of a server, at most `CONNECTIONS_MAX`."""

    def __init__(self) -> None:
        self._open: Final[set[HttpConnection]] = set()
        self._none_left: Final = asyncio.Event()

    @property
    def answering(self) -> int:
        """The number of connections with an unanswered request."""
        return sum(each.is_answering for each in self._open)

    def add(self, connection: "HttpConnection") -> None:
        """Add a connection; if there are too many, close the one that has been idle longest."""
        while len(self._open) >= CONNECTIONS_MAX:
            silent = min(self._open, key=lambda each: each.last_heard_s)
            self._open.discard(silent)
            silent.abort()
        self._open.add(connection)

    def remove(self, connection: "HttpConnection") -> None:
        """Remove a connection."""
        self._open.discard(connection)
        if not self._open:
            self._none_left.set()

    async def end(self) -> None:
        """Close all connections, those with a request after its answer or after `STOP_TIMEOUT_S`."""
        for each in tuple(self._open):
            each.finish()
        if self._open:
            self._none_left.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await self._none_left.wait()
        for each in tuple(self._open):
            each.abort()


class HttpConnection(asyncio.Protocol):
    """Parses the requests of one client and sends the answers of `respond`, one after another."""

    def __init__(self, connections: Connections, respond: Respond) -> None:
        self._connections: Final = connections
        self._respond: Final = respond
        self._loop: Final = asyncio.get_running_loop()
        self._http: Final = HeadsOnly()
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._has_begun = False
        """Whether the deadline belongs to a request."""
        self._answering: asyncio.Task[None] | None = None
        self._reads = True
        """Whether the client reads its answers."""
        self._is_last = False
        """Whether the connection is closed after the next answer."""
        self.last_heard_s = self._loop.time()

    @property
    def is_answering(self) -> bool:
        """Whether there is an unanswered request."""
        return self._answering is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Await the first request."""
        self._transport = as_transport(transport)
        self._connections.add(self)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Receive bytes; bytes after a request wait until the client has read the answer."""
        self.last_heard_s = self._loop.time()
        self._http.receive_data(data)
        if self._transport is not None and (self.is_answering or not self._reads):
            self._transport.pause_reading()
        else:
            self._go_on()

    def eof_received(self) -> bool:
        """After the client closes its direction, as `nc` does, answer the requests that it sent, then
        close."""
        self._http.receive_data(b"")
        if not self.is_answering and self._reads:
            self._go_on()
        return True

    def _go_on(self) -> None:
        """Start the next request if it is complete."""
        try:
            request = self._http.next_event()
            if request is h11.NEED_DATA:
                self._await_head()
                return
            if isinstance(request, h11.ConnectionClosed):
                self.finish()
                return
            # requests have no body, so this is the end of the request
            self._http.next_event()
        except h11.RemoteProtocolError:
            self._is_last = True
            # without a body: the request may be a HEAD
            self._send(None, Answer(HTTPStatus.BAD_REQUEST, b""))
            return
        self._wait(None)
        self._answering = one_shot("http-answer", self._answer(request), partial(self._failed, request))

    async def _answer(self, request: h11.Request) -> None:
        self._send(request, await self._respond(request))

    def _failed(self, request: h11.Request, _error: BaseException) -> None:
        if self._http.our_state is h11.SEND_RESPONSE:
            self._send(request, Answer.of_status(HTTPStatus.INTERNAL_SERVER_ERROR))
        else:
            self.abort()

    def _send(self, request: h11.Request | None, answer: Answer) -> None:
        """Send the answer to a request (None: malformed), then continue with the next request or close."""
        self._answering = None
        if (transport := self._transport) is None:
            return
        fields = {
            "date": formatdate(usegmt=True),
            "content-type": answer.content_type,
            "content-length": str(len(answer.body)),
            **answer.fields,
        }
        if self._is_last:
            fields["connection"] = "close"
        reason = answer.status.phrase.encode()
        head = h11.Response(status_code=answer.status, reason=reason, headers=list(fields.items()))
        has_body = request is None or request.method != b"HEAD"
        events = (head, *([h11.Data(answer.body)] if has_body else ()), h11.EndOfMessage())
        transport.writelines([data for event in events if (data := self._http.send(event))])
        # also for the last answer: a client that never reads it must not keep the connection
        self._wait(KEEP_ALIVE_S)
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self._next()
        else:
            transport.close()

    def _next(self) -> None:
        """Continue with the next request when the client reads its answers.

        The connection reads no more bytes before it has answered the received ones; otherwise one client
        could send without end.
        """
        if not self._reads or self._transport is None or self._transport.is_closing():
            return
        if any(self._http.trailing_data):
            self._go_on()
        if not self.is_answering and not self._transport.is_closing():
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Record that the client does not read."""
        self._reads = False

    def resume_writing(self) -> None:
        """Continue: the client reads again."""
        self._reads = True
        if not self.is_answering:
            self._next()

    def connection_lost(self, _exc: Exception | None) -> None:
        """Release everything."""
        self._transport = None
        self._wait(None)
        if self._answering is not None:
            self._answering.cancel()
        self._connections.remove(self)

    def finish(self) -> None:
        """Close the connection after the answer to its request."""
        self._is_last = True
        if not self.is_answering and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _await_head(self) -> None:
        """Set the deadline of a new request; later bytes do not prolong it."""
        if not self._has_begun:
            self._wait(REQUEST_HEAD_TIMEOUT_S)
            self._has_begun = True

    def _wait(self, limit_s: float | None) -> None:
        """Set the time limit of the connection, replacing the previous one; None: no limit."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._has_begun = False
        self._deadline = None if limit_s is None else self._loop.call_later(limit_s, self.abort)


class HttpEndpoint:
    """Serves on `listener` between `start` and `stop`; port 0 takes any free one.

    `readiness` returns what must be ready at each call, for example `{"acls": True, "upstream": False}`;
    `details` are shown in addition, without effect on the status.
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
        self._server: asyncio.Server | None = None
        self._socket: socket.socket | None = None
        self.connections: Final = Connections()

    @property
    def port(self) -> int:
        """The bound port; the configured one while nothing is bound."""
        return self._listener.port if self._socket is None else int(self._socket.getsockname()[1])

    async def start(self) -> None:
        """Bind and serve; raise OSError if the address cannot be bound."""
        place = self._listener.host, self._listener.port
        with naming_the_setting(*place, "kustos.http.listener"):
            self._socket = listening_socket(*place)
        self._server = await asyncio.get_running_loop().create_server(
            lambda: HttpConnection(self.connections, self._respond), sock=self._socket
        )

    async def stop(self) -> None:
        """Accept no more requests, finish those in flight, and free the port; further calls have no
        effect."""
        server, self._server = self._server, None
        if server is None or self._socket is None:
            return
        server.close()
        await self.connections.end()
        self._socket.close()
        self._socket = None

    async def _respond(self, request: h11.Request) -> Answer:
        answer = self._answers().get(request.target.partition(b"?")[0].removesuffix(b"/"))
        if answer is None:
            return Answer.of_status(HTTPStatus.NOT_FOUND)
        if request.method not in {b"GET", b"HEAD"}:
            return Answer.of_status(HTTPStatus.METHOD_NOT_ALLOWED, allow="GET, HEAD")
        return await answer()

    def _answers(self) -> Mapping[bytes, Callable[[], Awaitable[Answer]]]:
        return {b"/metrics": self._show_metrics, b"/health": _show_health, b"/ready": self._show_readiness}

    async def metrics_text(self) -> bytes:
        """Return the current metrics in Prometheus' text format."""
        return self._metrics.text()

    async def readiness(self) -> Mapping[str, bool]:
        """Return the parts that must be ready, with their states."""
        return self._readiness()

    async def _show_metrics(self) -> Answer:
        return Answer(HTTPStatus.OK, await self._shared.read(), CONTENT_TYPE_LATEST)

    async def _show_readiness(self) -> Answer:
        parts = dict(await self.readiness())
        is_ready = all(parts.values())
        status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        return Answer.of_json({"ready": is_ready, "parts": parts, **self._details()}, status)


async def _show_health() -> Answer:
    return Answer.of_json({"alive": True})
