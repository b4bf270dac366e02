"""The requests of one client connection: decided, handed over and answered as a broker works on them.

Theory of operation. A broker works on one request of a connection at a time, in order; those behind it wait
in its socket buffer. So does a session: it decides the next request once the one before is answered, and
hands it over in the same turn of the event loop. So no request waits at a broker for minutes behind another,
to be worked on by ACLs that are no longer in force.

Produce is pipelined nevertheless, as a producer's throughput depends on it. Behind a Produce that may wait,
the link holds back a byte of the next until the first is answered, and then checks that one once more.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import structlog

from kustos.gateway.session.answer_budget import AnswerShare
from kustos.gateway.session.fetched_stream import FetchedStream
from kustos.gateway.session.large_turns import API_VERSIONS, PRODUCE, QueuePlace, TurnBudget
from kustos.gateway.session.parts import (
    AUDIT_RETRY_S,
    INTERNAL_ERROR,
    LARGE_ANSWER_BYTES,
    STOPS,
    SessionOwner,
    SessionServices,
    Upstream,
    answer_after_drain,
    answered_in_turns,
    known_of_cluster,
    owed,
    owed_again,
    read_answer,
)
from kustos.gateway.session.slots import Slot, Slots, unwrapped
from kustos.gateway.upstream.addresses import NoPortForBrokerError
from kustos.gateway.upstream.cluster import UpstreamUnavailableError
from kustos.protocol import (
    OWN_REQUEST,
    AllTopics,
    Ask,
    AskStreamed,
    ContextOf,
    Effect,
    GiveWay,
    Guard,
    Hangup,
    ListTopics,
    Opened,
    Outcome,
    RefusedFrameError,
    Relay,
    Repetition,
    Reply,
    ResolveTopicIds,
    Serve,
    Silence,
    Streamed,
    Unwrap,
    limit_answer,
)
from kustos.wire import ApiKey, Message, WireError, with_length

LOG: Final = structlog.get_logger("kustos.gateway")


class ClientSession:
    """The requests of one client connection; `place` is its own in the queue of large requests."""

    def __init__(
        self,
        owner: SessionOwner,
        guard: Guard,
        services: SessionServices,
        answers: AnswerShare,
        place: QueuePlace,
    ) -> None:
        self.link: Upstream | None = None
        self.client_reads = True
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
        self._turn: Final = TurnBudget()
        self._task: asyncio.Task[Any] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._closed = self._drains = False
        self._loop: Final = asyncio.get_running_loop()

    def renew(self, context_of: ContextOf) -> None:
        """Make the contexts of later requests with this: the client proved its identity again (KIP-368)."""
        self._guard.renew(context_of)

    def waiting_bytes(self) -> int:
        """Return the bytes of requests that have not begun."""
        return sum(map(len, self._frames))

    def take(self, frames: list[bytes]) -> None:
        """Take the frames that came, in order."""
        if not (self._closed or self._drains):
            self._frames.extend(frames)
            self.go_on()

    def go_on(self) -> None:
        """Do what can be done in one turn of the loop; the rest is scheduled."""
        try:
            if self._frames or self._learnt:
                self._do_all()
            elif not self._closed:
                self._owner.read_more(True)
            if self.link is not None:
                self.link.flush()
        except Exception:
            # the boundary where a bug of ours must end the client rather than leave it waiting
            LOG.exception("a session broke")
            self._fail(INTERNAL_ERROR)
        if self._drains and not (self._closed or self._slots.must_be_answered):
            self._fail(STOPS)

    def drain(self) -> bool:
        """Begin no more requests; return whether answers are owed: after the last it hangs up."""
        self._drains = True
        self._frames.clear()
        return self._slots.must_be_answered

    def _do_all(self) -> None:
        self._turn.begin()
        while (self._learnt or self._frames) and not (self._closed or self._turn.is_spent):
            if not self._slots.in_flight:
                self._owner.outgoing.flush()  # later it would give back what the next request reserves
            if self._learnt and self._may_go_on(self._learnt[0][0]):
                slot, result = self._learnt.popleft()
                self._turn.take(0)
                self._place.work(slot.is_large, self._advance, slot, result, may_cost=slot.gave_way)
            elif (
                self._frames
                and self._may_begin(frame := self._frames[0], is_login := self._owner.wants(frame))
                and self._can_decide()
            ):
                if (is_large := self._place.must_wait(frame)) and not self._place.may_begin(self.go_on):
                    break
                self._turn.take(len(self._frames.popleft()))
                if not (is_login and self._owner.take(frame)):
                    self._place.work(is_large, self._open, frame, is_large)
            else:
                break
        if not self._closed:
            if self._turn.is_spent and (self._frames or self._learnt):
                self._look_again(0)
            self._owner.read_more(not self._frames)

    def _may_begin(self, frame: bytes, is_login: bool) -> bool:
        """Whether this frame's turn has come; `is_login`: it may belong to a re-authentication."""
        if is_login and self._owner.is_verifying:
            return False
        if self.link is None and self._owner.needs_upstream(frame):
            return False
        if not self._slots.in_flight:
            return True
        return frame[:2] == PRODUCE and self._slots.admits_next and not is_login

    def _may_go_on(self, slot: Slot) -> bool:
        return self._can_decide(slot) and slot.may_go_on(self._place, self.go_on)

    def _can_decide(self, slot: Slot | None = None) -> bool:
        """Whether a decision made now can be handed over, and kept for the audit log, at once.

        Nothing is decided for a client that does not read: answers of our own would pile up.
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

    def _open(self, frame: bytes, is_large: bool) -> None:
        started_s = self._loop.time()
        known = self._services.answer_versions(frame) if frame[:2] == API_VERSIONS else None
        repetition = None if known or is_large or self._observer.refuses else self._guard.repetition(frame)
        if repetition is not None and self._repeat(repetition, started_s):
            self._turn.give_back(len(frame))
            return
        try:
            opened = known or (self._guard.open_in_turns(frame) if is_large else self._guard.open(frame))
        except RefusedFrameError as refusal:
            self._fail(str(refusal))
            return
        if isinstance(opened, bytes):
            self._slots.answer(ApiKey.API_VERSIONS, started_s, opened)
            return
        limit_answer(opened, self._answers.reserve)
        slot = Slot(opened.row.api_key, started_s, opened, is_large=is_large)
        self._slots.add(slot)
        self._advance(slot, None)

    def _repeat(self, repetition: Repetition, started_s: float) -> bool:
        """Record and send a request that repeats one that passed; False if its topic ids are to be learnt."""
        known, names, link = repetition.known, repetition.known.topic_names, self.link
        if link is None or (names and self._services.cluster.known_names(names.keys()) != names):
            return False
        if known.record is None:
            known.record = self._observer.recorder(known.context, known.decided)
        slot = Slot(known.api_key, started_s, admits_next=known.acks is not None, sent_s=started_s)
        count = known.record(repetition.correlation_id, slot.latency_us)
        self._slots.add(slot)
        take = self._taking(slot, partial(self._repeated, slot, repetition))
        link.send(known.sent(repetition.frame), owed_again(repetition, take))
        if not self._frames:
            link.flush()  # the broker works while we count
        count()
        return True

    def _repeated(self, slot: Slot, repetition: Repetition, answer: bytes) -> None:
        """Pass the answer of a repetition on if it is like those before; open the request for another."""
        if (passed := self._guard.pass_on(repetition, answer)) is not None:
            self._throttle(passed[0])
            self._slots.finish(slot, passed[1])
        else:
            slot.opened, ask = self._guard.reopen(repetition)
            self._answered(slot, slot.opened, ask, answer)

    def _advance(self, slot: Slot, result: Any) -> None:
        """Let a handler go on until it waits for something or is done."""
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
                    slot.gave_way = slot.is_amid = True
                    self._learnt.append((slot, None))
                    return
                slot.require_still_allowed()
                if (known := self._perform(slot, opened, effect)) is None:
                    return
                result = known[0]
        except (WireError, NoPortForBrokerError, UpstreamUnavailableError, RefusedFrameError) as error:
            self._fail(str(error))
        except Exception:
            # the boundary where a bug of ours must deny: neither the client nor upstream gets anything
            LOG.exception("a request failed inside the guard", api_key=slot.api_key)
            self._fail(INTERNAL_ERROR)

    def _next_effect(self, slot: Slot, opened: Opened, result: Any) -> Effect:
        """Let a handler go on; what it decided is reported before anything follows, also if it fails."""
        try:
            return opened.handler.send(result)
        finally:
            if decided := (exchange := opened.exchange).decided:
                exchange.written_at = self._observer.decided(exchange.context, decided, slot.latency_us)
                exchange.decided = []

    def _perform(self, slot: Slot, opened: Opened, effect: Effect) -> tuple[Any] | None:
        """Start what a handler requests; return its result in a tuple if it is known at once."""
        match effect:
            case Ask(message, api_version, api_key):
                frame = opened.upstream_frame(message, api_version, api_key)
                self._send(slot, opened, frame, partial(self._answered, slot, opened, effect))
            case AskStreamed(message):
                slot.stream = FetchedStream(opened, effect, self._owner.write)
                frame = opened.upstream_frame(message)
                self._send(slot, opened, frame, partial(self._answered, slot, opened, OWN_REQUEST))
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
        slot.sent_s, slot.is_amid = self._loop.time(), False
        self._task = self._loop.create_task(question)
        self._task.add_done_callback(lambda done: self._take_result(slot, done))

    def _take_result(self, slot: Slot, task: asyncio.Task[Any]) -> None:
        """Let a held request go on with the result of its coroutine."""
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
            slot.held_s += self._loop.time() - slot.sent_s
            self._learnt.append((slot, task.result()))
            self.go_on()

    def _send(self, slot: Slot, opened: Opened, frame: bytes, take: Callable[[bytes], None]) -> None:
        """Hand a request over; `take` gets the frame that answers it, empty if it went to the stream."""
        if (link := self.link) is None or self._closed:
            raise UpstreamUnavailableError("upstream is gone")
        slot.sent_s, slot.is_amid = self._loop.time(), False
        slot.admits_next = opened.row.pipelined
        link.send(frame, owed(opened, self._taking(slot, take), slot.stream))

    def _taking(self, slot: Slot, take: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """Return what goes on with `take` once upstream has answered; a bug of ours denies."""

        def taken(answer: bytes) -> None:
            if self._closed:
                return
            slot.upstream_s = (slot.upstream_s or 0.0) + self._loop.time() - slot.sent_s
            try:
                self._place.work(slot.is_large, take, answer, may_cost=len(answer) >= LARGE_ANSWER_BYTES)
            except WireError as error:
                self._fail(f"upstream's answer cannot be read: {error}")
            except Exception:
                LOG.exception("an answer could not be handled", api_key=slot.api_key)
                self._fail(INTERNAL_ERROR)
            self.go_on()

        return taken

    def _answered(self, slot: Slot, opened: Opened, ask: Ask, frame: bytes) -> None:
        """Let the handler go on with upstream's answer, a large one in turns; raise `WireError` if none."""
        streamed = None if slot.stream is None else slot.stream.end(frame)
        if streamed is None and len(frame) >= LARGE_ANSWER_BYTES:
            self._throttle(opened.throttle_time_ms(frame, ask))
            opened.handler = answered_in_turns(opened, opened.handler, frame, ask)
            if slot.stream is None and not self._place.may_begin(self.go_on):
                slot.gave_way = True
                self._answers.hold(len(frame))
                self._learnt.append((slot, None))
            else:
                self._advance(slot, None)
            return
        answer = streamed or read_answer(opened, frame, ask)
        self._throttle(answer.message.get("throttle_time"))
        self._advance(slot, answer)

    def _relayed(self, slot: Slot, throttle_time_of: Callable[[bytes], int | None], frame: bytes) -> None:
        """Relay upstream's answer unchanged; raise `WireError` if it is none."""
        self._throttle(throttle_time_of(frame))
        self._slots.finish(slot, with_length(frame))

    def _throttle(self, throttle_time_ms: int | None) -> None:
        if self.link is not None:
            self.link.throttle(throttle_time_ms)

    def _conclude(self, slot: Slot, opened: Opened, outcome: Outcome) -> None:
        match outcome:
            case Reply(content):
                self._slots.finish(slot, opened.client_frame(content))
            case Relay(message):
                frame = opened.upstream_frame(message)
                self._send(slot, opened, frame, partial(self._relayed, slot, opened.throttle_time_ms))
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
        """Release everything; nothing is decided or sent from now on."""
        self._closed = True
        for held in (self._frames, self._slots, self._learnt):
            held.clear()
        self._place.leave()
        for waiting in (self._retry, self._task):
            if waiting is not None:
                waiting.cancel()
        if self.link is not None:
            self.link.close()
