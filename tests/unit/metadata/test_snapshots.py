"""Snapshots while the store runs: when they are due, what is read from them, what they let go."""

import errno
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import load, read_image
from kustos.metadata.errors import LogDamagedError
from kustos.metadata.log import MAX_BATCH_SIZE_BYTES, LogPolicy, encode_snapshot, snapshot_batches
from kustos.metadata.log.snapshot import raw_snapshot_batches
from kustos.metadata.records import KRaftVersion, SnapshotHeader, Voter, VoterEndpoint, Voters, controls_of
from kustos.metadata.store.snapshots import RETRY_MS, SnapshotCancelledError
from kustos.metadata.store.store import MetadataStore
from kustos.runtime import FileSystemStorage
from kustos.runtime.storage import DEFAULT_FILE_MODE
from kustos.wire.record_batch import HEADER_SIZE_BYTES
from testkit.clocks import ManualClock
from testkit.metadata_logs import (
    acl,
    partition,
    segment,
    segments,
    snapshots,
    take_snapshot,
)

OFTEN = LogPolicy(segment_bytes=400, snapshot_record_bytes=500)


def run(directory: Path, requests: int, policy: LogPolicy = OFTEN, clock: ManualClock | None = None) -> int:
    """Format if need be, create ACLs and take snapshots as they are due; return how many were taken."""
    if not directory.exists():
        format_directory(directory, acls=[acl("first")], clock=clock)
    store = MetadataStore.open(directory, policy=policy, clock=clock)
    first, taken = len(store.image.acls), 0
    for number in range(first, first + requests):
        store.create_acls([acl(f"t{number}")])
        taken += take_snapshot(store)
    store.close()
    return taken


