"""One client's session against the model cluster: real guard, authorizer and link, no socket, no clock.

Nothing happens by itself: upstream and the gateway's own queries answer on command.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID
from zlib import crc32

from kustos.acl import AclBinding, KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext, AuthorizerError, StandardAuthorizer
from kustos.gateway.session.answer_budget import AnswerBudget
from kustos.gateway.session.client_session import ClientSession, SessionServices
from kustos.gateway.session.large_turns import LargeTurns
from kustos.gateway.upstream.bursts import Burst
from kustos.gateway.upstream.cluster import UpstreamCluster
from kustos.gateway.upstream.in_flight import InFlight, RevocationSettings
from kustos.gateway.upstream.link import UpstreamLink
from kustos.protocol import Decided, Decider, Guard, Opened, Recorder, Unwrap
from kustos.protocol.exchange import WrittenAt
from kustos.wire import FrameReader, Message, RequestHeader, request_codec, request_frame
from kustos.wire.api_keys import ApiKey
from testkit.gateway.recorders import NotedRecorder
from testkit.protocol.cluster_model import PARTITIONS, Model
from testkit.protocol.driver import HOST, OFFERED, PIECE_SIZES, PRINCIPAL, GatewayAddresses, served
from testkit.protocol.random_requests import batch, model

SLOW_APIS = frozenset({ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS})
TURNS_MAX = 50
"""Turns of the event loop in which everything that can happen by itself has happened."""


class Pipe(asyncio.Transport):
    """A transport that keeps the written bytes and never makes progress by itself."""

    def __init__(self, on_write: Callable[[bytes], None]) -> None:
        super().__init__()
        self.protocol: asyncio.BaseProtocol | None = None
        self.reads = True
        self.closing = False
        self.aborted = False
        self.writes = 0
        """How often something was written: a system call each."""
        self._on_write = on_write

    def write(self, data: Any) -> None:
        self.writelines([data])

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.writes += 1
        for data in list_of_data:
            assert not self.closing, "no bytes are written after a close"
            self._on_write(bytes(data))

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True


def deliver(link: UpstreamLink, answer: bytes) -> None:
    """Let a link receive an answer without its length, whole or in pieces, chosen by its bytes."""
    frame = len(answer).to_bytes(4, "big") + answer
    size = crc32(frame) % PIECE_SIZES or len(frame)
    for at in range(0, len(frame), size):
        link.data_received(frame[at : at + size])


class SlowCluster(UpstreamCluster):
    """The gateway's own upstream queries, answered from the model on command."""

    def __init__(self, world: Model) -> None:
        async def nowhere(host: str, port: int) -> Any:
            raise AssertionError("no connection is made here")

        super().__init__([], nowhere)
        self.world = world
        self.questions: list[asyncio.Future[None]] = []

    def known_names(self, topic_ids: Iterable[bytes]) -> dict[bytes, str] | None:
        return None

    async def wait(self) -> None:
        question = asyncio.get_running_loop().create_future()
        self.questions.append(question)
        await question

    async def resolve_topic_ids(self, topic_ids: frozenset[bytes]) -> dict[bytes, str]:
        await self.wait()
        return {key: name for key, name in self.world.names.items() if key in topic_ids}

    async def list_topics(self, names: frozenset[str] | None) -> dict[str, int]:
        await self.wait()
        return {name: PARTITIONS for name in self.world.topics if names is None or name in names}


