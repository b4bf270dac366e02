"""What an unfinished write can look like, and what is damage: up to the byte and the sector."""

import struct
from pathlib import Path
from random import Random

import pytest
from crc32c import crc32c

from kustos.metadata.errors import LogDamagedError
from kustos.metadata.log import MAX_BATCH_SIZE_BYTES, SegmentReader, TornTail
from kustos.metadata.log.policy import UNSYNCED_MAX_BYTES
from kustos.metadata.log.segment import UNKNOWN_EPOCH
from kustos.metadata.log.unfinished import SECTOR_SIZE_BYTES, UNWRITTEN_MIN_BYTES, is_unfinished_write
from kustos.metadata.records import (
    DelegationTokenRecord,
    LeaderChange,
    NoOpRecord,
    control_batch,
    encode_record,
)
from kustos.wire.record_batch import (
    HEADER,
    HEADER_SIZE_BYTES,
    LENGTH_END,
    MAGIC,
    RecordBatch,
    batch_of,
    read_batch,
    zigzag,
)

NAME = Path("x.log")
NOTHING = encode_record(NoOpRecord())


def leads(base_offset: int, epoch: int) -> RecordBatch:
    return control_batch(base_offset, epoch, 0, (LeaderChange(1, (1,), (1,)),))


def data_batch(base_offset: int, epoch: int = 1, value: bytes = NOTHING) -> RecordBatch:
    return batch_of(base_offset, epoch, 0, [value])


def read(
    data: bytes,
    *,
    next_offset: int = 0,
    epoch: int = 0,
    is_last: bool = True,
    recovery_point: int | None = None,
) -> list[int]:
    reader = SegmentReader(data, NAME, next_offset, epoch, is_last=is_last, recovery_point=recovery_point)
    return [batch.base_offset for batch in reader]


def is_torn(data: bytes, next_offset: int = 1, recovery_point: int | None = None) -> bool:
    return is_unfinished_write(WHOLE + data, len(WHOLE), next_offset, 1, recovery_point)


WHOLE = leads(0, 1).encode()
LONG = data_batch(1, value=b"\x01\x07\x00" + bytes(range(1, 256)) * 8).encode()
"""Long enough for several sectors, without zeros that could be taken for unwritten ones."""
MANY = batch_of(1, 1, 0, [b"\x01\x07" + bytes([number]) * 40 for number in range(1, 30)]).encode()
HOLES = (None, 0, 1)
"""Without a recovery point, and with one that is reached."""


@pytest.mark.parametrize("batch", [LONG, MANY, leads(1, 2).encode()], ids=["long", "many", "leader"])
@pytest.mark.parametrize("recovery_point", HOLES)
def test_what_a_kill_leaves_of_a_write_is_torn_at_every_byte(
    batch: bytes, recovery_point: int | None
) -> None:
    for left in range(1, len(batch)):
        assert read(WHOLE + batch[:left], recovery_point=recovery_point) == [0]
    for left in (1, HEADER_SIZE_BYTES, len(batch) - 1):
        with pytest.raises(LogDamagedError):
            read(WHOLE + batch[:left], is_last=False)
        with pytest.raises(LogDamagedError):
            read(WHOLE + batch[:left], recovery_point=2)
    assert read(WHOLE + bytes(3000)) == [0]


def forged(base_offset: int) -> str:
    """A whole batch with a right checksum that is a text of 69 characters."""
    record = b"\x0e\x00\x00\x00\x01\x02x\x00"
    for timestamp_ms in range(1000):
        covered = struct.pack(">hiqqqhii", 0, 0, 0, timestamp_ms, 0, 0, 0, 1) + record
        head = struct.pack(">qiibI", base_offset, 9 + len(covered), 1, MAGIC, crc32c(covered))
        if (head + covered).isascii():
            batch, end = read_batch(head + covered)
            assert (batch.base_offset, end) == (base_offset, 69)
            return (head + covered).decode()
    raise AssertionError("no checksum of these is ASCII")


