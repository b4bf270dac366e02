"""A relay that knows nothing of Kafka: it writes what it reads, with the event loop that kustos has.

`python -m benchmarks.guarding.relay PORT BROKER_PORT [STORE TRUST]`, both on loopback. What it takes is the
price of a process between client and broker; what kustos takes above that is the price of guarding. With the
PEM files of a certificate and of its authority it has TLS on both sides, by the event loop's own means.
"""

import asyncio
import ssl
import sys
from collections.abc import Callable
from functools import partial
from typing import cast

import uvloop

from testkit.certificates import STORE_PASSWORD
from testkit.ports import LOOPBACK


class Half(asyncio.Protocol):
    """One end of a relayed connection; `other` is the end that gets what comes here."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: Half | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Write it to the other end."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        """Leave the other end unread while this one does not take what it gets."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read the other end again."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, _exc: Exception | None) -> None:
        """Close the other end, whatever ended this one."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class Accepted(Half):
    """The end at the client: what comes before the broker's end is there waits. No `context`: without TLS."""

    def __init__(self, broker_port: int, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self.broker_port, self.context = broker_port, context
        self.early: list[bytes] = []
        self.connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect to the broker."""
        super().connection_made(transport)
        self.connecting = asyncio.get_running_loop().create_task(self.connect())

    def data_received(self, data: bytes) -> None:
        """Write it to the broker, or keep it until one can."""
        if self.other is None:
            self.early.append(data)
        else:
            super().data_received(data)

    async def connect(self) -> None:
        """Let bytes pass."""
        loop = asyncio.get_running_loop()
        _, other = await loop.create_connection(Half, LOOPBACK, self.broker_port, ssl=self.context)
        other.other, self.other = self, other
        for data in self.early:
            super().data_received(data)


async def serve(port: int, accepted: Callable[[], Accepted], context: ssl.SSLContext | None) -> None:
    """Relay until the process is ended; `context` is that of the clients' side."""
    server = await asyncio.get_running_loop().create_server(accepted, LOOPBACK, port, ssl=context)
    await server.serve_forever()


def main(port: str, broker_port: str, store: str = "", trust: str = "") -> None:
    """Run the relay."""
    to_broker = of_clients = None
    if store:
        to_broker = ssl.create_default_context(cafile=trust)
        of_clients = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        of_clients.load_cert_chain(store, password=STORE_PASSWORD)
    uvloop.run(serve(int(port), partial(Accepted, int(broker_port), to_broker), of_clients))


if __name__ == "__main__":
    main(*sys.argv[1:])
