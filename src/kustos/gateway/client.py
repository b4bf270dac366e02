"""One client connection: bytes from a socket, first an identity, then requests.

Until a principal exists the frames go to the SASL machine and nowhere else. Then a connection to the
broker behind this port is opened, and the session takes over. Everything ends in `_close`.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from kustos.acl import ANONYMOUS, KafkaPrincipal
from kustos.auth import Authenticated, Close, Fail, SaslEffect, SaslState, SendFrame
from kustos.auth.sasl_server import SaslServerMachine
from kustos.authorizer import AuthorizableRequestContext, AuthorizerError
from kustos.client.errors import ClientError
from kustos.gateway.cluster import Versions, covers
from kustos.gateway.link import UpstreamLink, as_transport
from kustos.gateway.peer import java_host_address, java_host_of
from kustos.gateway.session import ClientSession
from kustos.gateway.session_parts import NoUpstream
from kustos.protocol import Decider, Guard, Opened, Unwrap
from kustos.protocol.exchange import UndecidedDecider
from kustos.wire import FrameReader, MalformedMessageError

if TYPE_CHECKING:
    from kustos.gateway.listener import Port

SASL_HANDSHAKE: Final = b"\x00\x11"
"""The first two bytes of a SaslHandshake: its API key."""

LAST_ANSWERS_S: Final = 5.0
"""How long a client whose connection ends may take to read what was written before."""

CLIENT_ID_MAX_CHARACTERS: Final = 255
"""What is kept of a client id beside each decision: a client names itself in up to 32 KB, and one request
may come to many decisions. Upstream gets it as it is."""

LOG: Final = structlog.get_logger("kustos.gateway")


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """What limits one connection. Sizes in bytes, times in milliseconds."""

    sasl_server_max_receive_size: int = 524_288
    socket_request_max_bytes: int = 104_857_600
    connections_max_idle_ms: int = 600_000
    max_in_flight_requests: int = 64
    max_answer_bytes: int = 1_073_741_824


class ClientConnection(asyncio.Protocol):
    """The protocol of an accepted socket; made by its `Port`."""

    def __init__(self, port: "Port") -> None:
        self._port: Final = port
        self._settings: Final = port.settings
        self._loop: Final = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._session: ClientSession | None = None
        self._machine: SaslServerMachine | None = None
        self._reader = FrameReader(port.settings.socket_request_max_bytes)
        self._host = ""
        self._principal = ANONYMOUS
        self._offered: Versions = {}
        self._closed = False
        self._deaf = False
        self._reads = True
        self._connecting: asyncio.Task[None] | None = None
        self._delayed: list[asyncio.TimerHandle] = []
        self._abort: asyncio.TimerHandle | None = None
        self.last_active_s = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the client, or turn it away where there are too many."""
        self._transport = as_transport(transport)
        peer = transport.get_extra_info("peername")
        if peer is None:
            # it was gone before it could be asked for its address
            self._close("the client closed the connection", logged=False)
            return
        self._host = java_host_address(peer)
        refusal = self._port.admit(self, self._host)
        if refusal is not None:
            self._close(refusal)
            return
        self._machine = self._port.sasl_machine()
        if self._machine is None:
            self._begin_session(ANONYMOUS)
        else:
            self._reader = FrameReader(self._settings.sasl_server_max_receive_size)

    def data_received(self, data: bytes) -> None:
        """Cut frames, and hand them to whoever is in charge."""
        self.last_active_s = self._loop.time()
        self._port.metrics.received(self._port.name, len(data))
        if not (self._deaf or self._closed):
            self._take_bytes(data)

    def _take_bytes(self, data: bytes) -> None:
        try:
            frames = self._reader.feed(data)
        except MalformedMessageError as error:
            if self._session is None and self._machine is not None:
                self._perform_all(self._machine.oversized())
            else:
                self._close(str(error))
            return
        if self._session is not None:
            self._session.take(frames)
        else:
            self._authenticate(frames)

    def _authenticate(self, frames: list[bytes]) -> None:
        for frame in frames:
            if self._closed:
                return
            if self._session is not None:
                self._session.take([frame])
            elif self._machine is not None and not self._deaf:
                self._perform_all(self._machine.receive(frame))

    def wants(self, frame: bytes) -> bool:
        """Whether a frame of a live session may belong to a re-authentication, or comes too late."""
        machine = self._machine
        return machine is not None and (
            machine.state is not SaslState.COMPLETE or frame[:2] == SASL_HANDSHAKE or machine.is_expired()
        )

    def take(self, frame: bytes) -> bool:
        """Deal with such a frame; return whether it is done with."""
        machine = self._machine
        if machine is None:
            return False
        if machine.state is not SaslState.COMPLETE:
            self._perform_all(machine.receive(frame))
        elif frame[:2] == SASL_HANDSHAKE:
            effects = machine.begin_reauthentication(frame)
            if effects is None:
                return False
            self._perform_all(effects)
        else:
            self._close("the session has expired")
        return True

    def _perform_all(self, effects: tuple[SaslEffect, ...]) -> None:
        for effect in effects:
            self._perform(effect)

    def _perform(self, effect: SaslEffect) -> None:
        """Do what the SASL machine says."""
        match effect:
            case SendFrame(frame):
                self._write(frame)
            case Authenticated(principal=principal, mechanism=mechanism):
                self._port.metrics.authenticated(mechanism, True)
                if self._session is None:
                    self._begin_session(principal)
            case Fail(response=frame, reason=reason, delay_ms=delay_ms):
                # the answer and the end both wait, so that guessing is slow and tells nothing (KIP-306)
                self._deaf = True
                self._read_more(False)
                self._port.metrics.authenticated(self._mechanism, False)
                LOG.info("authentication failed", listener=self._port.name, host=self._host, reason=reason)
                self._delayed.append(self._loop.call_later(delay_ms / 1000, self._end_failed, frame))
            case Close(reason=reason):
                self._port.metrics.authenticated(self._mechanism, False)
                self._close(reason)

    @property
    def _mechanism(self) -> str:
        return "" if self._machine is None else self._machine.mechanism

    def _end_failed(self, frame: bytes) -> None:
        if frame:
            self._write(frame)
        self._close("authentication failed", logged=False)

    def _begin_session(self, principal: KafkaPrincipal) -> None:
        port, settings = self._port, self._settings
        rest, self._reader = self._reader, FrameReader(settings.socket_request_max_bytes)
        leftover = rest.take_rest()
        try:
            decider = port.decider(principal, self._host)
        except AuthorizerError as error:
            self._close(str(error))
            return
        self._principal = principal
        self._offered = port.offered()
        self._session = ClientSession(
            self._guard(decider),
            port.cluster,
            port.local,
            port.observer,
            self._context_of(principal, self._host),
            self._write,
            self._close,
            self._read_more,
            self,
            settings.max_in_flight_requests,
            self._unwrap,
        )
        self._session.client_reads = self._reads
        if port.leads_upstream:
            self._connecting = self._loop.create_task(self._connect())
        else:
            self._session.link = NoUpstream()
        if leftover:
            self._take_bytes(leftover)

    def _guard(self, decider: Decider) -> Guard:
        port = self._port
        return Guard(
            decider,
            port.ports,
            self._offered,
            port.cluster.auto_creates_topics,
            asker=port.asker,
            table=port.table,
        )

    def _unwrap(self, envelope: Unwrap) -> tuple[Opened, AuthorizableRequestContext]:
        """Return the request of an Envelope, to be decided for its maker; raise `RefuseRequestError`."""
        host = java_host_of(envelope.address)
        decider: Decider
        try:
            decider = self._port.decider(envelope.principal, host)
        except AuthorizerError as error:
            # such as `User:*`: nobody can be it, so whatever it asks for fails in the answer to it
            decider = UndecidedDecider(error)
        opened = self._guard(decider).open_forwarded(envelope.frame)
        return opened, self._context_of(envelope.principal, host, self._principal)(opened)

    def _context_of(
        self, principal: KafkaPrincipal, host: str, forwarded_by: KafkaPrincipal | None = None
    ) -> Callable[[Opened], AuthorizableRequestContext]:
        port = self._port

        def context(opened: Opened) -> AuthorizableRequestContext:
            header = opened.exchange.header
            return AuthorizableRequestContext(
                principal,
                host,
                port.name,
                port.security_protocol,
                None if header.client_id is None else header.client_id[:CLIENT_ID_MAX_CHARACTERS],
                header.api_key,
                header.api_version,
                header.correlation_id,
                forwarded_by,
            )

        return context

    async def _connect(self) -> None:
        """Open the upstream half; a broker that is down is down for the client too."""
        session = self._session
        try:
            connection = await self._port.connect_upstream()
            if session is None or self._closed:
                connection.close()
                return
            transport = connection.release()
        except ClientError as error:
            self._port.metrics.upstream_failed()
            self._close(f"upstream is not reachable: {error}")
            return
        except Exception:
            # the boundary where a bug of ours must end the client rather than leave it waiting
            LOG.exception("a connection to upstream could not be made")
            self._close("an internal error, see the log above")
            return
        if not covers(self._port.offered(), self._offered):
            # it would take a client's request for something else, or end the connection without a word
            transport.abort()
            self._close("the broker speaks other versions than the client was offered")
            return
        session.link = UpstreamLink(transport, self, self._settings.max_answer_bytes)
        if not self._reads:
            session.link.pause_reading()
        session.go_on()

    def _write(self, frame: bytes) -> None:
        if self._transport is not None and not self._closed:
            self.last_active_s = self._loop.time()
            self._port.metrics.sent(self._port.name, len(frame))
            self._transport.write(frame)

    def _read_more(self, wanted: bool) -> None:
        transport = self._transport
        if transport is None or self._closed or transport.is_closing():
            return
        wanted = wanted and not self._deaf
        if wanted and not transport.is_reading():
            transport.resume_reading()
        elif not wanted and transport.is_reading():
            transport.pause_reading()

    def pause_writing(self) -> None:
        """Take no more requests, and no more from upstream, while the client does not read."""
        self._reads = False
        if self._session is not None:
            self._session.client_reads = False
            if self._session.link is not None:
                self._session.link.pause_reading()

    def resume_writing(self) -> None:
        """Go on, and take answers from upstream again."""
        self._reads = True
        if self._session is not None:
            self._session.client_reads = True
            if self._session.link is not None:
                self._session.link.resume_reading()
            self._session.go_on()

    def upstream_writable(self) -> None:
        """Go on with what waited for upstream to read."""
        if self._session is not None:
            self._session.go_on()

    def upstream_lost(self, reason: str) -> None:
        """End the client with its upstream half."""
        if not self._closed:
            self._port.metrics.upstream_failed()
        self._close(reason, logged=not reason.startswith("upstream closed"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything."""
        self._transport = None
        if self._abort is not None:
            self._abort.cancel()
        self._close("the client closed the connection" if exc is None else str(exc), logged=False)

    def _close(self, reason: str, *, logged: bool = True) -> None:
        """End both halves; the one line in the log says why."""
        if self._closed:
            return
        if logged:
            LOG.info("connection closed", listener=self._port.name, host=self._host, reason=reason)
        if self._transport is not None:
            self._transport.close()
            # a client that does not take what is left for it must not keep the socket for ever
            self._abort = self._loop.call_later(LAST_ANSWERS_S, self._transport.abort)
        self._closed = True
        for timer in self._delayed:
            timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        self._reader.take_rest()
        if self._session is not None:
            self._session.close()
            self._session = None
        self._port.dismiss(self, self._host)

    def close(self, reason: str) -> None:
        """End the connection for a reason of the listener's (idle, shutdown)."""
        self._close(reason)
