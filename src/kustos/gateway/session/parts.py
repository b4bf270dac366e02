"""A session's requests in flight, and the interfaces it needs: local APIs, owner, upstream, observer."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kustos.authorizer import AuthorizableRequestContext, AuthorizerError
from kustos.gateway.session.logins import Login
from kustos.gateway.upstream.awaited import AnswerStream, Awaited
from kustos.gateway.upstream.cluster import UpstreamCluster, UpstreamUnavailableError
from kustos.gateway.upstream.in_flight import InFlight, RequestsInFlightError
from kustos.protocol import (
    Decided,
    Opened,
    RefusedFrameError,
    RefuseRequestError,
    Unwrap,
    UpstreamAnswer,
    WrittenAt,
)
from kustos.runtime import stopwatch_ns
from kustos.wire import Message, read_response_header, response_header_is_flexible

LENGTH_BYTES: Final = 4
"""The length before each frame; an answer inside an Envelope has none."""

PIPELINED_MAX: Final = 5
"""Produce requests in flight: as many as producers have (`max.in.flight.requests.per.connection`)."""

ACKS_OF_THE_LEADER: Final = frozenset({0, 1})
"""`acks` of a Produce that the leader answers by itself."""


@dataclass(slots=True)
class Slot:
    """A request in flight, and its place in the order of answers."""

    api_key: int
    started_s: float
    opened: Opened | None = None
    envelope: Opened | None = None
    """The Envelope that the request came in, if it did; the answer goes back in one."""
    answer: bytes | None = None
    is_done: bool = False
    is_large: bool = False
    """Whether work on it waits for turns."""
    gave_way: bool = False
    """Whether others had their turn while it was being decided."""
    admits_next: bool = False
    """Whether another Produce may begin behind it: it is a Produce and was sent."""
    sent_s: float = 0.0
    upstream_s: float | None = None
    held_s: float = 0.0
    read_ns: int = field(default_factory=stopwatch_ns)
    """When it was read, on the stopwatch."""

    @property
    def latency_us(self) -> int:
        """Microseconds since it was read."""
        return (stopwatch_ns() - self.read_ns) // 1000

    def require_still_allowed(self) -> None:
        """Raise `RefusedFrameError` if the ACLs that allowed it changed while it gave way to others."""
        if self.gave_way and self.opened is not None and not self.opened.exchange.is_still_allowed():
            raise RefusedFrameError("the ACLs changed while a large request was decided")
        self.gave_way = False

    def enveloped(self, answer: bytes) -> bytes:
        """Return the frame with this answer, in an Envelope's answer if the request came in one."""
        if self.envelope is None:
            return answer
        root = self.envelope.exchange.response_codec.root
        return self.envelope.client_frame(root(response_data=answer[LENGTH_BYTES:]))


async def answer_after_drain(
    opened: Opened, change: Coroutine[Any, Any, Message | bytes], in_flight: InFlight
) -> Message | bytes:
    """Return the answer to a change once no broker works on what it forbids, or a refusal."""
    answer = await change
    try:
        await in_flight.drain()
    except RequestsInFlightError as error:
        refusal, exchange = opened.row.refusal, opened.exchange
        return refusal.refuse(exchange.response_codec, exchange.request, error.code.value)
    return answer


def owed(opened: Opened, take: Callable[[bytes], None], stream: AnswerStream | None = None) -> Awaited:
    """Return the answer that upstream owes for a request, with what it may wait for."""
    exchange = opened.exchange
    is_produce = opened.row.pipelined
    by_the_leader = is_produce and exchange.request.acks in ACKS_OF_THE_LEADER
    return Awaited(
        exchange.header.correlation_id,
        take,
        exchange.is_still_allowed,
        answered_at_once=by_the_leader,
        waits_for_replicas=is_produce and not by_the_leader,
        stream=stream,
    )


def read_answer(opened: Opened, frame: bytes, api_version: int | None) -> UpstreamAnswer:
    """Return upstream's answer to a request of this version; raise `WireError` if the frame is none."""
    codec = opened.answer_codec(api_version)
    _, body_at = read_response_header(frame, response_header_is_flexible(opened.row.api_key, codec))
    message, had_unknown_tags = codec.decode(frame, body_at)
    if had_unknown_tags:
        return UpstreamAnswer(message, codec.encode(message))
    return UpstreamAnswer(message, frame[body_at:], frame)


