"""The channels to a receiver of syslog: TCP, TLS, UDP and a Unix socket for datagrams.

Over TCP and TLS each message follows its length (octet counting: RFC 6587, 3.4.1; RFC 5425, 4.3), so no byte
of a message can end it. A datagram is one message (RFC 5426). Receivers of syslog acknowledge nothing, so a
message counts as sent when the kernel has taken it. The channel checks whether the receiver has closed the
connection before it sends.
"""

import os
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path
from typing import Any, Final, Protocol

from kustos.gateway.audit.errors import AuditSinkError

TIMEOUT_S: Final = 10.0
"""The limit of a connection attempt and of each send: a receiver that takes nothing counts as failing."""

READ_BYTES: Final = 4096


@unique
class SyslogTransport(Enum):
    """The protocol that carries messages to the receiver."""

    TCP = "tcp"
    TLS = "tls"
    UDP = "udp"
    UNIX = "unix"


@dataclass(frozen=True, slots=True)
class SyslogReceiver:
    """A receiver: the path of a socket for `unix`, otherwise a host and a port."""

    transport: SyslogTransport
    host: str = ""
    port: int = 0
    path: Path | None = None

    def __str__(self) -> str:
        at = str(self.path) if self.path is not None else f"{self.host}:{self.port}"
        return f"{self.transport.value}://{at}"


def parse_receiver(text: str) -> SyslogReceiver:
    """Return the receiver of a text such as `tls://log.example.com:6514`; raise ValueError."""
    name, _, rest = text.partition("://")
    transport = SyslogTransport(name.lower())
    if transport is SyslogTransport.UNIX:
        if rest.startswith("/"):
            return SyslogReceiver(transport, path=Path(rest))
        raise ValueError(f"`{rest}` is not a valid path of a socket, it must begin with `/`")
    host, _, port = rest.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port[:6]) < 65536:
        raise ValueError(f"`{rest}` is not a valid address, write `host:port`")
    return SyslogReceiver(transport, host.removeprefix("[").removesuffix("]"), int(port))


class SyslogChannel(Protocol):
    """An open channel to the receiver. Its functions may block, so they run off the event loop."""

    def send(self, messages: Sequence[bytes]) -> None:
        """Return when the kernel has all messages; raise OSError."""

    def close(self) -> None:
        """Close the channel; the kernel still sends the messages that it has taken."""


class StreamChannel:
    """TCP or TLS."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket: Final = connected

    @classmethod
    def open(cls, receiver: SyslogReceiver, tls: ssl.SSLContext | None) -> "StreamChannel":
        """Return a new connection; raise OSError."""
        plain = socket.create_connection((receiver.host, receiver.port), TIMEOUT_S)
        if tls is None:
            return cls(plain)
        try:
            return cls(tls.wrap_socket(plain, server_hostname=receiver.host))
        except BaseException:
            plain.close()
            raise

    def send(self, messages: Sequence[bytes]) -> None:
        """Return when the kernel has all messages; raise OSError."""
        if self._is_closed_there():
            raise ConnectionResetError("the receiver closed the connection")
        self._socket.sendall(b"".join(b"%d %b" % (len(each), each) for each in messages))

    def _is_closed_there(self) -> bool:
        """Whether the receiver closed the connection; syslog has no answers, so received bytes are
        dropped."""
        self._socket.settimeout(0)
        try:
            while self._socket.recv(READ_BYTES):
                pass
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        finally:
            self._socket.settimeout(TIMEOUT_S)
        return True

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._socket.close()


class DatagramChannel:
    """UDP or a Unix socket."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket: Final = connected
        connected.settimeout(TIMEOUT_S)

    @classmethod
    def open(cls, receiver: SyslogReceiver) -> "DatagramChannel":
        """Return a socket that is connected to the receiver; raise OSError."""
        if receiver.path is not None:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            address: Any = os.fspath(receiver.path)
        else:
            found = socket.getaddrinfo(receiver.host, receiver.port, type=socket.SOCK_DGRAM)
            family, kind, protocol, _, address = found[0]
            made = socket.socket(family, kind, protocol)
        try:
            made.connect(address)
        except BaseException:
            made.close()
            raise
        return cls(made)

    def send(self, messages: Sequence[bytes]) -> None:
        """Return when the kernel has all messages; raise OSError."""
        for each in messages:
            self._socket.send(each)

    def close(self) -> None:
        """Close the socket."""
        with suppress(OSError):
            self._socket.close()


def open_channel(receiver: SyslogReceiver, tls: Callable[[], ssl.SSLContext] | None) -> SyslogChannel:
    """Return a new channel to the receiver; raise OSError."""
    if receiver.transport in {SyslogTransport.UDP, SyslogTransport.UNIX}:
        return DatagramChannel.open(receiver)
    is_tls = receiver.transport is SyslogTransport.TLS
    return StreamChannel.open(receiver, (tls or ssl.create_default_context)() if is_tls else None)


def failure(receiver: SyslogReceiver, error: OSError) -> AuditSinkError:
    """Return the error of a receiver that cannot be used, with the reason."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = f"its certificate is not trusted: {error.verify_message}"
    elif isinstance(error, TimeoutError):
        reason = f"it took nothing within {TIMEOUT_S:.0f} s"
    else:
        reason = (error.strerror or str(error) or type(error).__name__).lower()
    return AuditSinkError(f"cannot send to the syslog receiver `{receiver}`: {reason}")
