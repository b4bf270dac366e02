"""Many clients in one process that log in over and over: connect, log in, be served once, close.

A number of them are at it at once, and each that ends begins again until enough logins have been made.
"""

import asyncio
import ssl
import time
from dataclasses import dataclass, field
from typing import Final, cast

from benchmarks.authenticating.words import RefusedError, Words, token_of

ROUND_TIMEOUT_S: Final = 300.0
"""No round takes that long, unless a server hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A listener, and what is said to it."""

    host: str
    port: int
    words: Words
    tls: ssl.SSLContext | None = None


class Client(asyncio.Protocol):
    """One login."""

    def __init__(self, words: Words, done: asyncio.Future[None]) -> None:
        self._opening = list(reversed(words.opening))
        self._words = words
        self._token: bytes | None = next(words.tokens, None)
        self._has_proven = words.prove is None
        self._logs_in = self._awaits_token = False
        self._is_served = False
        self._buffer = b""
        self._done = done
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say the first words."""
        self._transport = cast("asyncio.Transport", transport)
        self._say(b"")

    def data_received(self, data: bytes) -> None:
        """Answer each whole frame."""
        self._buffer += data
        while len(self._buffer) >= 4 and len(self._buffer) >= (end := 4 + int.from_bytes(self._buffer[:4])):
            frame, self._buffer = self._buffer[4:end], self._buffer[end:]
            try:
                self._say(frame)
            except RefusedError as error:
                self._end(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail if nobody has been served."""
        self._end(exc or RefusedError("the server closed the connection"))

    def _say(self, heard: bytes) -> None:
        token = token_of(heard) if self._awaits_token else b""
        self._awaits_token = False
        if self._opening:
            said = self._opening.pop()
        elif self._token is not None:
            said, self._token, self._awaits_token = self._token, None, True
        elif not self._has_proven and self._words.prove is not None:
            said, self._has_proven, self._awaits_token = self._words.prove(token), True, True
        elif not self._is_served:
            said, self._is_served = self._words.last, True
        else:
            self._end(None)
            return
        if self._transport is not None:
            self._transport.write(said)

    def _end(self, error: Exception | None) -> None:
        if not self._done.done():
            if error is None:
                self._done.set_result(None)
            else:
                self._done.set_exception(error)


@dataclass(slots=True)
class Crowd:
    """The clients of one round."""

    target: Target
    logins: int
    took_s: list[float] = field(default_factory=list)

    async def log_in(self) -> float:
        """Log in once; return the seconds from the connect until the client is served."""
        loop = asyncio.get_running_loop()
        target = self.target
        done: asyncio.Future[None] = loop.create_future()
        begun_s = time.perf_counter()
        name = "localhost" if target.tls else None
        transport, _ = await loop.create_connection(
            lambda: Client(target.words, done), target.host, target.port, ssl=target.tls, server_hostname=name
        )
        try:
            await done
        finally:
            # also where another client's failure cancels this one
            transport.close()
        return time.perf_counter() - begun_s

    async def one_after_the_other(self, *, leaves_out_first: bool) -> None:
        """Log in until the round has enough logins."""
        is_first = leaves_out_first
        while self.logins > 0:
            self.logins -= 1
            took_s = await self.log_in()
            if not is_first:
                self.took_s.append(took_s)
            is_first = False

    async def run(self, clients: int, *, leaves_out_first: bool) -> None:
        """Have this many clients at it at once; raise what the first failure raises."""
        async with asyncio.timeout(ROUND_TIMEOUT_S), asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(self.one_after_the_other(leaves_out_first=leaves_out_first))


async def log_in_often(
    target: Target, logins: int, clients: int, *, leaves_out_first: bool = False
) -> list[float]:
    """Return the seconds that each login took; without the first of each client if they are left out.

    All clients connect at once at first, which says more of queues than of logins.
    """
    crowd = Crowd(target, logins)
    # in a task of its own: a group that fails cancels its task, which then stays marked as cancelled in
    # Python 3.11.2, so that a time-out of the caller's becomes a cancellation
    await asyncio.create_task(crowd.run(clients, leaves_out_first=leaves_out_first))
    return crowd.took_s
