"""Re-decides everything that two taps saw: between clients and kustos, and between kustos and upstream.

The decisions are those of `testkit.tap.checker`, which reads with kio and decides with the specification.
Added here is what lies across frames: who a client id is, which partitions a fetch session holds
(KIP-227), and what topics are called. Several ACL sets may be given where they changed meanwhile; what
each of them forbids is a violation.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kio.static.constants import EntityType

from kustos.acl import AclBinding
from testkit.guarded import share_sessions
from testkit.guarded.share_sessions import SharesUpstream
from testkit.tap import Exchange, Tap
from testkit.tap.checker import Violation, check_request, check_response
from testkit.tap.client import Client, Op
from testkit.tap.frames import code, entity, read_response, reader, topic_key

PRODUCE, FETCH, METADATA, API_VERSIONS, CREATE_TOPICS, DESCRIBE_CONFIGS = 0, 1, 3, 18, 19, 32
DESCRIBE_TOPIC_PARTITIONS = 75
SASL = frozenset({17, 36})
OWN_CLIENT_ID = "kustos"
OWN_APIS = frozenset({METADATA, API_VERSIONS, DESCRIBE_CONFIGS, DESCRIBE_TOPIC_PARTITIONS})
"""What kustos asks upstream for itself."""

Key = tuple[Any, ...]
Acls = Sequence[AclBinding]


@dataclass
class Verdict:
    """What was judged, and what was wrong with it."""

    forwarded: int = 0
    answered: int = 0
    own: int = 0
    violations: list[tuple[str, Violation]] = field(default_factory=list)


@dataclass
class Sessions:
    """The fetch sessions of one connection, as the answers tell them."""

    by_id: dict[int, dict[Key, None]] = field(default_factory=dict)

    def partitions(self, body: Any) -> dict[Key, None] | None:
        """Return all partitions that an incremental Fetch asks for, None where it is a full one."""
        if getattr(body, "session_epoch", -1) <= 0 or body.session_id not in self.by_id:
            return None
        held = dict(self.by_id[body.session_id])
        held.update(dict.fromkeys(asked(body)))
        for topic in body.forgotten_topics_data:
            for partition in topic.partitions:
                held.pop((topic_key(topic), partition), None)
        return held

    def learn(self, body: Any, answer: Any) -> None:
        """Take note of what an answer says of the session."""
        session_id = getattr(answer, "session_id", 0)
        if not session_id or code(answer):
            return
        held = self.partitions(body)
        self.by_id[session_id] = dict.fromkeys(asked(body)) if held is None else held


def asked(body: Any) -> list[Key]:
    """Return the partitions that a Fetch names."""
    return [
        (topic_key(topic), partition.partition) for topic in body.topics for partition in topic.partitions
    ]


class Judge:
    """Judges what the taps recorded. `names` may hold topics that are known beforehand."""

    def __init__(self, super_users: frozenset[str], host: str) -> None:
        self.super_users = super_users
        self.host = host
        self.names: dict[bytes, str] = {}
        self.user_of: Callable[[str], str] = str
        """The user whose client has this id: of the same name, unless a program makes ids for its clients."""

    def judge(self, clients: Tap, upstream: Tap, acl_sets: Sequence[Acls]) -> Verdict:
        """Return the verdict on all that the taps hold."""
        # clients may go on meanwhile, in sessions whose first answer was not there when it was looked for
        asked, answered = _recorded(upstream), _recorded(clients)
        for exchange in upstream.exchanges:
            self.learn_names(exchange)
        verdict = Verdict()
        for exchanges in asked:
            self._judge_upstream(exchanges, acl_sets, verdict)
        for exchanges in answered:
            self._judge_answers(exchanges, acl_sets, verdict)
        return verdict

    def learn_names(self, exchange: Exchange) -> None:
        """Learn what topic ids are called from upstream's own answers."""
        if exchange.answer is None or exchange.api_key not in {METADATA, CREATE_TOPICS}:
            return
        body = read_response(exchange.answer, exchange.api_key, exchange.api_version)[1]
        for topic in body.topics:
            if getattr(topic, "topic_id", None) is not None and topic.name is not None:
                self.names[topic.topic_id.bytes] = str(topic.name)

    def _client(self, exchange: Exchange) -> dict[str, Any]:
        return {
            "principal": f"User:{self.user_of(exchange.client_id)}",
            "host": self.host,
            "topic_names": self.names,
            "super_users": self.super_users,
            "auto_creates_topics": False,
        }

    def _judge_upstream(self, exchanges: Iterable[Exchange], sets: Sequence[Acls], verdict: Verdict) -> None:
        sessions, shares = Sessions(), SharesUpstream()
        for exchange in exchanges:
            if exchange.client_id.startswith(OWN_CLIENT_ID):
                verdict.own += 1
                found = []
                if exchange.api_key not in OWN_APIS:
                    found = [Violation(str(exchange.api_key), "kustos asks only what it must", "")]
            else:
                verdict.forwarded += 1
                subject = self._client(exchange)
                by_set = [check_request(exchange.request, acls=acls, **subject) for acls in sets]
                if exchange.api_key == FETCH:
                    for violations, acls in zip(by_set, sets, strict=True):
                        violations += self._foreign_partitions(exchange, sessions, acls, subject)
                    _learn_session(sessions, exchange)
                if exchange.api_key == share_sessions.FETCH:
                    body = request_body(exchange)
                    for violations, acls in zip(by_set, sets, strict=True):
                        violations += shares.judge(body, Client(acls=acls, **subject))
                    if exchange.answer is not None:
                        answer = read_response(exchange.answer, exchange.api_key, exchange.api_version)[1]
                        verdict.violations += [
                            (exchange.client_id, each) for each in shares.learn(body, answer)
                        ]
                found = [] if not all(by_set) else by_set[0]
            verdict.violations += [(exchange.client_id, each) for each in found]

    def _foreign_partitions(
        self, exchange: Exchange, sessions: Sessions, acls: Acls, subject: dict[str, Any]
    ) -> list[Violation]:
        """Return why the session that upstream would serve, or what it did serve, must not be so."""
        client = Client(acls=acls, **subject)
        body = request_body(exchange)
        held = sessions.partitions(body)
        if held is None and getattr(body, "session_epoch", -1) > 0:
            return [Violation("fetch", "a session is the connection's own", f"{body.session_id}")]
        partitions = dict.fromkeys(asked(body)) if held is None else held
        served: list[Key] = []
        if exchange.answer is not None:
            answer = read_response(exchange.answer, FETCH, exchange.api_version)[1]
            served = [
                (topic_key(topic), each.partition_index)
                for topic in answer.responses
                for each in topic.partitions
            ]
        found = [
            Violation("fetch", "no session upstream holds what may not be read", repr(key))
            for key in partitions
            if client.topic_refusal(Op.READ, key[0]) is not None
        ]
        found += [
            Violation("fetch", "nothing comes that was not asked for", repr(key))
            for key in served
            if key not in partitions
        ]
        return found

    def _judge_answers(self, exchanges: Iterable[Exchange], sets: Sequence[Acls], verdict: Verdict) -> None:
        sessions = Sessions()
        authenticating = True
        for exchange in exchanges:
            authenticating = authenticating and exchange.api_key in SASL | {API_VERSIONS}
            if exchange.answer is None or exchange.api_key == API_VERSIONS or authenticating:
                continue
            verdict.answered += 1
            session = None
            if exchange.api_key == FETCH:
                session = sessions.partitions(request_body(exchange))
                _learn_session(sessions, exchange)
                if session is None and getattr(request_body(exchange), "session_epoch", -1) > 0:
                    continue  # no session of this connection: asserted by the tests themselves
            if getattr(request_body(exchange), "share_session_epoch", 0) != share_sessions.INITIAL:
                continue  # `test_protocol_share_sessions` holds what requests of a session are answered
            by_set = [
                check_response(
                    whole_request(exchange),
                    exchange.answer,
                    acls=acls,
                    session_partitions=session,
                    **self._client(exchange),
                )
                for acls in sets
            ]
            if all(by_set):
                verdict.violations += [(exchange.client_id, each) for each in by_set[0]]


def _recorded(tap: Tap) -> list[list[Exchange]]:
    """Return what has passed on each connection so far."""
    return [list(connection.exchanges) for connection in list(tap.connections)]


def _learn_session(sessions: Sessions, exchange: Exchange) -> None:
    if exchange.answer is not None:
        body = read_response(exchange.answer, FETCH, exchange.api_version)[1]
        sessions.learn(request_body(exchange), body)


def request_body(exchange: Exchange) -> Any:
    """Return the body of a request."""
    return read(exchange)[0]


def whole_request(exchange: Exchange) -> bytes:
    """Return a client's frame without what follows its body: librdkafka sends a few bytes too many."""
    return exchange.request[: read(exchange)[1]]


def read(exchange: Exchange) -> tuple[Any, int]:
    """Return the body of a request whose header has no tagged fields, and where it ends."""
    made = entity(exchange.api_key, exchange.api_version, EntityType.request)
    (size,) = struct.unpack_from(">h", exchange.request, 8)
    start = 10 + max(size, 0) + (1 if made.__flexible__ else 0)
    body, length = reader(exchange.api_key, exchange.api_version, EntityType.request)(exchange.request, start)
    return body, start + length
