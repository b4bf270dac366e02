"""Runs frames through the guard against the model cluster, without IO; keeps every forwarded frame."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID
from zlib import crc32

from kustos.acl import AclBinding, KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext, StandardAuthorizer
from kustos.gateway.session.answers import read_answer
from kustos.gateway.session.fetched_stream import FetchedStream
from kustos.gateway.upstream.answers import STREAM_HEAD_BYTES
from kustos.protocol import (
    TABLE,
    AllTopics,
    Ask,
    AskStreamed,
    ClusterTopics,
    Decided,
    Effect,
    GiveWay,
    Guard,
    Hangup,
    ListTopics,
    NamedBroker,
    Opened,
    Plan,
    RefusedFrameError,
    Relay,
    Reply,
    ResolveTopicIds,
    Serve,
)
from kustos.protocol.api_versions import common_versions
from kustos.wire import (
    MalformedMessageError,
    Message,
    RequestHeader,
)
from kustos.wire.api_keys import ApiKey
from testkit.protocol.cluster_model import PARTITIONS, Model
from testkit.tap.checker import Violation, check_request, check_response
from testkit.tap.fetch_sessions import UpstreamFetchSessions

PIECE_SIZES = 40
"""Streamed answers arrive in pieces smaller than this, so that every field is cut."""

OWN_REQUEST = Ask()
PRINCIPAL, HOST = "User:alice", "10.0.0.1"
OFFERED = {
    key: versions for key, row in TABLE.items() if (versions := common_versions(row, None)) is not None
}
EVERY_VERSION = [
    (key, version) for key, (lowest, highest) in OFFERED.items() for version in range(lowest, highest + 1)
]


class GatewayAddresses:
    """Maps every broker to the gateway's address, and keeps the learned addresses."""

    def __init__(self) -> None:
        self.known: dict[int, NamedBroker] = {}

    def advertised(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        return "gateway", 9000 + node_id

    def learn(self, brokers: Iterable[NamedBroker]) -> None:
        new = {each.node_id: each for each in brokers if self.known.get(each.node_id) != each}
        if new:
            self.known = self.known | new


@dataclass
class Outcome:
    """The outcome of a frame: everything sent upstream, the response (None: silence), whether it closed."""

    forwarded: list[bytes] = field(default_factory=list)
    response: bytes | None = None
    closed: str | None = None
    served: Message | None = None
    opened: Opened | None = None
    decided: tuple[Decided, ...] = ()
    """The earlier decisions on the repeated request."""

    @property
    def seen(self) -> tuple[object, ...]:
        """The visible effects of the request: upstream, for the client, and in the audit log."""
        later = () if self.opened is None else tuple(self.opened.exchange.decided)
        return self.forwarded, self.response, self.closed, self.decided + later


def context_of(_header: RequestHeader) -> AuthorizableRequestContext:
    return AuthorizableRequestContext(KafkaPrincipal.parse(PRINCIPAL), HOST, "CLIENTS", "SASL_PLAINTEXT")


@dataclass
class Driver:
    """One connection of one principal. Frames have no length prefix."""

    model: Model
    acls: list[AclBinding]
    ready: bool = True

    def __post_init__(self) -> None:
        self.authorizer = StandardAuthorizer()
        self._ids = 0
        self.topics = ClusterTopics(())
        self.repeats = 0
        """Answers that passed unread."""
        for acl in self.acls:
            self._load(acl)
        if self.ready:
            self.authorizer.complete_initial_load()
        session = self.authorizer.session(KafkaPrincipal.parse(PRINCIPAL), HOST)
        self.fetch_tap = UpstreamFetchSessions()
        self.seen: list[Violation] = []
        self.guard = Guard(session, context_of, GatewayAddresses(), OFFERED, self.model.auto_creates)

    def _load(self, acl: AclBinding) -> None:
        self._ids += 1
        self.authorizer.add_acl(UUID(int=self._ids), acl)

    def replace_acls(self, acls: list[AclBinding]) -> None:
        """Replace the ACLs, as if an administrator had changed them in between."""
        self.acls = acls
        self.authorizer.load_snapshot([(UUID(int=10_000 + i), acl) for i, acl in enumerate(acls)])

    def run(self, frame: bytes) -> Outcome:
        """Run one request to its end."""
        outcome = Outcome()
        plan = self.guard.plan_of(frame)
        if plan is not None and self._names(plan.topic_names) == plan.topic_names:
            return self._repeat(plan, frame, outcome)
        try:
            opened = self.guard.open(frame)
        except RefusedFrameError as refusal:
            outcome.closed = str(refusal)
            return outcome
        if isinstance(opened, bytes):
            outcome.response = opened[4:]
            return outcome
        outcome.opened = opened
        self.start(opened)
        return self._go_on(opened, None, outcome)

    def _repeat(self, plan: Plan, frame: bytes, outcome: Outcome) -> Outcome:
        """Send a request by its plan; open it only if its answer must be read."""
        outcome.decided = plan.decided
        answer = self._forward(plan.upstream_frame(frame), outcome)
        assert answer is not None, "an awaited answer is missing"
        if (passed := self.guard.pass_on(plan, answer)) is not None:
            outcome.response = passed.frame[4:]
            self.repeats += 1
            return outcome
        outcome.opened, ask = self.guard.reopen(plan, frame)
        return self._go_on(outcome.opened, read_answer(outcome.opened, answer, ask), outcome)

    def _names(self, topic_ids: Collection[bytes]) -> dict[bytes, str]:
        return {key: name for key, name in self.model.names.items() if key in topic_ids}

    def _go_on(self, opened: Opened, result: Any, outcome: Outcome) -> Outcome:
        exchange, taken = opened.exchange, list[Decided]()
        try:
            while True:
                try:
                    effect = opened.handler.send(result)
                except StopIteration as stop:
                    self._conclude(opened, stop.value, outcome)
                    return outcome
                # a session takes what was decided at each step
                taken += exchange.decided
                exchange.decided = []
                try:
                    result = self._perform(opened, effect, outcome)
                except StreamEndedError:
                    return outcome
        finally:
            exchange.decided = taken + exchange.decided

    def start(self, opened: Opened) -> None:
        """Inspect a request before its handler runs."""

    def _perform(self, opened: Opened, effect: Effect, outcome: Outcome) -> Any:
        match effect:
            case Ask(message, version, api_key):
                frame = self._forward(opened.upstream_frame(message, version, api_key), outcome)
                assert frame is not None, "an awaited answer is missing"
                return read_answer(opened, frame, effect)
            case AskStreamed(message):
                frame = self._forward(opened.upstream_frame(message), outcome)
                assert frame is not None, "an awaited answer is missing"
                return self._stream(opened, effect, frame, outcome)
            case ResolveTopicIds(topic_ids):
                return self._names(topic_ids)
            case ListTopics(names):
                return {name: PARTITIONS for name in self.model.topics if names is None or name in names}
            case AllTopics():
                every = tuple(self.model.topics)
                if self.topics.names != every:
                    self.topics = ClusterTopics(every, self.topics.number + 1)
                return self.topics
            case GiveWay():
                return None
            case Serve():
                outcome.served = opened.exchange.request
                return served(opened, outcome.served)

    def _stream(self, opened: Opened, ask: AskStreamed, frame: bytes, outcome: Outcome) -> Any:
        """Stream an answer whole or in pieces, chosen by its bytes."""
        sent: list[bytes] = []
        stream = FetchedStream(opened, ask, sent.append)
        size = crc32(frame) % PIECE_SIZES
        try:
            if size == 0:
                answer = stream.end(frame)
            else:
                pieces = [frame[at : at + size] for at in range(0, len(frame), size)]
                while len(pieces) > 1 and len(pieces[0]) < STREAM_HEAD_BYTES:
                    pieces[:2] = [pieces[0] + pieces[1]]
                passes = stream.begin(len(frame), pieces[0])
                for piece in pieces[1:] if passes else ():
                    stream.feed(piece)
                answer = stream.end(b"") if passes else None
        except MalformedMessageError as error:
            outcome.closed = str(error)
            raise StreamEndedError from error
        if answer is None:
            return read_answer(opened, frame)
        outcome.response = b"".join(sent)[4:]
        return answer

    def _forward(self, frame: bytes, outcome: Outcome) -> bytes | None:
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        outcome.forwarded.append(frame[4:])
        self.seen += self.fetch_tap.request(frame[4:], PRINCIPAL, HOST, self.acls, self.model.names)
        answer = self.model.answer(frame[4:])
        if answer is not None:
            self.fetch_tap.response(answer)
        return answer

    def _conclude(self, opened: Opened, end: Any, outcome: Outcome) -> None:
        match end:
            case Reply(content):
                outcome.response = opened.client_frame(content)[4:]
            case Relay(message):
                outcome.response = self._forward(opened.upstream_frame(message), outcome)
                assert outcome.response is not None, "an awaited answer is missing"
            case Hangup(reason):
                outcome.closed = reason

    def checked(
        self, frame: bytes, session_partitions: list[tuple[str | bytes, int]] | None = None
    ) -> tuple[Outcome, list[Violation]]:
        """Run a canonical frame, and decide on every forwarded item again."""
        names, auto = dict(self.model.names), self.model.auto_creates
        outcome = self.run(frame)
        found: list[Violation] = list(self.seen)
        for forwarded in outcome.forwarded:
            found += check_request(forwarded, PRINCIPAL, HOST, self.acls, names, auto_creates_topics=auto)
        if outcome.response is not None and outcome.closed is None:
            found += check_response(
                frame,
                outcome.response,
                PRINCIPAL,
                HOST,
                self.acls,
                names,
                auto_creates_topics=auto,
                session_partitions=session_partitions,
            )
        return outcome, found


class StreamEndedError(Exception):
    """The connection ended during a streamed answer."""


def served(opened: Opened, request: Message) -> Message:
    """Return a plausible response to a request that kustos serves itself, one item per requested item."""
    root = opened.exchange.response_codec.root
    lists = {"creations": "results", "filters": "filter_results"}
    for asked, answered in lists.items():
        if asked in request.FIELDS:
            item = root.ELEMENTS[answered]
            return root(**{answered: [item() for _ in getattr(request, asked)]})
    if "deletions" in request.FIELDS:
        users = {item.name for item in (*request.deletions, *request.upsertions)}
        return root(results=[root.ELEMENTS["results"](user=user) for user in sorted(users)])
    if opened.row.api_key == ApiKey.DESCRIBE_CONFIGS:
        result = root.ELEMENTS["results"]
        config = result.ELEMENTS["configs"](name="super.users", value=OWN_SUPER_USERS)
        asked_by = [(each.resource_type, each.resource_name) for each in request.resources]
        return root(
            results=[
                result(resource_type=kind, resource_name=name, configs=[config]) for kind, name in asked_by
            ]
        )
    return root()


OWN_SUPER_USERS = "User:of-this-node"
"""The value kustos reports for its own `super.users`."""
