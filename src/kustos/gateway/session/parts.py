"""A session's requests in flight, and the interfaces it needs: local APIs, owner, upstream, observer."""

from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from kustos.authorizer import AuthorizableRequestContext, AuthorizerError
from kustos.gateway.session.logins import Login
from kustos.gateway.upstream.answers import AnswerStream
from kustos.gateway.upstream.bursts import Burst
from kustos.gateway.upstream.cluster import UpstreamCluster, UpstreamUnavailableError
from kustos.gateway.upstream.in_flight import InFlight, RequestsInFlightError
from kustos.gateway.upstream.link import Awaited
from kustos.protocol import (
    OWN_REQUEST,
    AllTopics,
    Ask,
    Decided,
    Effect,
    Handler,
    ListTopics,
    Opened,
    Outcome,
    Record,
    Repetition,
    ResolveTopicIds,
    Unwrap,
    UpstreamAnswer,
    WrittenAt,
    encoded,
    read_through,
)
from kustos.wire import ItemReader, Message, PartReader, read_response_header, response_header_is_flexible

LARGE_ANSWER_BYTES: Final = 8 * 1024
"""Smaller answers have no more items than one turn has room for: most take more than eight bytes."""

AUDIT_RETRY_S: Final = 0.01
"""How soon to check again whether a full audit queue has room."""

INTERNAL_ERROR: Final = "an internal error, see the log above"

STOPS: Final = "the gateway stops"
"""Why the connections of a stopping node end."""

ACKS_OF_THE_LEADER: Final = frozenset({0, 1})
"""`acks` of a Produce that the leader answers by itself."""


def known_of_cluster(
    cluster: UpstreamCluster, question: ResolveTopicIds | ListTopics | AllTopics
) -> tuple[Any, Callable[[], Coroutine[Any, Any, Any]]]:
    """Return what is known of the cluster (None: nothing yet), and what learns it."""
    match question:
        case ResolveTopicIds(topic_ids):
            return cluster.known_names(topic_ids), partial(cluster.resolve_topic_ids, topic_ids)
        case ListTopics(names):
            return None, partial(cluster.list_topics, names)
        case AllTopics():
            return cluster.known_topics(), cluster.all_topics


async def answer_after_drain(
    opened: Opened, change: Coroutine[Any, Any, Message | bytes], in_flight: InFlight
) -> Message | bytes:
    """Return the answer to a change, or a refusal; once no broker works on what it forbids, if it does."""
    answer = await change
    if not opened.row.revokes:
        return answer
    try:
        await in_flight.drain()
    except RequestsInFlightError as error:
        refusal, exchange = opened.row.refusal, opened.exchange
        return refusal.refuse(exchange.response_codec, exchange.request, error.code.value)
    return answer


def owed(opened: Opened, take: Callable[[bytes], None], stream: AnswerStream | None = None) -> Awaited:
    """Return the answer that upstream owes for a request, with what it may wait for."""
    exchange = opened.exchange
    number, is_still_allowed = exchange.header.correlation_id, exchange.is_still_allowed
    if opened.row.pipelined:
        return _owed_to_producer(number, take, is_still_allowed, exchange.request.acks)
    return Awaited(number, take, is_still_allowed, stream=stream)


def owed_again(repetition: Repetition, take: Callable[[bytes], None]) -> Awaited:
    """Return the answer that upstream owes for a repetition."""
    number, is_still_allowed = repetition.correlation_id, repetition.is_still_allowed
    if (acks := repetition.known.acks) is not None:
        return _owed_to_producer(number, take, is_still_allowed, acks)
    return Awaited(number, take, is_still_allowed)


def _owed_to_producer(
    correlation_id: int, take: Callable[[bytes], None], is_still_allowed: Callable[[], bool], acks: int
) -> Awaited:
    by_the_leader = acks in ACKS_OF_THE_LEADER
    return Awaited(
        correlation_id,
        take,
        is_still_allowed,
        answered_at_once=by_the_leader,
        waits_for_replicas=not by_the_leader,
    )


