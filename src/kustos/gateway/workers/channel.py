"""One end of the Unix socket between the writer process and a worker: sends and receives messages.

The socket lies in a directory that only this user can enter, and the kernel reports to each end which process
holds the other end (SO_PEERCRED): no other process can pose as a worker or as the writer.
"""

import asyncio
import os
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, Final

import structlog

from kustos.client import as_transport
from kustos.gateway.workers.errors import ChannelError
from kustos.gateway.workers.messages import FRAME_MAX_BYTES, IN_ORDER, Table, decode, encode
from kustos.wire import FrameReader, MalformedMessageError

LOG: Final = structlog.get_logger("kustos.gateway")

SOCKET_NAME: Final = "writer"
UNSENT_MAX_BYTES: Final = 2 * FRAME_MAX_BYTES
"""The maximum number of bytes that the other end has not read; the channel to an end that lags further behind
is closed."""

TURN_S: Final = 0.005
"""How long a channel handles queued messages before the event loop serves clients again."""

_CREDENTIALS: Final = struct.Struct("3i")


class Channel(asyncio.Protocol):
    """One end of the socket; `receives` is the table of the messages that the other end sends.

    If `on_message` returns an awaitable, later messages of the ordered stream (`IN_ORDER`) wait for it. All
    other messages overtake them. `on_lost` is called once, with the reason.
    """

    def __init__(
        self,
        receives: Table,
        on_message: Callable[[Any], Awaitable[None] | None],
        on_lost: Callable[[str], object],
    ) -> None:
        self._receives: Final = receives
        self._on_message: Final = on_message
        self._on_lost: Final = on_lost
        self._reader: Final = FrameReader(FRAME_MAX_BYTES)
        self._transport: asyncio.Transport | None = None
        self._is_lost = False
        self._is_drained: Final = asyncio.Event()
        self._is_drained.set()
        self._waiting: Final[deque[tuple[object, int]]] = deque()
        self._waiting_bytes = 0
        self._is_paused = False
        self._working: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent."""
        return self._transport is not None and not self._is_lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start receiving."""
        self._transport = as_transport(transport)

    def data_received(self, data: bytes) -> None:
        """Pass on each whole message; an invalid one closes the channel."""
        try:
            for frame in self._reader.feed(data):
                if self._is_lost:
                    return
                message = decode(self._receives, frame)
                if self._working is not None and isinstance(message, IN_ORDER):
                    self._wait(message, len(frame))
                elif (work := self._on_message(message)) is not None:
                    self._working = asyncio.get_running_loop().create_task(self._work(work))
        except (ChannelError, MalformedMessageError) as error:
            self.close(str(error))
        except Exception as error:  # noqa: BLE001 - logged in there
            self._break(error)

    def _break(self, error: Exception) -> None:
        """Close the channel: at this boundary, a bug of the gateway must not leave the other end waiting."""
        LOG.error("a message could not be carried out", reason=type(error).__name__, exc_info=error)
        self.close(f"a message could not be carried out ({type(error).__name__})")

    def _wait(self, message: object, size_bytes: int) -> None:
        """Queue a message behind earlier ones; stop reading if the queue is too long (backpressure)."""
        self._waiting.append((message, size_bytes))
        self._waiting_bytes += size_bytes
        if self._waiting_bytes > FRAME_MAX_BYTES and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    async def _work(self, work: Awaitable[None]) -> None:
        try:
            await work
            began_s = monotonic()
            while self._waiting and not self._is_lost:
                if (following := self._on_message(self._next())) is not None:
                    await following
                elif monotonic() - began_s >= TURN_S:
                    await asyncio.sleep(0)
                    began_s = monotonic()
        except ChannelError as error:
            self.close(str(error))
        except Exception as error:  # noqa: BLE001 - logged in there
            self._break(error)
        finally:
            self._working = None

    def _next(self) -> object:
        message, size_bytes = self._waiting.popleft()
        self._waiting_bytes -= size_bytes
        if self._waiting_bytes <= FRAME_MAX_BYTES and self._is_paused and self._transport is not None:
            self._is_paused = False
            if not self._is_lost:
                self._transport.resume_reading()
        return message

    def send(self, message: object) -> None:
        """Send a message, or drop it if the other end is gone; raise the errors of `encode`."""
        self.send_frame(encode(message))

    def send_frame(self, frame: bytes) -> None:
        """Send a frame made by `encode`; several workers may share it."""
        transport = self._transport
        if transport is None or self._is_lost:
            return
        transport.write(frame)
        if transport.get_write_buffer_size() > UNSENT_MAX_BYTES:
            self.close("the other end does not read")

    async def drain(self) -> None:
        """Return when the other end has read most of the sent bytes, or is gone."""
        await self._is_drained.wait()

    def pause_writing(self) -> None:
        """Make callers of `drain` wait."""
        self._is_drained.clear()

    def resume_writing(self) -> None:
        """Resume callers of `drain`."""
        self._is_drained.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that the other end is gone."""
        self.close("the other end is gone" if exc is None else str(exc))

    def close(self, reason: str) -> None:
        """Close the channel at once; further calls have no effect."""
        if self._is_lost:
            return
        self._is_lost = True
        self._is_drained.set()
        if self._transport is not None:
            self._transport.abort()
        self._on_lost(reason)


def peer_of(transport: asyncio.BaseTransport) -> tuple[int, int]:
    """Return the process id and the user id of the other end, as the kernel reports them."""
    peer = transport.get_extra_info("socket")
    packed = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process_id, user_id, _ = _CREDENTIALS.unpack(packed)
    return process_id, user_id


@contextmanager
def socket_path(directory: Path) -> Iterator[str]:
    """Yield a short path of the socket in a directory, however deep it is (socket paths have 108 bytes)."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_NAME}"
    finally:
        os.close(descriptor)
