"""A tap in the line: a plain TCP relay that records every Kafka frame and never changes a byte.

It only knows as much of Kafka as it needs to split frames and to pair responses with requests: the length
before a frame, and API key, version, correlation id and client id in a request's header. The reader of the
record interprets the frames. A stream that stops being frames (an HTTP request, garbage) is still relayed
and marked `unframed`.
"""

import asyncio
import itertools
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Final

from testkit.ports import LOOPBACK, free_port
from testkit.threaded_servers import ThreadedServers

CHUNK_BYTES: Final = 1 << 18
"""Bytes per read: a frame of a test is rarely larger."""

FRAME_MAX_BYTES: Final = 1 << 28
"""No frame of a test is as large; a larger length means that the stream holds no frames."""

CONNECT_TIMEOUT_S: Final = 20.0


@dataclass(slots=True)
class Exchange:
    """A request as it passed, and its response, both without length prefix. Times are monotonic seconds."""

    connection: int
    asked_s: float
    request: bytes
    answer: bytes | None = None
    answered_s: float | None = None

    @property
    def api_key(self) -> int:
        """The API key in the request's header."""
        return int(struct.unpack_from(">h", self.request)[0])

    @property
    def api_version(self) -> int:
        """The version in the request's header."""
        return int(struct.unpack_from(">h", self.request, 2)[0])

    @property
    def correlation_id(self) -> int:
        """The correlation id in the request's header."""
        return int(struct.unpack_from(">i", self.request, 4)[0])

    @property
    def client_id(self) -> str:
        """The client id in the request's header, empty if there is none."""
        size = int(struct.unpack_from(">h", self.request, 8)[0])
        return self.request[10 : 10 + max(size, 0)].decode(errors="replace")


@dataclass(slots=True)
class Stream:
    """One direction of a connection: splits the bytes into frames."""

    bytes_passed: int = 0
    unframed: bool = False
    _rest: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that these bytes complete, without length prefixes."""
        self.bytes_passed += len(data)
        frames: list[bytes] = []
        if self.unframed:
            return frames
        self._rest += data
        while len(self._rest) >= 4:
            (size,) = struct.unpack_from(">i", self._rest)
            if not 0 <= size <= FRAME_MAX_BYTES:
                self.unframed = True
                self._rest.clear()
                break
            if len(self._rest) < 4 + size:
                break
            frames.append(bytes(self._rest[4 : 4 + size]))
            del self._rest[: 4 + size]
        return frames


class TappedConnection:
    """The exchanges of one connection, in the order of requests."""

    def __init__(self, number: int, relay: str) -> None:
        self.number = number
        self.relay = relay
        self.up = Stream()
        self.down = Stream()
        self.exchanges: list[Exchange] = []
        self.strays: list[bytes] = []
        """Frames that came down and answer nothing that went up."""
        self.is_open = True
        self._waiting = 0

    def count(self, api_key: int) -> int:
        """Return how many requests of this API have passed."""
        return sum(each.api_key == api_key for each in self.exchanges)

    def went_up(self, data: bytes) -> None:
        """Record bytes from the client's side."""
        now = time.monotonic()
        for frame in self.up.feed(data):
            if len(frame) < 10:
                self.up.unframed = True
                return
            self.exchanges.append(Exchange(self.number, now, frame))

    def came_down(self, data: bytes) -> None:
        """Record bytes from the server's side: responses come in the order of requests."""
        now = time.monotonic()
        for frame in self.down.feed(data):
            correlation_id = struct.unpack_from(">i", frame)[0] if len(frame) >= 4 else None
            for index in range(self._waiting, len(self.exchanges)):
                if self.exchanges[index].correlation_id == correlation_id:
                    # skipped requests get no response: Produce with acks=0
                    self._waiting = index + 1
                    self.exchanges[index].answer = frame
                    self.exchanges[index].answered_s = now
                    break
            else:
                self.strays.append(frame)


class Tap(ThreadedServers):
    """Relays with a common record. Use it as a context manager."""

    def __init__(self) -> None:
        super().__init__("tap")
        self.connections: list[TappedConnection] = []
        self._numbers = itertools.count()

    def relay(self, target: tuple[str, int], host: str = LOOPBACK, port: int | None = None) -> int:
        """Listen on `host`, relay every connection to `target`, return the port."""
        port = port or free_port()
        name = f"{target[0]}:{target[1]}"

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._carry(TappedConnection(next(self._numbers), name), target, reader, writer)

        self._run(self._serve(accept, host, port, CHUNK_BYTES))
        return port

    async def _carry(
        self,
        record: TappedConnection,
        target: tuple[str, int],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                up_reader, up_writer = await asyncio.open_connection(*target, limit=CHUNK_BYTES)
        except OSError:
            writer.transport.abort()
            return
        self.connections.append(record)
        try:
            await asyncio.gather(
                _pump(reader, up_writer, record.went_up), _pump(up_reader, writer, record.came_down)
            )
        finally:
            record.is_open = False
            up_writer.close()
            writer.close()

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges of all connections, in the order of requests."""
        found = [each for connection in list(self.connections) for each in list(connection.exchanges)]
        return sorted(found, key=lambda each: each.asked_s)

    @property
    def strays(self) -> list[bytes]:
        """Responses without a request."""
        return [frame for connection in list(self.connections) for frame in connection.strays]

    @property
    def bytes_up(self) -> int:
        """The bytes sent up so far, over all connections."""
        return sum(connection.up.bytes_passed for connection in list(self.connections))

    @property
    def open_count(self) -> int:
        """The number of open connections."""
        return sum(each.is_open for each in list(self.connections))

    def forget(self) -> None:
        """Forget the exchanges of closed connections."""
        self.connections[:] = [each for each in self.connections if each.is_open]


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, record: Any) -> None:
    """Relay bytes one way until the end; an EOF is passed on, an error closes both ways."""
    try:
        while data := await reader.read(CHUNK_BYTES):
            record(data)
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()