@dataclass
class World:
    """A session with everything around it. Made inside a running event loop."""

    acls: Sequence[AclBinding]
    linked: bool = True
    principal: str = PRINCIPAL
    """The principal whose turns it takes; decisions are always for the same principal."""
    revocation: RevocationSettings = field(
        default_factory=lambda: RevocationSettings(grace_ms=0, timeout_ms=1)
    )
    forwarded: deque[bytes] = field(default_factory=deque)
    """Forwarded and unanswered requests, without lengths."""
    all_forwarded: list[bytes] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    written: FrameReader = field(default_factory=lambda: FrameReader(2**20))
    """The client's bytes of an incomplete answer."""
    closed: list[str] = field(default_factory=list)
    decided_by: list[int] = field(default_factory=list)
    """The correlation id of each request that something was decided for."""
    decided_names: list[str | None] = field(default_factory=list)
    """The names that were decided on."""
    repeated: int = 0
    """How many requests took over the decisions of an earlier one."""
    part: bytes = b""
    """The upstream bytes of an incomplete frame."""
    is_full: bool = False
    refuses: bool = False
    """Whether the audit log is full in mode `deny`."""
    reads: bool = True
    swallowed: list[bytes] = field(default_factory=list)
    wanted: Callable[[bytes], bool] = lambda _: False
    serving_fails: Exception | None = None
    large_turns: LargeTurns = field(default_factory=LargeTurns)
    sees_all_changes: bool = True

    def __post_init__(self) -> None:
        self.world = model()
        self.cluster = SlowCluster(self.world)
        self.authorizer = StandardAuthorizer()
        self.replace_acls(self.acls)
        self.authorizer.complete_initial_load()
        decider = self.authorizer.session(KafkaPrincipal.parse(PRINCIPAL), HOST)
        self.guard = self.make_guard(decider)
        self.in_flight = InFlight(self.log_in, tuple, self.revocation, sees_all_changes=self.sees_all_changes)
        services = SessionServices(cluster=self.cluster, local=self, observer=self, in_flight=self.in_flight)
        place = self.large_turns.place(KafkaPrincipal.parse(self.principal))
        self.session = ClientSession(
            self, self.guard, services, AnswerBudget().share(), place, is_login=self.is_login
        )
        self.writes: list[int] = []
        """How many answers were written at a time."""
        self.outgoing = Burst(self._write_burst)
        self.pipe = Pipe(self.take_upstream)
        if self.linked:
            self.connect()

    def make_guard(self, decider: Decider) -> Guard:
        return Guard(decider, self.context_of, GatewayAddresses(), OFFERED, self.world.auto_creates)

    def connect(self) -> None:
        self.session.connect(UpstreamLink(self.pipe, self, 2**20, self.in_flight, ("broker", 9092)))

    # the authorizer

    def replace_acls(self, acls: Sequence[AclBinding]) -> None:
        self.acls = list(acls)
        self.authorizer.load_snapshot([(UUID(int=i + 1), acl) for i, acl in enumerate(acls)])

    # the client's side of the session

    def write(self, frame: bytes) -> None:
        assert not self.closed, "no bytes are written after the end"
        self.outgoing.add(frame)

    def _write_burst(self, frames: Sequence[bytes]) -> None:
        self.writes.append(len(frames))
        self.answers += self.written.feed(b"".join(frames))

    def close(self, reason: str) -> None:
        self.outgoing.flush()
        self.closed.append(reason)
        self.session.close()

    def read_more(self, wanted: bool) -> None:
        self.reads = wanted

    def needs_upstream(self, frame: bytes) -> bool:
        """Do nothing: the test connects the link by `connect`."""
        return True

    def context_of(self, header: RequestHeader) -> AuthorizableRequestContext:
        principal = KafkaPrincipal.parse(PRINCIPAL)
        return AuthorizableRequestContext(principal, HOST, correlation_id=header.correlation_id)

    is_verifying = False

    def unwrap(self, envelope: Unwrap) -> Opened:
        raise AssertionError(f"no listener here opens an Envelope: {envelope}")

    def is_login(self, frame: bytes) -> bool:
        return self.wanted(frame)

    def take(self, frame: bytes) -> bool:
        self.swallowed.append(frame)
        return True

    # the observer

    def refusal(self) -> AuthorizerError | None:
        return None

    def decided(
        self, context: AuthorizableRequestContext, decided: list[Decided], latency_us: int
    ) -> WrittenAt | None:
        self.decided_by.append(context.correlation_id)
        self.decided_names += [each.name for each in decided]
        return None

    def recorder(self, context: AuthorizableRequestContext, decided: Sequence[Decided]) -> Recorder:
        def note(correlation_id: int) -> bool:
            if not self.refuses:
                self.decided_by.append(correlation_id)
                self.repeated += 1
            return not self.refuses

        return NotedRecorder(note)

    def answered(
        self,
        api_key: int,
        seconds: float,
        upstream_seconds: float | None = None,
        held_seconds: float = 0.0,
    ) -> None:
        """Do nothing: there are no counters."""

    # what kustos serves itself

    def serve(self, opened: Opened) -> Message | bytes | Coroutine[Any, Any, Message | bytes]:
        if self.serving_fails is not None:
            raise self.serving_fails
        message = served(opened, opened.exchange.request)
        return self._slowly(message) if opened.row.api_key in SLOW_APIS else message

    async def _slowly(self, message: Message) -> Message:
        await self.cluster.wait()
        return message

    # upstream

    def take_upstream(self, frame: bytes) -> None:
        frame = self.part + frame
        if int.from_bytes(frame[:4], "big") > len(frame) - 4:
            self.part = frame
            return
        self.part = b""
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        self.take_request(frame[4:])

    def take_request(self, frame: bytes) -> None:
        """Take a whole request, as a broker reads it."""
        self.forwarded.append(frame)
        self.all_forwarded.append(frame)

    async def log_in(self, host: str, port: int) -> None:
        """The broker is alive."""

    def has_expired(self, in_ms: int = 0) -> bool:
        return False

    def upstream_ended(self) -> None:
        """Do nothing: there are no counters."""

    def upstream_writable(self) -> None:
        self.session.go_on()

    def upstream_lost(self, reason: str) -> None:
        if not self.closed:
            self.close(reason)

    @property
    def link(self) -> UpstreamLink:
        assert isinstance(self.session.link, UpstreamLink)
        return self.session.link

    def answer_one(self) -> bool:
        """Have upstream answer its oldest request; return whether there was one."""
        while self.forwarded:
            answer = self.world.answer(self.forwarded.popleft())
            if answer is not None:
                deliver(self.link, answer)
                return True
        return False

    def answer_all(self) -> bool:
        """Have upstream answer all pending requests in one read; return whether there were any."""
        answers = []
        while self.forwarded:
            answer = self.world.answer(self.forwarded.popleft())
            if answer is not None:
                answers.append(len(answer).to_bytes(4, "big") + answer)
        if answers:
            self.link.data_received(b"".join(answers))
        return bool(answers)

    async def learn(self, which: int = 0) -> bool:
        """Answer one of the pending queries; return whether there was one."""
        waiting = [question for question in self.cluster.questions if not question.done()]
        if not waiting:
            return False
        waiting[which % len(waiting)].set_result(None)
        await self.settle()
        return True

    async def settle(self) -> None:
        """Run all pending callbacks."""
        for _ in range(TURNS_MAX):
            await asyncio.sleep(0)

    async def finish(self) -> None:
        """Let upstream and all others answer all requests."""
        await self.settle()
        while self.answer_one() or await self.learn():
            await self.settle()

    def correlation_ids(self) -> list[int]:
        return [int.from_bytes(answer[:4], "big", signed=True) for answer in self.answers]


