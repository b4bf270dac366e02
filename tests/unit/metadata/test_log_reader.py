"""Files that do not fit together: in which words a start says what is missing, and what to do."""

import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from kustos.metadata.directory.loader import load, read_image
from kustos.metadata.errors import LogDamagedError
from kustos.metadata.log import LogReader, SnapshotId, encode_snapshot
from kustos.metadata.log.snapshot import (
    decoded,
    last_contained_timestamp_ms,
    raw_snapshot_batches,
    snapshot_batches,
)
from kustos.metadata.records import (
    FeatureLevelRecord,
    KRaftVersion,
    LeaderChange,
    MetadataRecord,
    NoOpRecord,
    SnapshotFooter,
    SnapshotHeader,
    Voters,
    control_batch,
    encode_record,
)
from kustos.metadata.store.store import MetadataStore
from kustos.runtime import FileSystemStorage
from kustos.wire.record_batch import CRC_COVERS_FROM, RecordBatch, batch_of
from tests.unit.metadata.inspection_support import acl, directory_with, log_bytes, snapshot_bytes

VERSION = FeatureLevelRecord("metadata.version", 30)
FIRST = ((VERSION, acl(1)), (acl(2), acl(3)))
"""Batches at offsets 1-2 and 3-4, after the leader's at 0."""


def partition(directory: Path) -> Path:
    return directory / "__cluster_metadata-0"


def refusal(directory: Path) -> str:
    with pytest.raises(LogDamagedError) as caught:
        load(directory, FileSystemStorage())
    return str(caught.value)


def test_a_log_that_is_missing_whole_is_missed(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, snapshot_0_0=snapshot_bytes(VERSION, epoch=0))
    (partition(directory) / "quorum-state").write_text('{"leaderEpoch":1}')
    assert refusal(directory) == (
        f"`{partition(directory)}` was written to, but its log is missing; restore the directory from a copy"
    )


def test_a_last_segment_that_is_missing_is_missed(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes(FIRST))
    active = partition(directory) / "kustos.active-segment"
    active.write_text("0\n")
    assert len(read_image(directory).acls) == 3
    active.write_text("5\n")
    assert refusal(directory) == (
        f"`{partition(directory)}` lacks its last segment, `{5:020d}.log`; restore the directory from a copy"
    )
    (partition(directory) / f"{0:020d}.log").unlink()
    active.write_text("0\n")
    assert f"lacks its last segment, `{0:020d}.log`" in refusal(directory)


def test_offsets_that_no_file_holds_are_named(tmp_path: Path) -> None:
    later = log_bytes((), base_offset=9, epoch=2)
    words = (
        "`{}` lacks the offsets from 5 to 8: no snapshot and no segment holds them; restore the directory "
    )
    hole = directory_with(tmp_path / "hole", log_0=log_bytes(FIRST), log_9=later)
    assert refusal(hole) == words.format(partition(hole)) + "from a copy"
    start = directory_with(tmp_path / "start", log_9=later, snapshot_5_1=snapshot_bytes(VERSION))
    assert refusal(start) == words.format(partition(start)) + "from a copy"
    whole = directory_with(tmp_path / "whole", log_9=later, snapshot_9_1=snapshot_bytes(VERSION))
    assert load(whole, FileSystemStorage())[0].next_offset == 10


def test_segments_that_overlap_are_named(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes(FIRST), log_4=log_bytes((), base_offset=4, epoch=2))
    path = partition(directory) / f"{4:020d}.log"
    assert refusal(directory) == (
        f"`{path}` begins at offset 4, but the segment before it reaches 4: they overlap, and only one can "
        "be true; restore the directory from a copy"
    )


def test_a_snapshot_ends_between_batches_of_the_log(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes(FIRST), snapshot_4_1=snapshot_bytes(VERSION))
    path = partition(directory) / f"{0:020d}.log"
    assert refusal(directory) == (
        f"`{path}` has a batch from offset 3 to 4, amid which the snapshot ends (3); restore the directory "
        "from a copy"
    )
    for end_offset in (1, 3, 5):
        fits = directory_with(
            tmp_path / f"fits-{end_offset}",
            log_0=log_bytes(FIRST),
            **{f"snapshot_{end_offset}_1": snapshot_bytes(VERSION)},
        )
        assert load(fits, FileSystemStorage())[0].next_offset == 5


