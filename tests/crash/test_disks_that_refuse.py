"""Real disks that are full or read-only: nothing acknowledged is lost, and the log can be used afterwards."""

from pathlib import Path

import pytest

from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.errors import LogFailedError, LogFullError
from kustos.metadata.log import LogPolicy
from kustos.metadata.store.store import MetadataStore
from testkit.metadata_logs import acl, contents, partition, take_snapshot
from testkit.small_disk import small_disk

REQUEST_ACLS = 20
LONG_NAME = "x" * 200
ACLS_TO_FILL_IT = 5000
FREED_BYTES = 100_000


def fill_by_requests(store: MetadataStore) -> set[str]:
    """Create ACLs until the disk is full; return the names that were acknowledged."""
    acknowledged: set[str] = set()
    for number in range(ACLS_TO_FILL_IT):
        names = [f"{number}-{part}-{LONG_NAME}" for part in range(REQUEST_ACLS)]
        try:
            results = store.create_acls([acl(name) for name in names])
        except LogFullError:
            return acknowledged
        assert all(result.error is None for result in results)
        acknowledged.update(names)
        if store.snapshot_is_due:
            job = store.begin_snapshot()
            assert job is not None
            try:
                job.write()
            except OSError as error:
                store.end_snapshot(job, error)
            else:
                store.end_snapshot(job)
    raise AssertionError("the disk never was full")


@pytest.mark.parametrize("snapshot_bytes", [10**9, 40_000], ids=["log", "log and snapshots"])
def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path, snapshot_bytes: int) -> None:
    policy = LogPolicy(segment_bytes=100_000, snapshot_record_bytes=snapshot_bytes)
    with small_disk(tmp_path / "disk") as disk:
        directory = disk.path / "log"
        if disk.is_mounted:
            disk.filler.write_bytes(bytes(FREED_BYTES))
        format_directory(directory)
        store = MetadataStore.open(directory, policy=policy)
        acknowledged = fill_by_requests(store)
        for _ in range(3):
            with pytest.raises(LogFullError, match=r"has no room .* nothing was changed, make room and try"):
                store.create_acls([acl(f"late-{part}-{LONG_NAME}") for part in range(REQUEST_ACLS)])
        disk.free()
        assert store.takes_changes
        store.create_acls([acl("late")])
        store.close()
        assert not list(partition(directory).glob("*.part"))
        image = read_image(directory)
        assert {binding.pattern.name for binding in image.acls.values()} == acknowledged | {"late"}


def test_a_start_on_a_full_disk_is_refused_and_succeeds_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        directory = disk.path / "log"
        format_directory(directory, acls=[acl("first")])
        store = MetadataStore.open(directory)
        store.create_acls([acl("second")])
        store.close()
        before = contents(directory)
        disk.fill()
        with pytest.raises(LogFailedError, match=r"could not be written .*check the disk and restart"):
            MetadataStore.open(directory)
        disk.free()
        assert contents(directory) == before
        again = MetadataStore.open(directory)
        assert len(again.image.acls) == 2
        again.close()


def test_a_snapshot_that_does_not_fit_leaves_the_log_working(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        directory = disk.path / "log"
        format_directory(directory)
        store = MetadataStore.open(directory, policy=LogPolicy(snapshot_record_bytes=1))
        store.create_acls([acl(f"{number}-{LONG_NAME}") for number in range(800)])
        job = store.begin_snapshot()
        assert job is not None
        disk.fill()
        with pytest.raises(OSError, match=r"(?i)space|large") as caught:
            job.write()
        store.end_snapshot(job, caught.value)
        disk.free()
        assert not list(partition(directory).glob("*.part"))
        store.create_acls([acl("after")])
        assert not take_snapshot(store), "it is not tried again at once"
        store.close()
        assert len(read_image(directory).acls) == 801


def test_a_read_only_directory_is_refused_and_left_alone(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        directory = disk.path / "log"
        format_directory(directory, acls=[acl("first")])
        before = contents(directory)
        disk.make_read_only()
        try:
            with pytest.raises(OSError, match=r"(?i)(read-only|permission).*\.lock"):
                MetadataStore.open(directory)
            assert len(read_image(directory).acls) == 1, "it can be read nevertheless"
        finally:
            disk.make_writable()
        assert contents(directory) == before
        MetadataStore.open(directory).close()
