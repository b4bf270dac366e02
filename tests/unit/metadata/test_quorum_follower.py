"""The follower beside a model of a quorum: one rule after the other."""

import pytest
from kio.schema.errors import ErrorCode

from kustos.metadata.log import SnapshotId
from kustos.metadata.quorum import (
    CaughtUp,
    Committed,
    CommittedLostError,
    FollowerMachine,
    ForeignAnswerError,
    Phase,
    SnapshotFetched,
    Truncated,
    WrongClusterError,
    follower,
)
from kustos.metadata.quorum.answers import Answer, EpochEnd, Event
from kustos.metadata.quorum.phases import NEXT
from kustos.metadata.quorum.values import Effect
from kustos.wire import Message, response_codec
from tests.quorum.simulated import CLUSTER_ID, Cluster, address_of

FIRST = address_of(0)


def ask(cluster: Cluster, machine: FollowerMachine, number: int) -> tuple[Effect, ...]:
    node = cluster.nodes[number]
    question = machine.question(18)
    answer = node.fetch_snapshot if machine.asks_for_snapshot else node.fetch
    return machine.receive(answer(question.message), address_of(number))


def kinds(effects: tuple[Effect, ...]) -> list[str]:
    return [type(each).__name__ for each in effects]


def test_every_row_of_the_table_leads_somewhere() -> None:
    for phase, action in NEXT.values():
        assert callable(getattr(FollowerMachine, action))
        assert isinstance(phase, Phase)
    for phase in set(Phase) - {Phase.ENDED}:
        assert {event for known, event in NEXT if known is phase} >= {
            Event.LEADER,
            Event.NO_LEADER,
            Event.AGAIN,
            Event.REFUSED,
            Event.FOREIGN,
            Event.LOST,
        }


def test_the_leader_is_found_by_asking_anybody_with_epoch_0() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    cluster.copy(cluster.nodes[2])
    assert machine.question(18).target is None
    assert ask(cluster, machine, 2) == ()
    assert (machine.phase, machine.leader, machine.epoch) == (Phase.FOLLOWING, FIRST, 1)
    assert machine.question(18).target == FIRST


def test_uncommitted_records_are_kept_and_not_applied() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    leader = cluster.nodes[0]
    ask(cluster, machine, 0)
    cluster.append(leader, 2)
    assert kinds(ask(cluster, machine, 0)) == ["Appended"]
    assert (machine.end_offset, machine.applied_end, machine.high_watermark) == (3, 0, -1)
    cluster.copy(cluster.nodes[1])
    appended = ask(cluster, machine, 0)
    assert kinds(appended) == ["Committed", "CaughtUp"]
    assert isinstance(appended[0], Committed)
    assert (appended[0].from_offset, appended[0].end_offset) == (0, 3)
    assert appended[1] == CaughtUp(3)


def test_our_high_watermark_is_told_in_version_18() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    cluster.copy(cluster.nodes[1])
    ask(cluster, machine, 0)
    ask(cluster, machine, 0)
    assert machine.question(18).message.topics[0].partitions[0].high_watermark == 1
    assert "high_watermark" not in machine.question(17).message.topics[0].partitions[0].FIELDS


def diverged() -> tuple[Cluster, FollowerMachine]:
    """Return a follower that has records of a leader who was deposed before they were committed."""
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    for node in cluster.nodes[1:]:
        cluster.copy(node)
    cluster.append(cluster.nodes[0], 3)
    ask(cluster, machine, 0)
    ask(cluster, machine, 0)
    assert (machine.applied_end, machine.end_offset) == (1, 4)
    cluster.elect(1)
    return cluster, machine


def test_what_a_deposed_leader_did_not_commit_is_cut() -> None:
    cluster, machine = diverged()
    cluster.nodes[1].leader = 1
    ask(cluster, machine, 1)
    assert ask(cluster, machine, 1) == (Truncated(1),)
    assert machine.end_offset == 1
    cluster.copy(cluster.nodes[2])
    assert kinds(ask(cluster, machine, 1)) == ["Appended", "Committed", "CaughtUp"]


def test_what_was_applied_is_never_cut() -> None:
    cluster, machine = diverged()
    machine.lost()
    other = Cluster()
    assert other.elect(1)
    other.nodes[1].log.clear()
    ask(other, machine, 1)
    with pytest.raises(CommittedLostError, match="committed up to 1"):
        ask(other, machine, 1)
    assert machine.phase is Phase.ENDED
    with pytest.raises(ForeignAnswerError):
        ask(cluster, machine, 1)


def test_a_snapshot_that_ends_before_what_was_applied_is_refused() -> None:
    machine = FollowerMachine(CLUSTER_ID, SnapshotId(50, 2))
    machine.epoch, machine.phase = 3, Phase.FOLLOWING
    named = Answer(Event.SNAPSHOT, epoch=3, snapshot_id=SnapshotId(49, 2))
    with pytest.raises(CommittedLostError, match="restart this node"):
        machine._step(named, FIRST)


