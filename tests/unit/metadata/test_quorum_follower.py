"""The follower beside a model of a quorum: one rule after the other."""

from dataclasses import replace

import pytest

from kustos.metadata.log import SnapshotId
from kustos.metadata.quorum import (
    Appended,
    CaughtUp,
    Committed,
    CommittedLostError,
    FetchedBatch,
    FollowerMachine,
    FollowerPhase,
    ForeignAnswerError,
    SnapshotFetched,
    Truncated,
    WrongClusterError,
    follower,
)
from kustos.metadata.quorum.answers import ControllerAnswer, EpochEnd, Event
from kustos.metadata.quorum.follower import NEXT
from kustos.metadata.quorum.values import Effect
from kustos.metadata.records import NoOpRecord, encode_record
from kustos.wire import ErrorCode, Message, response_codec
from kustos.wire.record_batch import batch_of
from testkit.quorum.model import CLUSTER_ID, Cluster, address_of

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
        assert isinstance(phase, FollowerPhase)
    for phase in set(FollowerPhase) - {FollowerPhase.ENDED}:
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
    assert (machine.phase, machine.leader, machine.epoch) == (FollowerPhase.FOLLOWING, FIRST, 1)
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
    with pytest.raises(CommittedLostError) as caught:
        ask(other, machine, 1)
    assert str(caught.value) == (
        "the controllers have nothing of the metadata log from offset 0 on, but it was committed up to 1; "
        "if they lost their disks and that is known, restart this node"
    )
    assert machine.phase is FollowerPhase.ENDED
    with pytest.raises(ForeignAnswerError):
        ask(cluster, machine, 1)


def test_a_snapshot_that_ends_before_what_was_applied_is_refused() -> None:
    machine = FollowerMachine(CLUSTER_ID, SnapshotId(50, 2))
    machine.epoch, machine.phase = 3, FollowerPhase.FOLLOWING
    named = ControllerAnswer(Event.SNAPSHOT, epoch=3, snapshot_id=SnapshotId(49, 2))
    with pytest.raises(CommittedLostError) as caught:
        machine._step(named, FIRST)
    assert str(caught.value) == (
        "the controllers offer a snapshot that ends at offset 49, but the metadata log was committed up to "
        "50; if they lost their disks and that is known, restart this node"
    )


def test_a_snapshot_that_ends_where_what_was_applied_ends_is_taken() -> None:
    machine = FollowerMachine(CLUSTER_ID, SnapshotId(50, 2))
    machine.epoch, machine.phase = 3, FollowerPhase.FOLLOWING
    assert (
        machine._step(ControllerAnswer(Event.SNAPSHOT, epoch=3, snapshot_id=SnapshotId(50, 2)), FIRST) == ()
    )
    assert machine.asks_for_snapshot


def test_a_snapshot_comes_in_pieces_of_one_size_each_where_the_last_ended() -> None:
    machine = FollowerMachine(CLUSTER_ID)
    named = SnapshotId(50, 2)

    def chunk(position: int, data: bytes, size_bytes: int = 6) -> ControllerAnswer:
        event = Event.WHOLE if position + len(data) == size_bytes else Event.CHUNK
        return ControllerAnswer(
            event, epoch=3, snapshot_id=named, position=position, size_bytes=size_bytes, chunk=data
        )

    machine._step(ControllerAnswer(Event.SNAPSHOT, epoch=3, snapshot_id=named), FIRST)
    assert machine._step(chunk(0, b"abc"), FIRST) == ()
    with pytest.raises(ForeignAnswerError, match=r"^a snapshot changed its size while it was fetched$"):
        machine._step(chunk(3, b"d", size_bytes=7), FIRST)
    with pytest.raises(ForeignAnswerError, match=r" at 2 came where .* at 3 was requested$"):
        machine._step(chunk(2, b"d"), FIRST)
    assert machine._step(chunk(3, b"d"), FIRST) == ()
    assert machine._step(chunk(4, b"ef"), FIRST) == (SnapshotFetched(named, b"abcdef"),)
    assert (machine.base, machine.high_watermark, machine.last_epoch) == (named, 50, 2)


def test_a_log_that_begins_too_late_is_preceded_by_a_snapshot_in_chunks() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    cluster.append(cluster.nodes[0], 20)
    cluster.copy(cluster.nodes[1])
    cluster.trim(cluster.nodes[0])
    ask(cluster, machine, 0)
    assert ask(cluster, machine, 0) == ()
    assert machine.phase is FollowerPhase.COPYING
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
    assert (machine.phase, machine.asks_for_snapshot) == (FollowerPhase.SEEKING, False)
    while machine.applied_end != 26:
        ask(cluster, machine, 0)


def test_controllers_of_another_cluster_end_it() -> None:
    machine = FollowerMachine("AAAAAAAAAAAAAAAAAAAAAA")
    with pytest.raises(WrongClusterError) as caught:
        ask(Cluster(), machine, 0)
    assert str(caught.value) == (
        "the controllers belong to another cluster than `AAAAAAAAAAAAAAAAAAAAAA`; correct "
        "`controller.quorum.bootstrap.servers`, or format `metadata.log.dir` with the cluster's own id"
    )
    assert machine.phase is FollowerPhase.ENDED


