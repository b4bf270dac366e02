"""A store opened on a log that was cut, flipped, lost, or whose disk fails."""

import errno
import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
)
from kustos.metadata.errors import LogDamagedError, LogFailedError
from kustos.metadata.format import format_directory
from kustos.metadata.loader import read_image
from kustos.metadata.log import SegmentReader
from kustos.metadata.store import MetadataStore


def acl(name: str) -> AclBinding:
    entry = AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW)
    return AclBinding(ResourcePattern(ResourceType.TOPIC, name), entry)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    format_directory(tmp_path / "meta", acls=[acl("first")])
    store = MetadataStore.open(tmp_path / "meta")
    for name in "abc":
        store.create_acls([acl(name), acl(name * 2)])
    store.close()
    return tmp_path / "meta"


def segment(directory: Path) -> Path:
    return directory / "__cluster_metadata-0" / f"{0:020d}.log"


def test_a_log_cut_anywhere_gives_whole_requests_in_order(directory: Path) -> None:
    whole = segment(directory).read_bytes()
    seen = set()
    for size in range(len(whole)):
        segment(directory).write_bytes(whole[:size])
        names = sorted(binding.pattern.name for binding in read_image(directory).acls.values())
        assert names in ([*"a"[:0], "first"], ["a", "aa", "first"], ["a", "aa", "b", "bb", "first"])
        seen.add(len(names))
    assert seen == {1, 3, 5}


def test_what_is_cut_is_told_and_gone(directory: Path) -> None:
    whole = segment(directory).read_bytes()
    segment(directory).write_bytes(whole[:-5])
    last = len(whole) - len(list(SegmentReader(whole, "", 0, 0, is_last=True))[-1].encode())
    with capture_logs() as logs:
        store = MetadataStore.open(directory)
    assert logs[0] == {
        "event": "cut an unfinished write from the end of the metadata log",
        "log_level": "warning",
        "path": str(segment(directory)),
        "cut_bytes": len(whole) - 5 - last,
        "size_bytes": last,
        "next_offset": 5,
    }
    assert logs[1:] == [
        {
            "event": "opened the metadata log",
            "log_level": "info",
            "path": str(directory),
            "offset": 5,
            "epoch": 2,
        }
    ]
    assert segment(directory).read_bytes()[:last] == whole[:last]
    store.close()
    with capture_logs() as logs:
        MetadataStore.open(directory).close()
    assert [each["event"] for each in logs] == ["opened the metadata log"]


def test_any_flipped_byte_stops_the_start(directory: Path, tmp_path: Path) -> None:
    whole = segment(directory).read_bytes()
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 0x01
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(directory, copy)
        segment(copy).write_bytes(flipped)
        with pytest.raises(LogDamagedError):
            MetadataStore.open(copy)


@pytest.mark.parametrize("lost", [f"{0:020d}.log", f"{0:020d}-{0:010d}.checkpoint"])
def test_a_lost_file_stops_the_start(directory: Path, lost: str) -> None:
    (directory / "__cluster_metadata-0" / lost).unlink()
    with pytest.raises(LogDamagedError):
        MetadataStore.open(directory)


def test_after_a_failed_fsync_nothing_is_acknowledged(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MetadataStore.open(directory)

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "no")

    with monkeypatch.context() as patched:
        patched.setattr("kustos.runtime.storage.os.fsync", fail)
        with pytest.raises(LogFailedError) as caught:
            store.create_acls([acl("new")])
    assert str(caught.value) == (
        f"the metadata log in `{directory / '__cluster_metadata-0'}` could not be written ([Errno 5] no); "
        "nothing is acknowledged any more, check the disk and restart"
    )
    for name in ("new", "a"):  # the second needs no record
        with pytest.raises(LogFailedError):
            store.create_acls([acl(name)])
    store.close()


def test_what_holds_keys_of_passwords_is_private(directory: Path) -> None:
    partition = directory / "__cluster_metadata-0"
    secret = [*partition.glob("*.log"), *partition.glob("*.checkpoint"), directory / "kustos.secret"]
    assert {oct(path.stat().st_mode & 0o777) for path in secret} == {"0o600"}
