"""What watches the two sides of kustos: answers that belong to their requests, requests that were decided.

At the brokers each request is decided about again, from Kafka's authorization facts and the specification,
by kio's reading alone. ACLs change meanwhile: a request may have been decided by any set that was in force
between the moment it can have been sent and `LATE_S` before it.
"""

import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from kustos.acl import AclBinding
from testkit.guarded import share_sessions
from testkit.guarded.share_sessions import SharesUpstream
from testkit.guarded.traffic_judge import (
    CREATE_TOPICS,
    FETCH,
    METADATA,
    OWN_APIS,
    OWN_CLIENT_ID,
    Key,
    Sessions,
    asked,
)
from testkit.tap.checker import violations
from testkit.tap.client import Client, Op, Question, Violation
from testkit.tap.frames import Request, read_request, read_response
from testkit.tap.needs import NEEDS

LATE_S: Final = 2.0
"""From a decision until the relay reads the request: both processes may wait for a core of a busy machine."""

LEARNED: Final = frozenset({FETCH, METADATA, CREATE_TOPICS, share_sessions.FETCH})
"""APIs whose answers tell what later requests mean."""

DecisionKey = tuple[str, int, str, str, str]
"""Principal, API, operation, resource type and name."""


@dataclass
class Epoch:
    """A set of ACLs, from when its creation was asked for until its end was acknowledged."""

    acls: tuple[AclBinding, ...]
    from_s: float
    until_s: float = inf
    clients: dict[str, Client] = field(default_factory=dict)


class Timeline:
    """The sets of ACLs that were or may have been in force."""

    def __init__(self, acls: Sequence[AclBinding], host: str, super_users: frozenset[str]) -> None:
        self.names: dict[bytes, str] = {}
        self._host = host
        self._super_users = super_users
        self._epochs = [Epoch(tuple(acls), -inf)]
        self._lock = threading.Lock()

    @property
    def acls(self) -> tuple[AclBinding, ...]:
        """The newest set."""
        return self._epochs[-1].acls

    def begin(self, acls: Sequence[AclBinding]) -> None:
        """Note that this set is asked for now."""
        with self._lock:
            self._epochs.append(Epoch(tuple(acls), time.monotonic()))

    def acknowledge(self) -> None:
        """Note that the newest set is acknowledged: none before it may decide any more."""
        with self._lock:
            for epoch in self._epochs[:-1]:
                epoch.until_s = min(epoch.until_s, time.monotonic())
            self._epochs = [each for each in self._epochs if each.until_s > time.monotonic() - 600]

    def clients(self, user: str, since_s: float) -> list[Client]:
        """Return the user as each set sees it that can have decided what was sent since then."""
        with self._lock:
            epochs = [each for each in self._epochs if each.until_s >= since_s - LATE_S]
        return [self._client(epoch, user) for epoch in epochs]

    def _client(self, epoch: Epoch, user: str) -> Client:
        if user not in epoch.clients:
            epoch.clients[user] = Client(
                f"User:{user}",
                self._host,
                epoch.acls,
                self.names,
                auto_creates_topics=False,
                super_users=self._super_users,
            )
        return epoch.clients[user]


@dataclass
class Waiting:
    """A request without an answer yet."""

    correlation_id: int
    api_key: int
    version: int
    body: Any = None


class Paired:
    """Holds the answers of a connection against its requests: each in turn, none of another's."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.report = report
        self._waiting: deque[Waiting] = deque()

    def went_up(self, frame: bytes, since_s: float) -> None:
        """Keep what the answer must have; what is not a request gets none."""
        if len(frame) < struct.calcsize(">hhi"):
            return
        api_key, version, correlation_id = struct.unpack_from(">hhi", frame)
        self._waiting.append(Waiting(correlation_id, api_key, version))

    def came_down(self, frame: bytes) -> None:
        """Report an answer that is not the next request's."""
        self.answered(frame)

    def owed(self) -> list[int]:
        """Return the API keys of the requests without an answer, the oldest first."""
        return [each.api_key for each in list(self._waiting)]

    def answered(self, frame: bytes) -> Waiting | None:
        """Return the request of an answer, None (and a report) where it is not the next one's."""
        (correlation_id,) = struct.unpack_from(">i", frame)
        if not self._waiting or self._waiting[0].correlation_id != correlation_id:
            expected = self._waiting[0] if self._waiting else None
            self.report(f"an answer to {correlation_id} came where {expected} was next")
            return None
        return self._waiting.popleft()


class Decided(Paired):
    """Decides again about each request that kustos sent to a broker on one connection."""

    def __init__(
        self, report: Callable[[str], None], timeline: Timeline, decisions: Counter[DecisionKey]
    ) -> None:
        super().__init__(report)
        self._timeline = timeline
        self._decisions = decisions
        self._sessions = Sessions()
        self._shares = SharesUpstream()

    def went_up(self, frame: bytes, since_s: float) -> None:
        """Report a request that no set of ACLs allows which can have decided it."""
        super().went_up(frame, since_s)
        api_key, _, _, size = struct.unpack_from(">hhih", frame)
        client_id = frame[10 : 10 + max(size, 0)].decode()
        if client_id.startswith(OWN_CLIENT_ID):
            if api_key not in OWN_APIS:
                self.report(f"kustos asks API {api_key} for itself")
            if api_key in LEARNED:
                self._waiting[-1].body = read_request(frame).body
            return
        request = read_request(frame)
        self._waiting[-1].body = request.body if api_key in LEARNED else None
        user = client_id.partition(":")[0]
        clients = self._timeline.clients(user, since_s)
        found = [self._violations(request, client) for client in clients]
        if all(found):
            self.report(f"{client_id}: {found[0]}, by none of {len(found)} sets of ACLs")
        self._count(request, user, clients[-1])

    def _violations(self, request: Request, client: Client) -> list[Violation]:
        found = violations(request, client)
        if request.api_key == FETCH:
            found += self._of_session(request.body, client)
        elif request.api_key == share_sessions.FETCH:
            found += self._shares.judge(request.body, client)
        return found

    def _of_session(self, body: Any, client: Client) -> list[Violation]:
        held = self._sessions.partitions(body)
        if held is None and getattr(body, "session_epoch", -1) > 0:
            return [Violation("fetch", "a session is the connection's own", f"{body.session_id}")]
        partitions: dict[Key, None] = dict.fromkeys(asked(body)) if held is None else held
        return [
            Violation("fetch", "no session upstream holds what may not be read", repr(key))
            for key in partitions
            if client.topic_refusal(Op.READ, key[0]) is not None
        ]

    def _count(self, request: Request, user: str, client: Client) -> None:
        needed: set[Question] = {
            need[0] for need in NEEDS[request.api_key](request, client) if len(need) == 1
        }
        for operation, kind, name in needed:
            self._decisions[(user, request.api_key, operation.name, kind.name, name)] += 1

    def came_down(self, frame: bytes) -> None:
        """Learn topic names and sessions from an answer."""
        waiting = self.answered(frame)
        if waiting is None or waiting.body is None:
            return
        answer = read_response(frame, waiting.api_key, waiting.version)[1]
        if waiting.api_key == FETCH:
            self._sessions.learn(waiting.body, answer)
        elif waiting.api_key == share_sessions.FETCH:
            for violation in self._shares.learn(waiting.body, answer):
                self.report(str(violation))
        else:
            for topic in answer.topics:
                if getattr(topic, "topic_id", None) is not None and topic.name:
                    self._timeline.names[topic.topic_id.bytes] = str(topic.name)
