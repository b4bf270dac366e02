"""One outgoing connection to a Kafka node: it sends frames and matches answers to requests.

Kafka answers the requests of a connection in order, so requests in flight form a queue, and each answer must
have the correlation id of the first one; any other id is a protocol violation and closes the connection. A
request that times out also closes it, as in Kafka's own client, because the client cannot distinguish a late
answer from a stalled peer. When a connection ends, all requests in flight fail with one typed error.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self, cast

from kustos.client.errors import (
    UNSUPPORTED_VERSION,
    CannotConnectError,
    ClientError,
    ConnectionClosedError,
    ProtocolViolationError,
    RequestTimedOutError,
    UnreachableError,
    raise_for,
    reason_in_words,
)
from kustos.client.session import SaslSession
from kustos.client.tls import tls_reason
from kustos.client.versions import ApiVersions, choose_version, read_versions, versions_request
from kustos.settings import INT32_MAX, Setting, whole_number
from kustos.wire import (
    ApiKey,
    FrameReader,
    MalformedMessageError,
    Message,
    MessageCodec,
    PartReader,
    api_name,
    read_response_header,
    request_codec,
    request_frame,
    response_codec,
    response_header_is_flexible,
)

MAX_CORRELATION_ID: Final = 2**31 - 1

ELEMENTS_PER_TURN: Final = 1000
"""The number of list elements of an answer that are parsed in one turn of the event loop, some 3 ms: all
clients of a gateway share the loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Resource limits of one connection. Times in milliseconds, sizes in bytes."""

    connect_timeout_ms: int = 10_000
    """TCP, TLS and SASL together: Kafka's `socket.connection.setup.timeout.ms`."""

    request_timeout_ms: int = Setting(
        "request.timeout.ms",
        whole_number(1, INT32_MAX, "milliseconds"),
        30_000,
        "Upstream",
        "The time limit for requests of the gateway itself.",
    ).field()

    max_response_bytes: int = 100 * 1024 * 1024
    """Answers to administrative requests are smaller; Kafka's `socket.request.max.bytes` has this value."""

    max_in_flight: int = 64
    """The maximum number of requests in flight; further requests wait. It bounds the memory for a slow
    peer."""


def _check_protocol(tls: ssl.SSLContext | None) -> str:
    used = "without TLS" if tls is None else "with TLS"
    return f"check that `security.protocol` matches the listener; this connection was {used}"


_Answer = tuple[bytes, int]
"""A frame and the offset of its body: the body is decoded without a copy."""


@dataclass(slots=True)
class _Pending:
    correlation_id: int
    has_flexible_header: bool
    answer: asyncio.Future[_Answer] = field(repr=False)


