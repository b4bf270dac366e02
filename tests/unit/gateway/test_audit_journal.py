"""The journal's file: its space is reserved, and nothing that may be evidence is changed or deleted."""

import errno
import json
import os
from pathlib import Path

import pytest

from kustos.gateway.audit.entries import AuditEvents
from kustos.gateway.audit.journal import HEAD_BYTES, SIZE_BYTES, AuditJournal, AuditJournalError, AuditKeeper
from kustos.gateway.audit.log import AuditLog
from kustos.runtime import SystemEntropy
from testkit.gateway.audit import CONTEXT, ControlledSink, decided, willing
from testkit.small_disk import Kind, mounted_disk

OWNER = b"o" * 32
MEBIBYTE = 1024 * 1024


def reserved_bytes(path: Path) -> int:
    return path.stat().st_blocks * 512


def keeper_of(directory: Path, name: str = "node", living: tuple[str, ...] | None = ()) -> AuditKeeper:
    return AuditKeeper.open(directory, name, living, AuditEvents.of_node(1, SystemEntropy(), "cluster"))


async def leave(directory: Path, name: str, count: int = 3) -> None:
    """Be a process that took decisions, of which the sink wrote none, and was killed."""
    keeper = keeper_of(directory, name, None)
    log = AuditLog([ControlledSink()], keeper=keeper)
    for number in range(count):
        log.record(CONTEXT, [decided(f"{name}-{number}")], 7)
    for task in log._tasks:
        task.cancel()
    keeper.close()


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_space_of_a_file_is_reserved_whatever_it_was_before(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    AuditJournal.open(path, OWNER, MEBIBYTE).close()
    assert reserved_bytes(path) >= MEBIBYTE
    header = path.read_bytes()[:HEAD_BYTES]
    path.unlink()
    with path.open("wb") as file:
        file.write(header)
        file.truncate(MEBIBYTE)
    assert reserved_bytes(path) < MEBIBYTE
    AuditJournal.open(path, OWNER, MEBIBYTE).close()
    assert reserved_bytes(path) >= MEBIBYTE


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_disk_without_room_is_refused_with_what_is_needed(tmp_path: Path, kind: Kind) -> None:
    with mounted_disk(tmp_path / "disk", kind, 40 * MEBIBYTE) as disk:
        free_before = os.statvfs(disk.path).f_bfree
        path = disk.path / "journals" / "node"
        with pytest.raises(AuditJournalError) as caught:
            AuditJournal.open(path, OWNER)
        assert str(caught.value) == (
            f"cannot reserve {SIZE_BYTES} bytes for the audit journal `{path}`: no space left on device; "
            "make room on its disk, or name a directory on another one in `metadata.log.dir`"
        )
        assert free_before - os.statvfs(disk.path).f_bfree < 100, "no space stays reserved"
        AuditJournal.open(path, OWNER, 20 * MEBIBYTE).close()


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_journal_is_opened_again_and_written_on_a_full_disk(tmp_path: Path, kind: Kind) -> None:
    with mounted_disk(tmp_path / "disk", kind, 40 * MEBIBYTE) as disk:
        AuditJournal.open(disk.path / "node", OWNER, 20 * MEBIBYTE).close()
        disk.fill()
        journal = AuditJournal.open(disk.path / "node", OWNER, 20 * MEBIBYTE)
        for _ in range(19):
            journal.put(bytes(MEBIBYTE), 1)
        journal.close()


@pytest.mark.parametrize("begun_bytes", [0, HEAD_BYTES, MEBIBYTE // 2])
def test_a_file_that_a_kill_left_half_begun_is_begun(tmp_path: Path, begun_bytes: int) -> None:
    path = tmp_path / "journal"
    AuditJournal.open(path, OWNER, MEBIBYTE).close()
    os.truncate(path, begun_bytes)
    journal = AuditJournal.open(path, OWNER, MEBIBYTE)
    journal.put(b"one", 1)
    journal.close()
    assert reserved_bytes(path) >= MEBIBYTE


@pytest.mark.parametrize("size_bytes", [MEBIBYTE // 4, 4 * MEBIBYTE])
def test_a_ring_of_another_size_is_read_by_its_own_and_then_replaced(tmp_path: Path, size_bytes: int) -> None:
    path = tmp_path / "journal"
    journal = AuditJournal.open(path, OWNER, MEBIBYTE)
    journal.put(b"one", 1)
    journal.put(b"two", 1)
    journal.close()
    journal = AuditJournal.open(path, OWNER, size_bytes)
    (_, first), (_, second) = left = list(journal.left())
    assert [data for data, _ in left] == [b"one", b"two"]
    journal.free(first)
    journal.close()
    assert path.stat().st_size == MEBIBYTE
    journal = AuditJournal.open(path, OWNER, size_bytes)
    assert [data for data, _ in journal.left()] == [b"two"]
    journal.free(second)
    journal.close()
    AuditJournal.open(path, OWNER, size_bytes).close()
    assert path.stat().st_size == size_bytes


FOREIGN = {
    "a text": b"notes of an operator\n" * 10,
    "zeros": bytes(4096),
    "an earlier format": b"kustosj1" + bytes(4096),
    "a header that is cut": b"kustosj2" + bytes(20),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("name", ["node", "worker-7", "notes.txt"])
def test_a_file_that_is_no_journal_is_refused_by_name_and_left_alone(
    tmp_path: Path, content: bytes, name: str
) -> None:
    (tmp_path / name).write_bytes(content)
    for _ in range(2):
        with pytest.raises(AuditJournalError) as caught:
            keeper_of(tmp_path)
        assert str(caught.value) == (
            f"`{tmp_path / name}` is not an audit journal of this version of kustos, and was left as it is; "
            "move it to another directory, and keep it if it may hold audit events"
        )
        assert (tmp_path / name).read_bytes() == content


async def test_the_journal_of_another_node_is_refused_and_left_alone(tmp_path: Path) -> None:
    await leave(tmp_path, "worker-1")
    before = (tmp_path / "worker-1").read_bytes()
    for node_id, cluster in ((2, "cluster"), (1, "another")):
        events = AuditEvents.of_node(node_id, SystemEntropy(), cluster)
        for name in ("node", "worker-1"):
            with pytest.raises(AuditJournalError, match=r"worker-1` belongs to another node or cluster"):
                AuditKeeper.open(tmp_path, name, (), events)
            (tmp_path / "node").unlink(missing_ok=True)
    assert (tmp_path / "worker-1").read_bytes() == before


async def test_folders_and_files_that_were_never_begun_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "worker-3").touch()
    keeper = keeper_of(tmp_path)
    assert not keeper.has_left
    keeper.close()
    assert names_in(tmp_path) == ["lost+found", "node", "worker-3"]


async def test_a_start_that_fails_changes_no_journal(tmp_path: Path) -> None:
    """Journals of more workers than now, one of them damaged: every start fails, and none appends."""
    names = ["node", "worker-1", "worker-2", "worker-3"]
    for name in names:
        await leave(tmp_path, name)
    with (tmp_path / "worker-3").open("r+b") as file:
        file.seek(HEAD_BYTES + 20)
        file.write(b"\xff" * 10)
    before = {name: (tmp_path / name).read_bytes() for name in names}
    for _ in range(3):
        with pytest.raises(AuditJournalError, match=r"worker-3` is damaged, .* move it to another directory"):
            keeper_of(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in names} == before
    (tmp_path / "worker-3").unlink()
    sink = willing()
    await AuditLog([sink], keeper=keeper_of(tmp_path)).close()
    found = [json.loads(line)["resource_name"] for line in sink.recovered]
    assert found == [f"{name}-{number}" for name in names[:3] for number in range(3)]
    assert names_in(tmp_path) == ["node"]


async def test_more_is_recovered_than_a_journal_has_room_for(tmp_path: Path) -> None:
    """What other processes left goes to the sinks, not into the ring of this process."""
    for index in range(3):
        path = tmp_path / f"worker-{index}"
        await leave(tmp_path, path.name)
        # three rings, each full to the limit at which nothing more is decided
        keeper = keeper_of(tmp_path, path.name, None)
        line = next(keeper.left())[0][0].line.encode()
        while not keeper.is_full:
            assert keeper._journal is not None
            keeper._journal.put(line, 1)
        keeper.close()
    keeper = keeper_of(tmp_path)
    log = AuditLog([willing()], keeper=keeper)
    assert not log.is_full
    await log.close()
    assert names_in(tmp_path) == ["node"]


async def test_without_a_journal_the_journals_of_before_are_written_and_removed(tmp_path: Path) -> None:
    await leave(tmp_path, "node")
    await leave(tmp_path, "worker-1")
    events = AuditEvents.of_node(1, SystemEntropy(), "cluster")
    keeper = AuditKeeper.open(tmp_path, "node", ("node",), events, has_journal=False)
    sink = willing()
    await AuditLog([sink], keeper=keeper).close()
    assert len(sink.recovered) == 6
    assert not names_in(tmp_path)
    AuditKeeper.open(tmp_path / "none", "node", (), events, has_journal=False).close()
    assert not (tmp_path / "none").exists()


async def test_a_worker_recovers_its_own_journal_only(tmp_path: Path) -> None:
    await leave(tmp_path, "worker-1")
    await leave(tmp_path, "worker-2")
    sink = willing()
    await AuditLog([sink], keeper=keeper_of(tmp_path, "worker-1", None)).close()
    assert len(sink.recovered) == 3
    assert (tmp_path / "worker-2").exists()


async def test_an_empty_journal_that_cannot_be_deleted_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await leave(tmp_path, "worker-1")
    await leave(tmp_path, "worker-2")

    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, "read-only file system")

    sink = willing()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        await AuditLog([sink], keeper=keeper_of(tmp_path)).close()
    assert len(sink.recovered) == 6
    again = willing()
    await AuditLog([again], keeper=keeper_of(tmp_path)).close()
    assert not again.recovered
    assert names_in(tmp_path) == ["node"]
