"""What is an unfinished write, safe to cut, and what is damage: up to the byte and the sector."""

import struct

import pytest

from kustos.metadata.errors import LogDamagedError
from kustos.metadata.log import SegmentReader
from kustos.metadata.log.segment import SECTOR_SIZE_BYTES, UNKNOWN_EPOCH, is_torn_tail
from kustos.metadata.records import LeaderChange, NoOpRecord, control_batch, encode_record
from kustos.wire.record_batch import HEADER_SIZE_BYTES, RecordBatch, batch_of

NAME = "x.log"
NOTHING = encode_record(NoOpRecord())


def leads(base_offset: int, epoch: int) -> RecordBatch:
    return control_batch(base_offset, epoch, 0, (LeaderChange(1, (1,), (1,)),))


def data_batch(base_offset: int, epoch: int = 1, value: bytes = NOTHING) -> RecordBatch:
    return batch_of(base_offset, epoch, 0, [value])


def read(data: bytes, *, next_offset: int = 0, epoch: int = 0, is_last: bool = True) -> list[int]:
    return [batch.base_offset for batch in SegmentReader(data, NAME, next_offset, epoch, is_last=is_last)]


WHOLE = leads(0, 1).encode()
LONG = data_batch(1, value=b"\x01\x07\x00" + bytes(range(1, 256)) * 8).encode()
"""Long enough for several sectors, without zeros that could be taken for unwritten ones."""


@pytest.mark.parametrize("left", [1, HEADER_SIZE_BYTES - 1, HEADER_SIZE_BYTES, len(LONG) - 1])
def test_a_batch_that_is_too_short_at_the_end_is_torn(left: int) -> None:
    assert read(WHOLE + LONG[:left]) == [0]
    with pytest.raises(LogDamagedError):
        read(WHOLE + LONG[:left], is_last=False)


def test_a_whole_batch_whose_length_is_wrong_is_damage() -> None:
    damaged = bytearray(LONG)
    struct.pack_into(">i", damaged, 8, len(LONG) + 1000)
    assert not is_torn_tail(WHOLE + bytes(damaged), len(WHOLE), 1)
    with pytest.raises(LogDamagedError, match="claims"):
        read(WHOLE + bytes(damaged))


def zeros(data: bytes, start: int, end: int) -> bytes:
    return data[:start] + bytes(end - start) + data[end:]


