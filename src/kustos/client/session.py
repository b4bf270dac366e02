"""The client's session at a server, prolonged before it expires (KIP-368).

A server with limited sessions returns their lifetime at the login. As in Kafka's clients, a session is due
after 85 to 95 % of its lifetime, and is prolonged before the next request by another login with the same
identity on the same connection; a connection without requests needs no login. The owner of the connection
sends the requests of this login in order with its own.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from kustos.client.errors import CannotConnectError, ConnectionClosedError
from kustos.client.refreshed import chance
from kustos.runtime import Entropy, SystemEntropy

DUE_FROM: Final = 0.85
DUE_WITHIN: Final = 0.10
"""The fraction of a session's lifetime after which it is due, and the random fraction that is added, as in
Kafka."""

Exchange = Callable[[int, int, bytes], Awaitable[bytes]]
"""API key, version and body of a request → the body of its answer. Raises `ClientError`."""

LogIn = Callable[[Exchange], Awaitable[int]]
"""Logs in with such requests → the session's lifetime in milliseconds, 0 if unlimited. Raises
`ClientError`."""


class SaslSession:
    """The session of one connection. `where` names the server in messages."""

    def __init__(self, log_in: LogIn, where: str, timeout_ms: int, entropy: Entropy | None = None) -> None:
        self._log_in: Final = log_in
        self._where: Final = where
        self._timeout_ms: Final = timeout_ms
        self._entropy: Final = entropy or SystemEntropy()
        self.due_at_s: float | None = None
        """The event loop's time from which it is due; None for never."""

    @property
    def is_due(self) -> bool:
        """Whether to prolong it before the next request."""
        return self.due_at_s is not None and asyncio.get_running_loop().time() >= self.due_at_s

    async def begin(self, exchange: Exchange) -> None:
        """Log in, for the first time or again; the connection is unusable after an error.

        Raise `CannotConnectError`, or `AuthenticationFailedError` if either side rejects the other.
        """
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                lifetime_ms = await self._log_in(exchange)
        except TimeoutError as error:
            raise CannotConnectError(
                f"`{self._where}` did not finish the login within {self._timeout_ms} ms"
            ) from error
        except ConnectionClosedError as error:
            raise CannotConnectError(f"`{self._where}` did not finish the login: {error}") from error
        self.due_at_s = None
        if lifetime_ms > 0:
            part = DUE_FROM + DUE_WITHIN * chance(self._entropy)
            self.due_at_s = asyncio.get_running_loop().time() + lifetime_ms / 1000 * part
