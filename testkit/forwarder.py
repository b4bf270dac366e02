"""A stable address before servers that move, as a load balancer: it forwards bytes to where they are now."""

import asyncio
from collections.abc import Callable

from testkit.ports import LOOPBACK, free_port
from testkit.threaded_servers import ThreadedServers

CHUNK_BYTES = 1 << 16


class Forwarder(ThreadedServers):
    """Forwards each connection to the first of the `host:port` that takes it; `addresses` returns them."""

    def __init__(self, addresses: Callable[[], list[str]]) -> None:
        super().__init__("forwarder")
        self._addresses = addresses
        self.port = free_port()

    @property
    def bootstrap(self) -> str:
        """The stable address."""
        return f"{LOOPBACK}:{self.port}"

    def listen(self) -> None:
        """Take connections."""
        self._run(self._serve(self._forward, LOOPBACK, self.port, CHUNK_BYTES))

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for address in self._addresses():
            host, _, port = address.rpartition(":")
            try:
                up_reader, up_writer = await asyncio.open_connection(host, int(port), limit=CHUNK_BYTES)
            except OSError:
                continue
            await asyncio.gather(_copy(reader, up_writer), _copy(up_reader, writer))
            return
        writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