def unwrapped(owner: "SessionOwner", slot: Slot, envelope: Opened, outcome: Unwrap) -> bytes | None:
    """Put the request of an Envelope into its slot, as its original principal's; return a refusal if any.

    Raise `RefusedFrameError` for an Envelope in an Envelope.
    """
    if slot.envelope is not None:
        raise RefusedFrameError("an Envelope came in an Envelope")
    try:
        opened = owner.unwrap(outcome)
    except RefuseRequestError as refusal:
        exchange = envelope.exchange
        refused = envelope.row.refusal.refuse(exchange.response_codec, exchange.request, refusal.code)
        return envelope.client_frame(refused)
    slot.envelope, slot.opened = envelope, opened
    return None


class LocalApis(Protocol):
    """The APIs that kustos answers itself."""

    def serve(self, opened: Opened) -> Message | bytes | Coroutine[Any, Any, Message | bytes]:
        """Return the answer to an authorized request, or a coroutine that returns it."""


class SessionOwner(Protocol):
    """The connection of a session: its socket, and its login."""

    def write(self, frame: bytes) -> None:
        """Send a whole frame to the client."""

    def hang_up(self, reason: str) -> None:
        """End both halves of the connection, and log why."""

    def read_more(self, wanted: bool) -> None:
        """Read the socket, or leave it unread while frames wait here."""

    def needs_upstream(self, frame: bytes) -> bool:
        """Whether a request must wait for the link, which is on its way then; the session goes on with it."""

    def wants(self, frame: bytes) -> bool:
        """Whether the frame may belong to a re-authentication (KIP-368); `take` gets it in its turn."""

    def take(self, frame: bytes) -> bool:
        """Return whether the frame was handled, and is no request."""

    def unwrap(self, envelope: Unwrap) -> Opened:
        """Open the request in an Envelope as its principal's; raise `RefuseRequestError`."""


class Upstream(Protocol):
    """Takes the requests that kustos does not answer itself."""

    @property
    def is_writable(self) -> bool:
        """Whether a request decided now can be handed over at once."""

    def send(self, frame: bytes, awaited: Awaited) -> None:
        """Send a whole frame."""

    def throttle(self, throttle_time_ms: int | None) -> None:
        """Send nothing for this long; None: the broker did not say."""

    def pause_reading(self) -> None:
        """Take no more answers for now."""

    def resume_reading(self) -> None:
        """Take answers again."""

    def close(self) -> None:
        """Release it."""


class NoUpstream:
    """No upstream, for a listener that answers every request itself. Always ready; nothing passes."""

    is_writable = True

    def send(self, _frame: bytes, _awaited: Awaited) -> None:
        """Raise `UpstreamUnavailableError`; such a listener has no rows that forward."""
        raise UpstreamUnavailableError("nothing is sent upstream from this listener")

    def throttle(self, _throttle_time_ms: int | None) -> None:
        """Do nothing: nobody throttles."""

    def pause_reading(self) -> None:
        """There is nothing to read."""

    def resume_reading(self) -> None:
        """There is nothing to read."""

    def close(self) -> None:
        """There is nothing to close."""


class Observer(Protocol):
    """Reports what happens to the audit log and the metrics."""

    @property
    def is_full(self) -> bool:
        """Whether the audit log takes no more for now; then nothing is decided."""

    def refusal(self) -> AuthorizerError | None:
        """Return why a new request must be refused, since it could not be audited; None if it need not."""

    def decided(
        self, context: AuthorizableRequestContext, decided: list[Decided], latency_us: int
    ) -> WrittenAt | None:
        """Record the decisions of a request; return the callback for the offset of its change, if any.

        `latency_us`: microseconds since the request was read.
        """

    def answered(
        self,
        api_key: int,
        seconds: float,
        upstream_seconds: float | None = None,
        held_seconds: float = 0.0,
    ) -> None:
        """Record a request's total and upstream latency (None: upstream was not queried).

        `held_seconds` of it the request was held until something was learnt or changed.
        """


class ConnectionObserver(Observer, Protocol):
    """An observer that gets logins too."""

    def login_ended(self, login: Login) -> bool:
        """Record a login before it is answered; return whether it may succeed: a success must be audited."""

    def session_expired(self, login: Login) -> None:
        """Record that a session is about to end because its credentials have expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionServices:
    """What the sessions of a listener share."""

    cluster: UpstreamCluster
    local: LocalApis
    observer: Observer
    in_flight: InFlight
