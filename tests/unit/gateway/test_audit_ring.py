"""The file of a ring: its space is reserved, and possible evidence is never changed or deleted."""

import errno
import json
import os
from pathlib import Path

import pytest

from kustos.gateway.audit.events import AuditEvents
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.ring import HEAD_BYTES, SIZE_BYTES, AuditRing, AuditRingError
from kustos.gateway.audit.rings import AuditRings
from kustos.gateway.audit.sink_writer import OnFull
from kustos.runtime import SystemEntropy
from testkit.gateway.audit import CONTEXT, ControlledSink, decided, willing
from testkit.small_disk import Kind, mounted_disk

OWNER = b"o" * 32
MEBIBYTE = 1024 * 1024


def reserved_bytes(path: Path) -> int:
    return path.stat().st_blocks * 512


def events() -> AuditEvents:
    return AuditEvents.of_node(1, SystemEntropy(), "cluster")


def rings_of(directory: Path, name: str = "node", living: tuple[str, ...] | None = ()) -> AuditRings:
    return AuditRings.open(directory, name, living, events())


def line(text: str, padding_bytes: int = 0) -> bytes:
    return b'{"event_id":"%s","text":"%s"}\n' % (text.encode(), b"x" * padding_bytes)


def ids_in(lines: bytes) -> list[str]:
    return [json.loads(each)["event_id"] for each in lines.splitlines()]


