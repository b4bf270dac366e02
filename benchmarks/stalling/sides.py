"""Who is attacked: a Kafka broker with StandardAuthorizer, and kustos nodes before another broker."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.stalling import bystander
from kustos.acl import AclBinding
from testkit.guarded.cluster import Op, Type, acl
from testkit.guarded.raw_client import RawClient
from testkit.guarded.workers import worker_pids, writer_pid
from testkit.kafka import PLAINTEXT, SASL_PLAINTEXT, STANDARD_AUTHORIZER, KafkaNode, NodeSettings
from testkit.kustos import KustosNode, KustosSettings
from testkit.late_passage import fields as frames
from testkit.ports import LOOPBACK
from testkit.waiting import wait_until

ADMIN: Final = "admin"
NOBODY: Final = "nobody"
"""A user who can log in and has no ACL."""

READER: Final = "reader"
USERS: Final = {name: f"{name}-secret" for name in (ADMIN, NOBODY, READER, bystander.USER)}
DATA_TOPIC: Final = "data"
ACLS: Final = (
    acl(bystander.USER, Op.DESCRIBE, Type.TOPIC, bystander.TOPIC),
    acl(READER, Op.READ, Type.TOPIC, DATA_TOPIC),
)
TOKENS: Final = {"delegation.token.secret.key": "of-the-tokens"}
HEAP: Final = "1g"
READY_TIMEOUT_S: Final = 120.0
ANSWER_TIMEOUT_S: Final = 120.0
"""How long an attacker waits for one answer: longer than any stall that was seen."""

SERVED_MS: Final = 100.0
"""Who waits for less is being served."""

FIRST_BROKER: Final = 1


@dataclass(frozen=True)
class Side:
    """An address to attack, and the process that was started for it; `node` is None for a broker."""

    name: str
    address: str
    pid: int
    node: KustosNode | None = None

    @property
    def workers(self) -> list[int]:
        """The processes that serve clients beside the first, as they are now: some may have been replaced."""
        return [] if self.node is None else worker_pids(self.node)

    def connect(self, user: str | None) -> RawClient:
        """Return a connection of a user, or one on which nobody has logged in."""
        client = RawClient(self.address, "attacker")
        client.socket.settimeout(ANSWER_TIMEOUT_S)
        return client if user is None else client.log_in(user, USERS[user])

    def memory_mb(self) -> float:
        """Return what is resident of all its processes, pages that they share counted once."""
        return sum(map(_proportional_kb, [self.pid, *self.workers])) / 1024

    def settle(self) -> None:
        """Return when it is ready, after whatever was done to it."""
        if self.node is not None:
            wait_until(self.node.is_ready, timeout_s=READY_TIMEOUT_S, what=f"{self.name} is ready")

    @contextmanager
    def watched(self, *, asks_by_id: bool) -> Iterator["Watch"]:
        """Have a bystander ask meanwhile."""
        host, _, port = self.address.rpartition(":")
        kind = "id" if asks_by_id else "name"
        line = [sys.executable, "-m", "benchmarks.stalling.bystander", host, port, kind]
        with subprocess.Popen(
            [*line, *map(str, self.workers)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            watch = Watch(process)
            try:
                watch.wait_ready()
                yield watch
            finally:
                process.kill()


def _proportional_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # a worker that was killed meanwhile
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


class Watch:
    """The bystander's process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the bystander ended")
        return line

    def wait_ready(self) -> None:
        """Return when it asks."""
        self._line()

    def longest_until_served(self) -> float:
        """Return the longest wait in milliseconds since the last time, and until it waits no more."""
        longest_ms = 0.0

        def is_served() -> bool:
            nonlocal longest_ms
            seen = self.take()
            longest_ms = max(longest_ms, seen["longest_ms"])
            return bool(seen["requests"]) and seen["waiting_ms"] < SERVED_MS

        wait_until(is_served, timeout_s=READY_TIMEOUT_S, what="the bystander is served again")
        return longest_ms

    def take(self) -> dict[str, Any]:
        """Return what it saw since the last time."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        seen: dict[str, Any] = json.loads(self._line())
        return seen


def broker_settings() -> NodeSettings:
    """Return those of the broker that is the measure."""
    return NodeSettings(
        listeners=(SASL_PLAINTEXT,), users=USERS, authorizer=STANDARD_AUTHORIZER,
        super_users=(f"User:{ADMIN}",), properties=TOKENS, peak=True, heap=HEAP,
    )  # fmt: skip


class Field:
    """The brokers of a run: the measure, and the one behind kustos."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._made = 0
        self.measure = KafkaNode(directory / "measure", broker_settings())
        upstream = NodeSettings(listeners=(PLAINTEXT,), peak=True, heap=HEAP)
        self.upstream = KafkaNode(directory / "upstream", upstream)

    @contextmanager
    def started(self) -> Iterator[None]:
        """Have both brokers serve, with the topics on each."""
        with self.measure, self.upstream:
            upstream = {"bootstrap.servers": self.upstream.bootstrap}
            for properties in (as_admin(self.measure.bootstrap), upstream):
                admin = AdminClient({"log_level": 0, **properties})
                topics = [NewTopic(name, 1, 1) for name in (bystander.TOPIC, DATA_TOPIC)]
                for made in admin.create_topics(topics).values():
                    made.result(READY_TIMEOUT_S)
            grant(self.kafka(), ACLS)
            yield

    def kafka(self) -> Side:
        """Return the broker that is the measure."""
        return Side("Kafka", self.measure.address("SASL_PLAINTEXT"), self.measure.pid)

    @contextmanager
    def kustos(self, workers: int) -> Iterator[Side]:
        """Lend a fresh node of one process or of several workers."""
        self._made += 1
        properties = TOKENS | ({"kustos.workers": str(workers)} if workers > 1 else {})
        settings = KustosSettings(users=USERS, acls=ACLS, super_users=(ADMIN,), properties=properties)
        name = f"kustos-{self._made}"
        with KustosNode(self._directory / name, self.upstream.bootstrap, settings) as node:
            address = f"{LOOPBACK}:{node.first_broker_port + FIRST_BROKER}"
            name = f"kustos, {workers} workers" if workers > 1 else "kustos"
            yield Side(name, address, writer_pid(node), node)


def as_admin(bootstrap: str) -> dict[str, str]:
    """Return the properties by which a client of librdkafka is the administrator of a side."""
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": ADMIN,
        "sasl.password": USERS[ADMIN],
    }


def grant(side: Side, bindings: tuple[AclBinding, ...]) -> None:
    """Have ACLs made."""
    with side.connect(ADMIN) as client:
        answer = client.ask(frames.CREATE_ACLS, 3, **frames.create_acls(*bindings))
        if any(int(each.error_code) for each in answer.results):
            raise RuntimeError(f"{side.name} did not make the ACLs")