def test_a_log_reaches_at_least_as_far_as_its_snapshot(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes(FIRST), snapshot_6_1=snapshot_bytes(VERSION))
    assert refusal(directory) == (
        f"`{partition(directory)}` has a snapshot up to offset 5, but its log ends at 4; restore the "
        "directory from a copy, or remove the segments, which the snapshot contains whole"
    )


@pytest.mark.parametrize(
    ("segments", "words"),
    [({"log_0": log_bytes(FIRST)}, "its log ends at 4"), ({}, "its log is missing")],
)
def test_a_snapshot_that_cannot_be_read_is_not_forgotten(
    segments: dict[str, bytes], words: str, tmp_path: Path
) -> None:
    whole = snapshot_bytes(VERSION, epoch=0)
    directory = directory_with(tmp_path, **segments, snapshot_0_0=whole, snapshot_9_1=whole[:-1])
    reader = LogReader(directory, FileSystemStorage(), skipped=frozenset({SnapshotId(9, 1)}))
    with pytest.raises(LogDamagedError) as caught:
        list(reader.batches())
    assert str(caught.value) == (
        f"`{partition(directory)}` has a snapshot up to offset 8, but {words}; restore the directory from a "
        "copy, or, if that snapshot can be read, remove the segments, which it contains whole"
    )


def test_segments_below_the_snapshot_are_not_read(tmp_path: Path) -> None:
    directory = directory_with(
        tmp_path,
        log_0=b"unreadable",
        log_5=log_bytes(((acl(4),),), base_offset=5, epoch=2),
        log_7=log_bytes(((acl(5),),), base_offset=7, epoch=3),
        snapshot_7_2=snapshot_bytes(VERSION, acl(4), epoch=2),
    )
    reader, builder = load(directory, FileSystemStorage())
    assert (reader.next_offset, reader.epoch, reader.epochs) == (9, 3, [(3, 7)])
    assert len(builder.view().acls) == 2
    between = directory_with(
        tmp_path / "between",
        log_0=b"unreadable",
        log_5=log_bytes(((acl(4),),), base_offset=5, epoch=2),
        snapshot_6_2=snapshot_bytes(VERSION, epoch=2),
    )
    reader, _ = load(between, FileSystemStorage())
    assert (reader.next_offset, reader.epochs) == (7, [(2, 5)])
    # but for the leader's, the bytes after the snapshot are what the next one is for
    assert reader.unsnapshotted_bytes == len(log_bytes(((acl(4),),), base_offset=5)) - len(log_bytes(()))


def control(offset: int, *controls: KRaftVersion | Voters | LeaderChange) -> bytes:
    return control_batch(offset, 1, 0, controls).encode()


def test_what_the_log_says_of_the_quorum_must_be_sane(tmp_path: Path) -> None:
    path = f"{0:020d}.log"
    newer = directory_with(tmp_path / "newer", log_0=log_bytes(()) + control(1, KRaftVersion(2)))
    assert refusal(newer) == (
        f"`{partition(newer) / path}` sets kraft.version to 2, only levels up to 1 are known here; a newer "
        "Kafka wrote it, use a newer kustos"
    )
    odd = bytearray(control(1, KRaftVersion(1)))
    odd[-2] = 0x7E  # a tagged field that is not there
    struct.pack_into(">I", odd, 17, crc32c(bytes(odd[CRC_COVERS_FROM:])))
    insane = directory_with(tmp_path / "insane", log_0=log_bytes(()) + bytes(odd))
    said = refusal(insane)
    assert said.startswith(f"`{partition(insane) / path}` has a control batch at offset 1 that is invalid: ")
    assert said.endswith("; restore the directory from a copy")


