"""A client that lists all topics, and one beside it: `python -m benchmarks.guarding.listing HOST:PORT COUNT`.

`COUNT` times a Metadata of all topics; meanwhile another connection asks for the versions of APIs, which no
broker is needed for, again and again: how long it waits tells how long the event loop does nothing else.
"""

import asyncio
import json
import statistics
import struct
import sys
import time
from typing import Final

import uvloop

from benchmarks.guarding.many import AUTHENTICATE, HANDSHAKE, framed

ALL_TOPICS: Final = framed(3, 7, struct.pack(">i", -1) + b"\0")
API_VERSIONS: Final = framed(18, 0, b"")
PERIOD_S: Final = 0.001
WARM_UP: Final = 5


class Line:
    """One connection that is logged in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, address: str) -> "Line":
        """Connect and log in."""
        host, _, port = address.rpartition(":")
        line = cls(*await asyncio.open_connection(host, int(port), limit=1 << 24))
        for frame in (HANDSHAKE, AUTHENTICATE):
            await line.ask(frame)
        return line

    async def ask(self, frame: bytes) -> tuple[float, int]:
        """Return the milliseconds until the whole answer is there, and its size."""
        begun_s = time.perf_counter()
        self._writer.write(frame)
        size = int.from_bytes(await self._reader.readexactly(4))
        await self._reader.readexactly(size)
        return (time.perf_counter() - begun_s) * 1000, size


async def beside(line: Line, waits_ms: list[float]) -> None:
    """Ask for little until cancelled."""
    while True:
        waits_ms.append((await line.ask(API_VERSIONS))[0])
        await asyncio.sleep(PERIOD_S)


async def run(address: str, count: int) -> None:
    """Measure and tell."""
    lister, other = await Line.connect(address), await Line.connect(address)
    for _ in range(WARM_UP):
        await lister.ask(ALL_TOPICS)
    took = [await lister.ask(ALL_TOPICS) for _ in range(count)]
    waits_ms: list[float] = []
    asking = asyncio.ensure_future(beside(other, waits_ms))
    worst_ms = []
    for _ in range(count):
        waits_ms.clear()
        await lister.ask(ALL_TOPICS)
        worst_ms.append(max(waits_ms, default=0.0))
    asking.cancel()
    print(
        json.dumps({
            "ms": statistics.median(each for each, _ in took),
            "bytes": took[-1][1],
            "worst_wait_ms": statistics.median(worst_ms),
        })
    )  # fmt: skip


if __name__ == "__main__":
    uvloop.run(run(sys.argv[1], int(sys.argv[2])))
