"""Authorizes, forwards and answers the requests of one client connection.

Theory of operation. A broker processes one request of a connection at a time, in order; later requests wait
in its socket buffer. A session does the same: it authorizes the next request when the previous one is
answered, and forwards it in the same event loop iteration. A request therefore never waits at a broker for
minutes behind another one, under ACLs that are no longer in force.

Produce is pipelined nevertheless, because a producer's throughput depends on it. Behind a Produce that may
wait, the link holds back a byte of the next one until the first is answered, and then authorizes that one
again.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import structlog

from kustos.authorizer import AuthorizableRequestContext, AuthorizerError
from kustos.gateway.session.answer_budget import AnswerShare
from kustos.gateway.session.answers import LARGE_ANSWER_BYTES, answered_in_turns, read_answer
from kustos.gateway.session.fetched_stream import FetchedStream
from kustos.gateway.session.large_turns import (
    API_VERSIONS,
    BYTES_PER_TURN,
    LARGE_FRAME_BYTES,
    PRODUCE,
    REQUESTS_PER_TURN,
    QueuePlace,
)
from kustos.gateway.session.life_cycle import SLOT_LIFE, SlotEvent, SlotState
from kustos.gateway.session.logins import Login
from kustos.gateway.upstream.addresses import NoPortForBrokerError
from kustos.gateway.upstream.bursts import Burst
from kustos.gateway.upstream.cluster import UpstreamCluster, UpstreamUnavailableError
from kustos.gateway.upstream.in_flight import InFlight, RequestsInFlightError
from kustos.gateway.upstream.link import Awaited
from kustos.protocol import (
    OWN_REQUEST,
    AllTopics,
    Ask,
    AskStreamed,
    ContextOf,
    Decided,
    Decider,
    Effect,
    GiveWay,
    Guard,
    Hangup,
    ListTopics,
    Opened,
    Outcome,
    PassOn,
    Plan,
    Recorder,
    RefusedFrameError,
    RefuseRequestError,
    Relay,
    Reply,
    ResolveTopicIds,
    Serve,
    Silence,
    Streamed,
    Unwrap,
    WrittenAt,
    limit_answer,
    pass_any,
)
from kustos.wire import LENGTH_BYTES, ApiKey, Message, WireError, correlation_id_of

LOG: Final = structlog.get_logger("kustos.gateway")


AUDIT_RETRY_S: Final = 0.01
"""How soon to check again whether a full audit queue has capacity."""

US_PER_S: Final = 1_000_000

now_s: Final = time.perf_counter
"""The clock of all durations in this module. The clock of uvloop counts milliseconds, and most requests take
less."""

INTERNAL_ERROR: Final = "an internal error, see the log above"

STOPS: Final = "the gateway stops"
"""The reason why a stopping node closes connections."""

ACKS_OF_THE_LEADER: Final = frozenset({0, 1})
"""The `acks` of a Produce that the leader answers by itself."""

PIPELINED_MAX: Final = 5
"""The maximum number of Produce requests in flight: the default of producers
(`max.in.flight.requests.per.connection`)."""

LONG_POLLS: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
"""Requests that a stopping node does not wait for. A broker may hold them until there are records or until
the other members have joined, and the client can safely repeat them elsewhere. Brokers answer all others
soon."""


class LocalApis(Protocol):
    """The APIs that kustos answers itself."""

    def serve(self, opened: Opened) -> Message | bytes | Coroutine[Any, Any, Message | bytes]:
        """Return the answer to an authorized request, or a coroutine that returns it."""


class SessionOwner(Protocol):
    """The connection of a session: its socket and its login."""

    @property
    def outgoing(self) -> Burst:
        """The writer of the frames to the client."""

    def write(self, frame: bytes) -> None:
        """Send a whole frame to the client."""

    def close(self, reason: str) -> None:
        """Close both halves of the connection and log the reason."""

    def read_more(self, wanted: bool) -> None:
        """Read the socket, or stop reading while frames wait in the session."""

    def needs_upstream(self, frame: bytes) -> bool:
        """Whether a request must wait for the link, which is being opened and resumes the session."""

    def take(self, frame: bytes) -> bool:
        """Take a frame that may belong to a login, in order; return False if it is a request."""

    @property
    def is_verifying(self) -> bool:
        """Whether a re-authentication waits for work off the event loop; frames wait for it."""

    def unwrap(self, envelope: Unwrap) -> Opened:
        """Open the request in an Envelope as its principal's request; raise `RefuseRequestError`."""


