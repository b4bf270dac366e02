"""TLS between a socket and its `ClientConnection`: the socket's protocol and the connection's transport.

Theory of operation. The client connection is admitted when the socket is accepted, so a handshake counts as a
connection from its beginning. The handshake has one deadline, however slowly its bytes arrive. The first byte
shows whether a client uses TLS. OpenSSL starts only when the ClientHello is whole (`client_hello`). A failed
handshake sends its alert, is counted, and ends the connection.

After the handshake, received bytes are decrypted and passed on immediately; nothing is kept here. Bytes to
send are encrypted while the socket takes them, and wait in plaintext while it does not. The number of bytes
held for a client that does not read is therefore known exactly (`gateway.session.answer_budget`). asyncio's
own TLS encrypts everything immediately into a buffer whose size it does not report.
"""

import asyncio
import ssl
from collections import deque
from contextlib import suppress
from typing import Any, Final, cast

from kustos.client import as_transport
from kustos.gateway.listener.client_hello import NoClientHelloError, is_whole_hello
from kustos.gateway.listener.connection import ClientConnection
from kustos.gateway.listener.handshakes import (
    NO_CLIENT_HELLO,
    TIMED_OUT,
    TRUNCATED,
    HandshakeFailure,
    HandshakeRefusal,
    refusal_by_first_bytes,
    refusal_of,
)
from kustos.gateway.listener.plans import ListenerTls
from kustos.gateway.listener.port import Port
from kustos.gateway.listener.server_names import HostAskingObject, HostSelection, ask_for_hosts
from kustos.gateway.session.logins import LOG_IS_FULL
from kustos.tls import TlsError

READ_BYTES: Final = 16_384
"""The number of bytes decrypted at once, the maximum of a record (RFC 8446, section 5.1)."""

FED_BYTES: Final = 16_384
"""The number of bytes passed to OpenSSL at once. It copies the bytes, and keeps the memory of the longest
piece until the connection ends: a third more than its size. One read returns up to 256 KiB."""

UNAUTHENTICATED_FED_BYTES: Final = 4_096
"""The same before the client has authenticated: ten thousand such clients keep 55 MB."""

UNREAD_MAX_BYTES: Final = 2**20
"""The maximum number of bytes in the socket's own buffer: four slices of an answer. Only a client that
repeatedly requests new keys without reading exceeds it."""


