"""Theorems about following a quorum: whatever it answers, only committed records are applied, in order."""

from dataclasses import dataclass, field

from hypothesis import example, given
from hypothesis import strategies as st

from kustos.metadata.log import SnapshotId
from kustos.metadata.quorum import (
    Address,
    Appended,
    CaughtUp,
    Committed,
    FetchedBatch,
    FollowerMachine,
    QuorumError,
    SnapshotFetched,
    Truncated,
)
from kustos.wire import MalformedMessageError, Message, response_codec
from kustos.wire.api_keys import ApiKey
from kustos.wire.record_batch import RecordBatch
from testkit.quorum.model import CLUSTER_ID, NODES, Cluster, address_of


@dataclass
class Observer:
    """A follower, with its applied and its stored records as bytes."""

    machine: FollowerMachine = field(default_factory=lambda: FollowerMachine(CLUSTER_ID))
    applied: bytes = b""
    base: SnapshotId | None = None
    base_data: bytes = b""
    kept: list[FetchedBatch] = field(default_factory=list)
    caught_up: int = -1

    def ask(self, cluster: Cluster, number: int) -> None:
        """Send a fetch to this node, whoever leads."""
        node = cluster.nodes[number]
        question = self.machine.question(18)
        asked = node.fetch if question.api_key == ApiKey.FETCH else node.fetch_snapshot
        self.take(asked(question.message), address_of(number))

    def take(self, answer: Message, answerer: Address) -> None:
        for effect in self.machine.receive(answer, answerer):
            match effect:
                case Appended(batches):
                    self.kept += batches
                case Truncated(end_offset):
                    while self.kept and self.kept[-1].batch.last_offset >= end_offset:
                        self.kept.pop()
                case Committed(batches):
                    self.applied += b"".join(each.data for each in batches)
                case SnapshotFetched(snapshot_id, data):
                    self.applied = self.base_data = data
                    self.base, self.kept = snapshot_id, []
                case CaughtUp(high_watermark):
                    self.caught_up = high_watermark

    def restart(self) -> None:
        """Restart with the stored records, of which only the snapshot counts as committed."""
        self.machine = FollowerMachine(CLUSTER_ID, self.base, tuple(self.kept))
        self.applied = self.base_data


def is_prefix(applied: bytes, truth: list[RecordBatch]) -> bool:
    whole, ends = b"", {0}
    for batch in truth:
        whole += batch.encode()
        ends.add(len(whole))
    return whole.startswith(applied) and len(applied) in ends


NUMBERS = st.integers(0, NODES - 1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), NUMBERS),
        st.tuples(st.just("ask"), NUMBERS),
        st.tuples(st.just("ask"), NUMBERS),
        st.tuples(st.just("append"), NUMBERS),
        st.tuples(st.just("copy"), NUMBERS),
        st.tuples(st.just("elect"), NUMBERS),
        st.tuples(st.just("trim"), NUMBERS),
        st.tuples(st.just("lose"), NUMBERS),
        st.tuples(st.just("restart"), NUMBERS),
    ),
    min_size=25,
    max_size=80,
)


def carry_out(cluster: Cluster, observer: Observer, step: tuple[str, int]) -> None:
    leaders = cluster.leaders()
    match step:
        case ("ask", number):
            observer.ask(cluster, number)
        case ("append", number):
            cluster.append(leaders[number % len(leaders)], 1 + number)
        case ("copy", number):
            cluster.copy(cluster.nodes[number])
        case ("elect", number):
            cluster.elect(number)
        case ("trim", number):
            cluster.trim(leaders[number % len(leaders)])
        case ("lose", _):
            observer.machine.lost()
        case ("restart", _):
            observer.restart()


def follow(cluster: Cluster, observer: Observer, answers_max: int = 50) -> None:
    """Query nodes as the driver does: the named leader, else one after the other."""
    for turn in range(answers_max):
        leader = observer.machine.leader
        observer.ask(cluster, turn % NODES if leader is None else leader.port - address_of(0).port)


@given(STEPS)
def test_what_is_applied_is_a_prefix_of_what_was_committed(steps: list[tuple[str, int]]) -> None:
    cluster, observer = Cluster(), Observer()
    for step in steps:
        carry_out(cluster, observer, step)
        assert is_prefix(observer.applied, cluster.truth)
        machine = observer.machine
        assert machine.applied_end <= machine.end_offset
        assert [each.data for each in observer.kept] == [each.batch.encode() for each in observer.kept]


@given(STEPS)
def test_once_a_leader_commits_a_follower_that_asks_catches_up(steps: list[tuple[str, int]]) -> None:
    cluster, observer = Cluster(), Observer()
    for step in steps:
        carry_out(cluster, observer, step)
    assert any(cluster.elect(number) for number in range(NODES))
    for node in cluster.nodes:
        cluster.copy(node)
    follow(cluster, observer)
    assert observer.applied == b"".join(batch.encode() for batch in cluster.truth)
    assert observer.caught_up == cluster.truth[-1].last_offset + 1


DEPOSED_LEADER = [
    *[("elect", 1), ("ask", 1), ("ask", 1), ("copy", 2), ("trim", 1), ("ask", 1), ("ask", 1), ("ask", 1)],
    *[("restart", 0), ("ask", 0), ("ask", 0)],
]
"""A node restarts with a snapshot of epoch 2 and queries one that still believes to lead in epoch 1."""


@example([("ask", 0)] * 12 + DEPOSED_LEADER, b"", 0, 0)
@given(STEPS, st.binary(max_size=300), st.integers(0, 10_000), st.integers(0, 255))
def test_an_answer_of_a_wrong_form_is_a_typed_error_and_moves_nothing(
    steps: list[tuple[str, int]], garbage: bytes, at: int, value: int
) -> None:
    cluster, observer = Cluster(), Observer()
    for step in steps:
        carry_out(cluster, observer, step)
    machine = observer.machine
    before = (machine.end_offset, machine.applied_end, machine.last_epoch, machine.epoch)
    question = machine.question(18)
    node = max(cluster.leaders(), key=lambda each: each.epoch)
    asked = node.fetch if question.api_key == ApiKey.FETCH else node.fetch_snapshot
    codec = response_codec(question.api_key, 18 if question.api_key == ApiKey.FETCH else 1)
    body = bytearray(codec.encode(asked(question.message)))
    body[at % len(body)] = value
    for damaged in (bytes(body), garbage):
        try:
            machine.receive(codec.decode(damaged).message, address_of(0))
        except MalformedMessageError:
            continue
        except QuorumError:
            assert before == (machine.end_offset, machine.applied_end, machine.last_epoch, machine.epoch)
        else:
            return
