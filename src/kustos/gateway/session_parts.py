"""What a session needs of others: who answers here, who sees re-authentications, who is told."""

from collections.abc import Coroutine
from typing import Any, Protocol

from kustos.authorizer import AuthorizableRequestContext
from kustos.protocol import Decided, Opened
from kustos.wire import Message


class LocalApis(Protocol):
    """What kustos answers itself."""

    def serve(self, opened: Opened) -> Message | Coroutine[Any, Any, Message]:
        """Return the answer to an authorized request, or a coroutine that comes to it."""


class Gatekeeper(Protocol):
    """Who sees the frames that are not requests: those of a re-authentication (KIP-368)."""

    def wants(self, frame: bytes) -> bool:
        """Whether the frame may be no request; it is then shown when nothing else is under way."""

    def take(self, frame: bytes) -> bool:
        """Return whether the frame was dealt with."""


class Observer(Protocol):
    """Who is told what happens: the audit log and the metrics."""

    @property
    def is_full(self) -> bool:
        """Whether no more can be taken for now; nothing is decided then."""

    def decided(self, context: AuthorizableRequestContext, decided: list[Decided]) -> None:
        """Decisions were taken for a request."""

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
