"""The answers that a broker owes on a link, and what a link needs: limits, its client's half, a registry."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from kustos.gateway.upstream.bursts import Burst

if TYPE_CHECKING:
    from kustos.gateway.upstream.link import UpstreamLink

LAST_REQUESTS_S: Final = 5.0
"""How long upstream may take to read the last requests before the connection is aborted."""

DRAIN_S: Final = 30.0
"""How long a link without a client waits for its next answer before it is cut: a JoinGroup may take the
broker minutes, too long to keep the socket."""

CUT_REMEMBERED_S: Final = 600.0
"""How long requests of a cut link count as in flight if its broker is never seen again: Kafka's brokers close
idle connections after as long, and a broker that was stalled for longer has left the cluster."""


@dataclass(slots=True)
class Awaited:
    """An answer that upstream owes: its correlation id, and the callback for the frame without its length."""

    correlation_id: int
    take: Callable[[bytes], None]
    is_still_allowed: Callable[[], bool]
    """Whether the present ACLs would allow the request."""
    answered_at_once: bool = False
    """Whether the broker waits for nobody before it answers."""
    waits_for_replicas: bool = False
    """Whether the broker waits for other brokers, and for nobody else."""
    tail: bytes = b""
    """The end of the frame that is held back; without it the broker does nothing."""
    is_unsent: bool = False
    """Whether the tail is the whole frame, as a login or the end of a throttle comes before it."""
    sent_s: float = 0.0
    answered: asyncio.Future[None] | None = None
    stream: "AnswerStream | None" = None
    """Takes an answer that arrives in parts; then `take` gets no bytes at its end. None: it is gathered."""

    def mark_answered(self) -> None:
        """Notify those who wait for the answer that it is there, or that none will come."""
        if self.answered is not None and not self.answered.done():
            self.answered.set_result(None)


class AnswerStream(Protocol):
    """Passes an answer on while it arrives."""

    def begin(self, size_bytes: int, head: bytes) -> bool:
        """Take the first bytes of a frame of this size, the length not among them; False: gather it.

        Raise `MalformedMessageError`.
        """

    def feed(self, data: bytes) -> None:
        """Take the next bytes; raise `MalformedMessageError`."""


class LinkOwner(Protocol):
    """The client half, as its upstream half sees it."""

    @property
    def outgoing(self) -> Burst:
        """Takes what is sent to the client."""

    def upstream_writable(self) -> None:
        """Go on: upstream takes requests again."""

    def upstream_lost(self, reason: str) -> None:
        """Upstream is gone, broke the protocol, or was cut; called once, and not after `close`."""

    def has_expired(self, in_ms: int = 0) -> bool:
        """Whether the client's session will have expired in `in_ms`; then none of its requests may begin."""

    def upstream_ended(self) -> None:
        """The connection to upstream is closed; called once, whichever side closed it."""


class LinkRegistry(Protocol):
    """Tracks the links with requests in flight."""

    @property
    def sees_all_changes(self) -> bool:
        """Whether every change that revokes rights waits here for the requests that it forbids."""

    def add(self, link: "UpstreamLink") -> None:
        """Track a link that now has a request in flight."""

    def discard(self, link: "UpstreamLink") -> None:
        """Forget a link with nothing in flight."""