def test_a_snapshot_is_due_after_so_many_bytes(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    assert run(directory, 3) == 0
    # bytes count across a restart, or a node that restarts often would never take one
    assert run(directory, 20) > 2
    assert len(read_image(directory).acls) == 24


def test_a_snapshot_is_due_after_so_long_if_anything_changed(tmp_path: Path) -> None:
    directory, clock = tmp_path / "log", ManualClock()
    format_directory(directory, clock=clock)
    store = MetadataStore.open(directory, policy=LogPolicy(snapshot_interval_ms=1000), clock=clock)
    clock.now_ms += 5000
    assert not take_snapshot(store)
    store.create_acls([acl("a")])
    assert take_snapshot(store)
    store.create_acls([acl("b")])
    clock.now_ms += 999
    assert not take_snapshot(store)
    clock.now_ms += 1
    assert take_snapshot(store)
    clock.now_ms += 5000
    assert not take_snapshot(store)
    store.close()
    never = MetadataStore.open(directory, policy=LogPolicy(snapshot_interval_ms=0), clock=clock)
    never.create_acls([acl("c")])
    clock.now_ms += 10**12
    assert not take_snapshot(never)
    never.close()


def test_what_was_made_while_a_snapshot_was_written_is_in_the_log_after_it(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    format_directory(directory)
    store = MetadataStore.open(directory, policy=LogPolicy(snapshot_record_bytes=1))
    store.create_acls([acl("before")])
    job = store.begin_snapshot()
    assert job is not None
    assert store.begin_snapshot() is None, "one at a time"
    store.create_acls([acl("meanwhile")])
    job.write()
    store.end_snapshot(job)
    assert store.snapshot_is_due, "for what came meanwhile"
    store.close()
    reader, builder = load(directory, FileSystemStorage())
    assert reader.snapshot_id == job.id
    assert {binding.pattern.name for binding in builder.view().acls.values()} == {"before", "meanwhile"}


def test_old_files_go_and_the_newest_snapshot_with_the_log_after_it_stays(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    policy = LogPolicy(segment_bytes=400, snapshot_record_bytes=500, retention_bytes=2500)
    run(directory, 40, policy)
    bases, ids = segments(directory), [int(name.split("-")[0]) for name in snapshots(directory)]
    assert bases[0] > 0
    assert 0 not in ids
    assert bases[0] <= ids[0], "the oldest snapshot has the log after it"
    assert len(bases) == 1 or bases[1] > ids[0], "no segment lies wholly below the oldest snapshot"
    assert len(read_image(directory).acls) == 41
    MetadataStore.open(directory).close()


def test_old_files_go_by_age(tmp_path: Path) -> None:
    directory, clock = tmp_path / "log", ManualClock()
    policy = LogPolicy(segment_bytes=400, snapshot_record_bytes=500, retention_ms=60_000)
    run(directory, 10, policy, clock)
    many = snapshots(directory)
    assert len(many) > 1
    clock.now_ms += 60_001
    store = MetadataStore.open(directory, policy=policy, clock=clock)
    store.clean()
    assert snapshots(directory) == many[-1:]
    store.close()
    assert len(read_image(directory).acls) == 11


def test_an_older_snapshot_and_the_log_stand_in_for_a_damaged_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "log"
    run(directory, 10)
    whole = read_image(directory)
    newest = partition(directory) / f"{snapshots(directory)[-1]}.checkpoint"
    damaged = bytearray(newest.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    newest.write_bytes(damaged)
    assert "stand in" not in capsys.readouterr().out
    assert read_image(directory).same_state(whole)
    told = capsys.readouterr().out
    assert "replace a damaged one" in told
    assert newest.name in told
    store = MetadataStore.open(directory, policy=LogPolicy(retention_bytes=0))
    kept = (segments(directory), snapshots(directory))
    store.clean()
    assert (segments(directory), snapshots(directory)) == kept, "what stands in is not deleted"
    store.close()
    # without what stands in, the start stops
    segment(directory, segments(directory)[-2]).unlink()
    with pytest.raises(LogDamagedError, match=newest.name):
        MetadataStore.open(directory)


def test_a_damaged_snapshot_alone_stops_the_start(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    run(directory, 10)
    for name in snapshots(directory):
        path = partition(directory) / f"{name}.checkpoint"
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(LogDamagedError, match="snapshot"):
        MetadataStore.open(directory)


def test_a_log_shorter_than_its_newest_snapshot_stops_the_start(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    run(directory, 10)
    newest = partition(directory) / f"{snapshots(directory)[-1]}.checkpoint"
    newest.rename(newest.with_name(f"{10**6:020d}-{1:010d}.checkpoint"))
    with pytest.raises(LogDamagedError, match="log ends at"):
        MetadataStore.open(directory)


class FullForSnapshots(FileSystemStorage):
    """No room for a snapshot, when told so."""

    def __init__(self) -> None:
        self.is_full = False

    def write_pieces(self, path: Path, pieces: Iterable[bytes], mode: int = DEFAULT_FILE_MODE) -> None:
        def until_full() -> Iterable[bytes]:
            for piece in pieces:
                yield piece
                if self.is_full and path.suffix == ".checkpoint":
                    raise OSError(errno.ENOSPC, "no space left on device")

        super().write_pieces(path, until_full(), mode)


def test_a_snapshot_that_fails_leaves_nothing_and_is_tried_again_later(tmp_path: Path) -> None:
    directory, clock, storage = tmp_path / "log", ManualClock(), FullForSnapshots()
    format_directory(directory, clock=clock)
    store = MetadataStore.open(
        directory, policy=LogPolicy(snapshot_record_bytes=1), clock=clock, storage=storage
    )
    store.create_acls([acl("a")])
    job = store.begin_snapshot()
    assert job is not None
    storage.is_full = True
    with pytest.raises(OSError, match="no space") as caught:
        job.write()
    with capture_logs() as logs:
        store.end_snapshot(job, caught.value)
    assert logs == [
        {
            "event": "a snapshot of the metadata could not be written; the log goes on without it",
            "log_level": "error",
            "path": str(job.path),
            "reason": "no space left on device",
        }
    ]
    storage.is_full = False
    assert snapshots(directory) == [f"{0:020d}-{0:010d}"]
    assert not list(partition(directory).glob("*.part"))
    assert not take_snapshot(store)
    clock.now_ms += RETRY_MS - 1
    assert not store.snapshot_is_due
    clock.now_ms += 1
    with capture_logs() as logs:
        assert take_snapshot(store)
    (newest,) = (path for path in partition(directory).glob("*.checkpoint") if path.name[19] != "0")
    size_bytes = newest.stat().st_size
    assert logs[0] == {
        "event": "wrote a snapshot of the metadata",
        "log_level": "info",
        "path": str(newest),
        "size_bytes": size_bytes,
    }
    store.close()


def test_a_snapshot_can_be_cancelled(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    format_directory(directory)
    store = MetadataStore.open(directory, policy=LogPolicy(snapshot_record_bytes=1))
    store.create_acls([acl("a")])
    job = store.begin_snapshot()
    assert job is not None
    job.cancel()
    with pytest.raises(SnapshotCancelledError) as caught:
        job.write()
    assert snapshots(directory) == [f"{0:020d}-{0:010d}"]
    with capture_logs() as logs:
        store.end_snapshot(job, caught.value)
    assert logs == [], "who cancelled it knows"
    with pytest.raises(ValueError, match=r"^this snapshot is not the one that is being written$"):
        store.end_snapshot(job)
    store.close()


def test_what_a_crash_left_of_a_snapshot_is_removed(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    run(directory, 1)
    left = partition(directory) / f"{1:020d}-{1:010d}.checkpoint.part"
    left.write_bytes(b"half")
    MetadataStore.open(directory).close()
    assert not left.exists()


def test_what_is_deleted_is_told_oldest_first(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    run(directory, 10, LogPolicy(segment_bytes=400, snapshot_record_bytes=500))
    old = [f"{name}.checkpoint" for name in snapshots(directory)[:-1]]
    end = int(snapshots(directory)[-1].split("-")[0])
    below = [base for base, after in pairwise(segments(directory)) if after <= end]
    store = MetadataStore.open(directory, policy=LogPolicy(retention_bytes=0))
    with capture_logs() as logs:
        store.clean()
    store.close()
    assert len(below) > 1
    assert logs == [
        {
            "event": "deleted an old file of the metadata log",
            "log_level": "info",
            "path": str(partition(directory) / name),
        }
        for name in [*old, *(f"{base:020d}.log" for base in below)]
    ]


def test_a_disk_that_does_not_delete_costs_room_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "log"
    run(directory, 10)
    store = MetadataStore.open(directory, policy=LogPolicy(retention_bytes=0))

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "read-only file system")

    monkeypatch.setattr(FileSystemStorage, "remove", refuse)
    with capture_logs() as logs:
        store.clean()
    assert logs == [
        {
            "event": "old files of the metadata log could not be deleted",
            "log_level": "error",
            "reason": "read-only file system",
        }
    ]
    store.create_acls([acl("goes-on")])
    store.close()


def test_what_the_log_says_of_its_quorum_is_in_the_snapshots_after_it(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    format_directory(directory, acls=[acl("first")])
    (bootstrap,) = partition(directory).glob("*.checkpoint")
    voters = Voters((Voter(1, UUID(int=7), (VoterEndpoint("CONTROLLER", "h", 9093),), 0, 1),))
    records = list(read_image(directory).records())
    bootstrap.write_bytes(
        encode_snapshot(records, epoch=0, timestamp_ms=1, controls=(KRaftVersion(1), voters))
    )
    for name in ("a", "b"):
        store = MetadataStore.open(directory, policy=LogPolicy(snapshot_record_bytes=1, retention_bytes=0))
        store.create_acls([acl(name)])
        assert take_snapshot(store)
        store.close()
    (newest,) = partition(directory).glob("*.checkpoint")
    first = next(snapshot_batches(newest.read_bytes(), newest.name))
    assert controls_of(first)[1:] == [KRaftVersion(1), voters]
    header = controls_of(first)[0]
    assert isinstance(header, SnapshotHeader)
    assert header.last_contained_log_timestamp_ms > 0


def test_no_batch_of_a_snapshot_is_larger_than_readers_take(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    format_directory(directory)
    store = MetadataStore.open(directory, policy=LogPolicy(snapshot_record_bytes=1))
    for first in range(0, 600, 200):
        store.create_acls([acl(f"{number:05d}" * 6000) for number in range(first, first + 200)])
    assert take_snapshot(store)
    store.close()
    newest = partition(directory) / f"{snapshots(directory)[-1]}.checkpoint"
    batches = [raw for raw in raw_snapshot_batches(newest.read_bytes(), "it") if not raw.is_control]
    sizes = [raw.end - raw.records_start + HEADER_SIZE_BYTES for raw in batches]
    assert len(sizes) > 2
    assert MAX_BATCH_SIZE_BYTES - 62_000 < max(sizes) <= MAX_BATCH_SIZE_BYTES
    assert sum(raw.count for raw in batches) == 601
    assert len(read_image(directory).acls) == 600
