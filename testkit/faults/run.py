"""One run: rounds of load and faults, each followed by a rest in which everything is drained and measured."""

import gc
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from kustos.metadata.directory.loader import read_image
from testkit.faults.administrator import AclChanges, TopicChanges
from testkit.faults.clients.notes import Orders
from testkit.faults.injector import Injector
from testkit.faults.ledger import Ledger, Place, held_against, unread
from testkit.faults.measure import Sample, sample
from testkit.faults.observers import DecisionKey
from testkit.faults.scene import (
    PARTITIONS,
    SHARED_GROUP,
    SHARED_TOPIC,
    TOPICS,
    USERS,
    WRITTEN_TOPICS,
    FaultScene,
)
from testkit.faults.schedule import Kind, Side
from testkit.guarded.workers import figure
from testkit.kafka.compiled import java_program
from testkit.paths import ROOT
from testkit.processes import Server
from testkit.waiting import DeadlineExceededError, wait_until

JAVA_CLIENT: Final = ROOT / "testkit" / "faults" / "clients" / "FaultClient.java"
PROGRAMS: Final = ("librdkafka", "python_client", "rude")
PROGRAM_ENDS_S: Final = 240.0
"""Each waits for its last records, transactions and members of groups."""

WRITTEN_S: Final = 120.0
"""How long a round goes on for a program that has hardly begun, as on a machine that is busy otherwise."""

DRAINED_S: Final = 120.0
SAMPLE_EVERY_S: Final = 5.0
READ_S: Final = 120.0

GROWTH_MB: Final = 12.0
GROWTH_SHARE: Final = 0.2
"""Bounds of the memory of a process that lived through all rounds, from the first rest to the last: an
allocator gives back pages as it likes, and a leak of a few bytes a request is more within an hour."""

SHOWN_MAX: Final = 10
"""Problems that are shown at a rest; all are at the end."""

NONE_OF: Final = ("kustos_audit_dropped_events_total",)
"""Figures that must be 0 at the end."""

GROWTH_DESCRIPTORS: Final = 4
GROWTH_TASKS: Final = 4