async def leave(directory: Path, name: str, count: int = 3) -> None:
    """Leave the journal of a killed process whose sink wrote none of its decisions."""
    rings = rings_of(directory, name, None)
    log = AuditLog(events(), [ControlledSink()], rings=rings)
    for number in range(count):
        log.record(CONTEXT, [decided(f"{name}-{number}")], 7)
    for task in log._tasks:
        task.cancel()
    rings.close()


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_ring_file_reserves_its_space_whatever_its_previous_content(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    AuditRing.open(path, OWNER, MEBIBYTE).close()
    assert reserved_bytes(path) >= MEBIBYTE
    header = path.read_bytes()[:HEAD_BYTES]
    path.unlink()
    with path.open("wb") as file:
        file.write(header)
        file.truncate(MEBIBYTE)
    assert reserved_bytes(path) < MEBIBYTE
    AuditRing.open(path, OWNER, MEBIBYTE).close()
    assert reserved_bytes(path) >= MEBIBYTE


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_full_disk_is_rejected_with_the_required_size(tmp_path: Path, kind: Kind) -> None:
    with mounted_disk(tmp_path / "disk", kind, 40 * MEBIBYTE) as disk:
        free_before = os.statvfs(disk.path).f_bfree
        path = disk.path / "journals" / "node"
        with pytest.raises(AuditRingError) as caught:
            AuditRing.open(path, OWNER)
        assert str(caught.value) == (
            f"cannot reserve {SIZE_BYTES} bytes for the audit journal `{path}`: no space left on device; "
            "make room on its disk, or name a directory on another one in `metadata.log.dir`"
        )
        assert free_before - os.statvfs(disk.path).f_bfree < 100, "no space stays reserved"
        AuditRing.open(path, OWNER, 20 * MEBIBYTE).close()


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_journal_is_reopened_and_written_on_a_full_disk(tmp_path: Path, kind: Kind) -> None:
    with mounted_disk(tmp_path / "disk", kind, 40 * MEBIBYTE) as disk:
        AuditRing.open(disk.path / "node", OWNER, 20 * MEBIBYTE).close()
        disk.fill()
        ring = AuditRing.open(disk.path / "node", OWNER, 20 * MEBIBYTE)
        for _ in range(19):
            ring.put(bytes(MEBIBYTE), 1)
        ring.close()


@pytest.mark.parametrize("begun_bytes", [0, HEAD_BYTES, MEBIBYTE // 2])
def test_a_file_half_created_at_a_kill_is_created_again(tmp_path: Path, begun_bytes: int) -> None:
    path = tmp_path / "journal"
    AuditRing.open(path, OWNER, MEBIBYTE).close()
    os.truncate(path, begun_bytes)
    ring = AuditRing.open(path, OWNER, MEBIBYTE)
    ring.put(line("one"), 1)
    ring.close()
    assert reserved_bytes(path) >= MEBIBYTE


@pytest.mark.parametrize("size_bytes", [MEBIBYTE // 4, 4 * MEBIBYTE])
def test_a_ring_of_another_size_is_read_with_its_size_and_replaced(tmp_path: Path, size_bytes: int) -> None:
    path = tmp_path / "journal"
    ring = AuditRing.open(path, OWNER, MEBIBYTE)
    ring.put(line("one"), 1)
    ring.put(line("two"), 1)
    ring.close()
    ring = AuditRing.open(path, OWNER, size_bytes)
    cursor = ring.cursor()
    assert ids_in(ring.read(cursor, 9).lines) == ["one", "two"]
    ring.advance(cursor, ring.read(cursor, 1))
    ring.close()
    assert path.stat().st_size == MEBIBYTE
    ring = AuditRing.open(path, OWNER, size_bytes)
    cursor = ring.cursor()
    left = ring.read(cursor, 9)
    assert ids_in(left.lines) == ["two"]
    ring.advance(cursor, left)
    ring.close()
    AuditRing.open(path, OWNER, size_bytes).close()
    assert path.stat().st_size == size_bytes


FOREIGN = {
    "a text": b"notes of an operator\n" * 10,
    "zeros": bytes(4096),
    "an earlier format": b"kustosj2" + bytes(4096),
    "a header that is cut": b"kustosj3" + bytes(20),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("name", ["node", "worker-7", "notes.txt"])
def test_a_file_that_is_not_a_journal_is_rejected_by_name_and_unchanged(
    tmp_path: Path, content: bytes, name: str
) -> None:
    (tmp_path / name).write_bytes(content)
    for _ in range(2):
        with pytest.raises(AuditRingError) as caught:
            rings_of(tmp_path)
        assert str(caught.value) == (
            f"`{tmp_path / name}` is not an audit journal of this version of kustos, and was left as it is; "
            "move it to another directory, and keep it if it may hold audit events"
        )
        assert (tmp_path / name).read_bytes() == content


async def test_the_journal_of_another_node_is_rejected_and_unchanged(tmp_path: Path) -> None:
    await leave(tmp_path, "worker-1")
    before = (tmp_path / "worker-1").read_bytes()
    for node_id, cluster in ((2, "cluster"), (1, "another")):
        foreign = AuditEvents.of_node(node_id, SystemEntropy(), cluster)
        for name in ("node", "worker-1"):
            with pytest.raises(AuditRingError, match=r"worker-1` belongs to another node or cluster"):
                AuditRings.open(tmp_path, name, (), foreign)
            (tmp_path / "node").unlink(missing_ok=True)
    assert (tmp_path / "worker-1").read_bytes() == before


async def test_folders_and_files_without_a_journal_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "worker-3").touch()
    rings = rings_of(tmp_path)
    assert not rings.left
    rings.close()
    assert names_in(tmp_path) == ["lost+found", "node", "worker-3"]


async def test_a_failed_start_changes_no_journal(tmp_path: Path) -> None:
    """With journals of more workers than now, one of them damaged, every start fails without appending."""
    names = ["node", "worker-1", "worker-2", "worker-3"]
    for name in names:
        await leave(tmp_path, name)
    with (tmp_path / "worker-3").open("r+b") as file:
        file.seek(HEAD_BYTES + 20)
        file.write(b"\xff" * 10)
    before = {name: (tmp_path / name).read_bytes() for name in names}
    for _ in range(3):
        with pytest.raises(AuditRingError, match=r"worker-3` is damaged, .* move it to another directory"):
            rings_of(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in names} == before
    (tmp_path / "worker-3").unlink()
    sink = willing()
    await AuditLog(events(), [sink], rings=rings_of(tmp_path)).close()
    assert sink.names == [f"{name}-{number}" for name in names[:3] for number in range(3)]
    assert names_in(tmp_path) == ["node"]


async def test_recovery_may_exceed_the_size_of_a_ring(tmp_path: Path) -> None:
    """Events of other processes pass through the ring piece by piece and never fill it."""
    count = 0
    for index in range(3):
        name = f"worker-{index}"
        ring = rings_of(tmp_path, name, None).own
        # three rings, each full to the limit at which nothing more is decided
        while not ring.is_full:
            ring.put(line(f"{name}-{count}", 20_000), 1)
            count += 1
        ring.close()
    log = AuditLog(events(), [sink := willing()], rings=rings_of(tmp_path))
    assert not log.is_full
    await log.close()
    assert len(sink.events) == count
    assert names_in(tmp_path) == ["node"]


async def test_a_node_without_a_journal_writes_and_removes_the_old_journals(tmp_path: Path) -> None:
    await leave(tmp_path, "node")
    await leave(tmp_path, "worker-1")
    rings = AuditRings.open(tmp_path, "node", ("node",), events(), is_durable=False)
    sink = willing()
    await AuditLog(events(), [sink], rings=rings, on_full=OnFull.DROP).close()
    assert len(sink.names) == 6
    assert not names_in(tmp_path)
    AuditRings.open(tmp_path / "none", "node", (), events(), is_durable=False).close()
    assert not (tmp_path / "none").exists()


async def test_a_worker_recovers_its_own_journal_only(tmp_path: Path) -> None:
    await leave(tmp_path, "worker-1")
    await leave(tmp_path, "worker-2")
    sink = willing()
    await AuditLog(events(), [sink], rings=rings_of(tmp_path, "worker-1", None)).close()
    assert len(sink.names) == 3
    assert (tmp_path / "worker-2").exists()


async def test_a_start_succeeds_if_an_empty_journal_cannot_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await leave(tmp_path, "worker-1")
    await leave(tmp_path, "worker-2")

    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, "read-only file system")

    sink = willing()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        await AuditLog(events(), [sink], rings=rings_of(tmp_path)).close()
    assert len(sink.names) == 6
    again = willing()
    await AuditLog(events(), [again], rings=rings_of(tmp_path)).close()
    assert not again.names
    assert names_in(tmp_path) == ["node"]
