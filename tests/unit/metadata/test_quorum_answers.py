"""What real controllers of Kafka 4.3.1 answered, byte by byte, and what is made of it."""

import pytest

from kustos.metadata.log import SnapshotId
from kustos.metadata.quorum import (
    Address,
    CommittedImage,
    FollowerMachine,
    ForeignAnswerError,
    SnapshotFetched,
)
from kustos.metadata.quorum.answers import (
    FETCH_MAX_BYTES,
    ControllerAnswer,
    EpochEnd,
    Event,
    fetch_request,
    fetch_snapshot_request,
    read_batches,
    read_fetch,
    read_fetch_snapshot,
)
from kustos.wire import Message, request_codec, response_codec
from kustos.wire.api_keys import ApiKey
from testkit.quorum.golden import golden

GOLDEN = golden()
LEADER = read_fetch(response_codec(1, 18).decode(GOLDEN["fenced v18"][2]).message).leader


def message(name: str) -> Message:
    api, version, body = GOLDEN[name]
    return response_codec(api, version).decode(body).message


def answer(name: str) -> ControllerAnswer:
    read = read_fetch if GOLDEN[name][0] == ApiKey.FETCH else read_fetch_snapshot
    return read(message(name))


@pytest.mark.parametrize("name", ["fenced v17", "fenced v18", "not leader"])
def test_a_refusal_names_the_leader_and_its_epoch(name: str) -> None:
    read = answer(name)
    assert (read.event, read.epoch) == (Event.LEADER, 1)
    assert isinstance(read.leader, Address)


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("unknown epoch", Event.NO_LEADER),
        ("wrong cluster", Event.FOREIGN),
        ("wrong position", Event.AGAIN),
        ("no such snapshot", Event.AGAIN),
        ("snapshot fenced", Event.AGAIN),
        ("snapshot of no leader", Event.AGAIN),
    ],
)
def test_errors_are_told_apart(name: str, event: Event) -> None:
    assert answer(name).event is event


def test_a_diverging_epoch_says_where_the_logs_agree() -> None:
    read = answer("diverging")
    assert (read.event, read.diverging) == (Event.DIVERGED, EpochEnd(1, read.high_watermark))


def test_records_are_whole_batches_with_their_bytes() -> None:
    read = answer("records")
    records = message("records").responses[0].partitions[0].records
    assert b"".join(each.data for each in read.batches) == records
    assert (read.event, read.epoch, read.batches[0].batch.base_offset) == (Event.RECORDS, 1, 0)
    # the last one was not committed yet
    assert read.batches[-1].batch.base_offset == read.high_watermark


def test_a_last_batch_that_was_cut_off_is_left_for_the_next_time() -> None:
    records = message("records").responses[0].partitions[0].records
    whole = read_batches(records)
    last_size = len(whole[-1].data)
    for size in range(1, last_size):
        assert read_batches(records[:-size]) == whole[:-1]
    with pytest.raises(ForeignAnswerError):
        read_batches(whole[0].data[:-1])


def test_a_real_snapshot_is_copied_and_becomes_an_image() -> None:
    machine = FollowerMachine(None)
    assert LEADER is not None
    machine.receive(message("fenced v18"), LEADER)
    machine.receive(message("snapshot named"), LEADER)
    assert machine.asks_for_snapshot
    [fetched] = machine.receive(message("whole snapshot"), LEADER)
    assert isinstance(fetched, SnapshotFetched)
    image = CommittedImage().replace(fetched)
    assert image.metadata_version == 30
    assert (image.offset, image.epoch) == (fetched.snapshot_id.end_offset - 1, 1)
    assert machine.applied_end == fetched.snapshot_id.end_offset


def test_a_chunk_of_another_snapshot_is_refused() -> None:
    machine = FollowerMachine(None)
    assert LEADER is not None
    machine.receive(message("fenced v18"), LEADER)
    machine.receive(message("snapshot named"), LEADER)
    told = message("whole snapshot")
    partition = told.topics[0].partitions[0]
    other = partition.replace(snapshot_id=partition.snapshot_id.replace(end_offset=7))
    here = machine.question(18).message.topics[0].partitions[0].snapshot_id
    with pytest.raises(ForeignAnswerError) as caught:
        machine.receive(told.replace(topics=[told.topics[0].replace(partitions=[other])]), LEADER)
    named = SnapshotId(here.end_offset, here.epoch)
    strange = SnapshotId(7, here.epoch)
    assert str(caught.value) == f"a chunk of {strange} at 0 came where {named} at 0 was requested"
    assert machine.base == SnapshotId(0, 0)