class TlsTransport(asyncio.BufferedProtocol):
    """The protocol of an accepted socket, and the transport of its client."""

    def __init__(self, client: ClientConnection, port: Port, tls: ListenerTls) -> None:
        self._client: Final = client
        self._port: Final = port
        self._tls: Final = tls
        self._loop: Final = asyncio.get_running_loop()
        self._hello: bytearray | None = bytearray()
        """The part of the ClientHello that has arrived; None after OpenSSL has received it."""
        self._incoming = self._outgoing = cast("ssl.MemoryBIO", None)
        self._object = cast("ssl.SSLObject", None)
        self._choice: HostSelection | None = None
        """The client's choice of a broker, until the handshake ends; None if each broker has a port."""
        self._socket: asyncio.Transport = cast("asyncio.Transport", None)
        self._deadline: asyncio.TimerHandle | None = None
        self._is_established = False
        self._is_closing = False
        self._lingers = False
        self._is_stalled = False
        self._waiting: Final[deque[bytes]] = deque()
        self._waiting_bytes = 0

    # called by the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the client, and wait for its handshake."""
        self._socket = as_transport(transport)
        self._deadline = self._loop.call_later(self._tls.handshake_timeout_ms / 1000, self.fail, TIMED_OUT)
        self._client.connection_made(cast("asyncio.Transport", self))

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the memory for the next read: encrypted bytes are hardly more than decrypted ones."""
        return self._client.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        """Continue the handshake, or decrypt."""
        if self._is_closing:
            return
        data = self._port.parts.requests.read_buffer[:nbytes]
        if self._is_established:
            self._decrypt(data)
        elif self._hello is not None:
            self._await_hello(self._hello, data)
        else:
            self._shake_hands(bytes(data))

    def _await_hello(self, hello: bytearray, data: bytes | memoryview) -> None:
        """Begin the handshake once the ClientHello is whole, and it is this client's turn."""
        hello += data
        if (other_protocol := refusal_by_first_bytes(bytes(hello[:4]))) is not None:
            self.fail(other_protocol)
            return
        try:
            is_whole = is_whole_hello(hello)
        except NoClientHelloError:
            self.fail(NO_CLIENT_HELLO)
            return
        if not is_whole:
            return
        if self._port.gateway.admission.handshake_turns.begin(self, self._client.host, self._begin_handshake):
            self._begin_handshake()
        else:
            self._socket.pause_reading()

    def _begin_handshake(self) -> None:
        hello = self._hello
        if self._is_closing or hello is None:
            return
        self._hello = None
        self._socket.resume_reading()
        context, hosts = self._tls.contexts.context, self._port.hosts
        if hosts is not None:
            ask_for_hosts(context)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        if hosts is not None and isinstance(self._object, HostAskingObject):
            self._choice = HostSelection(self._object, self._port, hosts)
        self._shake_hands(bytes(hello))

    def _shake_hands(self, data: bytes) -> None:
        for at in range(0, len(data), UNAUTHENTICATED_FED_BYTES):
            fed = data[at : at + UNAUTHENTICATED_FED_BYTES]
            self._incoming.write(fed)
            if self._choice is not None:
                self._choice.seen(fed)
            try:
                self._object.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                continue
            except ssl.SSLError as error:
                refusal = (self._choice and self._choice.refusal(error)) or refusal_of(error)
                if refusal.kind is not HandshakeFailure.UNKNOWN_BROKER:
                    # the alert contains the reason; without one, Java's clients try again
                    self._flush()
                self.fail(refusal)
                return
            self._flush()
            self._establish(data[at + UNAUTHENTICATED_FED_BYTES :])
            return

    def _establish(self, rest: bytes) -> None:
        """Serve the client; `rest` arrived behind its handshake."""
        self._is_established = True
        self._leave_handshake()
        if self._choice is not None:
            chosen, self._choice = self._choice.result(), None
            if isinstance(chosen, HandshakeRefusal):
                self.fail(chosen)
                return
            self._client.choose(chosen)
        principal = None
        if self._tls.principal_of is not None:
            certificate = self._object.getpeercert(binary_form=True)
            try:
                principal = self._tls.principal_of(self._client.host, certificate)
            except TlsError as error:
                self.fail(HandshakeRefusal(HandshakeFailure.NO_PRINCIPAL, str(error)))
                return
            if certificate is not None and not self._port.certificate_login(self._client.host, principal):
                self._client.close(LOG_IS_FULL)
                return
        self._client.begin(principal)
        if not self._is_closing:
            # requests may have arrived with the end of the handshake
            self._decrypt(rest)

    def _decrypt(self, data: bytes | memoryview) -> None:
        piece_bytes = FED_BYTES if self._client.is_authenticated else UNAUTHENTICATED_FED_BYTES
        if len(data) > piece_bytes:
            # the decrypted bytes reuse its memory
            data = bytes(data)
        buffer, filled_bytes, fed_bytes = self._port.parts.requests.read_buffer, 0, 0
        reason = None
        while reason is None:
            self._incoming.write(data[fed_bytes : fed_bytes + piece_bytes])
            fed_bytes += piece_bytes
            try:
                while size_bytes := cast("int", self._object.read(READ_BYTES, buffer[filled_bytes:])):
                    filled_bytes += size_bytes
                    if filled_bytes > len(buffer) - READ_BYTES:
                        self._client.buffer_updated(filled_bytes)
                        filled_bytes = 0
                    if not (self._incoming.pending or self._object.pending()):
                        # another read without bytes would raise an exception
                        break
                else:
                    reason = "the client closed the connection"
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                reason = f"TLS is broken: {(error.reason or 'no reason given').lower().replace('_', ' ')}"
            if fed_bytes >= len(data):
                break
        self._flush()
        if filled_bytes:
            self._client.buffer_updated(filled_bytes)
        if reason is not None:
            self._client.close(reason, logged=not self._is_closing and reason.startswith("TLS"))
        elif self._socket.get_write_buffer_size() > UNREAD_MAX_BYTES:
            self._client.close("the client does not read what TLS sends it")
            self.abort()

    def pause_writing(self) -> None:
        """Stop encrypting, and make the client connection stop sending."""
        if not self._is_stalled:
            self._is_stalled = True
            self._client.pause_writing()

    def resume_writing(self) -> None:
        """Encrypt the bytes that wait; resume the client connection when none are left."""
        self._is_stalled = False
        while self._waiting and not self._is_stalled:
            data = self._waiting.popleft()
            self._waiting_bytes -= len(data)
            self._encrypt(data)
        if self._is_stalled:
            return
        if self._is_closing:
            self._finish()
        else:
            self._client.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything."""
        self._leave_handshake()
        has_begun = self._hello is None or len(self._hello) > 0
        if has_begun and not self._is_established and not self._is_closing:
            self.fail(TRUNCATED)
        self._is_closing = True
        self._waiting.clear()
        self._waiting_bytes = 0
        self._client.connection_lost(exc)

    def _leave_handshake(self) -> None:
        """Cancel the deadline of the handshake, and let the next client begin."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._port.gateway.admission.handshake_turns.end(self, self._client.host)

    def fail(self, refusal: HandshakeRefusal) -> None:
        """End the connection, and count it."""
        self._client.refuse(refusal)

    # called by the client connection

    def write(self, data: bytes) -> None:
        """Send bytes now, or when the socket takes more."""
        if self._is_closing:
            return
        if self._is_stalled:
            self._waiting.append(data)
            self._waiting_bytes += len(data)
        else:
            self._encrypt(data)

    def _encrypt(self, data: bytes) -> None:
        try:
            self._object.write(data)
        except ssl.SSLError:
            # nothing can be sent any more
            self.abort()
            return
        self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._socket.write(self._outgoing.read())

    def close(self) -> None:
        """Close after everything is sent."""
        if self._is_closing:
            return
        self._is_closing = True
        self._leave_handshake()
        if not self._waiting:
            self._finish()

    def write_eof(self) -> None:
        """Close this direction after everything is sent, and the socket after the client has closed it."""
        self._lingers = True
        self.close()

    def _finish(self) -> None:
        if self._is_established:
            # it sends close_notify, and does not wait for the answer
            with suppress(ssl.SSLError):
                self._object.unwrap()
            self._flush()
        if self._lingers:
            self._socket.write_eof()
        else:
            self._socket.close()

    def abort(self) -> None:
        """Close at once; unsent bytes are lost."""
        self._is_closing = True
        self._leave_handshake()
        self._socket.abort()

    def is_closing(self) -> bool:
        """Return whether the transport is closed, or will be."""
        return self._is_closing or self._socket.is_closing()

    def pause_reading(self) -> None:
        """Stop reading the socket."""
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        """Read the socket again."""
        self._socket.resume_reading()

    def is_reading(self) -> bool:
        """Return whether the socket is read."""
        return self._socket.is_reading()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait to be sent, encrypted or not."""
        return self._waiting_bytes + self._socket.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information about the socket."""
        return self._socket.get_extra_info(name, default)
