"""The upstream half of one client connection: forwards frames in order and receives answers in order.

Each client connection has its own connection to one broker. The order of answers, fetch sessions and quotas
by connection are therefore upstream's own, and the client's correlation id is unchanged.

Theory of operation. A broker works on one request of a connection at a time, and reads later requests from
its socket buffer even after the connection was closed. The broker therefore gets one whole request of a link
that may wait. One more may be pipelined behind it, but the link holds back its last byte until the answer
arrives: no broker begins with a partial frame, and the link authorizes the request again. If the session at
the broker is due (KIP-368), the link holds back the whole request until all earlier requests are answered and
the link has re-authenticated. While the broker throttles (KIP-219), the link holds back a whole request of a
handler that was answered before.

A Produce may follow whole behind one that the broker answers at once, and so on: the broker finishes all of
them in milliseconds, and changes that forbid them wait for the answers (`until_answered`). The wait is longer
if the broker begins to throttle the connection: changes wait for the answers to earlier requests, because a
link that is cut during the throttle time proves nothing. No request follows whole until an answer reports no
throttling.

A link that is closed while the broker owes an answer drains: `InFlight` tracks it until the answer arrives,
and the link drops the answer. A link that is cut is reset at once; its requests at the broker are dead when
the broker is seen alive afterwards, see `gateway.upstream.in_flight`. `life_cycles` lists the states of links
and requests.

An answer too large for one read may be streamed (`AnswerStream`). The broker owes it until its last byte.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Protocol

from kustos.client import SaslSession
from kustos.gateway.upstream.answers import AnswerPart, AnswerReader, AnswerStream
from kustos.gateway.upstream.bursts import BURST_MAX_BYTES, Burst, reset
from kustos.gateway.upstream.life_cycles import (
    CONNECTED,
    LINK_LIFE,
    REQUEST_LIFE,
    SENDING,
    SERVING,
    LinkEvent,
    LinkState,
    RequestEvent,
    RequestState,
)
from kustos.gateway.upstream.renewal import SessionRenewal
from kustos.wire import MalformedMessageError

NO_LONGER_ALLOWED: Final = "a request in flight is no longer allowed"
SESSION_EXPIRED: Final = "the session has expired before its next request could begin (KIP-368)"

REPLICATED_SOON_S: Final = 0.1
"""The time in which replicas that keep up have a produced batch, even in other data centers. While they keep
up, a Produce that waits for them counts as answered at once."""

SESSION_REST_MS: Final = 60_000
"""How much of a session must remain to pipeline a whole request. The request outlives the session only if the
broker takes this long for earlier ones, twice as long as clients wait for them by default."""

LAST_REQUESTS_S: Final = 5.0
"""How long upstream may take to read the last requests before the connection is aborted."""

DRAIN_S: Final = 30.0
"""How long a link without a client waits for its next answer before it is cut: a JoinGroup may take the
broker minutes, too long to keep the socket."""

CUT_REMEMBERED_S: Final = 600.0
"""How long requests of a cut link count as in flight if its broker is never seen again. Kafka's brokers close
idle connections after the same time, and a broker that was stalled for longer has left the cluster."""

OPEN: Final = LinkState.OPEN
SENT: Final = RequestState.SENT


@dataclass(slots=True)
class Awaited:
    """A request on a link, and the callback for its answer: a frame without its length."""

    correlation_id: int
    take: Callable[[bytes], None]
    is_still_allowed: Callable[[], bool]
    """Returns whether the current ACLs would allow the request."""
    answered_at_once: bool = False
    """Whether the broker answers without waiting for anything."""
    waits_for_replicas: bool = False
    """Whether the broker waits for other brokers, and for nothing else."""
    state: RequestState = RequestState.NEW
    unsent: bytes = b""
    """The end of the frame, or the whole frame, that the link holds back; the broker does nothing
    without it."""
    sent_s: float = 0.0
    answered: asyncio.Future[None] | None = None
    stream: AnswerStream | None = None
    """The stream for an answer that arrives in parts; `take` then gets no bytes at its end. None: it is
    buffered."""

    def mark_answered(self) -> None:
        """Resolve the future for the answer: the answer has arrived, or none will."""
        if self.answered is not None and not self.answered.done():
            self.answered.set_result(None)


class LinkOwner(Protocol):
    """The client half of the connection, as the link sees it."""

    @property
    def outgoing(self) -> Burst:
        """The writer of the frames to the client."""

    def upstream_writable(self) -> None:
        """Continue: upstream takes requests again."""

    def upstream_lost(self, reason: str) -> None:
        """Handle that upstream ended, broke the protocol, or was cut; called once, and not after `close`."""

    def has_expired(self, in_ms: int = 0) -> bool:
        """Whether the client's session will have expired in `in_ms`; none of its requests may begin then."""

    def upstream_ended(self) -> None:
        """Handle the end of the connection to upstream; called once, whichever side closed it."""


