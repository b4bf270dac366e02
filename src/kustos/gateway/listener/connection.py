"""One client connection: bytes from a socket, first an identity, then requests.

Until there is a principal, frames go to its login and nowhere else, and the connection has a deadline. Then
the session takes over. A connection to the broker behind this port is opened for its first request other than
ApiVersions, so that who only logs in costs the broker nothing. Where the broker was lost lately, it is opened
at once and ApiVersions waits for it, too: clients take that answer for a broker that is there, and would come
back without a pause. Everything ends in `close`.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import structlog

from kustos.acl import ANONYMOUS, KafkaPrincipal
from kustos.auth import AuthError
from kustos.authorizer import AuthorizerError
from kustos.client import ClientError, as_transport
from kustos.gateway.listener.handshakes import LOGIN_TIMED_OUT, HandshakeRefusal, stranger_by_length
from kustos.gateway.listener.login import ConnectionLogin
from kustos.gateway.session.answer_budget import write_sliced
from kustos.gateway.session.client_session import ClientSession
from kustos.gateway.session.parts import NoUpstream
from kustos.gateway.upstream.addresses import java_host_address, java_host_of
from kustos.gateway.upstream.cluster import Versions, covers
from kustos.gateway.upstream.link import UpstreamLink
from kustos.gateway.upstream.tokens import IdentityError
from kustos.protocol import ContextOf, Decider, Guard, Opened, UndecidedDecider, Unwrap
from kustos.wire import ApiKey, FrameLengthError, FrameReader

if TYPE_CHECKING:
    from kustos.gateway.listener.port import Port

API_VERSIONS: Final = int(ApiKey.API_VERSIONS).to_bytes(2, "big")
"""The first two bytes of an ApiVersions: its API key."""

LAST_ANSWERS_S: Final = 5.0
"""How long a client may take to read the last answers when its connection ends."""

LOG: Final = structlog.get_logger("kustos.gateway")


class ClientConnection(asyncio.Protocol):
    """The protocol of an accepted socket; made by its `Port`."""

    def __init__(self, port: "Port") -> None:
        self._port = port
        self._settings: Final = port.settings
        self._loop: Final = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._session: ClientSession | None = None
        self._login: ConnectionLogin | None = None
        self._reader = FrameReader(port.settings.socket_request_max_bytes)
        self._answers: Final = port.answers.share()
        self.host = ""
        self.peer: tuple[str, int] | None = None
        """The client's address in a PROXY protocol header, None if there is none."""
        self._principal = ANONYMOUS
        self._offered: Versions = {}
        self._closed = self._has_link = self._deaf = False
        self._reads = True
        self._connecting: asyncio.Task[None] | None = None
        self._held: list[bytes] = []
        """Frames behind a login that is being verified."""
        self._deadline: asyncio.TimerHandle | None = None
        """When a client must have authenticated."""
        self._abort: asyncio.TimerHandle | None = None
        self.last_active_s = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the client, or turn it away if there are too many."""
        self._transport = as_transport(transport)
        peer = self.peer or transport.get_extra_info("peername")
        if peer is None:
            # it was gone before its address could be read
            self.close("the client closed the connection", logged=False)
            return
        self.host = java_host_address(peer)
        refusal = self._port.admit(self, self.host)
        if refusal is not None:
            self.close(refusal, logged=False)
            return
        if self._port.authenticates:
            timeout_s = self._settings.login_timeout_ms / 1000
            self._deadline = self._loop.call_later(timeout_s, self.refuse, LOGIN_TIMED_OUT)
        if self._port.tls is None:
            self.begin()

    def choose(self, port: "Port") -> None:
        """Go on at another way in of the same listener: the client asked for its host. Before `begin`."""
        self._port = port

    def begin(self, principal: KafkaPrincipal | None = None) -> None:
        """Let the client log in; without logins, serve the principal of its certificate."""
        machine = self._port.sasl_machine(self.host)
        if machine is None:
            self._begin_session(principal)
        else:
            self._login = ConnectionLogin(self, self._port, machine)
            self._reader = FrameReader(self._settings.sasl_server_max_receive_size)

    def refuse(self, refusal: HandshakeRefusal) -> None:
        """Count the client among those that never came to a login, and end it."""
        if not self._closed:
            has_line = self._port.refuse(refusal, self.host)
            self.close(refusal.reason, logged=not has_line)

    def data_received(self, data: bytes) -> None:
        """Split the bytes into frames, and hand them to the SASL machine or the session."""
        self.last_active_s = self._loop.time()
        self._port.metrics.received(self._port.name, len(data))
        if not (self._deaf or self._closed):
            self._take_bytes(data)

    def _take_bytes(self, data: bytes) -> None:
        reader, refusal = self._reader, None
        try:
            frames = reader.feed(data)
        except FrameLengthError as error:
            # frames before it, such as a login, still get their answers
            frames, refusal = error.frames, error
        self._take_frames(reader, frames, refusal)

    def _take_frames(
        self, reader: FrameReader, frames: list[bytes], refusal: FrameLengthError | None = None
    ) -> None:
        if self._session is not None:
            self._session.take(frames)
        else:
            self._authenticate(frames)
        if reader is not self._reader:
            # a session began within these bytes, and has a limit of its own
            leftover = reader.take_rest()
            if leftover and not self._closed:
                self._take_bytes(leftover)
        elif refusal is not None and not (self._closed or self._deaf):
            stranger = stranger_by_length(refusal)
            if stranger is not None:
                self.refuse(stranger)
            elif self._session is None and self._login is not None:
                self._login.oversized()
            else:
                self.close(str(refusal))

    def _authenticate(self, frames: list[bytes]) -> None:
        for at, frame in enumerate(frames):
            if self._closed or self._login is None:
                return
            if self._session is not None:
                self._session.take([frame])
            elif self.is_verifying:
                # after SaslHandshake 0 a client of GSSAPI waits for no answer to its last token
                self._held = frames[at:]
                self.read_more(False)
                return
            elif not self._deaf:
                self._login.receive(frame)

    def verified(self, go_on: Callable[[], None]) -> None:
        """Let a login go on after work beside the loop, then take what came meanwhile."""
        reader, held = self._reader, self._held
        self._held = []
        go_on()
        self.read_more(True)
        self._take_frames(reader, held)

    def wants(self, frame: bytes) -> bool:
        """Whether a frame of a live session may belong to a re-authentication, or came too late."""
        return self._login is not None and self._login.wants(frame)

    def take(self, frame: bytes) -> bool:
        """Handle such a frame; return whether that was all."""
        return self._login is not None and self._login.take(frame, self._principal)

    @property
    def is_verifying(self) -> bool:
        """Whether a login waits for work beside the loop; `verified` lets the session go on."""
        return self._login is not None and self._login.is_verifying

    def admitted(self, principal: KafkaPrincipal) -> None:
        """Serve this principal, unless its session is live: then it has proven again who it is."""
        if self._session is None:
            self._begin_session(principal)
        else:
            # the same principal, but maybe by a delegation token now, or no longer
            self._principal = principal
            self._session.renew(self._port.context_of(principal, self.host))

    def listen_no_more(self) -> None:
        """Read nothing more, and let the refusal of the login end the connection."""
        self._deaf = True
        self.read_more(False)
        self._stop_clock()

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _begin_session(self, principal: KafkaPrincipal | None) -> None:
        """Serve requests from now on; without a login (None) the listener says for whom."""
        port, settings = self._port, self._settings
        self._stop_clock()
        refusal = port.authenticated(self)
        if refusal is not None:
            self.close(refusal, logged=False)
            return
        self._reader = FrameReader(settings.socket_request_max_bytes)
        try:
            principal = principal or port.principal_without_login(self.host)
            decider = port.decider(principal, self.host)
        except (AuthError, AuthorizerError) as error:
            self.close(str(error))
            return
        self._principal = principal
        self._offered = port.offered()
        guard = self._guard(decider, self._port.context_of(principal, self.host))
        place = port.large_turns.place(principal)
        self._session = ClientSession(self, guard, port.services, self._answers, place)
        self._session.client_reads = self._reads
        if not port.leads_upstream:
            self._session.link = NoUpstream()
        elif port.lost_upstream:
            self._want_upstream()

    def _guard(self, decider: Decider, context_of: ContextOf) -> Guard:
        port = self._port
        return Guard(
            decider,
            context_of,
            port.ports,
            self._offered,
            port.services.cluster.auto_creates_topics,
            context_authorizer=port.context_authorizer,
            table=port.table,
            is_shadow=port.is_shadow,
            refusal=port.observer.refusal,
        )

    def unwrap(self, envelope: Unwrap) -> Opened:
        """Open the request of an Envelope, to be decided for its principal; raise `RefuseRequestError`."""
        host = java_host_of(envelope.address)
        try:
            decider: Decider = self._port.decider(envelope.principal, host)
        except AuthorizerError as error:
            # such as `User:*`: nobody can be it, so the answer refuses each of its items
            decider = UndecidedDecider(error)
        context_of = self._port.context_of(envelope.principal, host, forwarded_by=self._principal)
        return self._guard(decider, context_of).open_forwarded(envelope.frame)

    def needs_upstream(self, frame: bytes) -> bool:
        """Whether a request must wait for the upstream half, which is on its way then."""
        if self._connecting is None and frame[:2] == API_VERSIONS:
            return False
        self._want_upstream()
        return True

    def _want_upstream(self) -> None:
        if self._connecting is None and not self._closed:
            self._connecting = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        """Open the upstream half; if the broker is down, the client is disconnected."""
        session = self._session
        try:
            connection = await self._port.connect_upstream(self._principal)
            if session is None or self._closed:
                connection.close()
                return
            transport = connection.release()
        except ClientError as error:
            self._port.metrics.upstream_failed()
            is_unnamed = isinstance(error, IdentityError)
            self.close(str(error) if is_unnamed else f"upstream is not reachable: {error}")
            return
        except Exception:
            # the boundary where a bug of ours must end the client rather than leave it waiting
            LOG.exception("a connection to upstream could not be made")
            self.close("an internal error, see the log above")
            return
        if not covers(self._port.offered(), self._offered):
            # it would misread the client's requests, or close the connection without an answer
            transport.abort()
            self.close("the broker speaks other versions than the client was offered")
            return
        broker = connection.host, connection.port
        session.link = UpstreamLink(
            transport,
            self,
            self._settings.max_answer_bytes,
            self._port.services.in_flight,
            broker,
            connection.session,
        )
        self._has_link = True
        if not self._reads:
            session.link.pause_reading()
        session.go_on()

    def write(self, frame: bytes) -> None:
        """Send a frame to the client; bytes that it has not taken are counted."""
        if self._transport is not None and not self._closed:
            self.last_active_s = self._loop.time()
            self._port.metrics.sent(self._port.name, len(frame))
            write_sliced(self._transport, frame)
            self._answers.hold(0 if self._reads else self._transport.get_write_buffer_size())

    def read_more(self, wanted: bool) -> None:
        """Read the socket, or leave it unread."""
        transport = self._transport
        if transport is None or self._closed or transport.is_closing():
            return
        wanted = wanted and not self._deaf
        if wanted and not transport.is_reading():
            transport.resume_reading()
        elif not wanted and transport.is_reading():
            transport.pause_reading()

    def pause_writing(self) -> None:
        """Take no more requests or answers while the client does not read (backpressure)."""
        self._reads = False
        if self._session is not None:
            self._session.client_reads = False
            if self._session.link is not None:
                self._session.link.pause_reading()

    def resume_writing(self) -> None:
        """Take requests and answers again."""
        self._reads = True
        self._answers.hold(0)
        if self._session is not None:
            self._session.client_reads = True
            if self._session.link is not None:
                self._session.link.resume_reading()
            self._session.go_on()

    def upstream_writable(self) -> None:
        """Go on with the requests that waited for upstream."""
        if self._session is not None:
            self._session.go_on()

    def upstream_lost(self, reason: str) -> None:
        """End the client's connection with its upstream half."""
        if not self._closed:
            self._port.lost_upstream = True
            self._port.metrics.upstream_failed()
        self.close(reason, logged=not reason.startswith("upstream closed"))

    def has_expired(self, in_ms: int = 0) -> bool:
        """Return whether the session will have expired in `in_ms`, so that only a login is taken."""
        return self._login is not None and self._login.is_expired(in_ms)

    def upstream_ended(self) -> None:
        """Count the client out once nothing of it is left at the broker."""
        self._has_link = False
        self._give_back()
        if self._closed:
            self._port.dismiss(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything."""
        self._transport = None
        if self._abort is not None:
            self._abort.cancel()
        self.close("the client closed the connection" if exc is None else str(exc), logged=False)
        self._give_back()

    def _give_back(self) -> None:
        """Hold no bytes once both halves are gone: until then either may have a part of an answer."""
        if self._transport is None and not self._has_link:
            self._answers.hold(0)

    def hang_up(self, reason: str) -> None:
        """End the connection for a reason of the session's."""
        self.close(reason)

    def close(self, reason: str, *, logged: bool = True) -> None:
        """End both halves; one line in the log says why."""
        if self._closed:
            return
        if logged:
            LOG.info("connection closed", listener=self._port.name, host=self.host, reason=reason)
        if self._transport is not None:
            self._transport.close()
            # a client that does not read its last answers must not keep the socket for ever
            self._abort = self._loop.call_later(LAST_ANSWERS_S, self._transport.abort)
        self._closed = True
        self._stop_clock()
        if self._login is not None:
            self._login.end()
            self._login = None
        if self._connecting is not None:
            self._connecting.cancel()
        self._reader.take_rest()
        if self._session is not None:
            self._session.close()
            self._session = None
        if not self._has_link:
            self._port.dismiss(self)
