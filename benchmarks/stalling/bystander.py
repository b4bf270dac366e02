"""A client that does nobody harm: a small Metadata each 5 ms on each connection, and the longest wait.

It runs in a process of its own, so that what the attackers do to theirs is not taken for the node's doing:
`python -m benchmarks.stalling.bystander HOST PORT PID…` with a connection for each PID (a worker that must
hold one; without any, one connection). Each line that comes on standard input is answered by a line of JSON
with what was seen since the one before; the end of the input ends it. A connection that the node closes is
made again, and its wait goes on until a request is answered.
"""

import asyncio
import json
import struct
import sys
import time
import uuid
from array import array
from dataclasses import dataclass, field
from typing import Final

from testkit.guarded.workers import connections_of

USER: Final = "bystander"
PASSWORD: Final = "bystander-secret"  # of a benchmark on loopback
TOPIC: Final = "bystander"
PERIOD_S: Final = 0.005
RETRY_S: Final = 0.02
ATTEMPTS: Final = 256
"""Connections until each worker has one: the kernel gives them by chance."""

UNKNOWN_ID: Final = b"\0"
NAMED: Final = struct.pack(">hhih", 3, 12, 7, 4) + b"byst\0"
ENDED: Final = b"\0\0\0"
"""No auto-creation, no authorized operations, no tags."""


def framed(frame: bytes) -> bytes:
    """Return the frame with its length before it."""
    return len(frame).to_bytes(4) + frame


def by_name() -> bytes:
    """Return a Metadata v12 of the topic."""
    return framed(NAMED + b"\x02" + bytes(16) + bytes([len(TOPIC) + 1]) + TOPIC.encode() + b"\0" + ENDED)


def by_id() -> bytes:
    """Return a Metadata v12 of a topic id that nobody has asked for before."""
    return framed(NAMED + b"\x02" + uuid.uuid4().bytes + b"\0" + b"\0" + ENDED)


def login() -> tuple[bytes, bytes]:
    """Return the two requests that log in by PLAIN."""
    token = f"\0{USER}\0{PASSWORD}".encode()
    handshake = struct.pack(">hhih", 17, 1, 1, 4) + b"byst" + b"\0\x05PLAIN"
    authenticate = struct.pack(">hhih", 36, 1, 2, 4) + b"byst" + len(token).to_bytes(4) + token
    return framed(handshake), framed(authenticate)


@dataclass
class Line:
    """One connection, made again where it ends."""

    host: str
    port: int
    reader: asyncio.StreamReader = field(init=False)
    writer: asyncio.StreamWriter = field(init=False)

    async def connect(self) -> None:
        """Connect and log in."""
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        for frame in login():
            answer = await self.ask(frame)
            if answer[4:6] != b"\0\0":
                raise PermissionError("the bystander cannot log in")

    async def ask(self, frame: bytes) -> bytes:
        """Return the answer to a frame."""
        self.writer.write(frame)
        size = int.from_bytes(await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def ask_for_sure(self, frame: bytes) -> None:
        """Return when a frame was answered, over as many connections as that takes."""
        while not await self._is_answered(frame):
            while not await self._is_connected():  # noqa: ASYNC110 (nothing tells that a node is back)
                await asyncio.sleep(RETRY_S)

    async def _is_answered(self, frame: bytes) -> bool:
        try:
            await self.ask(frame)
        except (OSError, asyncio.IncompleteReadError):
            return False
        return True

    async def _is_connected(self) -> bool:
        try:
            await self.connect()
        except (OSError, asyncio.IncompleteReadError):
            return False
        return True

    @property
    def own_port(self) -> int:
        """Return the port at this end."""
        return int(self.writer.get_extra_info("sockname")[1])


class Bystander:
    """All its connections, and the milliseconds that their requests took."""

    def __init__(self, lines: list[Line], *, asks_by_id: bool) -> None:
        self.took_ms = array("d")
        self._lines = lines
        self._frame = by_id if asks_by_id else by_name
        self._waiting: dict[int, float] = {}

    async def ask_on(self, number: int) -> None:
        """Ask on one connection for ever."""
        line = self._lines[number]
        while True:
            frame = self._frame()
            begun_s = self._waiting[number] = time.perf_counter()
            await line.ask_for_sure(frame)
            took_s = time.perf_counter() - begun_s
            del self._waiting[number]
            self.took_ms.append(took_s * 1000)
            await asyncio.sleep(max(0.0, PERIOD_S - took_s))

    def take(self) -> dict[str, float]:
        """Return what was seen since the last time; what waits still counts with its wait so far."""
        now_s = time.perf_counter()
        waiting = [(now_s - begun_s) * 1000 for begun_s in self._waiting.values()]
        seen, self.took_ms = [*self.took_ms, *waiting], array("d")
        return {
            "longest_ms": max(seen, default=0.0),
            "waiting_ms": max(waiting, default=0.0),
            "requests": len(seen),
        }

    async def run(self) -> None:
        """Ask until the input ends."""
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(self.ask_on(number)) for number in range(len(self._lines))]
        print("ready", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(self.take()), flush=True)
        for task in tasks:
            task.cancel()


async def connected(host: str, port: int, pids: list[int]) -> list[Line]:
    """Return a connection for each of these processes, or one."""
    wanted, found = set(pids), []
    for _ in range(ATTEMPTS):
        line = Line(host, port)
        await line.connect()
        holders = {pid for pid in wanted if line.own_port in connections_of(pid, port)}
        if not pids or holders:
            found.append(line)
            wanted -= holders
        else:
            line.writer.close()
        if not wanted:
            return found
    raise RuntimeError(f"no connection came to {len(wanted)} workers in {ATTEMPTS} attempts")


async def main() -> None:
    """Connect, and ask."""
    host, port, kind, *pids = sys.argv[1:]
    lines = await connected(host, int(port), [int(pid) for pid in pids])
    await Bystander(lines, asks_by_id=kind == "id").run()


if __name__ == "__main__":
    asyncio.run(main())