@dataclass
class Outcome:
    """What a run was and found."""

    seed: int
    seconds: float = 0.0
    figures: dict[str, int] = field(default_factory=dict)
    faults: Counter[Kind] = field(default_factory=Counter)
    details: Counter[str] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)
    rests: list[Sample] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Run:
    """The rounds of one run over a scene."""

    def __init__(self, scene: FaultScene, seed: int, tell: Callable[[str], None]) -> None:
        self.scene = scene
        self.outcome = Outcome(seed)
        self.ledger = Ledger()
        self._tell = tell
        self._injector = Injector(scene)
        password = USERS["admin"]
        self._acl_changes = AclChanges(scene.kustos.bootstrap, password, scene.timeline)
        self._topic_changes = TopicChanges(scene.librdkafka("adam", "topics"))
        self._rests = threading.Event()

    def rounds(self, count: int, length_s: float) -> Outcome:
        """Run, then hold what was said against what is; return what came of it."""
        begun_s = time.monotonic()
        with self._sampling():
            for number in range(count):
                self._round(number, length_s, kills_node=number == 0)
                self._rest(number)
        self._judge()
        self.outcome.seconds = time.monotonic() - begun_s
        return self.outcome

    def _round(self, number: int, length_s: float, *, kills_node: bool) -> None:
        directory = self.scene.directory / f"round-{number}"
        directory.mkdir()
        programs = self._programs(directory, number)
        ends = threading.Event()
        seed = self.outcome.seed * 1_000 + number
        changes = [
            threading.Thread(target=self._acl_changes.run, args=(seed, ends)),
            threading.Thread(target=self._topic_changes.run, args=(seed, f"made-{number}", ends)),
        ]
        for thread in changes:
            thread.start()
        self._injector.begin(self.outcome.seed, number)
        # the first round warms up: only after it are there processes whose growth can be told
        length_s = length_s / 2 if kills_node else length_s
        ends.wait(length_s)
        self._injector.end()
        if kills_node:
            self._injector.kill_node()
            self._injector.counts[Kind.KILL_NODE] += 1
            self._injector.begin(self.outcome.seed, -1)
            ends.wait(length_s)
            self._injector.end()
        self._wait_written(directory)
        ends.set()
        for thread in changes:
            thread.join()
        # an admin client is in the cycle of the traceback of what it failed in
        gc.collect()
        (directory / "stop").touch()
        for program in programs:
            code = program.wait(timeout_s=PROGRAM_ENDS_S)
            if code:
                self.outcome.problems.append(f"{program.name} ended with {code}: {program.tail()}")
        for notes in sorted(directory.glob("*.notes")):
            self.ledger.add(notes)

    def _wait_written(self, directory: Path) -> None:
        """Return when each topic has a record of this round; note a problem if one has none."""

        def missing() -> list[str]:
            ledger = Ledger()
            for notes in directory.glob("*.notes"):
                ledger.add(notes)
            return [name for name in WRITTEN_TOPICS if name not in ledger.written_topics]

        try:
            wait_until(missing, holds=lambda names: not names, what="each is written to", timeout_s=WRITTEN_S)
        except DeadlineExceededError as error:
            self.outcome.problems.append(str(error))

    def _programs(self, directory: Path, number: int) -> list[Server]:
        started = []
        for index, name in enumerate(PROGRAMS):
            orders = self._orders(directory, name, number, index)
            file = orders.write(directory / f"{name}.json")
            line = [sys.executable, "-m", f"testkit.faults.clients.{name}", str(file)]
            started.append(Server(name, line, directory / f"{name}.log"))
        orders = self._orders(directory, "java", number, len(PROGRAMS))
        arguments = (
            orders.bootstrap,
            USERS["jane"],
            orders.prefix,
            str(orders.seed),
            orders.notes,
            orders.stop,
        )
        line = java_program(JAVA_CLIENT, *arguments, heap="192m")
        return [*started, Server("java", line, directory / "java.log")]

    def _orders(self, directory: Path, name: str, number: int, index: int) -> Orders:
        return Orders(
            bootstrap=self.scene.bootstrap,
            users=USERS,
            prefix=f"{name}-{number}",
            seed=self.outcome.seed * 1_000 + number * 10 + index,
            notes=str(directory / f"{name}.notes"),
            stop=str(directory / "stop"),
        )

    @contextmanager
    def _sampling(self) -> Iterator[None]:
        ends = threading.Event()

        def keep() -> None:
            while not ends.wait(SAMPLE_EVERY_S):
                taken = sample(self.scene.kustos)
                if taken is not None:
                    self.outcome.samples.append(taken)

        thread = threading.Thread(target=keep)
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()

    def _rest(self, number: int) -> None:
        """Wait until nothing is left of the clients, and note what the node takes then."""
        relays = self.scene.relays

        def drained() -> Sample | None:
            taken = sample(self.scene.kustos)
            if taken is None or taken.connections or relays.open_lines(Side.CLIENTS):
                return None
            # kustos keeps a connection for itself in each worker
            return taken if len(relays.held(Side.UPSTREAM)) <= len(taken.workers) + 1 else None

        try:
            taken = wait_until(drained, what="nothing is left of the clients", timeout_s=DRAINED_S)
        except DeadlineExceededError:
            lines = [str(line) for side in Side for line in relays.open_lines(side)]
            self.outcome.problems.append(f"not drained: {sample(self.scene.kustos)}, {lines}")
            return
        assert taken is not None
        self.outcome.rests.append(taken)
        if self._injector.survivor is None:
            self._injector.survivor = taken.workers[0].pid
        found = self._found()
        memory = ", ".join(f"{each.memory_mb:.0f}" for each in (taken.writer, *taken.workers))
        self._tell(
            f"round {number}: {len(self.ledger.acknowledged)} records acknowledged, "
            f"{sum(self._injector.counts.values())} faults, {len(found)} problems; "
            f"at rest {memory} MB, {taken.tasks} tasks"
        )
        for problem in found[:SHOWN_MAX]:
            self._tell(f"  {problem}")

    def _found(self) -> list[str]:
        return [
            *self.outcome.problems,
            *self._injector.problems,
            *self._acl_changes.problems,
            *self.scene.relays.problems,
            *self.ledger.problems,
        ]

    def _judge(self) -> None:
        scene, outcome = self.scene, self.outcome
        logs = read_all({"bootstrap.servers": scene.direct})
        outcome.problems = self._found() + held_against(self.ledger, logs)
        left = read_what_is_left(scene.librdkafka("carol", "finishing"))
        outcome.problems += unread(SHARED_TOPIC, self.ledger, logs, left)
        guarded = read_all(scene.librdkafka("reader", "verifying"))
        if guarded != logs:
            outcome.problems.append(f"{len(logs)} records in the logs, {len(guarded)} through kustos")
        outcome.problems += self._grown()
        written = {place[0] for place in logs}
        outcome.problems += [
            f"nothing was written to `{name}`" for name in WRITTEN_TOPICS if name not in written
        ]
        outcome.problems += [
            f"`{name}` is {figure(scene.kustos, name):g}" for name in NONE_OF if figure(scene.kustos, name)
        ]
        scene.kustos.stop()
        if set(read_image(scene.kustos.metadata_directory).acls.values()) != set(scene.timeline.acls):
            outcome.problems.append("the ACLs in the log are not those that were acknowledged")
        outcome.problems += unaudited(scene.decisions, self._audited())
        outcome.faults = self._injector.counts
        outcome.details = self.ledger.counts + scene.relays.counts
        outcome.figures = self.ledger.figures() | {
            "requests of clients": scene.relays.counts["clients requests"],
            "requests forwarded and decided again": scene.relays.counts["upstream requests"],
            "decisions found in the audit log": sum(scene.decisions.values()),
            "changes of ACLs acknowledged": self._acl_changes.acknowledged,
            "changes of ACLs asked again": self._acl_changes.asked_again,
            "changes of topics": self._topic_changes.done,
            "faults": sum(self._injector.counts.values()),
        }

    def _audited(self) -> Counter[DecisionKey]:
        counted: Counter[DecisionKey] = Counter()
        for event in self.scene.kustos.audit_events():
            if event["decision"] == "ALLOWED":
                fields = ("principal_name", "api_key", "operation", "resource_type", "resource_name")
                counted[tuple(event[each] for each in fields)] += 1
        return counted

    def _grown(self) -> list[str]:
        """Return what grew from the first rest to the last beyond its bound."""
        if len(self.outcome.rests) < 2:
            return ["there were no two rests to compare"]
        first, last = self.outcome.rests[0], self.outcome.rests[-1]
        found = []
        before = {each.pid: each for each in (first.writer, *first.workers)}
        for now in (last.writer, *last.workers):
            then = before.get(now.pid)
            if then is None:
                continue
            if now.memory_mb > then.memory_mb * (1 + GROWTH_SHARE) + GROWTH_MB:
                found.append(f"process {now.pid} grew from {then.memory_mb:.1f} to {now.memory_mb:.1f} MB")
            if now.descriptors > then.descriptors + GROWTH_DESCRIPTORS:
                found.append(f"process {now.pid}: {then.descriptors}, then {now.descriptors} descriptors")
        if last.tasks > first.tasks + GROWTH_TASKS:
            found.append(f"{first.tasks}, then {last.tasks} tasks")
        lived_through = before.keys() & {each.pid for each in (last.writer, *last.workers)}
        if not {first.writer.pid, self._injector.survivor} <= lived_through:
            found.append("the writer or the spared worker did not live through all rounds")
        return found


