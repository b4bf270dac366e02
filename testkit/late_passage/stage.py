"""What one test has for itself: a client, a topic, a group, rights on them, and a broker that is told apart.

The broker is also reached directly, past the guard, to let requests wait there and to see what it did.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self

from kustos.acl import AclBinding, AclPermissionType, ResourceType
from testkit.guarded.cluster import Op, Type, acl
from testkit.guarded.raw_client import RawClient, framed
from testkit.late_passage import fields as frames
from testkit.late_passage.fields import (
    CREATE_ACLS,
    CREATE_TOPICS,
    DELETE_ACLS,
    FETCH,
    METADATA,
    PRODUCE,
    VERSIONS,
)
from testkit.tap import Tap
from testkit.tap.frames import code, read_response
from testkit.waiting import wait_until

WAIT_S: Final = 60.0
LATE, AFTER = b"sent-before-the-change", b"written-after-the-change"
TOPIC_AUTHORIZATION_FAILED, REQUEST_TIMED_OUT = 29, 7

Answers = list[tuple[int, Any]]
"""API key and body of each answer, in order."""


class Stage:
    """A user's topic and group behind one broker; `guard` is that broker's address at kustos."""

    def __init__(
        self,
        name: str,
        *,
        user: str,
        passwords: Mapping[str, str],
        guard: str,
        direct: str,
        broker: int,
        tap: Tap | None = None,
        admin: str | None = None,
    ) -> None:
        self.name = name
        self.topic = f"topic-{name}"
        self.group = f"group-{name}"
        self.user = user
        self.client_id = f"client-{name}"
        self.direct = direct
        self.broker = broker
        self.tap = tap
        self._guard = guard
        self._admin = admin or guard
        self._passwords = passwords
        self._stack = ExitStack()
        self._granted: list[AclBinding] = []

    def __enter__(self) -> Self:
        """Make topic and rights, and connect."""
        with self._stack:
            self.kafka = self._open(RawClient(self.direct, "direct"))
            self.connect_admin()
            self.make_topic(self.topic, [self.broker])
            for operation in (Op.READ, Op.WRITE):
                self.grant(acl(self.user, operation, Type.TOPIC, self.topic))
            self.grant(acl(self.user, Op.READ, Type.GROUP, self.group))
            self.client = self.connect()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _open(self, client: RawClient) -> RawClient:
        client.socket.settimeout(WAIT_S)
        return self._stack.enter_context(client)

    def unauthenticated(self, client_id: str | None = None) -> RawClient:
        """Return a connection to the guard on which nobody logged in yet; it is closed at the end."""
        return self._open(RawClient(self._guard, client_id or self.client_id))

    def connect_admin(self) -> None:
        """Connect the administrator, at first or again."""
        self.admin = self._open(RawClient(self._admin, "operator"))
        self.admin.log_in("admin", self._passwords["admin"])

    def connect(self, client_id: str | None = None, user: str | None = None) -> RawClient:
        """Return a connection of the user that leads to the broker already; it is closed at the end."""
        name = user or self.user
        client = self.unauthenticated(client_id).log_in(name, self._passwords[name])
        self.ask(client, METADATA, **frames.metadata(self.topic))
        return client

    def at_broker(self) -> RawClient:
        """Return a connection past the guard; it is closed at the end."""
        return self._open(RawClient(self.direct, "direct"))

    def finally_do(self, undo: Any) -> None:
        """Do this at the end, whatever happens."""
        self._stack.callback(undo)

    def make_topic(self, topic: str, brokers: list[int]) -> None:
        """Make a topic of one partition on these brokers, the first its leader; return once it serves."""
        answer = self.ask(self.kafka, CREATE_TOPICS, **frames.create_topic(topic, brokers))
        assert [code(each) for each in answer.topics] == [0]

        def serves() -> bool:
            [found] = self.ask(self.kafka, METADATA, **frames.metadata(topic)).topics
            parts = found.partitions
            if not parts or code(parts[0]) or set(parts[0].isr_nodes) != set(brokers):
                return False
            # a broker tells of a partition a moment before it has it
            answer = self.ask(self.kafka, FETCH, **frames.fetch(topic, max_wait_ms=0))
            return refusal(FETCH, answer) == 0

        wait_until(serves, what=f"`{topic}` has all its replicas")

    # changes

    def ask(self, client: RawClient, api_key: int, **fields: Any) -> Any:
        """Return the body of an answer."""
        return client.ask(api_key, VERSIONS[api_key], **fields)

    def grant(self, *bindings: AclBinding) -> None:
        """Have these ACLs made."""
        answer = self.ask(self.admin, CREATE_ACLS, **frames.create_acls(*bindings))
        assert [code(each) for each in answer.results] == [0] * len(bindings)
        self._granted.extend(bindings)

    def granted(self, kind: ResourceType, name: str) -> list[AclBinding]:
        """Return what the user may do with a resource."""
        return [
            each for each in self._granted if (each.pattern.resource_type, each.pattern.name) == (kind, name)
        ]

    def delete(self, kind: ResourceType = Type.TOPIC, name: str | None = None) -> list[int]:
        """Take the rights on a resource, by default the topic; return the codes of the answer."""
        return self.delete_exactly(self.admin, *self.granted(kind, name or self.topic))

    def delete_exactly(self, client: RawClient, *bindings: AclBinding) -> list[int]:
        """Ask on this connection for the deletion of these ACLs; return the codes of the answer."""
        answer = self.ask(client, DELETE_ACLS, **frames.delete_acls(*bindings))
        return [code(each) for each in answer.filter_results]

    def deny(self) -> list[int]:
        """Deny what the user may do with the topic; return the codes of the answer."""
        denials = [
            replace(each, entry=replace(each.entry, permission_type=AclPermissionType.DENY))
            for each in self.granted(Type.TOPIC, self.topic)
        ]
        answer = self.ask(self.admin, CREATE_ACLS, **frames.create_acls(*denials))
        return [code(each) for each in answer.results]

    # the client's requests

    def request(self, api_key: int, **fields: Any) -> bytes:
        """Return a frame of the client's."""
        return self.client.request(api_key, VERSIONS[api_key], **fields)

    def send(self, *requests: bytes) -> None:
        """Send requests at once, so that all of them come in one read."""
        self.client.socket.sendall(b"".join(map(framed, requests)))

    def behind(self, *, acks: int = 1) -> tuple[bytes, bytes]:
        """Return what is sent behind a request that waits: a Produce and a Fetch."""
        return (
            self.request(PRODUCE, **frames.produce(self.topic, LATE, acks=acks)),
            self.request(FETCH, **frames.fetch(self.topic, max_wait_ms=frames.LONG_MS)),
        )

    def went_up(self, api_key: int) -> bool:
        """Return whether a request of the client's went to the broker that was not answered yet."""
        assert self.tap is not None
        return any(
            each.api_key == api_key and each.client_id == self.client_id and each.answer is None
            for each in self.tap.exchanges
        )

    def wait_handed_over(self, api_key: int) -> None:
        """Return once the broker was sent such a request and has not answered it."""
        wait_until(lambda: self.went_up(api_key), what="the broker was sent a request")

    def answers(self, *api_keys: int) -> Answers:
        """Return what is answered to requests of these APIs, in order, as far as the connection lasts."""
        found: Answers = []
        for api_key in api_keys:
            try:
                frame = self.client.receive()
            except EOFError:
                break
            found.append((api_key, read_response(frame, api_key, VERSIONS[api_key])[1]))
        return found

    # what the broker did

    def write(self, value: bytes, topic: str | None = None) -> None:
        """Have the broker itself take a record."""
        answer = self.ask(self.kafka, PRODUCE, **frames.produce(topic or self.topic, value))
        assert code(answer.responses[0].partition_responses[0]) == 0

    def log(self) -> bytes:
        """Return all that was written to the topic; something must have been."""
        answer = self.ask(self.kafka, FETCH, **frames.fetch(self.topic, max_wait_ms=frames.LONG_MS))
        return records_of(answer)

    def assert_nothing_late(self, answers: Answers) -> None:
        """Assert that the broker wrote nothing for the client, and that it read nothing for it.

        `answers` are those to what was sent behind, as far as the connection lasted.
        """
        written = self.log()
        assert AFTER in written
        assert LATE not in written, "the broker wrote a record after the change was acknowledged"
        for api_key, answer in answers:
            if api_key in {PRODUCE, FETCH}:
                assert refusal(api_key, answer) == TOPIC_AUTHORIZATION_FAILED, f"API {api_key} was worked on"
            if api_key == FETCH:
                assert not records_of(answer)


def refusal(api_key: int, answer: Any) -> int:
    """Return the code of the one partition that was asked for."""
    topic = answer.responses[0]
    return code((topic.partition_responses if api_key == PRODUCE else topic.partitions)[0])


def records_of(answer: Any) -> bytes:
    """Return the records of a Fetch answer as they are."""
    found = [each.records for topic in answer.responses for each in topic.partitions]
    return b"".join(bytes(each) for each in found if each is not None)
