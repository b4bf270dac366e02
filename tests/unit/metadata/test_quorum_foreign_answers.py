"""Answers that no controller of Kafka gives are refused whole, and the log says to the letter why."""

from typing import Any

import pytest

from kustos.metadata.log import SnapshotId
from kustos.metadata.quorum import ForeignAnswerError
from kustos.metadata.quorum.answers import (
    SNAPSHOT_MAX_BYTES,
    EpochEnd,
    Event,
    read_batches,
    read_fetch,
    read_fetch_snapshot,
)
from kustos.wire import Message, response_codec
from kustos.wire.api_keys import ApiKey
from testkit.quorum.golden import golden

GOLDEN = golden()
FETCH_18 = response_codec(ApiKey.FETCH, 18)
END, OF_SNAPSHOT = FETCH_18.struct("EpochEndOffset"), FETCH_18.struct("SnapshotId")


def message(name: str) -> Message:
    api, version, body = GOLDEN[name]
    return response_codec(api, version).decode(body).message


def fetched(topic: dict[str, Any] | None = None, **partition: Any) -> Message:
    """The records that a real controller answered, with these fields of the topic and partition changed."""
    told = message("records")
    element = told.responses[0].partitions[0].replace(**partition)
    of_topic = told.responses[0].replace(partitions=[element]).replace(**(topic or {}))
    return told.replace(responses=[of_topic])


def chunk(topic: dict[str, Any] | None = None, **partition: Any) -> Message:
    """The snapshot that a real controller answered, changed likewise."""
    told = message("whole snapshot")
    element = told.topics[0].partitions[0].replace(**partition)
    of_topic = told.topics[0].replace(partitions=[element]).replace(**(topic or {}))
    return told.replace(topics=[of_topic])


RECORDS = message("records").responses[0].partitions[0].records
DATA = message("whole snapshot").topics[0].partitions[0].unaligned_records

FOREIGN_FETCHES: dict[str, Message] = {
    "the answer has 0 topics where one is expected": fetched().replace(responses=[]),
    "the answer has 2 topics where one is expected": fetched().replace(responses=fetched().responses * 2),
    "the answer has 0 partitions where one is expected": fetched({"partitions": []}),
    "the answer to a Fetch is about another topic": fetched({"topic_id": bytes(15) + b"\x02"}),
    "the answer is about partition 1": fetched(partition_index=1),
    "the high watermark is -2": fetched(high_watermark=-2),
    "a diverging epoch lacks its number or its end": fetched(diverging_epoch=END(epoch=0, end_offset=-1)),
    "no snapshot has the id 0--1": fetched(snapshot_id=OF_SNAPSHOT(end_offset=0, epoch=-1)),
    "byte 0 of what was fetched: the record batch fails its checksum": fetched(
        records=RECORDS[:80] + bytes([RECORDS[80] ^ 1]) + RECORDS[81:]
    ),
}


@pytest.mark.parametrize("words", FOREIGN_FETCHES)
def test_an_answer_to_a_fetch_of_a_wrong_form_is_refused(words: str) -> None:
    with pytest.raises(ForeignAnswerError) as caught:
        read_fetch(FOREIGN_FETCHES[words])
    assert str(caught.value) == words


def test_a_diverging_epoch_lacks_neither_number_nor_end() -> None:
    for epoch, end_offset in ((-1, 0), (0, -1)):
        with pytest.raises(ForeignAnswerError, match="lacks"):
            read_fetch(fetched(diverging_epoch=END(epoch=epoch, end_offset=end_offset)))
    diverged = read_fetch(fetched(diverging_epoch=END(epoch=0, end_offset=0)))
    assert (diverged.event, diverged.diverging) == (Event.DIVERGED, EpochEnd(0, 0))
    whole = read_fetch(fetched(diverging_epoch=END(epoch=-1, end_offset=-1)))
    assert whole.event is Event.RECORDS


