"""Many clients that each ask for little: `python -m benchmarks.guarding.many HOST:PORT COUNT SECONDS`.

Each of `COUNT` connections logs in and sends one Metadata of one topic a second, spread evenly. One line of
JSON tells how long answers took; the connections stay open until standard input ends.
"""

import asyncio
import json
import struct
import sys
import time
from array import array
from typing import Final, cast

import uvloop

from benchmarks.figures import QUICK
from benchmarks.guarding.routes import PASSWORD, TOPIC, USER

WARM_UP_S: Final = 3 if QUICK else 5
LOGINS_AT_ONCE: Final = 20
CLIENT_ID: Final = b"many"


def framed(api_key: int, version: int, body: bytes) -> bytes:
    """Return a request with its length; the header of these versions has no tagged fields."""
    header = struct.pack(">hhih", api_key, version, 7, len(CLIENT_ID)) + CLIENT_ID
    return struct.pack(">i", len(header) + len(body)) + header + body


HANDSHAKE: Final = framed(17, 1, b"\0\x05PLAIN")
TOKEN: Final = f"\0{USER}\0{PASSWORD}".encode()
AUTHENTICATE: Final = framed(36, 1, struct.pack(">i", len(TOKEN)) + TOKEN)
METADATA: Final = framed(3, 7, struct.pack(">ih", 1, len(TOPIC)) + TOPIC.encode() + b"\0")


class Client(asyncio.Protocol):
    """One connection, with at most one request under way."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._answer = bytearray()
        self._asked_s = 0.0
        self._told: asyncio.Future[None] | None = None
        self.took_ms: array[float] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Note how long a whole answer took."""
        self._answer += data
        if len(self._answer) < 4 or len(self._answer) < 4 + int.from_bytes(self._answer[:4]):
            return
        self._answer.clear()
        if self._told is not None:
            self._told.set_result(None)
            self._told = None
        elif self.took_ms is not None:
            self.took_ms.append((time.perf_counter() - self._asked_s) * 1000)
        self._asked_s = 0.0

    def connection_lost(self, _exc: Exception | None) -> None:
        """Fail whoever waits."""
        if self._told is not None:
            self._told.set_exception(EOFError("the connection was closed amid a login"))

    @property
    def waits(self) -> bool:
        """Whether the last request has no answer yet."""
        return self._asked_s > 0.0

    def ask(self) -> bool:
        """Send a request unless the last one has no answer yet; return whether it was sent."""
        if self._asked_s:
            return False
        self._asked_s = time.perf_counter()
        self._transport.write(METADATA)
        return True

    async def log_in(self) -> None:
        """Authenticate."""
        for frame in (HANDSHAKE, AUTHENTICATE):
            self._told = asyncio.get_running_loop().create_future()
            self._asked_s = time.perf_counter()
            self._transport.write(frame)
            await self._told


async def connected(host: str, port: int, count: int) -> list[Client]:
    """Return clients that have logged in."""
    turns = asyncio.Semaphore(LOGINS_AT_ONCE)

    async def one() -> Client:
        async with turns:
            _, client = await asyncio.get_running_loop().create_connection(Client, host, port)
            await client.log_in()
        return client

    return await asyncio.gather(*(one() for _ in range(count)))


async def ask_evenly(clients: list[Client], seconds: int) -> int:
    """Have each ask once a second; return how many were still waiting when their turn came."""
    late = 0
    begun_s = time.perf_counter()
    for number in range(len(clients) * seconds):
        ahead_s = begun_s + number / len(clients) - time.perf_counter()
        if ahead_s > 0.001:
            await asyncio.sleep(ahead_s)
        late += not clients[number % len(clients)].ask()
    return late


async def run(address: str, count: int, seconds: int) -> None:
    """Measure, tell, and stay until the end of standard input."""
    host, _, port = address.rpartition(":")
    clients = await connected(host, int(port), count)
    await ask_evenly(clients, WARM_UP_S)
    # what is asked first opens connections to brokers
    while any(client.waits for client in clients):  # noqa: ASYNC110 (nothing tells that all are answered)
        await asyncio.sleep(0.1)
    took_ms = array("d")
    for client in clients:
        client.took_ms = took_ms
    late = await ask_evenly(clients, seconds)
    await asyncio.sleep(1)
    told = sorted(took_ms)
    cuts = {"p50": told[len(told) // 2], "p99": told[int(len(told) * 0.99)], "max": told[-1]}
    print(json.dumps(cuts | {"answers": len(told), "late": late}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