def test_a_sector_that_was_never_written_is_a_torn_write() -> None:
    data = WHOLE + LONG
    for sector in range(1, len(data) // SECTOR_SIZE_BYTES + 1):
        start = sector * SECTOR_SIZE_BYTES
        hole = zeros(data, start, min(start + SECTOR_SIZE_BYTES, len(data)))
        assert read(hole) == [0], sector
    # the rest of the sector in which the batch begins, and a last one that is only begun
    assert read(zeros(data, len(WHOLE), SECTOR_SIZE_BYTES)) == [0]
    last = len(data) - len(data) % SECTOR_SIZE_BYTES
    assert len(data) - last >= 8
    assert read(zeros(data, last, len(data))) == [0]


@pytest.mark.parametrize(("moved", "spared"), [(1, 0), (-1, 0), (0, 1), (100, 0)])
def test_zeros_that_fill_no_sector_are_damage(moved: int, spared: int) -> None:
    data = WHOLE + LONG
    start = 2 * SECTOR_SIZE_BYTES + moved
    hole = zeros(data, start, start + SECTOR_SIZE_BYTES - spared)
    with pytest.raises(LogDamagedError, match="fails its checksum"):
        read(hole)


def test_few_zeros_at_the_edge_of_a_sector_are_no_unwritten_one() -> None:
    for size, torn in ((7, False), (8, True)):
        base = WHOLE + LONG
        whole = base[: len(base) - len(base) % SECTOR_SIZE_BYTES]
        # a batch that ends this far into a sector
        value = b"\x01\x07\x00" + b"x" * (len(whole) - len(WHOLE) - 500)
        data = WHOLE + data_batch(1, value=value).encode()
        value += b"x" * ((size - len(data)) % SECTOR_SIZE_BYTES)
        data = WHOLE + data_batch(1, value=value).encode()
        assert len(data) % SECTOR_SIZE_BYTES == size
        assert is_torn_tail(zeros(data, len(data) - size, len(data)), len(WHOLE), 1) is torn


def test_damage_before_a_whole_batch_is_never_cut() -> None:
    torn = zeros(LONG, 0, len(LONG))
    for follows, offset in ((data_batch(1), 1), (data_batch(2), 1), (data_batch(900), 1)):
        assert not is_torn_tail(WHOLE + torn + follows.encode(), len(WHOLE), offset)
    # what was there before is no batch of this log
    assert is_torn_tail(WHOLE + torn + data_batch(0).encode(), len(WHOLE), 1)
    # and one that is not whole either is torn too
    assert is_torn_tail(WHOLE + torn + data_batch(2).encode()[:-1], len(WHOLE), 1)
    # also where but one byte lies before it
    assert not is_torn_tail(WHOLE + b"\x00" + data_batch(1).encode(), len(WHOLE), 1)
    # a batch is looked for at every byte, and so behind what looks like the beginning of one
    assert not is_torn_tail(WHOLE + torn + b"\x02" * 40 + data_batch(2).encode(), len(WHOLE), 1)
    assert not is_torn_tail(WHOLE + torn + data_batch(2).encode() + b"\x02", len(WHOLE), 1)


DAMAGED = (
    "restore the directory from a copy, or, if everything from that offset on may be lost, cut the file to "
)


@pytest.mark.parametrize(
    ("batches", "epoch", "what", "at"),
    [
        ([data_batch(1)], 1, "the batch there claims offset 1", 0),
        ([leads(0, 1), data_batch(2)], 0, "the batch there claims offset 2", 1),
        ([leads(0, 2), data_batch(1, 1)], 0, "the epoch falls there from 2 to 1", 1),
        ([leads(0, 1), leads(1, 1)], 0, "the epoch 1 begins there a second time", 1),
        ([leads(0, 1), data_batch(1, 2)], 0, "the epoch there is 2, which never began", 1),
        ([data_batch(0, 1)], 0, "the epoch there is 1, which never began", 0),
    ],
)
def test_batches_that_do_not_follow_are_damage(
    batches: list[RecordBatch], epoch: int, what: str, at: int
) -> None:
    data = b"".join(batch.encode() for batch in batches)
    position = sum(len(batch.encode()) for batch in batches[:at])
    with pytest.raises(LogDamagedError) as caught:
        read(data, epoch=epoch)
    assert str(caught.value) == (
        f"`{NAME}` is damaged at offset {at} (byte {position}): {what}; {DAMAGED}{position} bytes and remove "
        "later segments"
    )


def test_records_must_be_numbered_one_by_one() -> None:
    batch = batch_of(1, 1, 0, [NOTHING] * 3)
    odd = RecordBatch(1, 1, (batch.records[0], batch.records[2]), last_offset_delta=2)
    with pytest.raises(LogDamagedError, match="the records there are not numbered one by one;"):
        read(WHOLE + odd.encode())


def test_a_segment_behind_a_snapshot_may_begin_amid_an_epoch() -> None:
    data = data_batch(50, 7).encode() + leads(51, 8).encode() + data_batch(52, 8).encode()
    assert read(data, next_offset=50, epoch=UNKNOWN_EPOCH) == [50, 51, 52]
    assert read(data, next_offset=50, epoch=7) == [50, 51, 52]
    with pytest.raises(LogDamagedError, match="which never began"):
        read(data, next_offset=50, epoch=6)


def test_afterwards_the_reader_says_where_a_writer_goes_on() -> None:
    data = WHOLE + data_batch(1).encode()
    reader = SegmentReader(data + b"\x00" * 5, NAME, 0, 0, is_last=True)
    assert len(list(reader)) == 2
    assert (reader.position, reader.next_offset, reader.epoch, reader.torn_size_bytes) == (len(data), 2, 1, 5)
