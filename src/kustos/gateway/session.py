"""One authenticated client: its requests go through the guard, in order, and come back in order.

Requests are pipelined as far as nothing speaks against it: a request that must first learn something
(a topic id, which topics there are) or that kustos answers itself holds back those behind it, whatever
follows a Fetch waits for its answer, and nothing is decided while upstream does not take bytes, so what
was decided is handed over at once. Everything held back is bounded by `max_in_flight`, then by not
reading. Whatever goes wrong in here ends the connection: nothing is decided or written after `close`.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from kustos.authorizer import AuthorizableRequestContext
from kustos.gateway.addresses import NoPortForBrokerError
from kustos.gateway.cluster import UpstreamCluster, UpstreamUnavailableError
from kustos.gateway.link import Awaited
from kustos.gateway.session_parts import Gatekeeper, LocalApis, Observer, Unwrapping, Upstream
from kustos.protocol import (
    Answer,
    Ask,
    Effect,
    Guard,
    Hangup,
    ListTopics,
    Opened,
    Outcome,
    RefusedFrameError,
    Relay,
    Reply,
    ResolveTopicIds,
    Serve,
    Unwrap,
)
from kustos.protocol.steps import RefuseRequestError
from kustos.wire import (
    Message,
    WireError,
    read_response_header,
    response_header_is_flexible,
)
from kustos.wire.api_keys import ApiKey

AUDIT_RETRY_S: Final = 0.01
"""How soon to look again whether a full audit queue has room."""

UNDER_WAY_MAX_BYTES: Final = 16 * 1024 * 1024
"""Requests under way beside which no other is begun: each is kept until it is answered, and may be large."""

LENGTH_BYTES: Final = 4
"""Before each frame; an answer inside an Envelope has none."""

INTERNAL_ERROR: Final = "an internal error, see the log above"

LOG: Final = structlog.get_logger("kustos.gateway")


@dataclass(slots=True)
class Slot:
    """A request's place in the order of answers."""

    api_key: int
    started_s: float
    size_bytes: int
    opened: Opened | None = None
    answer: bytes | None = None
    is_done: bool = False
    exclusive: bool = False
    sent_s: float = 0.0
    upstream_s: float | None = None
    held_s: float = 0.0
    result: Any = None
    """What is to be sent into the handler when it goes on."""
    context: AuthorizableRequestContext | None = field(default=None)
    envelope: Opened | None = None
    """The Envelope that the request came in, if it did; the answer goes back in one."""