def test_a_log_that_begins_too_late_is_preceded_by_a_snapshot_in_chunks() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    cluster.append(cluster.nodes[0], 20)
    cluster.copy(cluster.nodes[1])
    cluster.trim(cluster.nodes[0])
    ask(cluster, machine, 0)
    assert ask(cluster, machine, 0) == ()
    assert machine.phase is Phase.COPYING
    effects: tuple[Effect, ...] = ()
    chunks = 0
    while not effects:
        effects, chunks = ask(cluster, machine, 0), chunks + 1
    snapshot = cluster.nodes[0].snapshot
    assert snapshot is not None
    assert effects == (SnapshotFetched(*snapshot),)
    assert chunks > 1
    assert (machine.applied_end, machine.end_offset) == (21, 21)
    assert kinds(ask(cluster, machine, 0)) == ["CaughtUp"]


def test_a_snapshot_that_goes_away_meanwhile_is_begun_anew() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    leader = cluster.nodes[0]
    cluster.append(leader, 20)
    cluster.copy(cluster.nodes[1])
    cluster.trim(leader)
    for _ in range(3):
        ask(cluster, machine, 0)
    cluster.append(leader, 5)
    cluster.copy(cluster.nodes[1])
    cluster.trim(leader)
    assert ask(cluster, machine, 0) == ()
    assert (machine.phase, machine.asks_for_snapshot) == (Phase.SEEKING, False)
    while machine.applied_end != 26:
        ask(cluster, machine, 0)


def test_controllers_of_another_cluster_end_it() -> None:
    machine = FollowerMachine("AAAAAAAAAAAAAAAAAAAAAA")
    with pytest.raises(WrongClusterError, match="AAAAAAAAAAAAAAAAAAAAAA"):
        ask(Cluster(), machine, 0)
    assert machine.phase is Phase.ENDED


def test_an_older_leader_is_not_followed() -> None:
    machine = FollowerMachine(CLUSTER_ID)
    machine.epoch = 7
    machine._step(Answer(Event.LEADER, epoch=6, leader=FIRST), address_of(1))
    assert (machine.phase, machine.leader, machine.epoch) == (Phase.SEEKING, None, 7)


def test_setbacks_are_counted_until_something_comes() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    machine.lost()
    machine.lost()
    ask(cluster, machine, 0)
    assert machine.setbacks == 3
    ask(cluster, machine, 0)
    assert machine.setbacks == 0


def test_errors_that_say_nothing_more_lead_back_to_seeking() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    ask(cluster, machine, 0)
    codec = response_codec(1, 18)
    for code in (ErrorCode.unknown_server_error, ErrorCode.cluster_authorization_failed):
        answer: Message = codec.new(error_code=code.value)
        assert machine.receive(answer, FIRST) == ()
        assert (machine.phase, machine.leader, machine.last_error) == (Phase.SEEKING, None, code.value)
        assert machine.epoch == 1


def test_batches_must_follow_one_another() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    leader = cluster.nodes[0]
    ask(cluster, machine, 0)
    cluster.append(leader, 1)
    cluster.append(leader, 1)
    del leader.log[1]
    with pytest.raises(ForeignAnswerError, match="begins at 2 where 1 was due"):
        ask(cluster, machine, 0)
    assert machine.end_offset == 0


def test_a_batch_of_an_epoch_that_the_leader_cannot_have_is_refused() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    ask(cluster, machine, 0)
    leader = cluster.nodes[0]
    leader.epoch = 9
    cluster.append(leader, 1)
    leader.epoch = 1
    with pytest.raises(ForeignAnswerError, match="epoch 9"):
        ask(cluster, machine, 0)


def test_too_much_that_nobody_commits_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "UNCOMMITTED_MAX_BYTES", 100)
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    ask(cluster, machine, 0)
    cluster.append(cluster.nodes[0], 50)
    assert kinds(ask(cluster, machine, 0)) == ["Appended", "Truncated"]
    assert machine.end_offset == 0


def test_logs_cannot_diverge_where_ours_ends() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    cluster.append(cluster.nodes[0], 3)
    ask(cluster, machine, 0)
    ask(cluster, machine, 0)
    at_our_end = Answer(Event.DIVERGED, epoch=1, diverging=EpochEnd(1, machine.end_offset))
    with pytest.raises(ForeignAnswerError, match="diverge at 4, where ours ends"):
        machine._step(at_our_end, FIRST)
    inside = Answer(Event.DIVERGED, epoch=1, diverging=EpochEnd(1, machine.end_offset - 1))
    # whole batches only: the one of three records goes
    assert machine._step(inside, FIRST) == (Truncated(1),)
