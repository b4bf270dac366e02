"""A session's requests in flight, each with its place in the order of answers."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kustos.gateway.session.fetched_stream import FetchedStream
from kustos.gateway.session.large_turns import QueuePlace
from kustos.gateway.session.parts import Observer, SessionOwner
from kustos.protocol import Opened, RefusedFrameError, RefuseRequestError, Unwrap
from kustos.runtime import stopwatch_ns
from kustos.wire import LENGTH_BYTES, ApiKey

PIPELINED_MAX: Final = 5
"""Produce requests in flight: as many as producers have (`max.in.flight.requests.per.connection`)."""

LONG_POLLS: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
"""What a node that stops does not await: a broker may hold it until there are records, or for as long as the
other members take, and its client repeats it elsewhere without harm. All else is answered soon."""


@dataclass(slots=True)
class Slot:
    """A request in flight, and its place in the order of answers."""

    api_key: int
    started_s: float
    opened: Opened | None = None
    envelope: Opened | None = None
    """The Envelope that the request came in, if it did; the answer goes back in one."""
    answer: bytes = b""
    """The frame that answers it, once it is done; empty: none is sent."""
    is_done: bool = False
    is_large: bool = False
    """Whether work on it waits for turns."""
    gave_way: bool = False
    """Whether others had their turn while it was being decided."""
    is_amid: bool = False
    """Whether it had a turn of its own and waited for nothing else since."""
    admits_next: bool = False
    """Whether another Produce may begin behind it: it is a Produce and was sent."""
    stream: FetchedStream | None = None
    """Takes upstream's answer if it may arrive in parts."""
    sent_s: float = 0.0
    upstream_s: float | None = None
    held_s: float = 0.0
    read_ns: int = field(default_factory=stopwatch_ns)
    """When it was read, on the stopwatch."""

    @property
    def latency_us(self) -> int:
        """Microseconds since it was read."""
        return (stopwatch_ns() - self.read_ns) // 1000

    @property
    def must_be_answered(self) -> bool:
        """Whether a node that stops awaits the answer: all but long polls that change nothing.

        A ShareFetch may acknowledge records (KIP-932).
        """
        if self.api_key != ApiKey.SHARE_FETCH or self.opened is None:
            return self.api_key not in LONG_POLLS
        topics = self.opened.exchange.request.get("topics", ())
        return any(partition.acknowledgement_batches for topic in topics for partition in topic.partitions)

    @property
    def was_answered(self) -> bool:
        """Whether upstream has answered it: then it goes on even while upstream throttles (KIP-219)."""
        return self.upstream_s is not None

    def may_go_on(self, place: QueuePlace, go_on: Callable[[], None]) -> bool:
        """Return whether its turn to go on has come; if not, `go_on` is called when it may have."""
        return place.may_go_on(self.is_large, self.gave_way, go_on, is_amid=self.is_amid)

    def require_still_allowed(self) -> None:
        """Raise `RefusedFrameError` if the ACLs that allowed it changed while it gave way to others."""
        if self.gave_way and self.opened is not None and not self.opened.exchange.is_still_allowed():
            raise RefusedFrameError("the ACLs changed while a large request was decided")
        self.gave_way = False

    def enveloped(self, answer: bytes) -> bytes:
        """Return the frame with this answer in the answer of the request's Envelope."""
        if self.envelope is None:
            raise ValueError("the request did not come in an Envelope")
        root = self.envelope.exchange.response_codec.root
        # an answer inside an Envelope has no length
        return self.envelope.client_frame(root(response_data=answer[LENGTH_BYTES:]))


class Slots:
    """The requests in flight of one session, oldest first; `write` sends an answer to the client."""

    __slots__ = ("_now_s", "_observer", "_write", "in_flight")

    def __init__(self, write: Callable[[bytes], None], observer: Observer) -> None:
        self._write: Final = write
        self._observer: Final = observer
        self._now_s: Final = asyncio.get_running_loop().time
        self.in_flight: Final[deque[Slot]] = deque()

    @property
    def admits_next(self) -> bool:
        """Whether another Produce may begin behind the last request."""
        last = self.in_flight[-1]
        return (last.admits_next or last.is_done) and len(self.in_flight) < PIPELINED_MAX

    def add(self, slot: Slot) -> None:
        """Take a request, behind the others."""
        self.in_flight.append(slot)

    def answer(self, api_key: int, started_s: float, answer: bytes) -> None:
        """Take a request with its answer."""
        if self.in_flight:
            slot = Slot(api_key, started_s)
            self.in_flight.append(slot)
            self.finish(slot, answer)
        else:
            self._observer.answered(api_key, self._now_s() - started_s)
            self._write(answer)

    def finish(self, slot: Slot, answer: bytes) -> None:
        """Count the answer to a request, and send it when its turn comes."""
        slot.answer = answer if slot.envelope is None else slot.enveloped(answer)
        slot.is_done = True
        seconds = self._now_s() - slot.started_s
        self.flush()
        self._observer.answered(slot.api_key, seconds, slot.upstream_s, slot.held_s)

    def flush(self) -> None:
        """Send the answers whose turn it is, by one system call."""
        answers = []
        while self.in_flight and self.in_flight[0].is_done:
            answers.append(self.in_flight.popleft().answer)
        answer = b"".join(answers)
        if answer:
            self._write(answer)

    @property
    def must_be_answered(self) -> bool:
        """Whether a node that stops awaits an answer here."""
        return any(slot.must_be_answered for slot in self.in_flight)

    def clear(self) -> None:
        """Forget all requests."""
        self.in_flight.clear()


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
