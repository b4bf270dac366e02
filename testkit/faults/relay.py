"""Relays whose connections can be cut, slowed, and closed amid an answer; observers see each frame.

They hold no more of a connection than what has just been read, so a peer that does not read stops the other.
"""

import asyncio
import random
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from kustos.wire import api_name
from testkit.faults.schedule import Side
from testkit.ports import LOOPBACK, free_port
from testkit.tap.proxy import Stream
from testkit.threaded_servers import ThreadedServers
from testkit.waiting import let_pass

CHUNK_BYTES: Final = 1 << 16
SLOW_BYTES: Final = 4_096
SLOW_PAUSE_S: Final = 0.02
"""A slowed connection passes pieces of `SLOW_BYTES`, each after this pause: 200 kB in a second."""

CONNECT_TIMEOUT_S: Final = 20.0
PROBLEMS_MAX: Final = 200
"""Problems that are kept; more say nothing new."""

OWED_SHOWN_MAX: Final = 5
"""Requests without an answer that a line names: the first is the one that a broker works on."""

UPWARD: Final = "upward"
DOWNWARD: Final = "downward"


class Observer(Protocol):
    """Sees the frames of one connection, without length prefixes; what it raises is a problem."""

    def went_up(self, frame: bytes, since_s: float) -> None:
        """See a request; it was sent at `since_s` at the earliest (monotonic seconds)."""

    def came_down(self, frame: bytes) -> None:
        """See an answer."""

    def owed(self) -> list[int]:
        """Return the API keys of the requests without an answer, the oldest first."""


@dataclass(eq=False)
class Line:
    """One relayed connection."""

    side: Side
    observer: Observer
    up: Stream = field(default_factory=Stream)
    down: Stream = field(default_factory=Stream)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    slow_until_s: float = 0.0
    ends_amid_answer: bool = False
    began_s: float = field(default_factory=time.monotonic)
    ended_s: dict[str, float] = field(default_factory=dict)
    """Half → when it ended, by FIN or RST: `UPWARD` from who connected, `DOWNWARD` from the target. Monotonic
    seconds."""

    def __str__(self) -> str:
        """Return what explains why it is open: its side and age, which half has ended, what is unanswered."""
        now_s = time.monotonic()
        told = [f"{self.side.value} line of {now_s - self.began_s:.0f} s"]
        told += [f"{half} half ended {now_s - at_s:.0f} s ago" for half, at_s in list(self.ended_s.items())]
        if owed := self.observer.owed():
            told.append("no answer to " + ", ".join(map(api_name, owed[:OWED_SHOWN_MAX])))
        return ", ".join(told)

    def reset(self) -> None:
        """End both halves by RST, as a process that is killed or a firewall does."""
        for writer in self.writers:
            opened: socket.socket | None = writer.get_extra_info("socket")
            if opened is not None and opened.fileno() >= 0:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


