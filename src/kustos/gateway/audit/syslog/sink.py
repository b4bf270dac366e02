"""The sink that sends audit events to a receiver of syslog."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from kustos.gateway.audit.syslog.messages import SyslogMessages
from kustos.gateway.audit.syslog.transports import SyslogChannel, SyslogReceiver, failure, open_channel

LOG: Final = structlog.get_logger("kustos.audit")


class SyslogSink:
    """Keeps one channel, and opens a new one after a failure.

    `tls` creates the context of a TLS connection. A failed batch is sent again as a whole, so the receiver
    may get an event twice, with the same `event_id`.
    """

    name = "syslog"

    def __init__(
        self,
        receiver: SyslogReceiver,
        messages: SyslogMessages,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self.shortened_events = 0
        self._receiver: Final = receiver
        self._messages: Final = messages
        self._tls: Final = tls
        self._channel: SyslogChannel | None = None

    async def open(self) -> None:
        """Open the channel if it is not open; raise `AuditSinkError`."""
        try:
            await asyncio.to_thread(self._opened)
        except OSError as error:
            raise failure(self._receiver, error) from error

    async def write(self, lines: bytes) -> None:
        """Return when the kernel has all messages; raise `AuditSinkError` if some may be missing."""
        try:
            shortened = await asyncio.to_thread(self._write, lines)
        except OSError as error:
            raise failure(self._receiver, error) from error
        if shortened:
            self.shortened_events += shortened
            LOG.warning("audit events were too large for syslog, long texts are cut", events=shortened)

    async def close(self) -> None:
        """Close the channel."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _opened(self) -> SyslogChannel:
        if self._channel is None:
            self._channel = open_channel(self._receiver, self._tls)
        return self._channel

    def _write(self, lines: bytes) -> int:
        """Send the events; return the number of events that were cut."""
        made = self._messages.of_lines(lines)
        data = [each.data for each in made]
        try:
            self._send(data)
        except ConnectionError:
            # the receiver restarted or closed an idle connection: try once more with a new one
            self._send(data)
        return sum(each.is_shortened for each in made)

    def _send(self, data: Sequence[bytes]) -> None:
        channel = self._opened()
        try:
            channel.send(data)
        except OSError:
            self._channel = None
            channel.close()
            raise