class Upstream(Protocol):
    """Takes the requests that kustos does not answer itself."""

    @property
    def is_writable(self) -> bool:
        """Whether a request that is authorized now can be forwarded at once."""

    def send(self, frame: bytes, awaited: Awaited) -> None:
        """Send a whole frame with the next `flush`."""

    @property
    def flush(self) -> Callable[[], None]:
        """Writes the frames to the socket."""

    def throttle(self, throttle_time_ms: int | None) -> None:
        """Send nothing for this time; None: the broker did not report a throttle time."""

    def pause_reading(self) -> None:
        """Stop taking answers for now."""

    def resume_reading(self) -> None:
        """Take answers again."""

    def close(self) -> None:
        """Release the connection."""


class NoUpstream:
    """The upstream of a listener that answers every request itself; it is always ready."""

    is_writable = True

    def send(self, _frame: bytes, _awaited: Awaited) -> None:
        """Raise `UpstreamUnavailableError`; such a listener has no rows that forward."""
        raise UpstreamUnavailableError("nothing is sent upstream from this listener")

    def flush(self) -> None:
        """Do nothing: there are no frames."""

    def throttle(self, _throttle_time_ms: int | None) -> None:
        """Do nothing: no broker throttles."""

    def pause_reading(self) -> None:
        """Do nothing: there is nothing to read."""

    def resume_reading(self) -> None:
        """Do nothing: there is nothing to read."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class Observer(Protocol):
    """Reports events to the audit log and the metrics."""

    @property
    def is_full(self) -> bool:
        """Whether the audit log is full; the session then authorizes nothing."""

    def refusal(self) -> AuthorizerError | None:
        """Return the error for a new request that cannot be audited; None if it can be audited."""

    def decided(
        self, context: AuthorizableRequestContext, decided: list[Decided], latency_us: int
    ) -> WrittenAt | None:
        """Record the decisions of a request; return the callback for the offset of its change, if any.

        `latency_us`: microseconds since the request was read.
        """

    def recorder(self, context: AuthorizableRequestContext, decided: Sequence[Decided]) -> Recorder:
        """Return a recorder of the same decisions, one or more, for each request that repeats them."""

    def answered(
        self,
        api_key: int,
        seconds: float,
        upstream_seconds: float | None = None,
        held_seconds: float = 0.0,
    ) -> None:
        """Record a request's total and upstream latency (None: upstream was not queried).

        The request was held for `held_seconds` of the total, until information arrived or a change was made.
        """


class ConnectionObserver(Observer, Protocol):
    """An observer that also records logins."""

    def login_ended(self, login: Login) -> bool:
        """Record a login before it is answered; return whether it may succeed: a success must be audited."""

    def session_expired(self, login: Login) -> None:
        """Record that a session is about to end because its credentials have expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionServices:
    """The services that the sessions of a listener share."""

    cluster: UpstreamCluster
    local: LocalApis
    observer: Observer
    in_flight: InFlight
    answer_versions: Callable[[bytes], bytes | None] = lambda _: None
    """Returns the answer to an ApiVersions request if it is known; None: the guard opens the request."""


