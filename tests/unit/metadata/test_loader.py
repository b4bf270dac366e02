"""From files to image: what is told of records that cannot be applied, and what stands in for damage."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kustos.metadata.directory.loader import load, read_image, records_of, replay_batches
from kustos.metadata.errors import LogDamagedError, MetadataError, RecordError
from kustos.metadata.image import ImageBuilder
from kustos.metadata.log import SnapshotId
from kustos.metadata.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    OpaqueRecord,
    RemoveAccessControlEntryRecord,
    encode_record,
)
from kustos.metadata.store.store import MetadataStore
from kustos.runtime import FileSystemStorage
from kustos.wire.record_batch import Record, RecordBatch, batch_of
from tests.unit.metadata.inspection_support import acl, directory_with, log_bytes, snapshot_bytes

VERSION = FeatureLevelRecord("metadata.version", 30)
OPAQUE = OpaqueRecord(2, 0, b"a topic\x00")


def refusal(directory: Path) -> str:
    with pytest.raises(LogDamagedError) as caught:
        read_image(directory)
    return str(caught.value)


def test_a_batch_that_contradicts_the_log_is_named_by_its_offset(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes(((VERSION, acl(1)), (acl(2), acl(1)))))
    assert refusal(directory) == (
        f"the batch at offset 3 of the log in `{directory}` cannot be applied: two ACLs have "
        "the id `00000000-0000-0000-0000-000000000001`"
    )


@pytest.mark.parametrize("more", [(), (NoOpRecord(),)], ids=["in bulk", "one by one"])
def test_a_snapshot_that_contradicts_itself_is_named(more: tuple[NoOpRecord, ...], tmp_path: Path) -> None:
    data = snapshot_bytes(VERSION, *more, epoch=0)
    directory = directory_with(tmp_path, snapshot_0_0=data)
    assert not read_image(directory).acls
    path = directory / "__cluster_metadata-0" / SnapshotId(0, 0).file_name
    twice = [acl(1), acl(1)]
    path.write_bytes(snapshot_bytes(*([*twice] if not more else [*more, *twice]), epoch=0))
    said = refusal(directory)
    assert said.startswith("the batch at offset 1 of the ")
    assert str(path) in said
    assert said.endswith("cannot be applied: two ACLs have the id `00000000-0000-0000-0000-000000000001`")


def test_a_snapshot_cannot_end_amid_a_transaction(tmp_path: Path) -> None:
    open_end = snapshot_bytes(VERSION, BeginTransactionRecord(), acl(1), epoch=0)
    directory = directory_with(tmp_path, snapshot_0_0=open_end)
    assert "ends amid a metadata transaction" in refusal(directory)
    ended = snapshot_bytes(VERSION, BeginTransactionRecord(), acl(1), EndTransactionRecord(), epoch=0)
    assert len(read_image(directory_with(tmp_path / "ended", snapshot_0_0=ended)).acls) == 1


def test_a_log_without_its_beginning_is_not_started(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, snapshot_0_0=snapshot_bytes(acl(1), epoch=0))
    with pytest.raises(LogDamagedError) as caught:
        MetadataStore.open(directory)
    assert str(caught.value) == (
        f"the log in `{directory}` lacks its beginning: no record sets metadata.version; a snapshot is "
        "missing, restore the directory from a copy"
    )


def test_what_cannot_be_read_is_an_error_of_the_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = directory_with(tmp_path, snapshot_0_0=snapshot_bytes(VERSION, epoch=0))

    def refuse(*_: object) -> bytes:
        raise OSError(5, "input/output error")

    monkeypatch.setattr(FileSystemStorage, "read", refuse)
    with pytest.raises(MetadataError) as caught:
        read_image(directory)
    assert str(caught.value) == f"`{directory}` cannot be read: input/output error"


def test_records_that_are_kept_unread_are_counted_wherever_they_are(tmp_path: Path) -> None:
    builder = ImageBuilder()
    values = [encode_record(OPAQUE), encode_record(VERSION), encode_record(OPAQUE)]
    assert replay_batches(builder, [batch_of(0, 1, 0, values)], tmp_path) == 2
    directory = directory_with(
        tmp_path,
        snapshot_0_0=snapshot_bytes(VERSION, OPAQUE, epoch=0),
        log_0=log_bytes(((OPAQUE, acl(1)), (OPAQUE,))),
    )
    reader, _ = load(directory, FileSystemStorage())
    assert reader.opaque_records == 3
    with capture_logs() as logs:
        (directory / "__cluster_metadata-0" / "quorum-state").write_text('{"leaderEpoch":1}')
        MetadataStore.open(directory).close()
    (warning,) = (each for each in logs if each["log_level"] == "warning")
    assert warning["event"] == (
        "no snapshots are taken: the log holds records of kinds that kustos keeps but does not read, and a "
        "snapshot would lose them"
    )
    assert warning["records"] == 3


def test_a_record_without_a_value_is_none() -> None:
    with pytest.raises(RecordError) as caught:
        records_of(RecordBatch(0, 1, (Record(0, None),)))
    assert str(caught.value) == "a metadata record has no value"


def test_of_several_damaged_snapshots_the_newest_is_told_of(tmp_path: Path) -> None:
    whole = snapshot_bytes(VERSION, epoch=0)
    directory = directory_with(
        tmp_path,
        snapshot_0_0=whole,
        log_0=log_bytes(((acl(1),), (acl(2),))),
        snapshot_2_1=whole[:-1],
        snapshot_3_1=whole[:-2],
    )
    with capture_logs() as logs:
        assert len(read_image(directory).acls) == 2
    (told,) = logs
    newest = directory / "__cluster_metadata-0" / SnapshotId(3, 1).file_name
    assert told["event"] == "an older snapshot and the log after it replace a damaged one"
    assert told["log_level"] == "error"
    assert told["reason"].startswith(f"the snapshot `{newest}` is damaged")
    # and where nothing stands in, it is the newest that is missed
    (directory / "__cluster_metadata-0" / SnapshotId(0, 0).file_name).write_bytes(whole[:-3])
    assert refusal(directory).startswith(f"the snapshot `{newest}` is damaged")
    removed = RemoveAccessControlEntryRecord(acl(9).id)
    contradicting = directory_with(
        tmp_path / "contradicting",
        snapshot_0_0=whole,
        log_0=log_bytes(((acl(1),), (removed,))),
        snapshot_3_1=whole[:-1],
    )
    newest = contradicting / "__cluster_metadata-0" / SnapshotId(3, 1).file_name
    assert refusal(contradicting).startswith(f"the snapshot `{newest}` is damaged")
