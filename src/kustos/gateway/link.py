"""The upstream half of one client connection: frames go up in order, answers come down in order.

One client connection has one connection to one broker, so the order of answers, fetch sessions and
quotas by connection are upstream's own, and a client's correlation id can go through as it is.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, cast

from kustos.wire import FrameReader, MalformedMessageError

LAST_REQUESTS_S: Final = 5.0
"""How long upstream may take to read what was sent before the end, such as a Produce without an answer."""


@dataclass(slots=True)
class Awaited:
    """An answer that upstream owes: its correlation id, and who takes the frame (without its length)."""

    correlation_id: int
    take: Callable[[bytes], None]


class LinkOwner(Protocol):
    """The client half, as its upstream half sees it."""

    def upstream_writable(self) -> None:
        """Upstream reads again."""

    def upstream_lost(self, reason: str) -> None:
        """Upstream is gone, or broke the protocol; told once, and not after `close`."""


class UpstreamLink(asyncio.Protocol):
    """Takes over an authenticated connection to a broker and carries one client's requests over it."""

    __slots__ = ("_abort", "_awaited", "_closed", "_owner", "_reader", "_transport", "is_writable")

    def __init__(self, transport: asyncio.Transport, owner: LinkOwner, max_answer_bytes: int) -> None:
        self._transport: Final = transport
        self._owner: Final = owner
        self._reader: Final = FrameReader(max_answer_bytes)
        self._awaited: deque[Awaited] = deque()
        self._abort: asyncio.TimerHandle | None = None
        self._closed = False
        self.is_writable = True
        transport.set_protocol(self)

    def send(self, frame: bytes, awaited: Awaited | None) -> None:
        """Send a whole frame; `awaited` None for a request that gets no answer."""
        if awaited is not None:
            self._awaited.append(awaited)
        self._transport.write(frame)

    def data_received(self, data: bytes) -> None:
        """Hand each whole answer to whoever waits for it."""
        if self._closed:
            return
        try:
            for frame in self._reader.feed(data):
                self._take(frame)
        except MalformedMessageError as error:
            self._lose(f"upstream broke the protocol: {error}")

    def _take(self, frame: bytes) -> None:
        # an answer before this one may have ended it all
        if not self._closed:
            self._whose(frame).take(frame)

    def _whose(self, frame: bytes) -> Awaited:
        """Return who waits for this answer; raise `MalformedMessageError` where nobody can."""
        if not self._awaited:
            raise MalformedMessageError("an answer came that nobody waits for")
        awaited = self._awaited.popleft()
        if len(frame) < 4 or int.from_bytes(frame[:4], "big", signed=True) != awaited.correlation_id:
            raise MalformedMessageError("an answer came out of turn")
        return awaited

    def pause_reading(self) -> None:
        """Take no more answers for now: the client does not read."""
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Take answers again."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Note that upstream does not read fast enough."""
        self.is_writable = False

    def resume_writing(self) -> None:
        """Let the owner go on."""
        self.is_writable = True
        self._owner.upstream_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the owner."""
        if self._abort is not None:
            self._abort.cancel()
        self._lose("upstream closed the connection" if exc is None else str(exc))

    def _lose(self, reason: str) -> None:
        if not self._closed:
            self.close()
            self._owner.upstream_lost(reason)

    def close(self) -> None:
        """Close once what was written is sent, or after a while if upstream does not take it."""
        if self._closed:
            return
        self._closed = True
        self._awaited.clear()
        # halves of a connection know each other, so what they hold would stay until some later collection
        self._reader.take_rest()
        if not self._transport.is_closing():
            self._transport.close()
            loop = asyncio.get_running_loop()
            self._abort = loop.call_later(LAST_REQUESTS_S, self._transport.abort)


def as_transport(transport: asyncio.BaseTransport) -> asyncio.Transport:
    """Return what asyncio declares as less than it is."""
    return cast("asyncio.Transport", transport)