@dataclass(slots=True)
class Slot:
    """A request in flight and its place in the order of answers."""

    api_key: int
    started_s: float
    """The time when the request was read, by `now_s`."""
    opened: Opened | None = None
    """The opened request; a request with a plan is opened only if its answer must be parsed."""
    frame: bytes = b""
    """The client's frame of a request with a plan."""
    plan: Plan | None = None
    ask: Ask = OWN_REQUEST
    """The last query to upstream."""
    pass_on: PassOn | None = None
    """The rule for upstream's answer; None: the answer must be parsed."""
    state: SlotState = SLOT_LIFE.initial
    envelope: Opened | None = None
    """The Envelope around the request, if there is one; the answer is sent in an Envelope as well."""
    answer: bytes = b""
    """The frame of the finished answer; empty: no answer is sent."""
    is_large: bool = False
    """Whether work on the request waits for turns."""
    is_pipelined: bool = False
    """Whether another such request may begin once this one is sent: it is a Produce."""
    stream: FetchedStream | None = None
    """The stream for upstream's answer, if the answer may arrive in parts."""
    sent_s: float = 0.0
    upstream_s: float | None = None
    held_s: float = 0.0

    @property
    def must_be_answered(self) -> bool:
        """Whether a stopping node waits for the answer: true for all but long polls that change nothing.

        A ShareFetch may acknowledge records (KIP-932).
        """
        if self.api_key != ApiKey.SHARE_FETCH or self.opened is None:
            return self.api_key not in LONG_POLLS
        topics = self.opened.exchange.request.get("topics", ())
        return any(partition.acknowledgement_batches for topic in topics for partition in topic.partitions)

    @property
    def was_answered(self) -> bool:
        """Whether upstream has answered; if so, throttling does not stop the request (KIP-219)."""
        return self.upstream_s is not None

    @property
    def admits_next(self) -> bool:
        """Whether another Produce may begin behind this request."""
        was_sent = self.was_answered or self.state is SlotState.SENT
        return self.state is SlotState.DONE or (self.is_pipelined and was_sent)

    def require_still_allowed(self) -> None:
        """Raise `RefusedFrameError` if the ACLs that allowed the request changed while it yielded."""
        if self.state is not SlotState.RESUMED:
            return
        if self.opened is not None and not self.opened.exchange.is_still_allowed():
            raise RefusedFrameError("the ACLs changed while a large request was decided")
        self.state = SLOT_LIFE[self.state, SlotEvent.STILL_ALLOWED]

    def enveloped(self, answer: bytes) -> bytes:
        """Return the frame of the Envelope's answer that contains this answer."""
        if self.envelope is None:
            raise ValueError("the request did not come in an Envelope")
        root = self.envelope.exchange.response_codec.root
        # an answer inside an Envelope has no length
        return self.envelope.client_frame(root(response_data=answer[LENGTH_BYTES:]))


class Slots:
    """The requests in flight of one session, oldest first; `write` sends an answer to the client."""

    __slots__ = ("_observer", "_write", "in_flight")

    def __init__(self, write: Callable[[bytes], None], observer: Observer) -> None:
        self._write: Final = write
        self._observer: Final = observer
        self.in_flight: Final[deque[Slot]] = deque()

    @property
    def admits_next(self) -> bool:
        """Whether another Produce may begin behind the last request."""
        return self.in_flight[-1].admits_next and len(self.in_flight) < PIPELINED_MAX

    def answer(self, api_key: int, started_s: float, answer: bytes) -> None:
        """Add a request together with its answer."""
        slot = Slot(api_key, started_s)
        self.in_flight.append(slot)
        self.finish(slot, answer)

    def finish(self, slot: Slot, answer: bytes) -> None:
        """Store the answer to a request; send all answers that are next in order with one system call."""
        slot.answer = answer if slot.envelope is None else slot.enveloped(answer)
        slot.state = SLOT_LIFE[slot.state, SlotEvent.ENDS]
        seconds, in_flight, answers = now_s() - slot.started_s, self.in_flight, []
        while in_flight and in_flight[0].state is SlotState.DONE:
            answers.append(in_flight.popleft().answer)
        if frames := b"".join(answers):
            self._write(frames)
        self._observer.answered(slot.api_key, seconds, slot.upstream_s, slot.held_s)

    @property
    def must_be_answered(self) -> bool:
        """Whether a stopping node waits for an answer of this session."""
        return any(slot.must_be_answered for slot in self.in_flight)

    def clear(self) -> None:
        """Remove all requests."""
        self.in_flight.clear()


