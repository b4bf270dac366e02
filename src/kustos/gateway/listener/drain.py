"""Ends connections without losing an answer: a client that waits for one gets it before the connection ends.

If a broker has appended a Produce and the client gets no answer, a producer without idempotence writes it
twice, and any other client does not know whether it was written. A stopping node therefore begins no more
requests, and waits for the answers to requests that have begun. A request that has not begun has no effect,
and its client repeats it elsewhere. `LONG_POLLS` in `session.client_session` lists the requests without such
a wait.
"""

import asyncio
import fcntl
import sys
import termios
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, Protocol, TypeVar

import structlog

LOG: Final = structlog.get_logger("kustos.gateway")

DRAIN_TIMEOUT_MS: Final = 10_000
"""How long the node waits for answers by default: longer than a broker waits for replicas that keep up, and
shorter than the 30 seconds after which systemd and Kubernetes usually kill a process."""

LAST_ANSWERS_S: Final = 5.0
"""How long a client may take to read the last answers when its connection ends."""


def has_unsent(transport: asyncio.Transport) -> bool:
    """Return whether the client's kernel has not acknowledged all written bytes.

    They are lost if the socket is closed while the client sends, because the kernel then resets the
    connection.
    """
    if transport.get_write_buffer_size():
        return True
    sock = transport.get_extra_info("socket")
    unsent = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(unsent, sys.byteorder) > 0


def half_close(transport: asyncio.Transport) -> None:
    """Send the end of the stream; the client closes the connection after it has read everything."""
    with suppress(OSError):  # the client may have closed it already
        transport.write_eof()


Connection = TypeVar("Connection")


def end_each(connections: Iterable[Connection], end: Callable[[Connection], object]) -> list[Connection]:
    """Call `end` with each connection; return those for which it returns true.

    A failure is logged, and the next connection follows.
    """
    remaining = []
    for connection in connections:
        try:
            if end(connection):
                remaining.append(connection)
        except Exception as error:
            # at this boundary, a bug in one connection must not keep the others open
            LOG.exception("a connection could not be ended", reason=type(error).__name__)
    return remaining


class DrainingConnection(Protocol):
    """A connection that may owe answers."""

    def drain(self) -> bool:
        """Begin no more requests, and end after the last answer; return whether a socket is open."""


class ConnectionDrain:
    """The connections that have not ended yet. Create it inside the event loop."""

    def __init__(self) -> None:
        self._left: Final[set[DrainingConnection]] = set()
        self._is_over: Final = asyncio.Event()

    async def run(self, connections: Iterable[DrainingConnection], timeout_ms: int) -> int:
        """Wait until all have ended, `end` was called, or time is up; return how many are left."""
        self._left.update(end_each(connections, lambda each: each.drain()))
        if self._left:
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    await self._is_over.wait()
            except TimeoutError:
                pass
        return len(self._left)

    def lost(self, connection: DrainingConnection) -> None:
        """Record that the socket of a connection is closed."""
        if connection in self._left:
            self._left.remove(connection)
            if not self._left:
                self.end()

    def end(self) -> None:
        """Stop waiting."""
        self._is_over.set()
