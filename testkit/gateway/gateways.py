"""A gateway on real sockets before scripted brokers: real SASL machine, guard and authorizer."""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final
from uuid import UUID

from kustos.acl import KafkaPrincipal
from kustos.auth import MechanismFactory, PlainServer, PlainUsers, SaslServerMachine, SaslServerSettings
from kustos.authorizer import AuthorizableRequestContext, AuthorizerError, StandardAuthorizer
from kustos.gateway.listener import FailedLoginLimits, ListenerTls
from kustos.gateway.listener.connection import ClientConnection
from kustos.gateway.listener.gateway import Gateway
from kustos.gateway.listener.plans import ConnectionSettings, GatewayLimits, GatewayParts, ListenerPlan
from kustos.gateway.session.answer_budget import AnswerBudget
from kustos.gateway.session.logins import Login
from kustos.gateway.session.request_budget import RequestBudget
from kustos.gateway.upstream.addresses import AddressRanges, BrokerPorts
from kustos.gateway.upstream.cluster import UpstreamCluster
from kustos.gateway.upstream.host_names import BrokerHosts
from kustos.gateway.upstream.in_flight import InFlight, RevocationSettings
from kustos.protocol import Decided, OfferedApis, Opened, Recorder
from kustos.protocol.exchange import WrittenAt
from kustos.runtime import SystemEntropy
from kustos.wire import Message
from kustos.wire.api_keys import ApiKey
from testkit.clocks import ManualClock
from testkit.gateway.recorders import NotedRecorder
from testkit.gateway.scripted_brokers import ScriptedBroker, connect
from testkit.gateway.sessions import request
from testkit.ports import LOOPBACK, free_port, free_port_range
from testkit.protocol.random_requests import ALL_ALLOWED

PASSWORD = "alice-s3cret"
USERS = PlainUsers({"alice": PASSWORD, "bob": "b0b-s3cret"}, SystemEntropy())
PLAIN = PlainServer.factory(USERS)
PORTS = 4
PATIENCE_S = 60.0


class CountedFigures:
    """The figures of a listener, kept in a counter."""

    NAMES: Final = {
        "created": "created",
        "open": "connections",
        "unauthenticated": "unauthenticated",
        "incoming_bytes": "received",
        "outgoing_bytes": "sent",
    }

    def __init__(self, counted: Counter[str]) -> None:
        self.__dict__["counted"] = counted

    def __getattr__(self, figure: str) -> int:
        return int(self.__dict__["counted"][self.NAMES[figure]])

    def __setattr__(self, figure: str, value: int) -> None:
        self.__dict__["counted"][self.NAMES[figure]] = value