def test_a_whole_snapshot_is_its_last_chunk() -> None:
    told = message("whole snapshot")
    partition = told.topics[0].partitions[0]
    read = answer("whole snapshot")
    assert read == ControllerAnswer(
        Event.WHOLE,
        epoch=1,
        snapshot_id=SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
        position=0,
        size_bytes=len(partition.unaligned_records),
        chunk=partition.unaligned_records,
    )


def test_a_named_snapshot_brings_the_high_watermark_and_no_records() -> None:
    told = message("snapshot named").responses[0].partitions[0]
    assert answer("snapshot named") == ControllerAnswer(
        Event.SNAPSHOT,
        epoch=1,
        high_watermark=told.high_watermark,
        snapshot_id=SnapshotId(told.snapshot_id.end_offset, told.snapshot_id.epoch),
    )


def test_an_error_of_the_whole_answer_names_no_leader() -> None:
    codec = response_codec(ApiKey.FETCH, 18)
    for code in (6, 74):
        read = read_fetch(codec.new(error_code=code))
        assert (read.event, read.error, read.leader, read.epoch) == (Event.NO_LEADER, code, None, -1)
    told = message("whole snapshot")
    refused = read_fetch_snapshot(told.replace(error_code=31))
    assert refused == ControllerAnswer(Event.REFUSED, 31)


def test_a_fetch_asks_for_the_metadata_log_as_an_observer() -> None:
    asked = fetch_request(request_codec(1, 18), "of-ours", 5, 70, 4, 69, 500).to_dict()
    [topic] = asked.pop("topics")
    assert asked == {
        "cluster_id": "of-ours",
        "replica_state": {"replica_id": -1, "replica_epoch": -1},
        "max_wait": 500,
        "min_bytes": 0,
        "max_bytes": FETCH_MAX_BYTES,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    assert topic["topic_id"] == bytes(15) + b"\x01"
    assert topic["partitions"] == [
        {
            "partition": 0,
            "current_leader_epoch": 5,
            "fetch_offset": 70,
            "last_fetched_epoch": 4,
            "log_start_offset": -1,
            "partition_max_bytes": FETCH_MAX_BYTES,
            "replica_directory_id": bytes(16),
            "high_watermark": 69,
        }
    ]


def test_a_fetch_snapshot_asks_for_what_follows() -> None:
    asked = fetch_snapshot_request(request_codec(59, 1), "of-ours", 5, SnapshotId(50, 4), 1_000).to_dict()
    [topic] = asked["topics"]
    assert (asked["cluster_id"], asked["replica_id"], asked["max_bytes"]) == ("of-ours", -1, FETCH_MAX_BYTES)
    assert topic["name"] == "__cluster_metadata"
    assert topic["partitions"] == [
        {
            "partition": 0,
            "current_leader_epoch": 5,
            "snapshot_id": {"end_offset": 50, "epoch": 4},
            "position": 1_000,
            "replica_directory_id": bytes(16),
        }
    ]


def test_a_refusal_that_names_nobody_or_no_address_names_no_leader() -> None:
    told = message("not leader")
    assert read_fetch(told).event is Event.LEADER
    nowhere = read_fetch(told.replace(node_endpoints=[]))
    assert (nowhere.event, nowhere.leader, nowhere.epoch) == (Event.NO_LEADER, None, 1)
    partition = told.responses[0].partitions[0]
    nobody = partition.replace(current_leader=partition.current_leader.replace(leader_id=-1))
    answered = told.replace(responses=[told.responses[0].replace(partitions=[nobody])])
    assert (read_fetch(answered).event, read_fetch(answered).leader) == (Event.NO_LEADER, None)


def test_addresses_are_written_as_people_write_them() -> None:
    assert str(Address("controller-1", 9093)) == "controller-1:9093"
    assert str(Address("::1", 9093)) == "[::1]:9093"
