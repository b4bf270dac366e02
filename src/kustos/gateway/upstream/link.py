"""The upstream half of one client connection: frames go up in order, answers come down in order.

Each client connection has its own connection to one broker, so the order of answers, fetch sessions and
quotas by connection are upstream's own, and the client's correlation id passes through unchanged.

Theory of operation. A broker works on one request of a connection at a time, and still reads those behind it
in its socket buffer after the connection was closed. So the broker gets one whole request of a link that may
wait. One more may be pipelined behind it, but its last byte is held back until the answer arrives: no broker
begins with a partial frame, and the request is then checked once more. Where the session at the broker is due
(KIP-368), a request is held back whole: it waits for all answers before it, then for the login. So is what a
request asks again while the broker throttles (KIP-219).

A Produce may follow whole behind one that the broker answers at once, and so on: the broker finishes all of
these in milliseconds, and changes that forbid them wait for that (`until_answered`). It takes longer if the
broker begins to throttle the connection: the answers to earlier requests are awaited, since a link that is
cut meanwhile is not provable, and nothing follows whole until an answer reports no throttling.

A link that is closed while an answer is owed drains: it stays, tracked by `InFlight`, until the answer
arrives, which is dropped. A link that is cut is reset at once; its requests at the broker are dead once the
broker is seen alive afterwards, see `gateway.upstream.in_flight`.

An answer too large for one read may be passed on while it arrives (`AnswerStream`). It is owed until its last
byte.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from kustos.client import SaslSession
from kustos.gateway.upstream.answers import AnswerReader, AnswerStream
from kustos.gateway.upstream.bursts import Burst, reset
from kustos.gateway.upstream.renewal import SessionRenewal
from kustos.wire import MalformedMessageError

NO_LONGER_ALLOWED: Final = "a request in flight is no longer allowed"
SESSION_EXPIRED: Final = "the session has expired before its next request could begin (KIP-368)"

REPLICATED_SOON_S: Final = 0.1
"""The time within which replicas that keep up have a produced batch, even in other data centres: while this
holds, a Produce that waits for them counts as answered at once."""

SESSION_REST_MS: Final = 60_000
"""How much of a session must remain to pipeline a whole request: it outlives the session only if the broker
takes this long for those before it, twice as long as clients wait for them by default."""


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
    stream: AnswerStream | None = None
    """Takes an answer that arrives in parts; then `take` gets no bytes at its end. None: it is gathered."""

    def mark_answered(self) -> None:
        """Notify those who wait for the answer that it is there, or that none will come."""
        if self.answered is not None and not self.answered.done():
            self.answered.set_result(None)


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


class UpstreamLink(asyncio.Protocol):
    """Takes over an authenticated connection to a broker and carries one client's requests over it."""

    __slots__ = (
        "_awaited", "_burst", "_in_flight", "_is_throttled", "_loop", "_may_be_muted", "_owner", "_reader",
        "_reads", "_renewal", "_replicas_keep_up", "_state_timer", "_throttled_before", "_transport",
        "_unthrottle_timer", "_writes", "broker", "flush", "is_closed", "is_cut",
    )  # fmt: skip

    def __init__(
        self,
        transport: asyncio.Transport,
        owner: LinkOwner,
        max_answer_bytes: int,
        in_flight: LinkRegistry,
        broker: tuple[str, int],
        session: SaslSession | None = None,
    ) -> None:
        self.broker: Final = broker
        self.is_closed = False
        """Whether nobody takes answers any more."""
        self.is_cut = False
        """Whether no more answers will come, owed or not."""
        self._transport: Final = transport
        self._loop: Final = asyncio.get_running_loop()
        self._burst: Final = Burst(transport.writelines)
        self._burst.begin()
        self.flush: Final = self._burst.flush
        """Hands the frames that were sent over to the socket."""
        self._owner: Final = owner
        self._reader: Final = AnswerReader(max_answer_bytes)
        self._in_flight: Final = in_flight
        self._awaited: deque[Awaited] = deque()
        self._renewal: SessionRenewal | None = None
        if session is not None and session.due_at_s is not None:
            self._renewal = SessionRenewal(session, self, transport.write)
        self._reads = True
        self._writes = True
        self._is_throttled = False
        self._may_be_muted = False
        self._throttled_before = False
        """Whether the last answer reported throttling, or said nothing about it."""
        self._replicas_keep_up = False
        self._unthrottle_timer: asyncio.TimerHandle | None = None
        self._state_timer: asyncio.TimerHandle | None = None
        transport.set_protocol(self)

    @property
    def is_writable(self) -> bool:
        """Whether upstream takes a request now: it reads, and does not throttle this connection (KIP-219).

        Nothing may follow a frame that was sent in part.
        """
        awaited = self._awaited
        return self._writes and not (self._is_throttled or (awaited and awaited[-1].tail))

    @property
    def _is_torn(self) -> bool:
        """Whether the broker is idle and lacks the last byte of the next request."""
        return bool(self._awaited) and bool(self._awaited[0].tail)

    @property
    def _is_renewal_due(self) -> bool:
        return self._renewal is not None and self._renewal.is_due

    def send(self, frame: bytes, awaited: Awaited) -> None:
        """Send a frame with the next `flush`; the broker begins with it once it has answered those before.

        Whoever sends calls `flush` in the same turn of the event loop: a burst then takes one system call.
        """
        if not self._awaited:
            self._in_flight.add(self)
        elif self._awaited[-1].tail:
            raise RuntimeError("part of a frame was sent, no other frame may follow yet")
        if self._is_throttled or self._is_renewal_due:
            awaited.tail, awaited.is_unsent = frame, True
            self._awaited.append(awaited)
            self._begin_next()
            return
        if self._awaited and not self._is_done_soon(self._awaited[-1]):
            awaited.tail = frame[-1:]
            frame = frame[:-1]
        if awaited.waits_for_replicas:
            awaited.sent_s = self._loop.time()
        self._awaited.append(awaited)
        self._burst.add(frame)

    def _is_done_soon(self, last: Awaited) -> bool:
        """Whether the broker will answer all it has within milliseconds and begin with the next."""
        if self._throttled_before or self._owner.has_expired(in_ms=SESSION_REST_MS):
            return False
        # changes made elsewhere do not wait for this link: with slow replicas a request would outlive them
        return last.answered_at_once or (
            last.waits_for_replicas and self._replicas_keep_up and self._in_flight.sees_all_changes
        )

    def throttle(self, throttle_time_ms: int | None) -> None:
        """Go on after an answer, with a delay if the broker throttles. None: it did not say."""
        self._may_be_muted = throttle_time_ms is None
        self._throttled_before = throttle_time_ms != 0
        if throttle_time_ms:
            self._is_throttled = True
            self._unthrottle_timer = self._loop.call_later(throttle_time_ms / 1000, self._unthrottle)
        elif self._is_torn and not self._awaited[0].is_unsent and self._may_begin():
            # at once, while the answer is still being read
            self._complete()

    def _unthrottle(self) -> None:
        self._is_throttled = False
        self._begin_next()
        if self._writes and not self.is_closed:
            self._owner.upstream_writable()

    def _begin_next(self) -> None:
        """Complete the pipelined request, or send nothing more if it may not begin any more."""
        if self.is_closed or not self._is_torn or self._is_throttled:
            return
        if self._awaited[0].is_unsent and self._is_renewal_due:
            self._renew()
        elif self._may_begin():
            self._complete()
        elif self._owner.has_expired():
            self.revoke(SESSION_EXPIRED)
        else:
            self.revoke()

    def _renew(self) -> None:
        """Log in again; nothing else is in flight, so that nothing read meanwhile is for the client."""
        if self._renewal is not None and not self._renewal.is_running:
            self._renewal.begin()
            self._read(True)

    def renewed(self) -> None:
        """Go on after the login: check the request that waited for it once more, and send it."""
        self._read(self._reads)
        if self._awaited and not self.is_closed:
            self._begin_next()
            self._owner.upstream_writable()

    def renewal_failed(self, reason: str) -> None:
        """End the link: the broker takes no more requests."""
        if not self.is_closed:
            self.cut()
            self._lose(f"the session with upstream could not be prolonged: {reason}")

    def _may_begin(self) -> bool:
        return self._awaited[0].is_still_allowed() and not self._owner.has_expired()

    def _complete(self) -> None:
        awaited = self._awaited[0]
        if awaited.is_unsent:
            awaited.is_unsent, awaited.sent_s = False, self._loop.time()
        self._burst.add(awaited.tail)
        self.flush()
        awaited.tail = b""

    def data_received(self, data: bytes) -> None:
        """Pass each whole answer to its callback, and the parts of a large one to its stream."""
        if self.is_cut:
            return
        try:
            for frame in self._reader.feed(data, self):
                self._take(frame)
        except MalformedMessageError as error:
            # what upstream still owes is unknown now
            self.cut()
            self._lose(f"upstream broke the protocol: {error}")
        finally:
            self._owner.outgoing.end()

    def gather(self) -> None:
        """Send the answers that came together to the client by one system call."""
        self._owner.outgoing.begin()

    def stream_of(self, head: bytes) -> AnswerStream | None:
        """Return what takes the answer that begins so; raise `MalformedMessageError` if none is awaited."""
        if self.is_cut or self.is_closed or not self._awaited or self._awaited[0].is_unsent:
            return None
        self._check_order(head)
        return self._awaited[0].stream

    def _take(self, frame: bytes | None) -> None:
        """Report an answer that is there, None if it was streamed."""
        if self.is_cut:
            return
        if self._renewal is not None and self._renewal.is_running:
            self._renewal.take(frame or b"")
            return
        if frame is not None:
            self._check_order(frame)
        awaited = self._awaited.popleft()
        if awaited.waits_for_replicas:
            took_s = self._loop.time() - awaited.sent_s
            self._replicas_keep_up = took_s < REPLICATED_SOON_S
        if awaited.answered is not None:
            awaited.mark_answered()
        if not self._awaited:
            self._in_flight.discard(self)
        # an earlier answer may have closed the link
        if not self.is_closed:
            awaited.take(frame or b"")
            self._begin_next()
        elif self._awaited:
            # nobody reads throttle times any more
            self._may_be_muted = True
            self._drain()
        else:
            self._finish()

    def _check_order(self, frame: bytes) -> None:
        """Raise `MalformedMessageError` unless a frame answers the request that is next."""
        if not self._awaited or self._is_torn:
            raise MalformedMessageError("an answer came that nobody waits for")
        awaited = self._awaited[0]
        if len(frame) < 4 or int.from_bytes(frame[:4], "big", signed=True) != awaited.correlation_id:
            raise MalformedMessageError("an answer came out of order")

    def until_answered(self) -> asyncio.Future[None] | None:
        """Return a future for the answers to what would be denied now, None if the broker has none of it."""
        for awaited in reversed(self._awaited):
            if not awaited.tail and not awaited.is_still_allowed():
                if awaited.answered is None:
                    awaited.answered = self._loop.create_future()
                return awaited.answered
        return None

    @property
    def is_provable(self) -> bool:
        """Whether a live broker has begun with everything that it has of this link.

        A request behind another is unread; one behind an answer without a throttle time may be.
        """
        whole = sum(not awaited.tail for awaited in self._awaited)
        return whole <= 1 and not (self._may_be_muted or self._is_throttled)

    def revoke(self, reason: str = NO_LONGER_ALLOWED) -> None:
        """End the link, as its client lost the right to a request in flight, or its session expired.

        It drains if only the answer can prove that the broker is done with it, else it is cut.
        """
        if self.is_provable:
            self.cut()
        self._lose(reason)

    def cut(self) -> None:
        """Reset the connection; what is owed stays owed until `forget`."""
        if self.is_cut:
            return
        self.is_cut = True
        self._burst.drop()
        reset(self._transport)

    def forget(self) -> None:
        """Record that the broker works on nothing more of this link."""
        while self._awaited:
            self._awaited.popleft().mark_answered()
        self._in_flight.discard(self)
        if self.is_cut and self._state_timer is not None:
            self._state_timer.cancel()

    def pause_reading(self) -> None:
        """Take no more answers for now: the client does not read."""
        self._reads = False
        self._read(self._renewal is not None and self._renewal.is_running)

    def resume_reading(self) -> None:
        """Take answers again."""
        self._reads = True
        self._read(True)

    def _read(self, wanted: bool) -> None:
        if not self._transport.is_closing():
            (self._transport.resume_reading if wanted else self._transport.pause_reading)()

    def pause_writing(self) -> None:
        """Note that upstream does not read fast enough."""
        self._writes = False

    def resume_writing(self) -> None:
        """Let the owner go on."""
        self._writes = True
        if not self._is_throttled and not self.is_closed:
            self._owner.upstream_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the owner. A broker that closed the connection works on nothing more of it."""
        if self._renewal is not None:
            self._renewal.stop()
        for timer in (self._state_timer, self._unthrottle_timer):
            if timer is not None:
                timer.cancel()
        by_the_broker = exc is None or isinstance(exc, ConnectionResetError | BrokenPipeError)
        if not self.is_cut and by_the_broker:
            self.forget()
        # if the network failed, the broker may not know
        self.is_cut = True
        if self._awaited:
            self._state_timer = self._loop.call_later(CUT_REMEMBERED_S, self.forget)
        self._lose("upstream closed the connection" if exc is None else str(exc))
        self._owner.upstream_ended()

    def _lose(self, reason: str) -> None:
        if not self.is_closed:
            self.close()
            self._owner.upstream_lost(reason)

    def close(self) -> None:
        """Close once the broker has answered what it has; twice is harmless."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._renewal is not None:
            self._renewal.stop()
        if not self.is_cut:
            self.flush()
        # the broker never gets the rest of a request sent in part
        while self._awaited and self._awaited[-1].tail:
            self._awaited.pop()
        if not self._awaited:
            self._in_flight.discard(self)
        if self.is_cut:
            return
        if not self._awaited:
            self._finish()
            return
        self.resume_reading()
        self._drain()

    def _drain(self) -> None:
        """Wait for the next answer, longer if the broker throttles, then cut the link."""
        if self._state_timer is not None:
            self._state_timer.cancel()
        throttled_s = 0.0
        if self._is_throttled and self._unthrottle_timer is not None:
            throttled_s = max(0.0, self._unthrottle_timer.when() - self._loop.time())
        self._state_timer = self._loop.call_later(throttled_s + DRAIN_S, self.cut)

    def _finish(self) -> None:
        """Close once everything written is sent, or after a while if upstream does not read it."""
        # the two halves refer to each other: free the buffer now, not at a later garbage collection
        self._reader.take_rest()
        if self._state_timer is not None:
            self._state_timer.cancel()
        if not self._transport.is_closing():
            self._transport.close()
            self._state_timer = self._loop.call_later(LAST_REQUESTS_S, self._transport.abort)