def unaudited(decisions: Mapping[DecisionKey, int], audited: Mapping[DecisionKey, int]) -> list[str]:
    """Return for which forwarded requests there are too few decisions in the audit log."""
    return [
        f"{key}: {count} requests were forwarded, {audited.get(key, 0)} allowed in the audit log"
        for key, count in decisions.items()
        if audited.get(key, 0) < count
    ]


def read_all(settings: dict[str, Any]) -> dict[Place, bytes]:
    """Return all committed records of all topics, by place."""
    more = {"group.id": "reader", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer(settings | more | {"enable.auto.commit": False})
    left = {(topic, number) for topic in TOPICS for number in range(PARTITIONS)}
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for topic, number in left])
    return _read_to_the_ends(consumer, left)


def read_what_is_left(settings: dict[str, Any]) -> dict[Place, bytes]:
    """Return what the shared group has still to read: its members have ended, and nobody writes any more."""
    more = {"group.id": SHARED_GROUP, "auto.offset.reset": "earliest", "enable.partition.eof": True}
    consumer = Consumer(settings | more)
    consumer.subscribe([SHARED_TOPIC])
    return _read_to_the_ends(consumer, {(SHARED_TOPIC, number) for number in range(PARTITIONS)})


def _read_to_the_ends(consumer: Consumer, left: set[tuple[str, int]]) -> dict[Place, bytes]:
    found: dict[Place, bytes] = {}
    deadline = time.monotonic() + READ_S
    while left and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        place = (str(message.topic()), int(message.partition() or 0))
        if message.error() is not None:
            left.discard(place)
        else:
            found[*place, int(message.offset() or 0)] = message.value() or b""
    consumer.close()
    if left:
        raise DeadlineExceededError(f"not read to the end: {left}")
    return found
