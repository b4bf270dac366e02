"""Takes the client's address from a load balancer's PROXY protocol header, before anything else is read.

Listed peers must send a header, and are trusted. Any other peer is a client with the address of its socket;
the gateway refuses a header from it like any other protocol. A connection is admitted when its header is
complete, so limits by address count clients, not balancers.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kustos.client import as_transport
from kustos.gateway.listener.handshakes import HandshakeFailure, HandshakeRefusal
from kustos.gateway.listener.port import Port
from kustos.gateway.listener.proxy_header import ProxyHeaderError, read_header
from kustos.gateway.upstream.addresses import AddressRanges, java_host_address

HEADER_TIMEOUT_S: Final = 5.0
"""How long a listed peer may take to send its header; a balancer sends it immediately."""

AWAITED_MAX: Final = 1_000
"""The maximum number of connections of a port that wait for their header: the new ones of some milliseconds,
and health checks that send nothing."""


class ProxyProtocol(asyncio.Protocol):
    """The protocol of an accepted socket until its header is read; then the client's own protocol takes over.

    `client_at` creates it for the client's address, None if that is the address of the socket.
    """

    def __init__(
        self,
        port: Port,
        listed: AddressRanges,
        client_at: Callable[[tuple[str, int] | None], asyncio.BufferedProtocol],
    ) -> None:
        self._port: Final = port
        self._listed: Final = listed
        self._client_at: Final = client_at
        self._host = ""
        self._data = bytearray()
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the header of a listed peer; pass the connection of any other peer on."""
        self._transport = as_transport(transport)
        peer = transport.get_extra_info("peername")
        self._host = "" if peer is None else java_host_address(peer)
        if peer is None or not self._listed.holds(self._host):
            self._pass_on(None, b"")
        elif len(self._port.headers_awaited) >= AWAITED_MAX:
            reason = "too many connections wait for a header of the PROXY protocol"
            self._port.gateway.admission.note_refusal(reason, self._host)
            self._transport.abort()
        else:
            self._port.headers_awaited.add(self)
            reason = f"no header of the PROXY protocol within {HEADER_TIMEOUT_S:g} s"
            self._deadline = asyncio.get_running_loop().call_later(HEADER_TIMEOUT_S, self._refuse, reason)

    def data_received(self, data: bytes) -> None:
        """Parse the header when it is complete."""
        if self._deadline is None:
            return
        self._data += data
        try:
            header = read_header(bytes(self._data))
        except ProxyHeaderError as error:
            self._refuse(str(error))
            return
        if header is not None:
            self._stop_waiting()
            self._pass_on(header.source, bytes(self._data[header.size :]))

    def connection_lost(self, _exc: Exception | None) -> None:
        """Count a connection that ended within the header; an earlier end means a health check."""
        if self._deadline is not None and self._data:
            self._refuse("the peer closed the connection within its header of the PROXY protocol")
        self._stop_waiting()

    def _pass_on(self, source: tuple[str, int] | None, rest: bytes) -> None:
        transport = self._transport
        if transport is None:
            return
        client = self._client_at(source)
        transport.set_protocol(client)
        client.connection_made(transport)
        while rest and not transport.is_closing():
            buffer = memoryview(client.get_buffer(len(rest)))
            size_bytes = min(len(buffer), len(rest))
            buffer[:size_bytes] = rest[:size_bytes]
            client.buffer_updated(size_bytes)
            rest = rest[size_bytes:]

    def _refuse(self, reason: str) -> None:
        self._stop_waiting()
        self._port.refuse_header(HandshakeRefusal(HandshakeFailure.PROXY_HEADER, reason), self._host)
        if self._transport is not None:
            self._transport.abort()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            self._port.headers_awaited.discard(self)