def test_what_kafka_4_3_and_older_put_beside_the_log_is_taken_in_once(tmp_path: Path) -> None:
    directory = directory_with(tmp_path)
    bootstrap = directory / "bootstrap.checkpoint"
    bootstrap.write_bytes(snapshot_bytes(VERSION, acl(1), epoch=0))
    assert len(read_image(directory).acls) == 1
    store = MetadataStore.open(directory)
    assert len(store.image.acls) == 1
    store.close()
    # the log holds it from now on, and the file is not read again
    bootstrap.write_bytes(b"unreadable")
    assert len(read_image(directory).acls) == 1
    damaged = directory_with(tmp_path / "damaged")
    (damaged / "bootstrap.checkpoint").write_bytes(snapshot_bytes(VERSION, epoch=0)[:-1])
    assert f"the snapshot `{damaged / 'bootstrap.checkpoint'}` is damaged: at byte" in refusal(damaged)


def snapshot_of(*batches: RecordBatch) -> bytes:
    return b"".join(batch.encode() for batch in batches)


HEADER = control_batch(0, 1, 0, (SnapshotHeader(77),))
FOOTER = (SnapshotFooter(),)


def data(offset: int, *records: MetadataRecord) -> RecordBatch:
    return batch_of(offset, 1, 0, map(encode_record, records or (NoOpRecord(),)))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it does not end with a footer"),
        (snapshot_of(HEADER), "it does not end with a footer"),
        (snapshot_of(HEADER, data(1)), "it does not end with a footer"),
        (snapshot_of(data(0), control_batch(1, 1, 0, FOOTER)), "it does not begin with a header"),
        (snapshot_of(control_batch(0, 1, 0, FOOTER)), "it does not begin with a header"),
        (snapshot_of(HEADER, data(2)), "the batch for offset 1 claims 2"),
        (snapshot_of(HEADER, control_batch(1, 1, 0, FOOTER), data(2)), "something follows the footer"),
        (
            snapshot_of(HEADER, RecordBatch(1, 1, data(1).records, last_offset_delta=1)),
            "the batch for offset 1 lacks records",
        ),
        (snapshot_of(HEADER)[:-1], "at byte 0: the record batch claims"),
        (snapshot_of(HEADER, data(1))[:-1], f"at byte {len(HEADER.encode())}: the record batch claims"),
    ],
)
def test_a_snapshot_is_whole_from_header_to_footer(content: bytes, words: str) -> None:
    with pytest.raises(LogDamagedError) as caught:
        list(snapshot_batches(content, "it"))
    said = str(caught.value)
    assert said.startswith(f"the snapshot `it` is damaged: {words}")
    assert said.endswith("; restore it from a copy")


def forged(content: bytes, position: int) -> bytes:
    """Give the batch there a checksum that fits what it holds now."""
    out = bytearray(content)
    end = position + 12 + int(struct.unpack_from(">i", out, position + 8)[0])
    struct.pack_into(">I", out, position + 17, crc32c(bytes(out[position + CRC_COVERS_FROM : end])))
    return bytes(out)


def test_records_that_do_not_fill_their_batch_are_told_with_file_and_place(tmp_path: Path) -> None:
    whole = encode_snapshot([VERSION, NoOpRecord()], epoch=0, timestamp_ms=0)
    header_size = len(control_batch(0, 0, 0, (SnapshotHeader(0),)).encode())
    odd = bytearray(whole)
    odd[header_size + 61] ^= 0x02  # the size of the first record
    content = forged(bytes(odd), header_size)
    raws = list(raw_snapshot_batches(content, "it"))
    with pytest.raises(LogDamagedError, match=f"^the snapshot `it` is damaged: at byte {header_size}: "):
        decoded(raws[1], "it")
    directory = directory_with(tmp_path, snapshot_0_0=content)
    path = partition(directory) / SnapshotId(0, 0).file_name
    assert refusal(directory).startswith(f"the snapshot `{path}` is damaged: at byte {header_size}: ")


def test_the_header_tells_the_time_of_the_last_record_that_a_snapshot_contains() -> None:
    assert last_contained_timestamp_ms(HEADER.encode() + b"more", "it") == 77
    for content, words in (
        (data(0).encode(), "it does not begin with a header"),
        (control_batch(0, 1, 0, FOOTER).encode(), "it does not begin with a header"),
        (HEADER.encode()[:-1], "at byte 0: the record batch claims"),
    ):
        with pytest.raises(LogDamagedError, match=f"^the snapshot `it` is damaged: {words}"):
            last_contained_timestamp_ms(content, "it")