@dataclass
class RunningGateway:
    """A gateway and its environment."""

    brokers: list[ScriptedBroker]
    sasl: SaslServerSettings | None = None
    settings: ConnectionSettings = field(default_factory=ConnectionSettings)
    answers: AnswerBudget = field(default_factory=AnswerBudget)
    requests: RequestBudget = field(default_factory=RequestBudget)
    max_connections: int = 100
    max_connections_per_ip: int = 100
    max_unauthenticated_connections: int = 100
    drain_timeout_ms: int = 0
    refresh_s: float = 3600
    failed_logins: FailedLoginLimits = field(default_factory=FailedLoginLimits)
    clock: ManualClock = field(default_factory=lambda: ManualClock(1_000_000))
    counted: Counter[str] = field(default_factory=Counter)
    is_full: bool = False
    bind_host: str = LOOPBACK
    tls: ListenerTls | None = None
    proxies: AddressRanges | None = None
    hosts_of_brokers: BrokerHosts | None = None
    logins: list[Login] = field(default_factory=list)
    expired: list[Login] = field(default_factory=list)
    plain: MechanismFactory = PLAIN
    other_mechanisms: Mapping[str, MechanismFactory] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.authorizer = StandardAuthorizer()
        self.authorizer.load_snapshot([(UUID(int=i + 1), acl) for i, acl in enumerate(ALL_ALLOWED)])
        self.authorizer.complete_initial_load()
        bootstrap = [(LOOPBACK, broker.port) for broker in self.brokers]
        self.cluster = UpstreamCluster(bootstrap, connect)
        self.offered = OfferedApis(lambda: self.cluster.versions)
        self.port = free_port()
        self.first_port = free_port_range(PORTS)
        self.contexts: list[AuthorizableRequestContext] = []
        self.hosts: list[str] = []
        parts = GatewayParts(
            cluster=self.cluster,
            local=self,
            observer=self,
            metrics=self,
            decider=self.decider,
            offered=lambda: self.offered.versions,
            in_flight=InFlight(self.log_in, tuple, RevocationSettings(), sees_all_changes=True),
            answers=self.answers,
            requests=self.requests,
            limits=GatewayLimits(
                max_connections=self.max_connections,
                max_connections_per_ip=self.max_connections_per_ip,
                max_unauthenticated_connections=self.max_unauthenticated_connections,
                drain_timeout_ms=self.drain_timeout_ms,
                failed_logins=self.failed_logins,
            ),
            answer_versions=self.offered.answer,
        )
        plan = ListenerPlan(
            name="CLIENTS",
            security_protocol="PLAINTEXT" if self.sasl is None else "SASL_PLAINTEXT",
            bind_host=self.bind_host,
            port=self.port,
            brokers=self.hosts_of_brokers or BrokerPorts(LOOPBACK, self.first_port, self.first_port, PORTS),
            connection=self.settings,
            sasl_machine=self.machine,
            tls=self.tls,
            proxies=self.proxies,
        )
        self.gateway = Gateway([plan], parts, self.refresh_s)

    @property
    def connections(self) -> tuple[ClientConnection, ...]:
        """All client connections."""
        return tuple(
            each for each in self.gateway.admission.connections if isinstance(each, ClientConnection)
        )

    async def log_in(self, host: str, port: int) -> None:
        (await connect(host, port)).close()

    def decider(self, principal: KafkaPrincipal, host: str) -> Any:
        self.hosts.append(host)
        return self.authorizer.session(KafkaPrincipal("User", "alice", groups=principal.groups), host)

    def machine(self, _host: str) -> SaslServerMachine | None:
        if self.sasl is None:
            return None
        mechanisms = {"PLAIN": self.plain, **self.other_mechanisms}
        return SaslServerMachine(self.sasl, mechanisms, self.offered.body, self.clock)

    # what sessions need

    def serve(self, opened: Opened) -> Message | bytes | Coroutine[Any, Any, Message]:
        return self.offered.body(opened.exchange.version)

    def refusal(self) -> AuthorizerError | None:
        return None

    def decided(
        self, context: AuthorizableRequestContext, decided: list[Decided], latency_us: int
    ) -> WrittenAt | None:
        self.contexts.append(context)
        return None

    def login_ended(self, login: Login) -> bool:
        self.logins.append(login)
        return not (self.is_full and login.failure is None)

    def session_expired(self, login: Login) -> None:
        self.expired.append(login)

    def recorder(self, context: AuthorizableRequestContext, decided: Sequence[Decided]) -> Recorder:
        def note(correlation_id: int) -> bool:
            self.contexts.append(replace(context, correlation_id=correlation_id))
            return True

        return NotedRecorder(note)

    def answered(
        self,
        api_key: int,
        seconds: float,
        upstream_seconds: float | None = None,
        held_seconds: float = 0.0,
    ) -> None:
        self.counted["answered"] += 1

    def authenticated(self, mechanism: str, succeeded: bool, is_reauthentication: bool = False) -> None:
        again = " again" if is_reauthentication else ""
        self.counted[f"{'' if succeeded else 'failed '}logins{again}"] += 1

    def listener(self, name: str) -> Any:
        return CountedFigures(self.counted)

    def rejected(self) -> None:
        self.counted["rejected"] += 1

    def handshake_failed(self, listener: str, kind: str) -> None:
        self.counted[f"handshake: {kind}"] += 1

    def upstream_failed(self) -> None:
        self.counted["upstream failures"] += 1


@asynccontextmanager
async def running_gateway(brokers: list[ScriptedBroker], **settings: Any) -> AsyncIterator[RunningGateway]:
    """Serve; everything is closed at the end."""
    made = RunningGateway(brokers, **settings)
    try:
        await made.gateway.start()
        yield made
    finally:
        await made.gateway.stop()
        for broker in brokers:
            broker.stop()
        await Caller.end_all()


class Caller:
    """A client that is a socket; ended with the gateway at the latest."""

    _made: ClassVar[list["Caller"]] = []

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._loop: Final = asyncio.get_running_loop()
        self._made.append(self)

    @classmethod
    async def end_all(cls) -> None:
        """Close everything that this loop created: an open socket fails the test in which it is collected."""
        made = [caller for caller in cls._made if caller._loop is asyncio.get_running_loop()]
        cls._made.clear()
        for caller in made:
            if not caller.writer.is_closing():
                caller.writer.transport.abort()
        for caller in made:
            with suppress(OSError):
                await caller.writer.wait_closed()

    @classmethod
    async def at(cls, port: int, tls: ssl.SSLContext | None = None) -> "Caller":
        return cls(*await asyncio.open_connection(LOOPBACK, port, ssl=tls))

    def send(self, *frames: bytes) -> None:
        self.writer.write(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))

    async def frame(self) -> bytes | None:
        """Return the next frame without its length, None at the end of the connection."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                size = int.from_bytes(await self.reader.readexactly(4), "big")
                return await self.reader.readexactly(size)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None

    async def correlation_ids(self, count: int) -> list[int]:
        frames = [await self.frame() for _ in range(count)]
        return [-1 if frame is None else int.from_bytes(frame[:4], "big") for frame in frames]

    async def is_closed(self) -> bool:
        """Return whether the connection ended without another frame."""
        return await self.frame() is None

    async def log_in(
        self, password: str = PASSWORD, first_id: int = 900, user: str = "alice"
    ) -> bytes | None:
        """Return the answer to the token."""
        self.send(handshake(first_id))
        await self.frame()
        self.send(token(first_id + 1, password, user))
        return await self.frame()

    def close(self) -> None:
        self.writer.close()


def handshake(correlation_id: int) -> bytes:
    return request(ApiKey.SASL_HANDSHAKE, 1, correlation_id, mechanism="PLAIN")


def token(correlation_id: int, password: str = PASSWORD, user: str = "alice") -> bytes:
    auth_bytes = f"\0{user}\0{password}".encode()
    return request(ApiKey.SASL_AUTHENTICATE, 1, correlation_id, auth_bytes=auth_bytes)
