"""Sends the answers of one turn of the event loop by one system call, and resets a connection.

A producer has five requests in flight by default, and one read brings them all; so do their answers. A system
call for each frame costs as much as guarding it, and wakes the other side each time. So the frames that one
read leads to are gathered and sent at its end, in the same turn: no change of ACLs can come between. Frames
to the broker are gathered by its link, which always ends them by `flush`.
"""

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Final

BURST_MAX_BYTES: Final = 256 * 1024
"""How much is gathered at most, as much as one read brings: more is sent at once, so that a socket that takes
no more says so before the rest follows (`pause_writing`)."""

RESET_AT_ONCE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of zero: closing resets the connection and discards unsent data."""


class Burst:
    """Frames for one socket; `send` writes a list of them. Nothing is gathered until `begin`."""

    __slots__ = ("_frames", "_gathers", "_send", "_size_bytes")

    def __init__(self, send: Callable[[Sequence[bytes]], None]) -> None:
        self._send = send
        self._frames: list[bytes] = []
        self._size_bytes = 0
        self._gathers = False

    def begin(self) -> None:
        """Gather what comes, until `end`."""
        self._gathers = True

    def add(self, frame: bytes) -> None:
        """Take a frame: it is sent at the end of the burst, or now if there is none."""
        if not self._gathers:
            self._send((frame,))
            return
        self._frames.append(frame)
        self._size_bytes += len(frame)
        if self._size_bytes >= BURST_MAX_BYTES:
            self.flush()

    def end(self) -> None:
        """Send what was gathered; what comes from now on is sent at once."""
        self._gathers = False
        self.flush()

    def flush(self) -> None:
        """Send what was gathered."""
        if self._frames:
            frames, self._frames, self._size_bytes = self._frames, [], 0
            self._send(frames)

    def drop(self) -> None:
        """Send nothing any more."""
        self._frames, self._size_bytes = [], 0
        # it may belong to whoever holds this: free both now, not at a later garbage collection
        self._send = _send_nothing


def _send_nothing(_frames: Sequence[bytes]) -> None:
    """Stand for a socket that is gone."""


def reset(transport: asyncio.Transport) -> None:
    """Reset a connection: what was not sent is lost, and the other side learns that it ended."""
    sock = transport.get_extra_info("socket")
    if sock is not None and not transport.is_closing():
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_ONCE)
    transport.abort()
