"""What a session needs of others: who answers here, who sees re-authentications, who is told."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from kustos.authorizer import AuthorizableRequestContext
from kustos.gateway.cluster import UpstreamUnavailableError
from kustos.gateway.link import Awaited
from kustos.protocol import Decided, Opened, Unwrap
from kustos.protocol.exchange import WrittenAt
from kustos.wire import Message


class LocalApis(Protocol):
    """What kustos answers itself."""

    def serve(self, opened: Opened) -> Message | Coroutine[Any, Any, Message]:
        """Return the answer to an authorized request, or a coroutine that comes to it."""


Unwrapping = Callable[[Unwrap], tuple[Opened, AuthorizableRequestContext]]
"""Opens the request in an Envelope and says who made it; raises `RefuseRequestError`."""


class Gatekeeper(Protocol):
    """Who sees the frames that are not requests: those of a re-authentication (KIP-368)."""

    def wants(self, frame: bytes) -> bool:
        """Whether the frame may be no request; it is then shown when nothing else is under way."""

    def take(self, frame: bytes) -> bool:
        """Return whether the frame was dealt with."""


class Upstream(Protocol):
    """Where a session's requests go that kustos does not answer itself."""

    @property
    def is_writable(self) -> bool:
        """Whether what is decided now can be handed over at once."""

    def send(self, frame: bytes, awaited: Awaited | None) -> None:
        """Send a whole frame; `awaited` None for a request that gets no answer."""

    def pause_reading(self) -> None:
        """Take no more answers for now."""

    def resume_reading(self) -> None:
        """Take answers again."""

    def close(self) -> None:
        """Let go of it."""


class NoUpstream:
    """Nowhere: a listener whose every request is answered here. Always ready, and nothing passes."""

    is_writable = True

    def send(self, _frame: bytes, _awaited: Awaited | None) -> None:
        """Raise `UpstreamUnavailableError`; a row that forwards has no place on such a listener."""
        raise UpstreamUnavailableError("nothing is sent upstream from this listener")

    def pause_reading(self) -> None:
        """There is nothing to read."""

    def resume_reading(self) -> None:
        """There is nothing to read."""

    def close(self) -> None:
        """There is nothing to close."""


class Observer(Protocol):
    """Who is told what happens: the audit log and the metrics."""

    @property
    def is_full(self) -> bool:
        """Whether no more can be taken for now; nothing is decided then."""

    def decided(self, context: AuthorizableRequestContext, decided: list[Decided]) -> WrittenAt | None:
        """Decisions were taken for a request; return who waits to be told where its change is, if anybody."""

    def answered(
        self,
        api_key: int,
        seconds: float,
        upstream_seconds: float | None = None,
        held_seconds: float = 0.0,
    ) -> None:
        """A request was answered so long after it came, so much of it upstream's (None: not asked).

        `held_seconds` of it the request was held until something was learnt or changed.
        """
