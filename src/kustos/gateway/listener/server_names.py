"""The host that a TLS client names (SNI): OpenSSL reports it during the handshake, before any answer.

OpenSSL reports the name of each ClientHello, including the second one after a HelloRetryRequest, and takes an
alert if the name is refused. Two cases need care:

- Python decodes the name as ASCII before it calls kustos. If the decoding fails, the handshake fails, but
  Python also writes to standard error, as often as unauthenticated clients cause it. This module prevents the
  output.
- A session resumed by TLS 1.2 reports the name of its first handshake, not the one that the client sent now.
  A server must not resume it for another name (RFC 6066, section 3), but OpenSSL does. This module therefore
  parses the ClientHello, and refuses the connection unless the names are equal. TLS 1.3 reports the current
  name.
"""

import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kustos.gateway.listener.handshakes import NO_HOST_NAME, OTHER_HOST, HandshakeRefusal
from kustos.gateway.listener.port import Port
from kustos.gateway.upstream.host_names import BrokerHosts

HELLO_KEPT_BYTES: Final = 16_384
"""The number of a client's first bytes that are kept for parsing: one record (RFC 5246, section 6.2.1)."""

NAME_REFUSED: Final = "CALLBACK_FAILED"
"""OpenSSL's reason for a name that Python could not decode."""

_BEFORE_RECORD_LENGTH: Final = 3
_BEFORE_MESSAGE_LENGTH: Final = 1
_VERSION_AND_RANDOM: Final = 34
_SERVER_NAME: Final = b"\0\0"
_HOST_NAME: Final = b"\0"


class HostAskingObject(ssl.SSLObject):
    """The server's half of a connection.

    The function of `ask` gets the name, None if there is none. It returns None, or the alert that ends the
    handshake, and must not raise.
    """

    _choose: Callable[[str | None], int | None] | None = None

    def ask(self, choose: Callable[[str | None], int | None]) -> None:
        """Pass the name to this function: OpenSSL creates the object, so its constructor cannot take it."""
        self._choose = choose

    def alert_for(self, name: str | None) -> int | None:
        """Return the alert for this name, None if the handshake continues."""
        return None if self._choose is None else self._choose(name)

    def do_handshake(self) -> None:
        """Continue the handshake; raise `ssl.SSLError`, with `NAME_REFUSED` for a name that is not ASCII."""
        with _undecodable_names_unreported():
            super().do_handshake()


def ask_for_hosts(context: ssl.SSLContext) -> None:
    """Make a server's context create `HostAskingObject`s; further calls have no effect."""
    if context.sslobject_class is not HostAskingObject:
        context.sslobject_class = HostAskingObject
        context.sni_callback = _alert_for


def _alert_for(half: Any, name: str | None, _context: ssl.SSLContext) -> int | None:
    alert: int | None = half.alert_for(name)
    return alert


class HostSelection:
    """The port that one client chooses by host name, among the ports that share its socket."""

    def __init__(self, half: HostAskingObject, port: Port, hosts: BrokerHosts) -> None:
        self._half: Final = half
        self._port: Final = port
        self._hosts: Final = hosts
        self._hello: Final = bytearray()
        self._name: str | None = None
        self._chosen: Port | HandshakeRefusal | None = None
        half.ask(self._choose)

    def _choose(self, name: str | None) -> int | None:
        self._name = name
        self._chosen = self._port.port_of_host(self._hosts, name)
        is_refused = isinstance(self._chosen, HandshakeRefusal)
        return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME if is_refused else None

    def seen(self, data: bytes) -> None:
        """Keep the client's first bytes."""
        self._hello.extend(data[: HELLO_KEPT_BYTES - len(self._hello)])

    def refusal(self, error: ssl.SSLError) -> HandshakeRefusal | None:
        """Return the refusal of the host name, None if the handshake failed for another reason."""
        if self._chosen is None and error.reason == NAME_REFUSED:
            return NO_HOST_NAME
        return self._chosen if isinstance(self._chosen, HandshakeRefusal) else None

    def result(self) -> Port | HandshakeRefusal:
        """Return the chosen port after the handshake, or the refusal of the name."""
        has_old_name = self._half.session_reused and self._half.version() == "TLSv1.2"
        if has_old_name and not names_host(bytes(self._hello), self._name):
            return OTHER_HOST
        return NO_HOST_NAME if self._chosen is None else self._chosen


@contextmanager
def _undecodable_names_unreported() -> Iterator[None]:
    former = sys.unraisablehook

    def report(unraisable: Any) -> None:
        if not (isinstance(unraisable.object, bytes) and unraisable.exc_type is UnicodeDecodeError):
            former(unraisable)

    sys.unraisablehook = report
    try:
        yield
    finally:
        sys.unraisablehook = former


def names_host(hello: bytes, name: str | None) -> bool:
    """Return whether a ClientHello, in one record from its first byte, names this host; None: no host."""
    try:
        found = _name_in(hello)
    except ValueError:
        return False
    return found == (None if name is None else name.encode())


def _name_in(hello: bytes) -> bytes | None:
    """Return the name in a ClientHello (RFC 5246, section 7.4.1.2); raise ValueError."""
    message, _ = _vector(hello[_BEFORE_RECORD_LENGTH:], 2)
    body, _ = _vector(message[_BEFORE_MESSAGE_LENGTH:], 3)
    rest = body[_VERSION_AND_RANDOM:]
    for width in (1, 2, 1):  # session, cipher suites, compression methods
        _, rest = _vector(rest, width)
    # a ClientHello may have no extensions
    extensions, _ = _vector(rest, 2) if rest else (b"", b"")
    while extensions:
        kind = extensions[:2]
        data, extensions = _vector(extensions[2:], 2)
        if kind == _SERVER_NAME:
            names, _ = _vector(data, 2)
            if names[:1] != _HOST_NAME:
                raise ValueError
            return _vector(names[1:], 2)[0]
    return None


def _vector(data: bytes, width: int) -> tuple[bytes, bytes]:
    """Return the vector behind a length of `width` bytes, and the rest; raise ValueError."""
    end = width + int.from_bytes(data[:width], "big")
    if len(data) < max(width, end):
        raise ValueError
    return data[width:end], data[end:]