def read_answer(opened: Opened, frame: bytes, ask: Ask = OWN_REQUEST) -> UpstreamAnswer:
    """Return upstream's answer to a request; raise `WireError` if the frame is none."""
    codec = opened.answer_codec(ask.api_version, ask.api_key)
    _, body_at = read_response_header(frame, response_header_is_flexible(opened.row.api_key, codec))
    if opened.row.large_list is not None:
        items = ItemReader(codec, frame, body_at, opened.row.large_list)
        return UpstreamAnswer(items.message, b"", frame, items)
    message, had_unknown_tags = codec.decode(frame, body_at)
    if had_unknown_tags:
        return UpstreamAnswer(message, codec.encode(message))
    return UpstreamAnswer(message, frame[body_at:], frame)


def answered_in_turns(opened: Opened, handler: Handler, frame: bytes, ask: Ask) -> Handler:
    """Return a handler that reads upstream's answer in turns and then goes on as `handler`."""
    result: Any = yield from _read_in_turns(opened, frame, ask)
    while True:
        try:
            effect = handler.send(result)
        except StopIteration as done:
            outcome: Outcome = done.value
            return outcome
        result = yield effect


def _read_in_turns(opened: Opened, frame: bytes, ask: Ask) -> Generator[Effect, Any, UpstreamAnswer]:
    if opened.row.large_list is not None:
        # the handler reads the list of it, in turns
        return read_answer(opened, frame, ask)
    exchange, codec = opened.exchange, opened.answer_codec(ask.api_version, ask.api_key)
    _, body_at = read_response_header(frame, response_header_is_flexible(opened.row.api_key, codec))
    reader = PartReader(codec, frame, body_at)
    message = yield from read_through(exchange, reader)
    if reader.had_unknown_tags:
        return UpstreamAnswer(message, (yield from encoded(exchange, codec, message)))
    return UpstreamAnswer(message, frame[body_at:], frame)


class LocalApis(Protocol):
    """The APIs that kustos answers itself."""

    def serve(self, opened: Opened) -> Message | bytes | Coroutine[Any, Any, Message | bytes]:
        """Return the answer to an authorized request, or a coroutine that returns it."""


class SessionOwner(Protocol):
    """The connection of a session: its socket, and its login."""

    @property
    def outgoing(self) -> Burst:
        """Takes what is sent to the client."""

    def write(self, frame: bytes) -> None:
        """Send a whole frame to the client."""

    def close(self, reason: str) -> None:
        """End both halves of the connection, and log why."""

    def read_more(self, wanted: bool) -> None:
        """Read the socket, or leave it unread while frames wait here."""

    def needs_upstream(self, frame: bytes) -> bool:
        """Whether a request must wait for the link, which is on its way then; the session goes on with it."""

    def wants(self, frame: bytes) -> bool:
        """Whether the frame may belong to a re-authentication (KIP-368); `take` gets it in its turn."""

    def take(self, frame: bytes) -> bool:
        """Return whether the frame was handled, and is not a request."""

    @property
    def is_verifying(self) -> bool:
        """Whether a re-authentication waits for work off the loop; frames wait for it."""

    def unwrap(self, envelope: Unwrap) -> Opened:
        """Open the request in an Envelope as its principal's; raise `RefuseRequestError`."""


class Upstream(Protocol):
    """Takes the requests that kustos does not answer itself."""

    @property
    def is_writable(self) -> bool:
        """Whether a request decided now can be handed over at once."""

    def send(self, frame: bytes, awaited: Awaited) -> None:
        """Send a whole frame with the next `flush`."""

    @property
    def flush(self) -> Callable[[], None]:
        """Hands the frames over to the socket."""

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

    def flush(self) -> None:
        """Do nothing: there are no frames."""

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

    @property
    def refuses(self) -> bool:
        """Whether `refusal` has a reason."""

    def refusal(self) -> AuthorizerError | None:
        """Return why a new request must be refused, since it could not be audited; None if it need not."""

    def decided(
        self, context: AuthorizableRequestContext, decided: list[Decided], latency_us: int
    ) -> WrittenAt | None:
        """Record the decisions of a request; return the callback for the offset of its change, if any.

        `latency_us`: microseconds since the request was read.
        """

    def recorder(self, context: AuthorizableRequestContext, decided: Sequence[Decided]) -> Record:
        """Return a callback that records the same decisions, one or more, for a repetition."""

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
    answer_versions: Callable[[bytes], bytes | None] = lambda _: None
    """Returns the answer to an ApiVersions if that is known; None: the guard opens it."""