class Relays(ThreadedServers):
    """All relays of a run."""

    def __init__(self) -> None:
        super().__init__("relays")
        self.lines: set[Line] = set()
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self._listen: dict[int, Callable[[], Coroutine[Any, Any, None]]] = {}

    def relay(
        self,
        side: Side,
        target: tuple[str, int],
        observe: Callable[[], Observer],
        *,
        host: str = LOOPBACK,
        port: int | None = None,
    ) -> int:
        """Listen on `host`, relay to `target`, each connection before its own observer; return the port."""
        port = port or free_port()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._carry(Line(side, observe(), writers=[writer]), target, reader)

        listen = partial(self._serve, accept, host, port, CHUNK_BYTES)
        self._listen[port] = listen
        self._run(listen())
        return port

    def refuse(self, port: int) -> None:
        """Refuse connections to a port, as the machine of a process that is gone does."""

        async def close() -> None:
            self._servers.pop(port).close()

        self._run(close())

    def accept_again(self, port: int) -> None:
        """Relay connections to a port again."""
        self._run(self._listen[port]())

    async def _carry(self, line: Line, target: tuple[str, int], reader: asyncio.StreamReader) -> None:
        begun_s = time.monotonic()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                up_reader, up_writer = await asyncio.open_connection(*target, limit=CHUNK_BYTES)
        except OSError:
            line.reset()
            return
        line.writers.append(up_writer)
        self.lines.add(line)
        self.counts[f"{line.side.value} connections"] += 1
        try:
            await asyncio.gather(
                self._upward(line, reader, up_writer, begun_s), self._downward(line, up_reader)
            )
        finally:
            self.lines.discard(line)
            for writer in line.writers:
                writer.close()

    async def _upward(
        self, line: Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, since_s: float
    ) -> None:
        try:
            while True:
                began_s = time.monotonic()
                data = await reader.read(CHUNK_BYTES)
                if not data:
                    break
                # what was there at once may have been sent since the last read
                if time.monotonic() - began_s > SLOW_PAUSE_S:
                    since_s = time.monotonic()
                for frame in line.up.feed(data):
                    self.counts[f"{line.side.value} requests"] += 1
                    self._show(line, partial(line.observer.went_up, frame, since_s))
                since_s = time.monotonic()
                await self._pass_on(line, data, writer)
            if writer.can_write_eof():
                writer.write_eof()
        except OSError:
            line.reset()
        finally:
            line.ended_s[UPWARD] = time.monotonic()

    async def _downward(self, line: Line, reader: asyncio.StreamReader) -> None:
        client = line.writers[0]
        try:
            while data := await reader.read(CHUNK_BYTES):
                for frame in line.down.feed(data):
                    self.counts[f"{line.side.value} answers"] += 1
                    self._show(line, partial(line.observer.came_down, frame))
                if line.ends_amid_answer:
                    # without its last byte an answer is not whole
                    client.write(data[:-1])
                    await client.drain()
                    for writer in line.writers:
                        writer.close()
                    return
                await self._pass_on(line, data, client)
            if client.can_write_eof():
                client.write_eof()
        except OSError:
            line.reset()
        finally:
            line.ended_s[DOWNWARD] = time.monotonic()

    async def _pass_on(self, line: Line, data: bytes, writer: asyncio.StreamWriter) -> None:
        while data and time.monotonic() < line.slow_until_s:
            await let_pass(SLOW_PAUSE_S)
            writer.write(data[:SLOW_BYTES])
            data = data[SLOW_BYTES:]
            await writer.drain()
        writer.write(data)
        await writer.drain()

    def _show(self, line: Line, look: Callable[[], None]) -> None:
        try:
            look()
        except Exception as error:  # noqa: BLE001 (what an observer cannot read is a find)
            self.report(f"{line.side.value}: {error!r}")

    def report(self, problem: str) -> None:
        """Keep a problem."""
        self.counts["problems"] += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)

    def disturb(self, side: Side, chance: random.Random, share: float, what: Callable[[Line], None]) -> None:
        """Do something to a share of the open connections, to one at least."""

        def do() -> None:
            lines = [line for line in self.lines if line.side is side]
            for line in chance.sample(lines, min(len(lines), max(1, round(len(lines) * share)))):
                what(line)
                self.counts[f"{side.value} connections disturbed"] += 1

        self._loop.call_soon_threadsafe(do)

    def open_lines(self, side: Side) -> list[Line]:
        """Return the connections of a side of which any half is open, the oldest first."""
        return sorted((each for each in list(self.lines) if each.side is side), key=lambda each: each.began_s)

    def held(self, side: Side) -> list[Line]:
        """Return those that are still open at who connected.

        Kafka reads nothing from a connection while a request on it has no answer, not even its end; and a
        JoinGroup or SyncGroup never has one if its member sent it again on another connection, as after a
        kill of the worker that carried the first. The broker's half then stays until
        `connections.max.idle.ms`, ten minutes, whatever kustos did.
        """
        return [each for each in self.open_lines(side) if UPWARD not in each.ended_s]
