"""The local copy of a quorum's log: what of it is read again, and what is said when it is thrown away."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kustos.metadata.log import METADATA_PARTITION, SnapshotId, encode_snapshot
from kustos.metadata.quorum import FetchedBatch, SnapshotFetched, copy
from kustos.metadata.quorum.copy import LocalCopy
from kustos.metadata.records import FeatureLevelRecord, NoOpRecord, encode_record
from kustos.runtime import FileSystemStorage
from kustos.wire.record_batch import batch_of

SNAPSHOT = SnapshotFetched(
    SnapshotId(10, 2),
    encode_snapshot([FeatureLevelRecord("metadata.version", 30)], epoch=2, timestamp_ms=0),
)


def batch(base_offset: int, records: int = 2, epoch: int = 2) -> FetchedBatch:
    made = batch_of(base_offset, epoch, 0, [encode_record(NoOpRecord())] * records)
    return FetchedBatch(made, made.encode())


def partition(directory: Path) -> Path:
    return directory / METADATA_PARTITION


def segment(directory: Path, base_offset: int = 10) -> Path:
    return partition(directory) / f"{base_offset:020d}.log"


def with_segment(directory: Path, *batches: FetchedBatch) -> Path:
    """A copy of a snapshot up to offset 10 in epoch 2, and these batches behind it."""
    partition(directory).mkdir(parents=True)
    (partition(directory) / SNAPSHOT.snapshot_id.file_name).write_bytes(SNAPSHOT.data)
    segment(directory).write_bytes(b"".join(each.data for each in batches))
    return directory


@pytest.mark.parametrize(
    "batches",
    [
        (),
        (batch(10), batch(12)),
        (batch(9), batch(11, epoch=3)),
        (batch(8, records=3), batch(11, epoch=5), batch(13, epoch=5)),
    ],
    ids=["none", "on the spot", "the first begins below the snapshot's end", "in later epochs"],
)
def test_batches_that_continue_the_snapshot_are_kept(
    batches: tuple[FetchedBatch, ...], tmp_path: Path
) -> None:
    with capture_logs() as logs:
        kept = LocalCopy.open(with_segment(tmp_path, *batches), FileSystemStorage())
    assert (kept.snapshot, kept.kept, logs) == (SNAPSHOT, batches, [])
    assert kept.is_writable
    kept.close()


def test_a_snapshot_of_a_single_record_is_one_and_that_of_the_format_is_none(tmp_path: Path) -> None:
    for end_offset in (0, 1):
        directory = tmp_path / str(end_offset)
        partition(directory).mkdir(parents=True)
        named = SnapshotId(end_offset, 1)
        (partition(directory) / named.file_name).write_bytes(SNAPSHOT.data)
        kept = LocalCopy.open(directory, FileSystemStorage())
        kept.close()
        assert kept.snapshot == (SnapshotFetched(named, SNAPSHOT.data) if end_offset else None)


@pytest.mark.parametrize(
    ("batches", "lacked"),
    [
        ((batch(11),), 10),
        ((batch(8), batch(10)), 10),
        ((batch(10), batch(13)), 12),
        ((batch(10), batch(11)), 12),
        ((batch(10, epoch=1),), 10),
        ((batch(10, epoch=3), batch(12, epoch=2)), 12),
    ],
    ids=["a gap", "below the snapshot", "a hole", "an overlap", "an epoch too old", "an epoch that falls"],
)
def test_batches_that_do_not_are_thrown_away_with_all_the_rest(
    batches: tuple[FetchedBatch, ...], lacked: int, tmp_path: Path
) -> None:
    with capture_logs() as logs:
        kept = LocalCopy.open(with_segment(tmp_path, *batches), FileSystemStorage())
    assert logs == [
        {
            "event": "the local copy of the metadata is discarded and fetched again",
            "log_level": "warning",
            "reason": f"`{10:020d}.log` lacks a batch at offset {lacked}",
        }
    ]
    assert (kept.snapshot, kept.kept) == (None, ())
    assert [path.name for path in partition(tmp_path).iterdir()] == [f"{0:020d}.log"]
    kept.append((batch(0),))
    kept.close()
    assert segment(tmp_path, 0).read_bytes() == batch(0).data


def test_a_damaged_snapshot_is_told_of_by_its_name(tmp_path: Path) -> None:
    directory = with_segment(tmp_path, batch(10))
    (partition(directory) / SNAPSHOT.snapshot_id.file_name).write_bytes(SNAPSHOT.data[:-1])
    with capture_logs() as logs:
        LocalCopy.open(directory, FileSystemStorage()).close()
    assert f"the snapshot `{SNAPSHOT.snapshot_id.file_name}` is damaged" in logs[0]["reason"]


def test_only_the_newest_snapshot_and_the_segment_behind_it_stay_with_what_is_not_ours(
    tmp_path: Path,
) -> None:
    directory = with_segment(tmp_path, batch(10))
    older = SnapshotId(4, 1)
    (partition(directory) / older.file_name).write_bytes(b"older")
    segment(directory, 4).write_bytes(b"older")
    (partition(directory) / "notes.txt").write_text("mine")
    LocalCopy.open(directory, FileSystemStorage()).close()
    assert {path.name for path in partition(directory).iterdir()} == {
        SNAPSHOT.snapshot_id.file_name,
        segment(directory).name,
        "notes.txt",
    }


def test_what_is_cut_is_cut_once_and_what_follows_takes_its_place(tmp_path: Path) -> None:
    kept = LocalCopy.open(tmp_path, FileSystemStorage())
    first, second, third = batch(0), batch(2), batch(4)
    kept.append((first, second, third))
    kept.truncate(5)
    assert segment(tmp_path, 0).read_bytes() == first.data + second.data
    kept.append((third,))
    kept.truncate(4)
    kept.truncate(2)
    assert segment(tmp_path, 0).read_bytes() == first.data
    other = batch(2, records=3, epoch=4)
    kept.append((other,))
    kept.commit(2)
    # what is committed is never cut, whatever end the leader names
    kept.truncate(0)
    assert segment(tmp_path, 0).read_bytes() == first.data
    kept.close()


def wants(kept: LocalCopy, log_max_bytes: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(copy, "LOG_MAX_BYTES", log_max_bytes)
    return kept.wants_snapshot


def test_a_long_log_wants_a_snapshot_once_all_of_it_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = LocalCopy.open(tmp_path, FileSystemStorage())
    first, second = batch(0), batch(2)
    size_bytes = len(first.data) + len(second.data)
    kept.append((first, second))
    for committed in (0, 2, 3):
        kept.commit(committed)
        assert not wants(kept, size_bytes - 1, monkeypatch), "its last record may yet be cut"
    kept.commit(4)
    assert wants(kept, size_bytes - 1, monkeypatch)
    assert not wants(kept, size_bytes, monkeypatch)
    kept.close()
    assert not wants(kept, 0, monkeypatch), "nothing is kept any more"


def test_a_log_no_longer_than_the_snapshot_before_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = LocalCopy.open(with_segment(tmp_path, batch(10)), FileSystemStorage())
    kept.commit(12)
    assert len(batch(10).data) < len(SNAPSHOT.data)
    assert not wants(kept, 0, monkeypatch)
    kept.replace(SNAPSHOT)
    kept.append((batch(10),))
    kept.commit(12)
    assert not wants(kept, 0, monkeypatch)
    large = batch(12, records=len(SNAPSHOT.data))
    kept.append((large,))
    kept.commit(large.batch.last_offset + 1)
    assert wants(kept, 0, monkeypatch)
    kept.close()


def test_a_disk_that_refuses_is_told_of_with_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "no space left on device")

    for call, method in (("append", "append"), ("truncate", "truncate")):
        kept = LocalCopy.open(tmp_path / call, FileSystemStorage())
        kept.append((batch(0),))
        with monkeypatch.context() as patched, capture_logs() as logs:
            patched.setattr(type(kept._file), method, refuse)
            kept.append((batch(2),)) if call == "append" else kept.truncate(0)
        assert logs == [
            {
                "event": "the local copy of the metadata cannot be written, a restart of this node will take "
                "longer",
                "log_level": "error",
                "path": str(partition(tmp_path / call)),
                "reason": "no space left on device",
            }
        ]
        assert not kept.is_writable
        # nothing more is tried, and nothing more is said
        with capture_logs() as logs:
            kept.append((batch(2),))
            kept.truncate(0)
        assert logs == []


def test_a_snapshot_that_cannot_be_written_ends_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "no space left on device")

    kept = LocalCopy.open(tmp_path, FileSystemStorage())
    monkeypatch.setattr(FileSystemStorage, "write", refuse)
    kept.replace(SNAPSHOT)
    assert not kept.is_writable