class KafkaConnection(asyncio.Protocol):
    """A Kafka connection; opened by `kustos.client.connect`, or `open` without SASL.

    If a session is due for re-authentication, the next request triggers it; requests wait for that, answers
    do not. Many tasks of one event loop can share a connection. `versions` has the versions of the peer after
    `open`.
    """

    def __init__(self, host: str, port: int, client_id: str | None, limits: ConnectionLimits) -> None:
        self.host: Final = host
        self.port: Final = port
        self.client_id: Final = client_id
        self.limits: Final = limits
        self.versions: ApiVersions = {}
        self.session: SaslSession | None = None
        self._prolonging: asyncio.Task[None] | None = None
        self._reader = FrameReader(limits.max_response_bytes)
        self._pending: deque[_Pending] = deque()
        self._slots = asyncio.Semaphore(limits.max_in_flight)
        self._writable = asyncio.Event()
        self._writable.set()
        self._correlation_id = 0
        self._transport: asyncio.Transport | None = None
        self._failure: ClientError | None = None
        self._lost = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        client_id: str | None = "kustos",
        limits: ConnectionLimits | None = None,
    ) -> Self:
        """Return an unauthenticated connection that knows the peer's versions.

        Raise `UnreachableError` if there is no answer in time, `CannotConnectError` if the answer is not in
        Kafka's protocol.
        """
        limits = limits or ConnectionLimits()
        loop = asyncio.get_running_loop()
        connection = None
        try:
            async with asyncio.timeout(limits.connect_timeout_ms / 1000):
                _, connection = await loop.create_connection(
                    lambda: cls(host, port, client_id, limits), host, port, ssl=tls
                )
                await connection._negotiate()
        except TimeoutError as error:
            if connection is not None:
                connection.close()
            raise UnreachableError(
                f"`{host}:{port}` did not answer within {limits.connect_timeout_ms} ms; "
                f"check the address, and {_check_protocol(tls)}"
            ) from error
        except ssl.SSLError as error:
            raise CannotConnectError(f"TLS with `{host}:{port}` failed: {tls_reason(error)}") from error
        except (ConnectionResetError, ConnectionAbortedError, BrokenPipeError) as error:
            what = "during the TLS handshake" if tls is not None else "before it answered"
            raise UnreachableError(
                f"`{host}:{port}` ended the connection {what}; {_check_protocol(tls)}"
            ) from error
        except OSError as error:
            raise UnreachableError(f"cannot connect to `{host}:{port}`: {reason_in_words(error)}") from error
        except ValueError as error:
            raise CannotConnectError(
                f"cannot connect to `{host}:{port}`: {reason_in_words(error)}"
            ) from error
        except ConnectionClosedError as error:
            detail = f" ({error})" if isinstance(error, ProtocolViolationError) else ""
            raise CannotConnectError(
                f"`{host}:{port}` closed the connection at the first request{detail}; {_check_protocol(tls)}"
            ) from error
        except BaseException:
            if connection is not None:
                connection.close()
            raise
        return connection

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._transport is not None and self._failure is None

    @property
    def in_flight(self) -> int:
        """The number of requests in flight."""
        return len(self._pending)

    def choose_version(self, api_key: int, cap: int | None = None, floor: int = 0) -> int:
        """Return the highest version that both sides support, within `floor`..`cap`."""
        return choose_version(self.versions, api_key, cap, floor)

    async def request(
        self,
        api_key: int,
        build: Callable[[MessageCodec], Message],
        *,
        cap: int | None = None,
        floor: int = 0,
        timeout_ms: int | None = None,
    ) -> Message:
        """Return the answer to the message that `build` makes with the codec of the chosen version."""
        version = self.choose_version(api_key, cap, floor)
        return await self.send(
            api_key, version, build(request_codec(api_key, version)), timeout_ms=timeout_ms
        )

    async def send(
        self, api_key: int, version: int, message: Message, *, timeout_ms: int | None = None
    ) -> Message:
        """Return the answer to this request in exactly this version.

        Raise `RequestTimedOutError`, `ConnectionClosedError` or `ProtocolViolationError`; the caller reads
        the error codes in the answer.
        """
        body = request_codec(api_key, version).encode(message)
        frame, body_at = await self._in_time(api_key, version, body, timeout_ms)
        return await self._decode(api_key, version, frame, body_at)

    async def exchange(self, api_key: int, version: int, body: bytes, timeout_ms: int | None = None) -> bytes:
        """Return the body that answers this body, both undecoded; raises as `send` does."""
        frame, body_at = await self._in_time(api_key, version, body, timeout_ms)
        return frame[body_at:]

    async def _in_time(self, api_key: int, version: int, body: bytes, timeout_ms: int | None) -> _Answer:
        limit_ms = timeout_ms or self.limits.request_timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                if self.session is not None and self.session.is_due:
                    await self._prolong(self.session)
                return await self._exchange_frames(api_key, version, body)
        except TimeoutError as error:
            timed_out = RequestTimedOutError(
                f"`{self.host}:{self.port}` did not answer `{api_name(api_key)}` within {limit_ms} ms"
            )
            self._fail(timed_out)
            raise timed_out from error

    async def _exchange(self, api_key: int, version: int, body: bytes) -> bytes:
        frame, body_at = await self._exchange_frames(api_key, version, body)
        return frame[body_at:]

    async def _exchange_frames(self, api_key: int, version: int, body: bytes) -> _Answer:
        await self._slots.acquire()
        try:
            await self._writable.wait()
            pending = self._write(api_key, request_codec(api_key, version), body)
        except BaseException:
            self._slots.release()
            raise
        return await pending.answer

    async def authenticate(self, session: SaslSession) -> None:
        """Log in, once; raise as `SaslSession.begin`, after which the connection must be closed."""
        await session.begin(self._exchange)
        self.session = session

    async def _prolong(self, session: SaslSession) -> None:
        """Log in again, once for all requests that wait; the connection does not survive a failure."""
        if self._prolonging is None or self._prolonging.done():
            # a request that stops waiting must not leave an incomplete login
            self._prolonging = asyncio.get_running_loop().create_task(self._log_in_again(session))
        await asyncio.shield(self._prolonging)

    async def _log_in_again(self, session: SaslSession) -> None:
        try:
            await session.begin(self._exchange)
        except ClientError as error:
            self._fail(ConnectionClosedError(f"the session could not be prolonged: {error}"))
        except BaseException:
            self.close()
            raise

    async def _decode(self, api_key: int, version: int, frame: bytes, body_at: int) -> Message:
        """Return the message of an answer; parsing a large one yields the event loop in between."""
        try:
            reader = PartReader(response_codec(api_key, version), frame, body_at)
            reader.read(ELEMENTS_PER_TURN)
            while reader.message is None:
                await asyncio.sleep(0)
                reader.read(ELEMENTS_PER_TURN)
        except MalformedMessageError as error:
            raise self._violated(error) from error
        return reader.message

    def _violated(self, error: MalformedMessageError) -> ProtocolViolationError:
        violation = ProtocolViolationError(f"`{self.host}:{self.port}` broke the protocol: {error}")
        self._fail(violation)
        return violation

    def close(self) -> None:
        """Close now; requests in flight fail with `ConnectionClosedError`. Further calls have no effect."""
        self._fail(
            ConnectionClosedError(f"the connection to `{self.host}:{self.port}` was closed by this client")
        )

    def release(self) -> asyncio.Transport:
        """Detach the transport for another protocol. No request may be in flight, and this object must not be
        used afterwards.

        Raise `ConnectionClosedError` if the connection is closed.
        """
        if self._failure is not None:
            raise _again(self._failure)
        if self._transport is None or self._pending:
            raise ConnectionClosedError(f"the connection to `{self.host}:{self.port}` cannot be released")
        transport, self._transport = self._transport, None
        return transport

    async def wait_closed(self) -> None:
        """Return when the socket is closed."""
        await asyncio.shield(self._lost)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        await self.wait_closed()

    def _write(self, api_key: int, codec: MessageCodec, body: bytes) -> _Pending:
        if self._failure is not None:
            raise _again(self._failure)
        if self._transport is None:
            raise ConnectionClosedError(f"the connection to `{self.host}:{self.port}` is not open")
        correlation_id = self._correlation_id
        # Kafka reserves the top of the range for re-authentication; wrap around before it (KIP-368)
        self._correlation_id = 0 if correlation_id >= MAX_CORRELATION_ID // 2 else correlation_id + 1
        pending = _Pending(
            correlation_id,
            response_header_is_flexible(api_key, response_codec(api_key, codec.version)),
            asyncio.get_running_loop().create_future(),
        )
        self._pending.append(pending)
        self._transport.write(request_frame(codec, api_key, correlation_id, self.client_id, body))
        return pending

    async def _negotiate(self) -> None:
        """Request the peer's versions: with the highest version first, then with the version that the peer
        requires (KIP-511)."""
        api_key = ApiKey.API_VERSIONS
        version = 4
        while True:
            body = await self.exchange(api_key, version, versions_request(version))
            # UNSUPPORTED_VERSION is always answered in version 0 (KIP-511)
            answered_version = 0 if body[:2] == _UNSUPPORTED else version
            try:
                error_code, offered = read_versions(answered_version, body)
            except MalformedMessageError as error:
                raise self._violated(error) from error
            if error_code != UNSUPPORTED_VERSION:
                break
            lower = min(offered.get(api_key, (0, 0))[1], version - 1)
            if lower < 0:
                break
            version = lower
        raise_for(error_code)
        self.versions = offered

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = as_transport(transport)

    def data_received(self, data: bytes) -> None:
        """Split the data into frames and pass each answer to its request."""
        try:
            for frame in self._reader.feed(data):
                self._answer(frame)
        except MalformedMessageError as error:
            self._fail(ProtocolViolationError(f"`{self.host}:{self.port}` broke the protocol: {error}"))

    def _answer(self, frame: bytes) -> None:
        if not self._pending:
            raise MalformedMessageError("an answer came without a request")
        pending = self._pending[0]
        correlation_id, body_at = read_response_header(frame, pending.has_flexible_header)
        if correlation_id != pending.correlation_id:
            raise MalformedMessageError(
                f"received answer {correlation_id} instead of {pending.correlation_id}"
            )
        self._pending.popleft()
        self._slots.release()
        if not pending.answer.done():
            pending.answer.set_result((frame, body_at))

    def pause_writing(self) -> None:
        """Hold back further requests until the peer reads."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let held requests continue."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the requests in flight."""
        reason = f" ({reason_in_words(exc)})" if exc is not None else ""
        self._fail(ConnectionClosedError(f"`{self.host}:{self.port}` closed the connection{reason}"))
        if not self._lost.done():
            self._lost.set_result(None)

    def _fail(self, failure: ClientError) -> None:
        if self._failure is None:
            self._failure = failure
            self._writable.set()
            if self._transport is not None:
                self._transport.abort()
        while self._pending:
            pending = self._pending.popleft()
            self._slots.release()
            if not pending.answer.done():
                pending.answer.set_exception(_again(self._failure))
                # a cancelled waiter never reads the error; mark it as retrieved
                pending.answer.exception()


_UNSUPPORTED: Final = UNSUPPORTED_VERSION.to_bytes(2, "big", signed=True)


def _again(failure: ClientError) -> ClientError:
    # every waiter gets its own exception: a shared one would collect all tracebacks
    return type(failure)(str(failure))


def as_transport(transport: asyncio.BaseTransport) -> asyncio.Transport:
    """Return the transport with its actual type; asyncio declares a more general one."""
    return cast("asyncio.Transport", transport)