@pytest.mark.parametrize("count", [1, 5, 500])
def test_what_a_user_chose_never_looks_like_a_batch(count: int) -> None:
    token = DelegationTokenRecord("User:a", "User:a", (forged(2),) * count, 0, 0, 0, "id")
    batch = data_batch(1, value=encode_record(token)).encode()
    for left in range(HEADER_SIZE_BYTES, len(batch), 1 + len(batch) // 200):
        assert is_torn(batch[:left]), left
        assert is_torn(batch[:left], recovery_point=1), left


def test_garbage_over_the_head_of_the_last_batch_is_damage() -> None:
    chance = Random(8)
    for recovery_point in HOLES:
        for size in (1, 8, 17, HEADER_SIZE_BYTES, 200):
            for start in (0, 3, 7):
                spoilt = bytearray(LONG)
                spoilt[start : start + size] = bytes(
                    byte ^ chance.randrange(1, 256) for byte in LONG[start : start + size]
                )
                with pytest.raises(LogDamagedError, match="is damaged at offset 1"):
                    read(WHOLE + spoilt, recovery_point=recovery_point)


def test_a_batch_whose_length_is_wrong_is_damage() -> None:
    for length in (0, len(LONG) - LENGTH_END - 1, len(LONG) + 1000, MAX_BATCH_SIZE_BYTES, 2**31 - 1):
        damaged = bytearray(LONG)
        struct.pack_into(">i", damaged, 8, length)
        for follows in (b"", data_batch(2).encode(), bytes(600)):
            assert not is_torn(bytes(damaged) + follows)
    # as long as a batch may be, and one byte more
    for size, torn in ((0, True), (1, False)):
        head = HEADER.pack(1, MAX_BATCH_SIZE_BYTES - LENGTH_END + size, 1, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1)
        assert is_torn(head) is torn


@pytest.mark.parametrize(
    ("field", "value"),
    [(0, 0), (0, 2), (2, 0), (2, 2), (3, 1), (3, 3), (5, 1), (6, 1), (6, -1), (12, 0), (12, 2), (12, -1)],
)
def test_every_field_of_a_torn_head_is_what_comes_next(field: int, value: int) -> None:
    head = list(HEADER.unpack_from(LONG))
    assert is_torn(LONG[:100])
    head[field] = value
    assert not is_torn(HEADER.pack(*head) + LONG[HEADER_SIZE_BYTES:100])


def test_records_of_a_torn_batch_follow_one_another() -> None:
    first = MANY[HEADER_SIZE_BYTES]
    for at, value in ((0, 0), (0, 1), (0, first + 2), (3, 2)):
        spoilt = bytearray(MANY[:-1])
        spoilt[HEADER_SIZE_BYTES + at] = value
        assert not is_torn(bytes(spoilt)), at
    assert is_torn(MANY[: HEADER_SIZE_BYTES + 1])
    # the size of a record may be cut, too
    big = data_batch(1, value=b"\x01\x07" + b"x" * 20_000).encode()
    assert all(is_torn(big[: HEADER_SIZE_BYTES + more]) for more in range(6))
    endless = big[:HEADER_SIZE_BYTES] + b"\xff" * 5
    assert not is_torn(endless)
    assert is_torn(endless[:-1])


def zeros(data: bytes, start: int, end: int) -> bytes:
    return data[:start] + bytes(end - start) + data[end:]


def test_sectors_that_were_not_written_at_the_end_are_torn() -> None:
    data = WHOLE + LONG
    for sector in range(1, len(data) // SECTOR_SIZE_BYTES + 1):
        start = sector * SECTOR_SIZE_BYTES
        for recovery_point in HOLES:
            assert read(zeros(data, start, len(data)), recovery_point=recovery_point) == [0], sector
    assert read(zeros(data, len(WHOLE), len(data))) == [0]


def test_a_hole_is_torn_only_where_nothing_was_acknowledged() -> None:
    data = WHOLE + LONG + data_batch(2).encode() + data_batch(3, value=LONG).encode()
    edges = [len(WHOLE), *range(SECTOR_SIZE_BYTES, len(WHOLE + LONG), SECTOR_SIZE_BYTES)]
    for start in edges:
        end = start - start % SECTOR_SIZE_BYTES + SECTOR_SIZE_BYTES
        hole = zeros(data, start, end)
        for reached in (0, 1):
            assert read(hole, recovery_point=reached) == [0], start
        for beyond in (None, 2, 3):
            with pytest.raises(LogDamagedError):
                read(hole, recovery_point=beyond)


@pytest.mark.parametrize(("moved", "spared"), [(1, 0), (-1, 0), (0, 1), (100, 0)])
def test_zeros_that_fill_no_sector_are_damage(moved: int, spared: int) -> None:
    data = WHOLE + LONG
    start = 2 * SECTOR_SIZE_BYTES + moved
    hole = zeros(data, start, start + SECTOR_SIZE_BYTES - spared)
    for recovery_point in HOLES:
        with pytest.raises(LogDamagedError, match="fails its checksum"):
            read(hole, recovery_point=recovery_point)


@pytest.mark.parametrize("moved", range(1, LENGTH_END + 1))
def test_a_hole_that_ends_amid_an_offset_is_torn_only_where_nothing_was_acknowledged(moved: int) -> None:
    """The checksum covers neither offset nor length: the batch behind the hole looks whole."""
    offset, head = 0x01010101_01010101, SECTOR_SIZE_BYTES - moved
    first = next(
        batch
        for size in range(SECTOR_SIZE_BYTES)
        if len(batch := data_batch(offset, value=b"\x01\x07\x00" + bytes(size)).encode()) == head
    )
    hole = first + bytes(moved) + data_batch(offset + 1).encode()[moved:]
    assert read(hole, next_offset=offset, epoch=1, recovery_point=offset + 1) == [offset]
    for recovery_point in (None, offset + 2):
        with pytest.raises(LogDamagedError):
            read(hole, next_offset=offset, epoch=1, recovery_point=recovery_point)


def test_few_zeros_at_the_end_are_unwritten_only_where_nothing_was_acknowledged() -> None:
    for size in (UNWRITTEN_MIN_BYTES - 1, UNWRITTEN_MIN_BYTES):
        value = b"\x01\x07\x00" + b"x" * 500
        data = WHOLE + data_batch(1, value=value).encode()
        value += b"x" * ((size - len(data)) % SECTOR_SIZE_BYTES)
        batch = data_batch(1, value=value).encode()
        assert len(WHOLE + batch) % SECTOR_SIZE_BYTES == size
        cut = zeros(batch, len(batch) - size, len(batch))
        assert is_torn(cut) is (size == UNWRITTEN_MIN_BYTES)
        assert is_torn(cut, recovery_point=1)


def test_no_unfinished_write_is_larger_than_what_is_written_between_two_fsyncs() -> None:
    head = HEADER.pack(1, MAX_BATCH_SIZE_BYTES - LENGTH_END, 1, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1)
    record = zigzag(MAX_BATCH_SIZE_BYTES - HEADER_SIZE_BYTES - 4)
    for size in (MAX_BATCH_SIZE_BYTES - 100, UNSYNCED_MAX_BYTES + 1):
        assert is_torn((head + record).ljust(size, b"x")) is (size < MAX_BATCH_SIZE_BYTES)


DAMAGED = (
    "restore the directory from a copy, or, if everything from that offset on may be lost, cut it by `kustos "
    "metadata repair`"
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
    assert str(caught.value) == (f"`{NAME}` is damaged at offset {at} (byte {position}): {what}; {DAMAGED}")


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
    assert (reader.position, reader.next_offset, reader.epoch) == (len(data), 2, 1)
    assert reader.torn == TornTail(NAME, len(data), 5, 2)
