"""The sink that sends audit events to a receiver of syslog."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from kustos.gateway.audit.syslog.messages import SyslogMessages
from kustos.gateway.audit.syslog.transports import SyslogReceiver, Way, failure, open_way

LOG: Final = structlog.get_logger("kustos.audit")


class SyslogSink:
    """Keeps one connection or socket, and opens another after a failure.

    `tls` makes the context of a connection. A batch that fails is sent again as a whole: the receiver may
    have an event twice, with the same `event_id`.
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
        self._way: Way | None = None

    async def open(self) -> None:
        """Connect, unless that is done; raise `AuditSinkError`."""
        try:
            await asyncio.to_thread(self._opened)
        except OSError as error:
            raise failure(self._receiver, error) from error

    async def write(self, lines: bytes) -> None:
        """Return when the kernel has all messages; raise `AuditSinkError`, then some may be sent."""
        try:
            shortened = await asyncio.to_thread(self._write, lines)
        except OSError as error:
            raise failure(self._receiver, error) from error
        if shortened:
            self.shortened_events += shortened
            LOG.warning("audit events were too large for syslog, long texts are cut", events=shortened)

    async def close(self) -> None:
        """Close the connection."""
        way, self._way = self._way, None
        if way is not None:
            way.close()

    def _opened(self) -> Way:
        if self._way is None:
            self._way = open_way(self._receiver, self._tls)
        return self._way

    def _write(self, lines: bytes) -> int:
        """Send the events; return how many were cut."""
        made = self._messages.of_lines(lines)
        data = [each.data for each in made]
        try:
            self._send(data)
        except ConnectionError:
            # the receiver restarted, or closed an idle connection: one attempt with a new one
            self._send(data)
        return sum(each.is_shortened for each in made)

    def _send(self, data: Sequence[bytes]) -> None:
        way = self._opened()
        try:
            way.send(data)
        except OSError:
            self._way = None
            way.close()
            raise