class LinkRegistry(Protocol):
    """Tracks the links with requests in flight."""

    @property
    def links(self) -> "set[UpstreamLink]":
        """The links with requests in flight; each adds and removes itself."""

    @property
    def sees_all_changes(self) -> bool:
        """Whether every change that revokes rights waits here for the requests that it forbids."""


class UpstreamLink(asyncio.Protocol):
    """Takes over an authenticated connection to a broker and carries one client's requests over it."""

    __slots__ = (
        "_awaited", "_frames", "_gathered_bytes", "_in_flight", "_loop", "_owner", "_reader", "_reads",
        "_renewal", "_replicated_s", "_state_timer", "_throttle_time_ms", "_transport", "_unthrottle_timer",
        "_writes", "broker", "state",
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
        self.state: LinkState = LINK_LIFE.initial
        self._transport: Final = transport
        self._loop: Final = asyncio.get_running_loop()
        self._frames: list[bytes] = []
        """The frames sent since the last `flush`."""
        self._gathered_bytes = 0
        self._owner: Final = owner
        self._reader: Final = AnswerReader(max_answer_bytes)
        self._in_flight: Final = in_flight
        self._awaited: deque[Awaited] = deque()
        """Requests in order: those that the broker has as a whole, then at most one that it has in part or
        not at all."""
        self._renewal: SessionRenewal | None = None
        if session is not None and session.due_at_s is not None:
            self._renewal = SessionRenewal(session, self, transport.write)
        self._reads = True
        """Whether the client takes answers."""
        self._writes = True
        """Whether the broker takes bytes."""
        self._throttle_time_ms: int | None = 0
        """The last answer's throttle time; None: the answer had none, so the broker may throttle."""
        self._replicated_s = inf
        """How long replicas took for the last batch that waited for them."""
        self._unthrottle_timer: asyncio.TimerHandle | None = None
        """Ends the throttle time. It keeps running if the connection is lost first."""
        self._state_timer: asyncio.TimerHandle | None = None
        """Limits the time in the states DRAINING, FINISHING, and LOST."""
        transport.set_protocol(self)

    @property
    def is_writable(self) -> bool:
        """Whether upstream takes a request now: it reads, and does not throttle this connection (KIP-219).

        No request may follow one that was not sent as a whole.
        """
        awaited = self._awaited
        return self.state in SENDING and self._writes and (not awaited or awaited[-1].state is SENT)

    def send(self, frame: bytes, awaited: Awaited) -> None:
        """Send a frame with the next `flush`; the broker begins it when it has answered earlier ones.

        The caller calls `flush` in the same event loop iteration: a burst then takes one system call.
        """
        others = self._awaited
        if others and others[-1].state is not SENT:
            raise RuntimeError("the request before was not sent whole, no other may follow yet")
        if self.state is not OPEN:
            self._hold(frame, awaited)
            return
        if not others:
            self._in_flight.links.add(self)
        if not others or self._is_done_soon(others[-1]):
            awaited.state = REQUEST_LIFE[awaited.state, RequestEvent.GOES]
        else:
            awaited.state = REQUEST_LIFE[awaited.state, RequestEvent.FOLLOWS]
            frame, awaited.unsent = frame[:-1], frame[-1:]
        if awaited.waits_for_replicas:
            awaited.sent_s = self._loop.time()
        others.append(awaited)
        self._frames.append(frame)
        self._gathered_bytes += len(frame)
        if self._gathered_bytes >= BURST_MAX_BYTES:
            self.flush()

    def _hold(self, frame: bytes, awaited: Awaited) -> None:
        """Hold back a whole request until the throttle time is over, or the link has re-authenticated."""
        if self.state not in SERVING:
            raise RuntimeError("a link that ends takes no request")
        awaited.state = REQUEST_LIFE[awaited.state, RequestEvent.WAITS]
        awaited.unsent = frame
        self._in_flight.links.add(self)
        self._awaited.append(awaited)
        self._begin_next()

    def _is_done_soon(self, last: Awaited) -> bool:
        """Whether the broker will answer all requests that it has within milliseconds."""
        if self._throttle_time_ms != 0 or self._owner.has_expired(in_ms=SESSION_REST_MS):
            return False
        # changes made elsewhere do not wait for this link: with slow replicas a request would outlive them
        return last.answered_at_once or (
            last.waits_for_replicas
            and self._replicated_s < REPLICATED_SOON_S
            and self._in_flight.sees_all_changes
        )

    def flush(self) -> None:
        """Write the sent frames to the socket."""
        if frames := self._frames:
            self._frames, self._gathered_bytes = [], 0
            self._transport.writelines(frames)

    def throttle(self, throttle_time_ms: int | None) -> None:
        """Continue after an answer, delayed if the broker throttles. None: the broker did not report it."""
        self._throttle_time_ms = throttle_time_ms
        if throttle_time_ms:
            # the client may have disconnected during the handling of its answer; the broker still throttles
            if self.state in SERVING:
                self.state = LINK_LIFE[self.state, LinkEvent.THROTTLES]
            until_s = self._loop.time() + throttle_time_ms / 1000
            if self._unthrottle_timer is not None:
                # as in Kafka's client, the throttle time never becomes shorter
                until_s = max(until_s, self._unthrottle_timer.when())
                self._unthrottle_timer.cancel()
            self._unthrottle_timer = self._loop.call_at(until_s, self._unthrottle)
        elif (
            self._awaited
            and self._awaited[0].state is RequestState.PARTIAL
            and self.state in SENDING
            and self._may_begin()
        ):
            # at once, while the answer is still being read
            self._complete()

    def _unthrottle(self) -> None:
        self._unthrottle_timer = None
        if self.state is LinkState.THROTTLED:
            self.state = LINK_LIFE[self.state, LinkEvent.UNTHROTTLES]
            if self._renewal is not None and self._renewal.is_due:
                self.fell_due()
            self._begin_next()
            if self._writes and self.state in SERVING:
                self._owner.upstream_writable()

    def _begin_next(self) -> None:
        """Send the rest of the next request, or end the link if the request may not begin any more."""
        if self.state not in SENDING or not self._awaited:
            return
        state = self._awaited[0].state
        if state is RequestState.HELD and self.state is LinkState.DUE:
            self._renew()
        elif state is SENT:
            return
        elif self._may_begin():
            self._complete()
        else:
            self.revoke(SESSION_EXPIRED if self._owner.has_expired() else NO_LONGER_ALLOWED)

    def _may_begin(self) -> bool:
        return self._awaited[0].is_still_allowed() and not self._owner.has_expired()

    def _complete(self) -> None:
        awaited = self._awaited[0]
        if awaited.state is RequestState.HELD:
            awaited.sent_s = self._loop.time()
        awaited.state = REQUEST_LIFE[awaited.state, RequestEvent.MAY_BEGIN]
        self._frames.append(awaited.unsent)
        self.flush()
        awaited.unsent = b""

    def fell_due(self) -> None:
        """Record that the session is due: the next request waits for a login."""
        self.state = LINK_LIFE[self.state, LinkEvent.FALLS_DUE]

    def _renew(self) -> None:
        """Re-authenticate. No request is in flight, so no answer during the login is for the client."""
        if self._renewal is not None:
            self.state = LINK_LIFE[self.state, LinkEvent.LOGIN_BEGINS]
            self._renewal.begin()
            self._update_reading()

    def renewed(self) -> None:
        """Continue after the login: authorize the request that waited for it again, and send it."""
        self.state = LINK_LIFE[self.state, LinkEvent.LOGIN_SUCCEEDS]
        self._update_reading()
        self._begin_next()
        self._owner.upstream_writable()

    def renewal_failed(self, reason: str) -> None:
        """End the link: the broker takes no more requests."""
        self._cut(LinkEvent.LOGIN_FAILS, f"the session with upstream could not be prolonged: {reason}")

    def data_received(self, data: bytes) -> None:
        """Pass each whole answer to its callback, and the parts of a large one to its stream."""
        if self.state not in CONNECTED:
            return
        answers: Sequence[bytes | None] = ()
        try:
            answers = self._reader.feed(data)
            if len(answers) > 1:
                # one system call sends them to the client
                self._owner.outgoing.begin()
            for answer in answers:
                self._take(answer)
            if self._reader.part is AnswerPart.BEGUN:
                self._reader.offer(self._stream_of)
        except MalformedMessageError as error:
            # the answers that upstream still owes are unknown now
            self._cut(LinkEvent.PROTOCOL_BROKEN, f"upstream broke the protocol: {error}")
        finally:
            if len(answers) > 1:
                self._owner.outgoing.end()

    def _stream_of(self, head: bytes) -> AnswerStream | None:
        """Return the stream for the answer that begins with these bytes, None if it is to be buffered.

        Raise `MalformedMessageError` if another answer is owed.
        """
        if self.state not in SERVING or not self._awaited or self._awaited[0].state is RequestState.HELD:
            return None
        awaited = self._awaited[0]
        if awaited.state is not SENT or head[:4] != awaited.correlation_id.to_bytes(4, "big", signed=True):
            raise MalformedMessageError("an answer came out of order")
        return awaited.stream

    def _take(self, answer: bytes | None) -> None:
        """Handle a whole answer, None if it was streamed."""
        if self.state not in CONNECTED:
            # an earlier answer in the same read ended the link
            return
        if self.state is LinkState.RENEWING and self._renewal is not None:
            self._renewal.take(answer or b"")
            return
        if not self._awaited or self._awaited[0].state is not SENT:
            raise MalformedMessageError("an answer came that no request awaits")
        awaited = self._awaited[0]
        if answer is not None and answer[:4] != awaited.correlation_id.to_bytes(4, "big", signed=True):
            raise MalformedMessageError("an answer came out of order")
        self._awaited.popleft()
        awaited.state = REQUEST_LIFE[awaited.state, RequestEvent.ANSWER_COMES]
        if awaited.waits_for_replicas:
            self._replicated_s = self._loop.time() - awaited.sent_s
        if awaited.answered is not None:
            awaited.mark_answered()
        if not self._awaited:
            self._in_flight.links.discard(self)
        if self.state is LinkState.DRAINING:
            self._drain()
            return
        awaited.take(answer or b"")
        if self._awaited and self._awaited[-1].state is not SENT:
            self._begin_next()

    def until_answered(self) -> asyncio.Future[None] | None:
        """Return a future for the answers to requests that the ACLs deny now, None if the broker has none."""
        for awaited in reversed(self._awaited):
            if awaited.state is SENT and not awaited.is_still_allowed():
                if awaited.answered is None:
                    awaited.answered = self._loop.create_future()
                return awaited.answered
        return None

    @property
    def is_provable(self) -> bool:
        """Whether a live broker has begun everything that it has of this link.

        A request behind another one is unread; a request after an answer without a throttle time may be
        unread.
        """
        may_be_muted = self._throttle_time_ms is None or self._unthrottle_timer is not None
        return not may_be_muted and sum(awaited.state is SENT for awaited in self._awaited) <= 1

    @property
    def is_cut(self) -> bool:
        """Whether no more answers arrive while the broker may still work on requests."""
        return self.state is LinkState.CUT or self.state is LinkState.LOST

    def revoke(self, reason: str = NO_LONGER_ALLOWED) -> None:
        """End the link: its client lost the right to a request in flight, or its session expired.

        The link drains if only the answer can prove that the broker is done; otherwise it is cut.
        """
        if self.is_provable:
            self._cut(LinkEvent.REQUEST_FORBIDDEN, reason)
        elif self.state in SERVING:
            self.close()
            self._owner.upstream_lost(reason)

    def _cut(self, event: LinkEvent, reason: str = "") -> None:
        """Reset the connection; answers stay owed until `forget`. The reason is for the owner."""
        if self.state not in CONNECTED:
            return
        is_served = self.state in SERVING
        if is_served:
            self._stop_serving()
        self.state = LINK_LIFE[self.state, event]
        self._frames.clear()
        reset(self._transport)
        if is_served:
            self._owner.upstream_lost(reason)

    def _stop_serving(self) -> None:
        """Begin nothing more; the broker never gets the rest of a request that it has in part."""
        if self._renewal is not None:
            self._renewal.stop()
        self._reader.drop_stream()
        while self._awaited and self._awaited[-1].state is not SENT:
            awaited = self._awaited.pop()
            awaited.state = REQUEST_LIFE[awaited.state, RequestEvent.LINK_ENDS]
        if not self._awaited:
            self._in_flight.links.discard(self)

    def forget(self) -> None:
        """Record that the broker works on no more requests of this link, whose connection is gone."""
        self.state = LINK_LIFE[self.state, LinkEvent.FORGOTTEN]
        self._forget_requests()
        if self._state_timer is not None:
            self._state_timer.cancel()

    def _forget_requests(self) -> None:
        while self._awaited:
            awaited = self._awaited.popleft()
            awaited.state = REQUEST_LIFE[awaited.state, RequestEvent.FORGOTTEN]
            awaited.mark_answered()
        self._in_flight.links.discard(self)

    def pause_reading(self) -> None:
        """Stop taking answers for now: the client does not read."""
        self._reads = False
        self._update_reading()

    def resume_reading(self) -> None:
        """Take answers again."""
        self._reads = True
        self._update_reading()

    def _update_reading(self) -> None:
        """Read the socket if the client takes answers, or if no more answers are for the client."""
        if self._transport.is_closing():
            return
        if self._reads or self.state is LinkState.RENEWING or self.state is LinkState.DRAINING:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """Record that upstream does not read fast enough."""
        self._writes = False

    def resume_writing(self) -> None:
        """Resume the owner."""
        self._writes = True
        if self.state in SENDING:
            self._owner.upstream_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the owner. A broker that closed the connection works on no more of its requests."""
        is_served = self.state in SERVING
        if is_served:
            self._stop_serving()
        for timer in (self._state_timer, self._unthrottle_timer):
            if timer is not None:
                timer.cancel()
        by_the_broker = exc is None or isinstance(exc, ConnectionResetError | BrokenPipeError)
        # if the network failed, the broker may not know
        if by_the_broker and self.state is not LinkState.CUT:
            self._forget_requests()
        if self._awaited:
            self.state = LINK_LIFE[self.state, LinkEvent.CONNECTION_LOST_OWED]
            self._state_timer = self._loop.call_later(CUT_REMEMBERED_S, self.forget)
        else:
            self.state = LINK_LIFE[self.state, LinkEvent.CONNECTION_LOST]
        if is_served:
            self._owner.upstream_lost("upstream closed the connection" if exc is None else str(exc))
        self._owner.upstream_ended()

    def close(self) -> None:
        """Close when the broker has answered the requests that it has; further calls have no effect."""
        if self.state not in SERVING:
            return
        self._stop_serving()
        self.flush()
        if self._awaited:
            self.state = LINK_LIFE[self.state, LinkEvent.CLIENT_LEAVES_OWED]
            self._update_reading()
            self._wait_for_answer()
        else:
            self.state = LINK_LIFE[self.state, LinkEvent.CLIENT_LEAVES]
            self._finish()

    def _drain(self) -> None:
        """Drop an answer; wait for the next one or finish."""
        self._throttle_time_ms = None
        if self._awaited:
            self._wait_for_answer()
        else:
            self.state = LINK_LIFE[self.state, LinkEvent.LAST_ANSWER_COMES]
            self._finish()

    def _wait_for_answer(self) -> None:
        """Wait for the next answer, longer if the broker throttles, then cut the link."""
        if self._state_timer is not None:
            self._state_timer.cancel()
        at_s = self._loop.time()
        if self._unthrottle_timer is not None:
            at_s = max(at_s, self._unthrottle_timer.when())
        self._state_timer = self._loop.call_at(at_s + DRAIN_S, self._cut, LinkEvent.DRAIN_TIMES_OUT)

    def _finish(self) -> None:
        """Close when everything written is sent, or after a time limit if upstream does not read it."""
        # the two halves refer to each other: free the buffer now, not at a later garbage collection
        self._reader.take_rest()
        if self._state_timer is not None:
            self._state_timer.cancel()
        if not self._transport.is_closing():
            self._transport.close()
            self._state_timer = self._loop.call_later(LAST_REQUESTS_S, self._transport.abort)