def test_a_snapshot_may_be_that_of_the_beginning() -> None:
    read = read_fetch(fetched(snapshot_id=OF_SNAPSHOT(end_offset=0, epoch=0)))
    assert (read.event, read.snapshot_id) == (Event.SNAPSHOT, SnapshotId(0, 0))


def test_a_leader_that_does_not_know_its_high_watermark_yet_says_minus_one() -> None:
    assert read_fetch(fetched(high_watermark=-1)).high_watermark == -1
    assert read_fetch(fetched(records=None)).batches == ()


FOREIGN_CHUNKS: dict[str, Message] = {
    "the answer has 0 topics where one is expected": chunk().replace(topics=[]),
    "the answer has 2 partitions where one is expected": chunk(
        {"partitions": chunk().topics[0].partitions * 2}
    ),
    "the answer to a FetchSnapshot is about the topic `other`": chunk({"name": "other"}),
    "the answer is about partition 1": chunk(index=1),
    f"a snapshot of 0 bytes is offered, up to {SNAPSHOT_MAX_BYTES} are taken": chunk(size=0),
    f"a snapshot of {SNAPSHOT_MAX_BYTES + 1} bytes is offered, up to {SNAPSHOT_MAX_BYTES} are taken": chunk(
        size=SNAPSHOT_MAX_BYTES + 1
    ),
    f"0 bytes at 0 are not part of a snapshot of {len(DATA)} bytes": chunk(unaligned_records=b""),
    f"{len(DATA)} bytes at -1 are not part of a snapshot of {len(DATA)} bytes": chunk(position=-1),
    f"{len(DATA)} bytes at 1 are not part of a snapshot of {len(DATA)} bytes": chunk(position=1),
    "no snapshot has the id -1-0": chunk(
        snapshot_id=message("whole snapshot")
        .topics[0]
        .partitions[0]
        .snapshot_id.replace(end_offset=-1, epoch=0)
    ),
}


@pytest.mark.parametrize("words", FOREIGN_CHUNKS)
def test_a_chunk_of_a_wrong_form_is_refused(words: str) -> None:
    with pytest.raises(ForeignAnswerError) as caught:
        read_fetch_snapshot(FOREIGN_CHUNKS[words])
    assert str(caught.value) == words


def test_a_chunk_ends_the_snapshot_where_it_reaches_its_size() -> None:
    first = read_fetch_snapshot(chunk(unaligned_records=DATA[:-1]))
    assert (first.event, first.size_bytes, first.chunk) == (Event.CHUNK, len(DATA), DATA[:-1])
    last = read_fetch_snapshot(chunk(unaligned_records=DATA[-1:], position=len(DATA) - 1))
    assert (last.event, last.position, last.chunk) == (Event.WHOLE, len(DATA) - 1, DATA[-1:])
    assert read_fetch_snapshot(chunk(size=1, unaligned_records=b"x")).event is Event.WHOLE
    largest = read_fetch_snapshot(chunk(size=SNAPSHOT_MAX_BYTES))
    assert (largest.event, largest.size_bytes) == (Event.CHUNK, SNAPSHOT_MAX_BYTES)


def test_only_a_batch_that_claims_more_than_there_is_was_cut_off() -> None:
    whole = read_batches(RECORDS)
    assert len(whole) > 1
    for length in (0, -1):
        # a batch of that length is none, wherever the answer ends
        broken = RECORDS + bytes(8) + length.to_bytes(4, "big", signed=True)
        with pytest.raises(ForeignAnswerError, match=rf"^byte {len(RECORDS)} of what was fetched: "):
            read_batches(broken)
    for length in (1, 2**31 - 1):
        assert read_batches(RECORDS + bytes(8) + length.to_bytes(4, "big")) == whole
    with pytest.raises(ForeignAnswerError, match=rf"^byte {len(RECORDS)} "):
        read_batches(RECORDS + bytes(8) + (1).to_bytes(4, "big") + b"x")
