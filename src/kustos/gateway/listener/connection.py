"""One client connection: performs the IO, and follows the states of `life_cycle`.

Until the principal is known, only the login gets frames, and the connection has a deadline. Then the session
gets them. The connection ends with `close`, `drain` or `connection_lost`.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from kustos.acl import ANONYMOUS, KafkaPrincipal
from kustos.auth import AuthError
from kustos.authorizer import AuthorizerError
from kustos.client import as_transport, one_shot
from kustos.gateway.listener.drain import LAST_ANSWERS_S, half_close, has_unsent
from kustos.gateway.listener.handshakes import NO_ROOM, HandshakeRefusal, refusal_by_length
from kustos.gateway.listener.incoming import TOO_SLOW, Incoming
from kustos.gateway.listener.life_cycle import (
    CONNECTION_LIFE,
    DROPPING,
    ENDED,
    TAKING,
    ConnectionEvent,
    ConnectionState,
)
from kustos.gateway.listener.login import ConnectionLogin
from kustos.gateway.listener.port import Port
from kustos.gateway.listener.routes import NoLinkError
from kustos.gateway.session.answer_budget import SLICE_BYTES
from kustos.gateway.session.client_session import INTERNAL_ERROR, STOPS, ClientSession, NoUpstream
from kustos.gateway.session.large_turns import API_VERSIONS
from kustos.gateway.upstream.addresses import java_host_address, network_of
from kustos.gateway.upstream.bursts import Burst
from kustos.gateway.upstream.cluster import Versions
from kustos.gateway.upstream.link import UpstreamLink
from kustos.protocol import Opened, Unwrap, frame_bytes_max
from kustos.wire import FrameLengthError

LOG: Final = structlog.get_logger("kustos.gateway")


class ClientConnection(asyncio.BufferedProtocol):
    """The protocol of an accepted socket.

    `peer` is the client's address in a PROXY protocol header; None: the address of the socket is the
    client's.
    """

    def __init__(self, port: Port, peer: tuple[str, int] | None = None) -> None:
        self._port = port
        self._gateway: Final = port.gateway
        self._peer: Final = peer
        self._settings: Final = port.settings
        self._loop: Final = asyncio.get_running_loop()
        self._requests: Final = port.parts.requests
        self._transport: asyncio.Transport | None = None
        self._session: ClientSession | None = None
        self._login: ConnectionLogin | None = None
        share = self._requests.share(self._read, lambda: self.close(TOO_SLOW))
        self._incoming: Final = Incoming(share, port.settings.socket_request_max_bytes)
        self._answers: Final = port.parts.answers.share()
        self.host = ""
        self._principal = ANONYMOUS
        self._offered: Versions = {}
        self._client_reads = True
        """Whether the client takes the written bytes."""
        self._wants_more = True
        """Whether the login or the session takes more frames."""
        self.outgoing: Final = Burst(self._send)
        self._connecting: asyncio.Task[None] | None = None
        self._link: UpstreamLink | None = None
        """The connection to the broker, until it is closed."""
        self._abort: asyncio.TimerHandle | None = None
        self.state = CONNECTION_LIFE.initial
        self.last_active_s = self._loop.time()

    def _follow(self, event: ConnectionEvent) -> ConnectionState:
        """Enter the next state and return it; raise `IllegalTransitionError`."""
        self.state = CONNECTION_LIFE[self.state, event]
        return self.state

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the client, or reject it if there are too many."""
        self._transport = as_transport(transport)
        peer = self._peer or transport.get_extra_info("peername")
        if peer is None:
            # the client closed the connection before its address could be read
            self.close("the client closed the connection", logged=False)
            return
        self.host = java_host_address(peer)
        if (refusal := self._gateway.admit(self._port, self, self.host)) is not None:
            self.close(refusal, logged=False)
            return
        if self._port.tls is None:
            self.begin()
        else:
            self._follow(ConnectionEvent.HANDSHAKE_BEGINS)

    def choose(self, port: Port) -> None:
        """Move to another port of the listener, whose host the client named; call it before `begin`."""
        self._port = port

    def begin(self, principal: KafkaPrincipal | None = None) -> None:
        """Let the client log in; on a listener without logins, serve the principal of its certificate."""
        machine = self._port.plan.sasl_machine(self.host)
        if machine is None:
            self._begin_session(principal)
        else:
            self._follow(ConnectionEvent.LOGIN_BEGINS)
            self._login = ConnectionLogin(self, self._port, machine)
            self._incoming.begin(self._settings.sasl_server_max_receive_size, owner=None)

    def refuse(self, refusal: HandshakeRefusal) -> None:
        """End a connection before its login, and count the reason."""
        if self.state not in ENDED:
            self.close(refusal.reason, logged=not self._port.refuse(refusal, self.host))

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Return the memory for the next read."""
        requests = self._requests
        if requests.used_bytes <= requests.max_bytes:
            return requests.read_buffer
        return self._incoming.share.scarce_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Split the bytes of a read into frames, and pass them to the login or the session."""
        self.last_active_s = self._loop.time()
        self._port.figures.incoming_bytes += nbytes
        if self.state not in TAKING:
            return
        reader, session, refusal = self._incoming.reader, self._session, None
        try:
            frames = reader.feed(self._requests.read_buffer[:nbytes])
        except FrameLengthError as error:
            # earlier frames still get their answers
            frames, refusal = error.frames, error
        if session is None:
            self._authenticate(frames, refusal)
            return
        session.take(frames)
        if refusal is not None:
            self._refuse_length(refusal)
        elif reader.begun_bytes or self._incoming.share.held_bytes or not self._wants_more:
            # a session with waiting requests does not want to read
            self._weigh(has_finished=bool(frames))

    def _refuse_length(self, refusal: FrameLengthError) -> None:
        """End a connection whose next frame is too long, or fail the login of its client."""
        if self.state not in TAKING:
            return
        other_protocol = refusal_by_length(refusal)
        if other_protocol is not None:
            self.refuse(other_protocol)
        elif self._session is None and self._login is not None:
            self._login.oversized()
        else:
            self.close(str(refusal))

    def _weigh(self, *, has_finished: bool = False) -> None:
        """Count the bytes of requests that have not begun; end an unauthenticated client beyond its limit."""
        waiting_bytes = 0 if self._session is None else self._session.waiting_bytes()
        if not self._incoming.weigh(waiting_bytes, has_finished=has_finished):
            self.refuse(NO_ROOM)
        elif self._incoming.share.waits:
            self._read()

    def _authenticate(self, frames: list[bytes], refusal: FrameLengthError | None = None) -> None:
        """Pass frames to the login; the bytes behind it belong to the session."""
        login, at = self._login, 0
        while at < len(frames) and self.state is ConnectionState.AUTHENTICATING and login is not None:
            if login.is_verifying:
                # after SaslHandshake 0, a GSSAPI client does not wait for an answer to its last token
                self._incoming.held += frames[at:]
                self.read_more(False)
                break
            login.receive(frames[at])
            at += 1
        if self._session is not None:
            self._session.take(frames[at:])
            # the session has a reader with other limits, which holds the rest of the bytes
            self.buffer_updated(0)
        elif refusal is not None:
            self._refuse_length(refusal)
        elif self._incoming.reader.begun_bytes or self._incoming.held or self._incoming.share.held_bytes:
            self._weigh(has_finished=bool(frames))

    def verified(self, go_on: Callable[[], None]) -> None:
        """Continue a login after its thread has finished, then take the frames that arrived meanwhile."""
        held, session = self._incoming.held, self._session
        self._incoming.held = []
        go_on()
        if session is None:
            self.read_more(True)
            self._authenticate(held)
        elif self._session is not None:
            session.go_on()

    def take(self, frame: bytes) -> bool:
        """Take a frame that may belong to a login, in order; return False if it is a request."""
        return self._login is not None and self._login.take(frame, self._principal)

    @property
    def is_authenticated(self) -> bool:
        """Whether the connection has a session."""
        return self._session is not None

    @property
    def is_verifying(self) -> bool:
        """Whether a login waits for a thread; `verified` resumes the session."""
        return self._login is not None and self._login.is_verifying

    def admitted(self, principal: KafkaPrincipal) -> None:
        """Serve this principal, or renew a live session (KIP-368)."""
        if self._session is None:
            self._begin_session(principal)
        else:
            # the principal is the same, but it may now have other groups, or use a delegation token
            has_other_groups = principal.groups != self._principal.groups
            decider = self._port.decider(principal, self.host) if has_other_groups else None
            self._principal = principal
            self._session.renew(self._port.context_of(principal, self.host), decider)

    def login_failed(self) -> None:
        """Read nothing more: the refusal of the login ends the connection."""
        self._follow(ConnectionEvent.LOGIN_FAILS)
        self._read()
        self._gateway.admission.excuse(self._port, self)

    def _begin_session(self, principal: KafkaPrincipal | None) -> None:
        """Serve requests from now on; None: the listener has no logins and determines the principal."""
        port, settings = self._port, self._settings
        if (refusal := self._gateway.admission.authenticated(port, self)) is not None:
            self.close(refusal, logged=False)
            return
        try:
            principal = principal or port.plan.principal_without_login(self.host)
            decider = port.decider(principal, self.host)
        except (AuthError, AuthorizerError) as error:
            self.close(str(error))
            return
        self._principal = principal
        owner = network_of(self.host) if principal == ANONYMOUS else principal
        self._incoming.begin(settings.socket_request_max_bytes, frame_bytes_max, owner=owner)
        self._offered = port.offered()
        guard = port.guard(decider, port.context_of(principal, self.host), self._offered)
        place = port.parts.large_turns.place(owner)
        leads_upstream = port.plan.admin is None
        self._session = ClientSession(
            self,
            guard,
            port.services,
            self._answers,
            place,
            None if leads_upstream else NoUpstream(),
            is_login=no_login if self._login is None else self._login.wants,
            client_reads=self._client_reads,
        )
        self._follow(ConnectionEvent.AUTHENTICATED)
        if leads_upstream and port.route.is_lost:
            self._want_upstream()

    def unwrap(self, envelope: Unwrap) -> Opened:
        """Open the request of an Envelope, to be authorized for its principal; raise `RefuseRequestError`."""
        return self._port.open_forwarded(envelope, self._principal, self._offered)

    def needs_upstream(self, frame: bytes) -> bool:
        """Whether a request must wait for the connection to a broker; if so, start to open it."""
        if self._connecting is None and frame[:2] == API_VERSIONS:
            return False
        self._want_upstream()
        return True

    def _want_upstream(self) -> None:
        if self._connecting is None and self.state not in ENDED:
            self._connecting = one_shot(
                "upstream-connect", self._connect(), lambda _: self.close(INTERNAL_ERROR)
            )

    async def _connect(self) -> None:
        """Connect to a broker; if the attempt fails, disconnect the client."""
        try:
            link = await self._port.route.link(self, self._principal, self._offered)
        except NoLinkError as error:
            self.close(str(error))
            return
        if (session := self._session) is None:
            link.close()
            return
        self._link = link
        session.connect(link)

    def write(self, frame: bytes) -> None:
        """Send a frame to the client, now or with other frames of the same burst."""
        if self.state in ENDED:
            return
        self.last_active_s = self._loop.time()
        self._port.figures.outgoing_bytes += len(frame)
        self.outgoing.add(frame)

    def _send(self, frames: Sequence[bytes]) -> None:
        if (transport := self._transport) is None:
            return
        answer = frames[0] if len(frames) == 1 else b"".join(frames)
        for at in range(0, len(answer), SLICE_BYTES):
            transport.write(answer[at : at + SLICE_BYTES])
        if not self._client_reads:
            self._answers.hold(transport.get_write_buffer_size())
        elif self._answers.held_bytes:
            self._answers.hold(0)

    def read_more(self, wanted: bool) -> None:
        """Record whether the login or the session takes more frames, and start or stop reading the socket."""
        if wanted is self._wants_more:
            return
        self._wants_more = wanted
        if wanted and self._incoming.share.held_bytes:
            self._weigh()
        self._read()

    def _read(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        takes = self.state in TAKING and self._wants_more and not self._incoming.share.waits
        wanted = takes or self.state in DROPPING
        if wanted and not transport.is_reading():
            transport.resume_reading()
        elif not wanted and transport.is_reading():
            transport.pause_reading()

    def pause_writing(self) -> None:
        """Take no more requests and answers while the client does not read (backpressure)."""
        self._client_reads = False
        if self._session is not None:
            self._session.pause_writing()

    def resume_writing(self) -> None:
        """Take requests and answers again."""
        self._client_reads = True
        self._answers.hold(0)
        if self._session is not None:
            self._session.resume_writing()

    def upstream_writable(self) -> None:
        """Continue the requests that waited for the broker."""
        if self._session is not None:
            self._session.go_on()

    def upstream_lost(self, reason: str) -> None:
        """End the client's connection, because the connection to the broker is lost."""
        if self.state not in ENDED:
            self._port.route.lose()
        self.close(reason, logged=not reason.startswith("upstream closed"))

    def has_expired(self, in_ms: int = 0) -> bool:
        """Return whether the session will have expired in `in_ms`; it then accepts only a login."""
        return self._login is not None and self._login.is_expired(in_ms)

    def upstream_ended(self) -> None:
        """Count the client out when the connection to the broker is closed as well."""
        self._link = None
        self._give_back()
        if self.state in ENDED:
            self._gateway.dismiss(self._port, self)

    def drain(self) -> bool:
        """Begin no more requests, and end after the last answer; return whether a socket is open."""
        transport = self._transport
        if transport is None or self.state in ENDED:
            return transport is not None
        self._incoming.drop()
        if self._session is not None and self._session.drain():
            self._follow(ConnectionEvent.NODE_STOPS_OWING)
            self._read()
        else:
            event = ConnectionEvent.NODE_STOPS_UNSENT if has_unsent(transport) else ConnectionEvent.ENDS
            self._end(event, STOPS)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything."""
        del exc
        was_open = self.state not in ENDED
        self._follow(ConnectionEvent.SOCKET_LOST)
        self._transport = None
        self.outgoing.drop()
        if self._abort is not None:
            self._abort.cancel()
        if was_open:
            self._release()
        self._give_back()
        self._gateway.lost(self)

    def _give_back(self) -> None:
        """Release all bytes when both sockets are closed; until then either may have part of an answer."""
        if self._transport is None and self._link is None:
            self._answers.hold(0)

    def close(self, reason: str, *, logged: bool = True) -> None:
        """End the connection and log the reason once; do nothing if it has ended."""
        if self.state not in ENDED:
            self._end(ConnectionEvent.ENDS, reason if logged else None)

    def _end(self, event: ConnectionEvent, reason: str | None) -> None:
        """Send the gathered frames, close the socket, and release everything; log the reason, if any."""
        if reason is not None:
            LOG.info("connection closed", listener=self._port.name, host=self.host, reason=reason)
        state = self._follow(event)
        if (transport := self._transport) is not None:
            self.outgoing.flush()
            if state is ConnectionState.HALF_CLOSED:
                self._read()
                half_close(transport)
            else:
                transport.close()
            # a client that does not read its last answers must not keep the socket forever
            self._abort = self._loop.call_later(LAST_ANSWERS_S, transport.abort)
        self._release()

    def _release(self) -> None:
        """End the login and the session, and release everything."""
        if self._login is not None:
            self._login.end()
            self._login = None
        if self._connecting is not None:
            self._connecting.cancel()
        self._incoming.drop()
        if self._session is not None:
            self._session.close()
            self._session = None
        if self._link is None:
            self._gateway.dismiss(self._port, self)


def no_login(_frame: bytes) -> bool:
    """Return False: clients of this listener do not log in, so no frame belongs to a login."""
    return False