def test_an_older_leader_is_not_followed() -> None:
    machine = FollowerMachine(CLUSTER_ID)
    machine.epoch = 7
    machine._step(ControllerAnswer(Event.LEADER, epoch=6, leader=FIRST), address_of(1))
    assert (machine.phase, machine.leader, machine.epoch) == (FollowerPhase.SEEKING, None, 7)


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
        assert (machine.phase, machine.leader, machine.last_error) == (
            FollowerPhase.SEEKING,
            None,
            code.value,
        )
        assert machine.epoch == 1


def test_batches_must_follow_one_another() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    leader = cluster.nodes[0]
    ask(cluster, machine, 0)
    cluster.append(leader, 1)
    cluster.append(leader, 1)
    del leader.log[1]
    with pytest.raises(ForeignAnswerError, match=r"^a batch begins at 2 where 1 was due$"):
        ask(cluster, machine, 0)
    assert machine.end_offset == 0


def test_a_batch_of_an_epoch_that_the_leader_cannot_have_is_refused() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    ask(cluster, machine, 0)
    leader = cluster.nodes[0]
    leader.epoch = 9
    cluster.append(leader, 1)
    leader.epoch = 1
    with pytest.raises(ForeignAnswerError, match=r"^the batch at 1 is of epoch 9, after 1 and under 1$"):
        ask(cluster, machine, 0)


def test_a_batch_whose_records_are_not_numbered_one_by_one_is_refused() -> None:
    machine = FollowerMachine(CLUSTER_ID)
    machine.epoch = 1
    batch = batch_of(0, 1, 0, [encode_record(NoOpRecord())] * 3)
    lacking = replace(batch, records=(batch.records[0], batch.records[2]))
    with pytest.raises(ForeignAnswerError, match=r"^the records of the batch at 0 have gaps$"):
        machine._step(ControllerAnswer(Event.RECORDS, epoch=1, batches=(FetchedBatch(lacking, b""),)), FIRST)


def test_what_is_cut_does_not_count_as_uncommitted_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, machine = diverged()
    cluster.nodes[1].leader = 1
    ask(cluster, machine, 1)
    assert ask(cluster, machine, 1) == (Truncated(1),)
    cluster.append(cluster.nodes[1], 1)
    new = sum(len(batch.encode()) for batch in cluster.nodes[1].log[1:])
    monkeypatch.setattr(follower, "UNCOMMITTED_MAX_BYTES", new)
    assert kinds(ask(cluster, machine, 1)) == ["Appended"]


def test_an_answer_that_fits_no_question_is_refused() -> None:
    machine = FollowerMachine(CLUSTER_ID)
    with pytest.raises(ForeignAnswerError, match=r"^`chunk of the snapshot` came while seeking a leader$"):
        machine._step(ControllerAnswer(Event.CHUNK), FIRST)


def test_a_high_watermark_beyond_what_came_is_not_believed_yet() -> None:
    cluster, machine = Cluster(), FollowerMachine(CLUSTER_ID)
    cluster.append(cluster.nodes[0], 2)
    ask(cluster, machine, 0)
    first, second = (FetchedBatch(batch, batch.encode()) for batch in cluster.nodes[0].log)
    effects = machine._step(
        ControllerAnswer(Event.RECORDS, epoch=1, high_watermark=3, batches=(first,)), FIRST
    )
    assert kinds(effects) == ["Appended", "Committed"]
    assert (machine.applied_end, machine.high_watermark) == (1, 1)
    effects = machine._step(
        ControllerAnswer(Event.RECORDS, epoch=1, high_watermark=2, batches=(second,)), FIRST
    )
    # the leader's word covers but the first record of the batch
    assert kinds(effects) == ["Appended"]
    effects = machine._step(ControllerAnswer(Event.RECORDS, epoch=1, high_watermark=3), FIRST)
    assert effects == (Committed((second,), 1, 3, 1), CaughtUp(3))
    # and it never falls
    machine._step(ControllerAnswer(Event.RECORDS, epoch=1, high_watermark=1), FIRST)
    assert machine.high_watermark == 3


def test_the_first_batch_may_begin_before_what_was_asked_for() -> None:
    machine = FollowerMachine(CLUSTER_ID, SnapshotId(2, 1))
    machine.epoch = 1
    values = [encode_record(NoOpRecord())] * 2
    straddling, next_one = (batch_of(base, 1, 0, values) for base in (1, 3))
    whole_below = batch_of(0, 1, 0, values[:1])
    batches = tuple(FetchedBatch(each, each.encode()) for each in (whole_below, straddling, next_one))
    (appended,) = machine._step(ControllerAnswer(Event.RECORDS, epoch=1, batches=batches), FIRST)
    assert appended == Appended(batches[1:])
    again = FollowerMachine(CLUSTER_ID, SnapshotId(2, 1))
    again.epoch = 1
    overlapping = FetchedBatch(batch_of(2, 1, 0, values), b"")
    with pytest.raises(ForeignAnswerError, match=r"^a batch begins at 2 where 3 was due$"):
        again._step(ControllerAnswer(Event.RECORDS, epoch=1, batches=(batches[1], overlapping)), FIRST)


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
    at_our_end = ControllerAnswer(Event.DIVERGED, epoch=1, diverging=EpochEnd(1, machine.end_offset))
    with pytest.raises(ForeignAnswerError, match=r"^the logs diverge at 4, where ours ends$"):
        machine._step(at_our_end, FIRST)
    inside = ControllerAnswer(Event.DIVERGED, epoch=1, diverging=EpochEnd(1, machine.end_offset - 1))
    # whole batches only: the one of three records goes
    assert machine._step(inside, FIRST) == (Truncated(1),)