class ClientSession:
    """The requests of one client connection, upstream of its socket.

    `write` sends a whole frame to the client, `hang_up` ends everything for a reason that is logged,
    `read_more` says whether the socket should be read: not while frames wait here.
    """

    def __init__(
        self,
        guard: Guard,
        cluster: UpstreamCluster,
        local: LocalApis,
        observer: Observer,
        context: Callable[[Opened], AuthorizableRequestContext],
        write: Callable[[bytes], None],
        hang_up: Callable[[str], None],
        read_more: Callable[[bool], None],
        gatekeeper: Gatekeeper,
        max_in_flight: int,
        unwrap: Unwrapping | None = None,
    ) -> None:
        self.link: Upstream | None = None
        self.client_reads = True
        self._guard: Final = guard
        self._cluster: Final = cluster
        self._local: Final = local
        self._observer: Final = observer
        self._context: Final = context
        self._write: Final = write
        self._hang_up: Final = hang_up
        self._read_more: Final = read_more
        self._gatekeeper: Final = gatekeeper
        self._max_in_flight: Final = max_in_flight
        self._unwrap: Final = unwrap
        self._frames: deque[bytes] = deque()
        self._slots: deque[Slot] = deque()
        self._bytes_under_way = 0
        self._held = 0
        self._ready: deque[Slot] = deque()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._closed = False
        self._loop: Final = asyncio.get_running_loop()

    def take(self, frames: list[bytes]) -> None:
        """Take the frames that came, in order."""
        if not self._closed:
            self._frames.extend(frames)
            self.go_on()

    def go_on(self) -> None:
        """Do all that can be done now."""
        try:
            self._do_all()
        except Exception:
            # the boundary where a bug of ours must end the client rather than leave it waiting
            LOG.exception("a session broke")
            self._fail(INTERNAL_ERROR)

    def _do_all(self) -> None:
        while not self._closed:
            if self._ready and self._can_decide():
                slot = self._ready.popleft()
                self._advance(slot, slot.result)
            elif self._is_free and self._frames and self._can_decide() and self._has_room():
                frame = self._frames.popleft()
                if not (self._gatekeeper.wants(frame) and self._gatekeeper.take(frame)):
                    self._open(frame)
            else:
                break
        if not self._closed:
            self._read_more(not self._frames)

    @property
    def _is_free(self) -> bool:
        return not self._held and not self._ready

    def _can_decide(self) -> bool:
        """Whether a decision taken now can be handed over, and kept for the audit log, at once.

        Nor is anything done for a client that does not read: answers of our own would pile up.
        """
        if not self.client_reads:
            return False
        if self._observer.is_full:
            if self._retry is None:
                self._retry = self._loop.call_later(AUDIT_RETRY_S, self._try_again)
            return False
        return self.link is not None and self.link.is_writable

    def _try_again(self) -> None:
        self._retry = None
        self.go_on()

    def _has_room(self) -> bool:
        """Whether the next frame need not wait for an answer to one before it."""
        if self._slots and self._gatekeeper.wants(self._frames[0]):
            return False
        if len(self._slots) >= self._max_in_flight or self._bytes_under_way >= UNDER_WAY_MAX_BYTES:
            return False
        return not any(slot.exclusive and not slot.is_done for slot in self._slots)

    def _open(self, frame: bytes) -> None:
        started_s = self._loop.time()
        try:
            opened = self._guard.open(frame)
        except RefusedFrameError as refusal:
            self._fail(str(refusal))
            return
        if isinstance(opened, bytes):
            self._begin(Slot(ApiKey.API_VERSIONS, started_s, len(frame), answer=opened, is_done=True))
            self._flush()
            return
        slot = Slot(opened.row.api_key, started_s, len(frame), opened, exclusive=opened.row.exclusive)
        slot.context = opened.exchange.context = self._context(opened)
        self._begin(slot)
        self._advance(slot, None)

    def _begin(self, slot: Slot) -> None:
        self._slots.append(slot)
        self._bytes_under_way += slot.size_bytes

    def _advance(self, slot: Slot, result: Any) -> None:
        """Let a handler go on until it waits for something or is done."""
        opened = slot.opened
        if opened is None or slot.context is None:
            return
        try:
            while True:
                try:
                    effect = opened.handler.send(result)
                except StopIteration as stop:
                    self._report(slot, opened)
                    self._conclude(slot, opened, stop.value)
                    return
                self._report(slot, opened)
                known = self._perform(slot, opened, effect)
                if known is None:
                    return
                result = known[0]
        except (WireError, NoPortForBrokerError, UpstreamUnavailableError) as error:
            self._fail(str(error))
        except Exception:
            # the boundary where a bug of ours must deny: the client gets nothing, upstream neither
            LOG.exception("a request failed inside the guard", api_key=slot.api_key)
            self._fail(INTERNAL_ERROR)

    def _report(self, slot: Slot, opened: Opened) -> None:
        decided = opened.exchange.decided
        if decided and slot.context is not None:
            opened.exchange.written_at = self._observer.decided(slot.context, decided)
            opened.exchange.decided = []

    def _perform(self, slot: Slot, opened: Opened, effect: Effect) -> tuple[Any] | None:
        """Start what a handler asks for; return its result in a tuple if it is known at once."""
        match effect:
            case Ask(message, api_version):
                frame = opened.upstream_frame(message, api_version)
                self._send(
                    slot, opened, frame, lambda answer: self._answered(slot, opened, answer, api_version)
                )
                return None
            case ResolveTopicIds(topic_ids):
                names = self._cluster.known_names(topic_ids)
                if names is not None:
                    return (names,)
                self._hold(slot, self._cluster.resolve_topic_ids(topic_ids))
            case ListTopics(names):
                self._hold(slot, self._cluster.list_topics(names))
            case Serve():
                answer = self._local.serve(opened)
                if isinstance(answer, Message):
                    return (answer,)
                self._hold(slot, answer)
        return None

    def _hold(self, slot: Slot, question: Coroutine[Any, Any, Any]) -> None:
        """Hold back what comes behind this request until the question is answered."""
        self._held += 1
        slot.sent_s = self._loop.time()
        task = self._loop.create_task(question)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._learnt(slot, done))

    def _learnt(self, slot: Slot, task: asyncio.Task[Any]) -> None:
        """Let a held request go on with what its question came to."""
        self._tasks.discard(task)
        if task.cancelled():
            # the question went away from under us; after `close` there is nobody left to tell
            self._fail("what a request had to wait for was called off")
            return
        error = task.exception()
        if error is not None:
            if isinstance(error, UpstreamUnavailableError | RefusedFrameError):
                self._fail(str(error))
            elif not self._closed:
                # the same boundary as in `_advance`
                LOG.error("a request failed while it was held", api_key=slot.api_key, exc_info=error)
                self._fail(INTERNAL_ERROR)
            return
        if not self._closed:
            self._held -= 1
            slot.held_s += self._loop.time() - slot.sent_s
            slot.result = task.result()
            self._ready.append(slot)
            self.go_on()

    def _send(self, slot: Slot, opened: Opened, frame: bytes, take: Callable[[bytes], None]) -> None:
        slot.sent_s = self._loop.time()

        def taken(answer: bytes) -> None:
            if not self._closed:
                slot.upstream_s = (slot.upstream_s or 0.0) + self._loop.time() - slot.sent_s
                take(answer)

        self._hand_over(frame, Awaited(opened.exchange.header.correlation_id, taken))

    def _hand_over(self, frame: bytes, awaited: Awaited | None) -> None:
        if self.link is None or self._closed:
            raise UpstreamUnavailableError("upstream is gone")
        self.link.send(frame, awaited)

    def _answered(self, slot: Slot, opened: Opened, frame: bytes, api_version: int | None) -> None:
        """Read upstream's answer and let the handler go on with it."""
        api_key = opened.exchange.header.api_key
        codec = opened.answer_codec(api_version)
        try:
            _, body_at = read_response_header(frame, response_header_is_flexible(api_key, codec))
            message, had_unknown_tags = codec.decode(frame, body_at)
            body = codec.encode(message) if had_unknown_tags else frame[body_at:]
        except WireError as error:
            self._fail(f"upstream's answer cannot be read: {error}")
            return
        self._advance(slot, Answer(message, body))
        self.go_on()

    def _conclude(self, slot: Slot, opened: Opened, outcome: Outcome) -> None:
        match outcome:
            case Reply(content):
                self._finish(slot, opened.client_frame(content))
            case Relay(message, expects_answer):
                frame = opened.upstream_frame(message)
                if expects_answer:
                    self._send(
                        slot,
                        opened,
                        frame,
                        lambda answer: self._finish(slot, len(answer).to_bytes(4, "big") + answer),
                    )
                else:
                    self._hand_over(frame, None)
                    self._finish(slot, b"")
            case Unwrap():
                self._open_forwarded(slot, opened, outcome)
            case Hangup(reason, relayed_first):
                if relayed_first is not None:
                    self._hand_over(opened.upstream_frame(relayed_first), None)
                self._fail(reason)

    def _open_forwarded(self, slot: Slot, envelope: Opened, outcome: Unwrap) -> None:
        """Go on with the request that an Envelope held, as whoever made it."""
        if self._unwrap is None or slot.envelope is not None:
            self._fail("an Envelope came where none is opened")
            return
        try:
            opened, slot.context = self._unwrap(outcome)
        except RefuseRequestError as refusal:
            exchange = envelope.exchange
            refused = envelope.row.refusal.refuse(exchange.response_codec, exchange.request, refusal.code)
            self._finish(slot, envelope.client_frame(refused))
            return
        slot.envelope, slot.opened, opened.exchange.context = envelope, opened, slot.context
        self._advance(slot, None)

    def _finish(self, slot: Slot, answer: bytes) -> None:
        if slot.envelope is not None:
            root = slot.envelope.exchange.response_codec.root
            answer = slot.envelope.client_frame(root(response_data=answer[LENGTH_BYTES:]))
        slot.answer = answer
        slot.is_done = True
        seconds = self._loop.time() - slot.started_s
        self._observer.answered(slot.api_key, seconds, slot.upstream_s, slot.held_s)
        self._flush()

    def _flush(self) -> None:
        """Send the answers whose turn it is."""
        while self._slots and self._slots[0].is_done:
            slot = self._slots.popleft()
            self._bytes_under_way -= slot.size_bytes
            if slot.answer:
                self._write(slot.answer)
        if self._frames and self._is_free:
            self._loop.call_soon(self.go_on)

    def _fail(self, reason: str) -> None:
        if not self._closed:
            self._hang_up(reason)

    def close(self) -> None:
        """Let go of everything; nothing is decided or sent from now on."""
        self._closed = True
        self._frames.clear()
        self._slots.clear()
        self._ready.clear()
        if self._retry is not None:
            self._retry.cancel()
        for task in self._tasks:
            task.cancel()
        if self.link is not None:
            self.link.close()