def request(api_key: int, version: int, correlation_id: int, **fields: object) -> bytes:
    """Return the frame of a request, without its length."""
    codec = request_codec(api_key, version)
    message = codec.root(**fields)
    return request_frame(codec, api_key, correlation_id, "client", codec.encode(message))[4:]


def heartbeat(correlation_id: int, group: str = "group-one") -> bytes:
    """A request that passes as bytes, both ways."""
    return request(ApiKey.HEARTBEAT, 3, correlation_id, group_id=group, member_id="m")


def metadata(correlation_id: int, *names: str, version: int = 9) -> bytes:
    """A Metadata of these topics that creates none."""
    codec = request_codec(ApiKey.METADATA, version)
    topics = [codec.root.ELEMENTS["topics"].fit(name=name) for name in names]
    body = codec.encode(codec.root.fit(topics=topics, allow_auto_topic_creation=False))
    return request_frame(codec, ApiKey.METADATA, correlation_id, "client", body)[4:]


def delete_topic(correlation_id: int, name: str = "alpha-topic") -> bytes:
    """A request that first queries the existing topics."""
    return request(ApiKey.DELETE_TOPICS, 1, correlation_id, topic_names=[name], timeout=1)


def create_acls(correlation_id: int) -> bytes:
    """A request that kustos answers itself, later."""
    return request(ApiKey.CREATE_ACLS, 1, correlation_id, creations=[])


def versions(correlation_id: int) -> bytes:
    """A request that kustos answers itself, at once."""
    return request(ApiKey.API_VERSIONS, 0, correlation_id)


def fetch(
    correlation_id: int,
    topic: str = "alpha-topic",
    max_bytes: int = 2**31 - 1,
    partition_max_bytes: int = 0,
) -> bytes:
    """A Fetch of one partition, without a session, with this maximum of bytes; of one batch, if 0."""
    codec = request_codec(ApiKey.FETCH, 12)
    partition = codec.struct("FetchPartition")(partition=0, partition_max_bytes=partition_max_bytes)
    item = codec.struct("FetchTopic")(topic=topic, partitions=[partition])
    fields = {"max_wait": 1, "session_epoch": -1, "max_bytes": max_bytes, "topics": [item]}
    return request(ApiKey.FETCH, 12, correlation_id, **fields)


def produce(correlation_id: int, acks: int = 1, topic: str = "alpha-topic") -> bytes:
    """A Produce of one batch to one partition."""
    partition = request_struct(ApiKey.PRODUCE, 9, "PartitionProduceData", index=0, records=batch())
    item = request_struct(ApiKey.PRODUCE, 9, "TopicProduceData", name=topic, partition_data=[partition])
    return request(ApiKey.PRODUCE, 9, correlation_id, acks=acks, timeout=1, topic_data=[item])


def request_struct(api_key: int, version: int, struct: str, **fields: object) -> Any:
    """Return a nested struct of a request."""
    return request_codec(api_key, version).struct(struct)(**fields)
