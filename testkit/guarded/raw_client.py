"""A client that is only a socket: what it sends is up to the test, byte for byte. Frames are kio's."""

import io
import socket
import struct
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from kio.serial import entity_writer
from kio.static.constants import EntityType

from testkit.tap.frames import entity, read_response

TIMEOUT_S = 60.0
"""How long an answer may take on a crowded machine."""

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36


def body_of(api_key: int, version: int, **fields: Any) -> bytes:
    """Return the bytes of a request's body."""
    made = entity(api_key, version, EntityType.request)
    buffer = io.BytesIO()
    entity_writer(made)(buffer, made(**fields))
    return buffer.getvalue()


def request_bytes(
    api_key: int, version: int, correlation_id: int, client_id: str, body: bytes, header_tags: bytes = b"\0"
) -> bytes:
    """Return a request without its length; `header_tags` where the version is flexible."""
    name = client_id.encode()
    flexible = entity(api_key, version, EntityType.request).__flexible__
    header = struct.pack(">hhih", api_key, version, correlation_id, len(name)) + name
    return header + (header_tags if flexible else b"") + body


def framed(frame: bytes) -> bytes:
    """Return the frame with its length before it."""
    return struct.pack(">i", len(frame)) + frame


class RawClient:
    """One connection. `log_in` first, where the listener wants it."""

    def __init__(self, address: str, client_id: str) -> None:
        host, _, port = address.rpartition(":")
        self.client_id = client_id
        self.socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self._next = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, frame: bytes) -> None:
        """Send a frame with its length."""
        self.socket.sendall(framed(frame))

    def receive(self) -> bytes:
        """Return the next frame without its length; raise EOFError where the connection ended."""
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            try:
                piece = self.socket.recv(count - len(data))
            except ConnectionResetError as error:
                raise EOFError("reset") from error
            if not piece:
                raise EOFError(f"closed after {len(data)} of {count} bytes")
            data += piece
        return data

    def is_closed(self) -> bool:
        """Return whether the other side ends the connection next, without another byte."""
        try:
            return not self.socket.recv(1)
        except ConnectionResetError:
            return True

    def request(self, api_key: int, version: int, **fields: Any) -> bytes:
        """Return the frame of a request with the next correlation id."""
        self._next += 1
        return request_bytes(
            api_key, version, self._next, self.client_id, body_of(api_key, version, **fields)
        )

    def ask(self, api_key: int, version: int, **fields: Any) -> Any:
        """Send a request and return the body of its answer."""
        return self.ask_frame(self.request(api_key, version, **fields), api_key, version)

    def ask_frame(self, frame: bytes, api_key: int, version: int) -> Any:
        """Send a frame and return the body of its answer, read strictly."""
        self.send(frame)
        return read_response(self.receive(), api_key, version)[1]

    def log_in(self, user: str, password: str) -> Self:
        """Authenticate by PLAIN; raise `PermissionError` with the server's words where it refuses."""
        self.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        token = f"\0{user}\0{password}".encode()
        answer = self.ask(SASL_AUTHENTICATE, 1, auth_bytes=token)
        if int(answer.error_code):
            raise PermissionError(answer.error_message)
        return self


Connect = Callable[[str], RawClient]
"""User → a connection that is logged in."""
