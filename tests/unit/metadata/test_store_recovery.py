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
from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.errors import LogDamagedError, LogFailedError
from kustos.metadata.log import SegmentReader
from kustos.metadata.store.store import MetadataStore
from tests.unit.metadata.test_torn_tails import forged


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


def forget_what_was_acknowledged(directory: Path) -> None:
    """Let the end of the log be what was on its way when the machine stopped."""
    (directory / "__cluster_metadata-0" / "kustos.recovery-point").unlink()


def segment(directory: Path) -> Path:
    return directory / "__cluster_metadata-0" / f"{0:020d}.log"


def test_a_log_cut_anywhere_gives_whole_requests_in_order(directory: Path) -> None:
    whole = segment(directory).read_bytes()
    forget_what_was_acknowledged(directory)
    (directory / "__cluster_metadata-0" / "leader-epoch-checkpoint").unlink()
    seen = set()
    for size in range(len(whole)):
        segment(directory).write_bytes(whole[:size])
        names = sorted(
            binding.pattern.name for binding in read_image(directory, ignore_torn_tail=True).acls.values()
        )
        assert names in ([*"a"[:0], "first"], ["a", "aa", "first"], ["a", "aa", "b", "bb", "first"])
        seen.add(len(names))
    assert seen == {1, 3, 5}


def test_what_is_cut_is_told_and_gone(directory: Path) -> None:
    whole = segment(directory).read_bytes()
    segment(directory).write_bytes(whole[:-5])
    forget_what_was_acknowledged(directory)
    last = len(whole) - len(list(SegmentReader(whole, segment(directory), 0, 0, is_last=True))[-1].encode())
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


@pytest.mark.slow
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
        f"the metadata log in `{directory / '__cluster_metadata-0'}` could not be written (no); "
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


def test_a_text_that_spells_a_batch_does_not_keep_a_node_from_starting(tmp_path: Path) -> None:
    directory = tmp_path / "meta"
    format_directory(directory, acls=[acl("first")])
    store = MetadataStore.open(directory)
    store.create_acls([acl("before")])
    before = segment(directory).read_bytes()
    # each names the offset that comes next after the batch in which it stands
    store.create_acls([acl(forged(store.last_offset + 1 + number)) for number in range(100)])
    store.close()
    whole = segment(directory).read_bytes()
    (directory / "__cluster_metadata-0" / "kustos.recovery-point").write_bytes(b"%020d\n" % 2)
    for size in range(len(before) + 1, len(whole), 997):
        copy = tmp_path / "copy"
        shutil.copytree(directory, copy)
        segment(copy).write_bytes(whole[:size])
        store = MetadataStore.open(copy)
        assert {binding.pattern.name for binding in store.image.acls.values()} == {"first", "before"}
        store.close()
        shutil.rmtree(copy)


@pytest.mark.parametrize("garbage", [b"\xa5", b"\x5a"], ids=["negative length", "long"])
def test_garbage_over_the_head_of_the_last_acknowledged_batch_stops_the_start(
    garbage: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "meta"
    format_directory(directory, acls=[acl(f"f{number}") for number in range(3)])
    store = MetadataStore.open(directory)
    position = segment(directory).stat().st_size
    store.create_acls([acl(f"t{number}") for number in range(40)])
    store.close()
    data = bytearray(segment(directory).read_bytes())
    data[position : position + 61] = garbage * 61
    segment(directory).write_bytes(data)
    for is_known in (True, False):
        if not is_known:
            forget_what_was_acknowledged(directory)
        with pytest.raises(LogDamagedError, match=rf"is damaged at offset 1 \(byte {position}\)"):
            MetadataStore.open(directory)
        assert run(["metadata", "verify", str(directory)]) == ExitCode.FAILED
        assert "damaged: `" in capsys.readouterr().out
    assert segment(directory).read_bytes() == data
