"""One end of the Unix socket between the writer process and a worker: messages out, messages in.

The socket lies in a directory that only this user enters, and each end asks the kernel who holds the
other one (SO_PEERCRED): nobody else can act as a worker, or as the writer.
"""

import asyncio
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import structlog

from kustos.gateway.link import as_transport
from kustos.gateway.workers.errors import ChannelError
from kustos.gateway.workers.forms import Form
from kustos.gateway.workers.messages import FRAME_MAX_BYTES, decode, encode
from kustos.wire import FrameReader, MalformedMessageError

LOG: Final = structlog.get_logger("kustos.gateway")

SOCKET_NAME: Final = "writer"
UNSENT_MAX_BYTES: Final = 2 * FRAME_MAX_BYTES
"""What may wait to be read by the other end; one that lags further behind is given up."""

_CREDENTIALS: Final = struct.Struct("3i")


class Channel(asyncio.Protocol):
    """Sends by one table and receives by the other. `on_lost` is called once, with the reason."""

    def __init__(
        self,
        sends: Form[Any],
        receives: Form[Any],
        on_message: Callable[[Any], object],
        on_lost: Callable[[str], object],
    ) -> None:
        self._sends: Final = sends
        self._receives: Final = receives
        self._on_message: Final = on_message
        self._on_lost: Final = on_lost
        self._reader: Final = FrameReader(FRAME_MAX_BYTES)
        self._transport: asyncio.Transport | None = None
        self._is_lost = False
        self._room: Final = asyncio.Event()
        self._room.set()

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent."""
        return self._transport is not None and not self._is_lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = as_transport(transport)

    def data_received(self, data: bytes) -> None:
        """Hand on each whole message; one that is none ends the channel."""
        try:
            for frame in self._reader.feed(data):
                if self._is_lost:
                    return
                self._on_message(decode(self._receives, frame))
        except (ChannelError, MalformedMessageError) as error:
            self.close(str(error))

    def send(self, message: object) -> None:
        """Send a message, or drop it where the other end is gone; raise `ChannelError` if it cannot be."""
        self.send_frame(encode(self._sends, message))

    def send_frame(self, frame: bytes) -> None:
        """Send what `encode` made, as several workers are sent the same."""
        transport = self._transport
        if transport is None or self._is_lost:
            return
        transport.write(frame)
        if transport.get_write_buffer_size() > UNSENT_MAX_BYTES:
            self.close("the other end does not read")

    async def room(self) -> None:
        """Return when the other end has read most of what was sent, or is gone."""
        await self._room.wait()

    def pause_writing(self) -> None:
        """Let those wait who can."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Let them go on."""
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that the other end is gone."""
        self.close("the other end is gone" if exc is None else str(exc))

    def close(self, reason: str) -> None:
        """End the channel at once; twice is harmless."""
        if self._is_lost:
            return
        self._is_lost = True
        self._room.set()
        if self._transport is not None:
            self._transport.abort()
        self._on_lost(reason)


def peer_of(transport: asyncio.BaseTransport) -> tuple[int, int]:
    """Return the process id and the user id of the other end, by the kernel's word."""
    peer = transport.get_extra_info("socket")
    packed = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process_id, user_id, _ = _CREDENTIALS.unpack(packed)
    return process_id, user_id


@contextmanager
def socket_path(directory: Path) -> Iterator[str]:
    """Yield the path of the socket in a directory, short however deep that lies (a path has 108 bytes)."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_NAME}"
    finally:
        os.close(descriptor)
