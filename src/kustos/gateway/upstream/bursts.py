"""Sends the answers of one event loop iteration with one system call, and resets connections.

A producer has five requests in flight by default, and one read often returns all of them; the same is true
for their answers. A system call for each frame costs as much as the gateway's own work on it, and wakes the
peer each time. A burst therefore gathers the frames that one read causes and sends them at its end, in the
same iteration: no change of ACLs can come between. The link gathers frames to the broker itself and always
sends them with `flush`.
"""

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Final

BURST_MAX_BYTES: Final = 256 * 1024
"""The maximum number of bytes in a burst, as much as one read returns. Further bytes are sent at once, so
that a socket whose buffer is full reports it before the rest follows (`pause_writing`)."""

RESET_AT_ONCE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of zero: closing resets the connection and discards unsent data."""


class Burst:
    """Frames for one socket; `send` writes a list of them. The burst gathers nothing until `begin`."""

    __slots__ = ("_frames", "_gathers", "_send", "_size_bytes")

    def __init__(self, send: Callable[[Sequence[bytes]], None]) -> None:
        self._send = send
        self._frames: list[bytes] = []
        self._size_bytes = 0
        self._gathers = False

    def begin(self) -> None:
        """Gather frames until `end`."""
        self._gathers = True

    def add(self, frame: bytes) -> None:
        """Add a frame: it is sent at the end of the burst, or now if no burst has begun."""
        if not self._gathers:
            self._send((frame,))
            return
        self._frames.append(frame)
        self._size_bytes += len(frame)
        if self._size_bytes >= BURST_MAX_BYTES:
            self.flush()

    def end(self) -> None:
        """Send the gathered frames; later frames are sent at once."""
        self._gathers = False
        self.flush()

    def flush(self) -> None:
        """Send the gathered frames."""
        if self._frames:
            frames, self._frames, self._size_bytes = self._frames, [], 0
            self._send(frames)

    def drop(self) -> None:
        """Send nothing from now on."""
        self._frames, self._size_bytes = [], 0
        # the callback may belong to the owner of this burst: free both now, not at a later garbage collection
        self._send = _send_nothing


def _send_nothing(_frames: Sequence[bytes]) -> None:
    """Replace the callback of a closed socket."""


def reset(transport: asyncio.Transport) -> None:
    """Reset a connection: unsent bytes are lost, and the peer sees the end of the connection."""
    sock = transport.get_extra_info("socket")
    if sock is not None and not transport.is_closing():
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_ONCE)
    transport.abort()
