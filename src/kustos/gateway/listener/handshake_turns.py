"""Limits the TLS handshakes of a process that are in progress: each takes about 50 kB until it ends.

Beyond the limit, a client waits with its ClientHello, which takes little memory, until a handshake ends;
networks take turns. While clients wait, handshakes that take longer than `GRACE_S` are ended, the oldest
first. Clients that stop sending during their handshake therefore delay the others by about two seconds.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from kustos.gateway.listener.handshakes import CROWDED_OUT, HandshakeRefusal
from kustos.gateway.session.fair_queue import FairQueue
from kustos.gateway.session.large_turns import on_the_loop
from kustos.gateway.upstream.addresses import network_of

HANDSHAKES_MAX: Final = 1_000
"""The maximum number of handshakes in progress, in about 50 MB; a core finishes about as many in a second."""

GRACE_S: Final = 2.0
"""How long a handshake may take while other clients wait: some round trips to another continent, and the time
in which this process finishes the earlier handshakes."""

CHECKED_EVERY_S: Final = 0.25
"""How often the process checks for slow handshakes."""


class HandshakingClient(Protocol):
    """A client whose ClientHello is whole."""

    def fail(self, refusal: HandshakeRefusal) -> None:
        """End the connection."""


class HandshakeTurns:
    """The handshakes in progress, and the clients that wait. For one event loop.

    `call_later` schedules a callback after a number of seconds, `call_soon` after the current one.
    """

    def __init__(
        self,
        now_s: Callable[[], float],
        call_later: Callable[[float, Callable[[], None]], object] = on_the_loop,
        call_soon: Callable[[Callable[[], object]], object] | None = None,
    ) -> None:
        self._now_s: Final = now_s
        self._call_later: Final = call_later
        self._call_soon: Final = call_soon or asyncio.get_running_loop().call_soon
        self._since_s: Final[dict[HandshakingClient, float]] = {}
        """The start of each handshake in progress, the oldest first."""
        self._waiting: Final[FairQueue[str, HandshakingClient]] = FairQueue()
        """Waiting clients by network; at most `kustos.max.unauthenticated.connections`."""
        self._is_armed = False

    def begin(self, client: HandshakingClient, host: str, go_on: Callable[[], None]) -> bool:
        """Return whether a client may begin its handshake now; if not, `go_on` is called when it may."""
        if len(self._since_s) < HANDSHAKES_MAX:
            self._since_s[client] = self._now_s()
            return True
        self._waiting.add(network_of(host), client, go_on)
        self._arm()
        return False

    def end(self, client: HandshakingClient, host: str) -> None:
        """Count a client out: its handshake, or its wait, is over. An unknown one is ignored."""
        if not self._waiting.remove(network_of(host), client):
            self._release(client)

    def _release(self, client: HandshakingClient) -> None:
        if self._since_s.pop(client, None) is None or (found := self._waiting.first) is None:
            return
        self._since_s[found[1]] = self._now_s()
        # not now: it may end immediately, and so may the next one
        self._call_soon(self._waiting.take(*found))

    def _arm(self) -> None:
        if not self._is_armed and self._waiting:
            self._is_armed = True
            self._call_later(CHECKED_EVERY_S, self._end_slow)

    def _end_slow(self) -> None:
        """End as many slow handshakes as clients wait."""
        self._is_armed = False
        late_s = self._now_s() - GRACE_S
        while self._waiting:
            client, since_s = next(iter(self._since_s.items()))
            if since_s > late_s:
                break
            self._release(client)
            client.fail(CROWDED_OUT)
        self._arm()