class ClientSession:
    """The requests of one client connection; `place` is its place in the queue of large requests.

    `link` None: `connect` sets it later. `is_login` returns whether a frame may belong to a re-authentication
    (KIP-368).
    """

    def __init__(
        self,
        owner: SessionOwner,
        guard: Guard,
        services: SessionServices,
        answers: AnswerShare,
        place: QueuePlace,
        link: Upstream | None = None,
        *,
        is_login: Callable[[bytes], bool] = lambda _: False,
        client_reads: bool = True,
    ) -> None:
        self.link = link
        self.client_reads = client_reads
        self._is_login: Final = is_login
        self._owner: Final = owner
        self._guard: Final = guard
        self._services: Final = services
        self._observer: Final = services.observer
        self._answers: Final = answers
        self._place: Final = place
        self._frames: deque[bytes] = deque()
        self._slots: Final = Slots(owner.write, services.observer)
        self._learnt: deque[tuple[Slot, Any]] = deque()
        """Requests that waited for a result or for another turn, with the result."""
        self._task: asyncio.Task[Any] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._closed = self._drains = False
        self._loop: Final = asyncio.get_running_loop()

    def renew(self, context_of: ContextOf, decider: Decider | None) -> None:
        """Do what `Guard.renew` says, after a re-authentication (KIP-368)."""
        self._guard.renew(context_of, decider)

    def connect(self, link: Upstream) -> None:
        """Send requests over this link from now on."""
        self.link = link
        if not self.client_reads:
            link.pause_reading()
        self.go_on()

    def pause_writing(self) -> None:
        """Take no more requests or answers while the client does not read (backpressure)."""
        self.client_reads = False
        if self.link is not None:
            self.link.pause_reading()

    def resume_writing(self) -> None:
        """Take requests and answers again."""
        self.client_reads = True
        if self.link is not None:
            self.link.resume_reading()
        self.go_on()

    def waiting_bytes(self) -> int:
        """Return the bytes of requests that have not begun."""
        return sum(map(len, self._frames))

    def take(self, frames: list[bytes]) -> None:
        """Take received frames, in order."""
        if not (self._closed or self._drains):
            self._frames.extend(frames)
            self.go_on()

    def go_on(self) -> None:
        """Do all work that fits into one event loop iteration; schedule the rest."""
        try:
            if self._frames or self._learnt:
                self._do_all()
            elif not self._closed:
                self._owner.read_more(True)
            if self.link is not None:
                self.link.flush()
        except Exception:
            # at this boundary, a bug of the gateway must disconnect the client rather than leave it waiting
            LOG.exception("a session broke")
            self._fail(INTERNAL_ERROR)
        if self._drains and not (self._closed or self._slots.must_be_answered):
            self._fail(STOPS)

    def drain(self) -> bool:
        """Begin no more requests; return whether answers are owed. The session closes after the last one."""
        self._drains = True
        self._frames.clear()
        return self._slots.must_be_answered

    def _do_all(self) -> None:
        """Continue all requests that can continue, up to the limits of one event loop iteration."""
        begun = begun_bytes = 0
        while (self._learnt or self._frames) and not self._closed:
            if begun >= REQUESTS_PER_TURN or begun_bytes >= BYTES_PER_TURN:
                self._look_again(0)
                break
            if not self._slots.in_flight:
                self._owner.outgoing.flush()  # a later flush would release what the next request reserves
            if self._learnt and self._may_resume(self._learnt[0][0]):
                slot, result = self._learnt.popleft()
                begun += 1
                self._resume(slot, result)
            elif self._frames and self._may_begin(
                frame := self._frames[0], is_login := self._is_login(frame)
            ):
                is_large = len(frame) >= LARGE_FRAME_BYTES and self._place.must_wait(frame)
                if is_large and not self._place.may_begin(self.go_on):
                    break
                self._frames.popleft()
                begun += 1
                if is_login and self._owner.take(frame):
                    begun_bytes += len(frame)
                elif is_large:
                    self._place.work(self._begin, frame, True, is_large=True)
                    begun_bytes += len(frame)
                else:
                    begun_bytes += self._begin(frame, False)
            else:
                break
        if not self._closed:
            self._owner.read_more(not self._frames)

    def _may_begin(self, frame: bytes, is_login: bool) -> bool:
        """Whether this frame may begin now; `is_login`: it may belong to a re-authentication."""
        if is_login and self._owner.is_verifying:
            return False
        if self.link is None and self._owner.needs_upstream(frame):
            return False
        if self._slots.in_flight and (is_login or frame[:2] != PRODUCE or not self._slots.admits_next):
            return False
        return self._can_decide()

    def _may_resume(self, slot: Slot) -> bool:
        """Whether a request that waited may continue; a small one that was held does not need a turn."""
        if not self._can_decide(slot):
            return False
        if slot.state is SlotState.HELD and not slot.is_large:
            return True
        goes_first = slot.is_large and slot.state is SlotState.YIELDED
        return self._place.may_go_on(self.go_on, goes_first=goes_first)

    def _resume(self, slot: Slot, result: Any) -> None:
        """Continue a request that waited, with the result."""
        was_held = slot.state is SlotState.HELD
        slot.state = SLOT_LIFE[slot.state, SlotEvent.GOES_ON]
        if was_held and not slot.is_large:
            self._advance(slot, result)
        else:
            self._place.work(self._advance, slot, result, is_large=slot.is_large)

    def _can_decide(self, slot: Slot | None = None) -> bool:
        """Whether a decision made now can be forwarded, and kept for the audit log, at once.

        The session authorizes nothing for a client that does not read: the gateway's own answers would pile
        up.
        """
        if not self.client_reads:
            return False
        if self._observer.is_full:
            self._look_again(AUDIT_RETRY_S)
            return False
        return self.link is None or self.link.is_writable or (slot is not None and slot.was_answered)

    def _look_again(self, delay_s: float) -> None:
        if self._retry is None and not self._closed:
            self._retry = self._loop.call_later(delay_s, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        self.go_on()

    def _begin(self, frame: bytes, is_large: bool) -> int:
        """Begin a request; return how many of its bytes count for this turn: none if it has a plan."""
        started_s = now_s()
        known = self._services.answer_versions(frame) if frame[:2] == API_VERSIONS else None
        plan = None if known or is_large else self._guard.plan_of(frame)
        if plan is not None and self._repeat(plan, frame, started_s):
            return 0
        try:
            opened = known or (self._guard.open_in_turns(frame) if is_large else self._guard.open(frame))
        except RefusedFrameError as refusal:
            self._fail(str(refusal))
            return len(frame)
        if isinstance(opened, bytes):
            self._slots.answer(ApiKey.API_VERSIONS, started_s, opened)
            return len(frame)
        limit_answer(opened, self._answers.reserve)
        row = opened.row
        slot = Slot(row.api_key, started_s, opened, is_large=is_large, is_pipelined=row.pipelined)
        self._slots.in_flight.append(slot)
        self._advance(slot, None)
        return len(frame)

    def _repeat(self, plan: Plan, frame: bytes, started_s: float) -> bool:
        """Record and send a request by the plan of an earlier one; return False if it must be opened."""
        names, link = plan.topic_names, self.link
        if link is None or (names and self._services.cluster.known_names(names.keys()) != names):
            return False
        if plan.recorder is None:
            plan.recorder = self._observer.recorder(plan.context, plan.decided)
        is_produce, pass_on = plan.acks is not None, partial(self._guard.pass_on, plan)
        slot = Slot(plan.api_key, started_s, None, frame, plan, pass_on=pass_on, is_pipelined=is_produce)
        correlation_id = correlation_id_of(frame)
        if not plan.recorder.record(correlation_id, int((now_s() - started_s) * US_PER_S)):
            return False
        self._slots.in_flight.append(slot)
        self._send(slot, plan.upstream_frame(frame), correlation_id, plan.is_still_allowed, plan.acks)
        if not self._frames:
            link.flush()  # the broker works while the gateway counts
        plan.recorder.count()
        return True

    def _advance(self, slot: Slot, result: Any) -> None:
        """Run a handler until it waits or is done."""
        if (opened := slot.opened) is None:
            return
        try:
            while True:
                try:
                    effect = self._next_effect(slot, opened, result)
                except StopIteration as stop:
                    slot.require_still_allowed()
                    self._conclude(slot, opened, stop.value)
                    return
                if isinstance(effect, GiveWay):
                    slot.state = SLOT_LIFE[slot.state, SlotEvent.YIELDS]
                    self._learnt.append((slot, None))
                    return
                slot.require_still_allowed()
                if (known := self._perform(slot, opened, effect)) is None:
                    return
                result = known[0]
        except (WireError, NoPortForBrokerError, UpstreamUnavailableError, RefusedFrameError) as error:
            self._fail(str(error))
        except Exception:
            # at this boundary, a bug of the gateway must deny: neither the client nor upstream gets anything
            LOG.exception("a request failed inside the guard", api_key=slot.api_key)
            self._fail(INTERNAL_ERROR)

    def _next_effect(self, slot: Slot, opened: Opened, result: Any) -> Effect:
        """Run a handler to its next effect; report its decisions before any effect, also if it fails."""
        try:
            return opened.handler.send(result)
        finally:
            if decided := (exchange := opened.exchange).decided:
                latency_us = int((now_s() - slot.started_s) * US_PER_S)
                exchange.written_at = self._observer.decided(exchange.context, decided, latency_us)
                exchange.decided = []

    def _perform(self, slot: Slot, opened: Opened, effect: Effect) -> tuple[Any] | None:
        """Perform a handler's effect; return a tuple with the result if it is known at once."""
        match effect:
            case Ask(message, api_version, api_key):
                slot.ask = effect
                self._ask(slot, opened, opened.upstream_frame(message, api_version, api_key))
            case AskStreamed(message):
                slot.stream = FetchedStream(opened, effect, self._owner.write)
                self._ask(slot, opened, opened.upstream_frame(message))
            case ResolveTopicIds() | ListTopics() | AllTopics():
                known, learn = known_of_cluster(self._services.cluster, effect)
                if known is not None:
                    return (known,)
                self._hold(slot, learn())
            case Serve():
                answer = self._services.local.serve(opened)
                if isinstance(answer, Message | bytes):
                    return (answer,)
                self._hold(slot, answer_after_drain(opened, answer, self._services.in_flight))
        return None

    def _hold(self, slot: Slot, question: Coroutine[Any, Any, Any]) -> None:
        slot.sent_s = now_s()
        slot.state = SLOT_LIFE[slot.state, SlotEvent.NEEDS_WORK]
        self._task = self._loop.create_task(question)
        self._task.add_done_callback(lambda done: self._take_result(slot, done))

    def _take_result(self, slot: Slot, task: asyncio.Task[Any]) -> None:
        """Continue a held request with the result of its coroutine."""
        self._task = None
        if task.cancelled():
            self._fail("the work that a request waited for was cancelled")  # not by `close`
        elif isinstance(error := task.exception(), UpstreamUnavailableError | RefusedFrameError):
            self._fail(str(error))
        elif error is not None and not self._closed:
            # the same boundary as in `_advance`
            LOG.error("a request failed while it was held", api_key=slot.api_key, exc_info=error)
            self._fail(INTERNAL_ERROR)
        elif not self._closed:
            slot.held_s += now_s() - slot.sent_s
            self._learnt.append((slot, task.result()))
            self.go_on()

    def _ask(self, slot: Slot, opened: Opened, frame: bytes) -> None:
        """Send the query of an opened request to upstream."""
        exchange = opened.exchange
        acks = exchange.request.acks if opened.row.pipelined else None
        self._send(slot, frame, exchange.header.correlation_id, exchange.is_still_allowed, acks)

    def _send(
        self,
        slot: Slot,
        frame: bytes,
        correlation_id: int,
        is_still_allowed: Callable[[], bool],
        acks: int | None,
    ) -> None:
        """Forward a frame to the link; `acks` are the acknowledgments that a Produce requests."""
        if (link := self.link) is None or self._closed:
            raise UpstreamUnavailableError("upstream is gone")
        slot.sent_s = now_s()
        slot.state = SLOT_LIFE[slot.state, SlotEvent.ASKS]
        awaited = Awaited(
            correlation_id,
            partial(self._answered, slot),
            is_still_allowed,
            answered_at_once=acks in ACKS_OF_THE_LEADER,
            waits_for_replicas=acks is not None and acks not in ACKS_OF_THE_LEADER,
            stream=slot.stream,
        )
        link.send(frame, awaited)

    def _answered(self, slot: Slot, frame: bytes) -> None:
        """Pass upstream's answer on, or parse it; `frame` is empty if it was streamed. A bug denies."""
        if self._closed:
            return
        slot.upstream_s = (slot.upstream_s or 0.0) + now_s() - slot.sent_s
        slot.state = SLOT_LIFE[slot.state, SlotEvent.ANSWER_COMES]
        pass_on, slot.pass_on = slot.pass_on, None  # the rule is for one answer
        try:
            if pass_on is not None and (passed := pass_on(frame)) is not None:
                if self.link is not None:
                    self.link.throttle(passed.throttle_time_ms)
                self._slots.finish(slot, passed.frame)
            elif slot.is_large or len(frame) >= LARGE_ANSWER_BYTES:
                self._place.work(self._open_answered, slot, frame, is_large=slot.is_large)
            else:
                self._open_answered(slot, frame)
        except WireError as error:
            self._fail(f"upstream's answer cannot be read: {error}")
        except Exception:
            LOG.exception("an answer could not be handled", api_key=slot.api_key)
            self._fail(INTERNAL_ERROR)
        self.go_on()

    def _open_answered(self, slot: Slot, frame: bytes) -> None:
        """Parse an answer; first open its request if it was sent by a plan. Raise `WireError`."""
        if slot.opened is None and slot.plan is not None:
            slot.opened, slot.ask = self._guard.reopen(slot.plan, slot.frame)
        if slot.opened is not None:
            self._read(slot, slot.opened, frame)

    def _read(self, slot: Slot, opened: Opened, frame: bytes) -> None:
        """Pass upstream's answer to the handler, a large one in turns; raise `WireError` if it is invalid."""
        streamed = None if slot.stream is None else slot.stream.end(frame)
        if streamed is None and len(frame) >= LARGE_ANSWER_BYTES:
            self._throttle(opened.throttle_time_ms(frame, slot.ask))
            opened.handler = answered_in_turns(opened, opened.handler, frame, slot.ask)
            if slot.stream is None and not self._place.may_begin(self.go_on):
                slot.state = SLOT_LIFE[slot.state, SlotEvent.MUST_QUEUE]
                self._answers.hold(len(frame))
                self._learnt.append((slot, None))
            else:
                self._advance(slot, None)
            return
        answer = streamed or read_answer(opened, frame, slot.ask)
        self._throttle(answer.message.get("throttle_time"))
        self._advance(slot, answer)

    def _throttle(self, throttle_time_ms: int | None) -> None:
        if self.link is not None:
            self.link.throttle(throttle_time_ms)

    def _conclude(self, slot: Slot, opened: Opened, outcome: Outcome) -> None:
        match outcome:
            case Reply(content):
                self._slots.finish(slot, opened.client_frame(content))
            case Relay(message):
                slot.pass_on = partial(pass_any, opened.row.api_key, opened.answer_codec())
                self._ask(slot, opened, opened.upstream_frame(message))
            case Silence() | Streamed():
                self._slots.finish(slot, b"")
            case Unwrap():
                refusal = unwrapped(self._owner, slot, opened, outcome)
                self._advance(slot, None) if refusal is None else self._slots.finish(slot, refusal)
            case Hangup(reason):
                self._fail(reason)

    def _fail(self, reason: str) -> None:
        if not self._closed:
            self._owner.close(reason)

    def close(self) -> None:
        """Release everything; nothing is authorized or sent from now on."""
        self._closed = True
        for held in (self._frames, self._slots, self._learnt):
            held.clear()
        self._place.leave()
        for waiting in (self._retry, self._task):
            if waiting is not None:
                waiting.cancel()
        if self.link is not None:
            self.link.close()


def unwrapped(owner: SessionOwner, slot: Slot, envelope: Opened, outcome: Unwrap) -> bytes | None:
    """Put the request of an Envelope into its slot, as its original principal's; return the refusal, if any.

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


def known_of_cluster(
    cluster: UpstreamCluster, question: ResolveTopicIds | ListTopics | AllTopics
) -> tuple[Any, Callable[[], Coroutine[Any, Any, Any]]]:
    """Return the known state of the cluster (None: nothing yet), and the function that learns it."""
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
    """Return the answer to a change, after a drain if it revokes rights; a refusal if the drain fails."""
    answer = await change
    if not opened.row.revokes:
        return answer
    try:
        await in_flight.drain()
    except RequestsInFlightError as error:
        refusal, exchange = opened.row.refusal, opened.exchange
        return refusal.refuse(exchange.response_codec, exchange.request, error.code.value)
    return answer
