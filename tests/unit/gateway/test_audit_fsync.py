"""A file with a failed fsync gets no more events: they are rewritten to another file, then released."""

import asyncio
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kustos.gateway.audit.errors import AuditSinkError
from kustos.gateway.audit.events import AuditEvents
from kustos.gateway.audit.json_files import JsonFilesSink
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.log4j import KafkaLinesSink
from kustos.gateway.audit.rings import AuditRings
from kustos.runtime import AppendFile, FileSystemStorage, SystemEntropy
from testkit.audit_events import AuditEvent
from testkit.gateway.audit import CONTEXT, EVENTS, decided, lines_of, request
from testkit.waiting import wait_until


class FailingFile:
    """A file whose fsync fails on command and loses the last bytes."""

    def __init__(self, file: AppendFile, storage: "FailingStorage", path: Path) -> None:
        self._file, self._storage, self._path = file, storage, path
        self.synced_bytes = path.stat().st_size
        self.is_suspect = False

    def append(self, data: bytes) -> None:
        assert not self.is_suspect, "nothing is appended after a failed fsync"
        self._file.append(data)

    def sync(self) -> None:
        assert not self.is_suspect, "a failed fsync is not tried again"
        if self._storage.failures:
            self._storage.failures -= 1
            self.is_suspect = True
            raise OSError(errno.EIO, "input/output error")
        self._file.sync()
        self.synced_bytes = self._path.stat().st_size

    def truncate(self, size_bytes: int) -> None:
        self._file.truncate(size_bytes)

    def close(self) -> None:
        self._file.close()


class FailingStorage(FileSystemStorage):
    """Real files; the next `failures` fsyncs of files fail."""

    __slots__ = ("failures",)

    def __init__(self) -> None:
        self.failures = 0

    def open_append(self, path: Path) -> AppendFile:
        return FailingFile(super().open_append(path), self, path)


def json_sink(directory: Path, storage: FileSystemStorage) -> JsonFilesSink:
    return JsonFilesSink(directory, max_bytes=10**6, max_files=100, storage=storage)


def topics_in(paths: list[Path]) -> list[str | None]:
    lines = [line for path in sorted(paths) for line in path.read_text().splitlines()]
    return [AuditEvent.from_json(line).resource_name for line in lines]


def is_folder(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


@contextmanager
def failing_fsync(*, of_folders: bool) -> Iterator[None]:
    """Let each fsync of a folder or of a file fail."""
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if is_folder(descriptor) is of_folders:
            raise OSError(errno.EIO, "input/output error")
        real(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def open_files(directory: Path) -> list[Path]:
    return list(directory.glob("_audit-*.jsonl"))


def closed_files(directory: Path) -> list[Path]:
    return list(directory.glob("audit-*.jsonl"))


async def test_events_of_a_failed_fsync_are_rewritten_to_another_file(tmp_path: Path) -> None:
    storage = FailingStorage()
    sink = json_sink(tmp_path, storage)
    await sink.write(lines_of(request(0, "a"), request(1, "b")))
    (suspect,) = open_files(tmp_path)
    storage.failures = 1
    with pytest.raises(AuditSinkError, match="input/output error"):
        await sink.write(lines_of(request(2, "c")))
    assert topics_in([suspect]) == ["a", "b"], "it is truncated after the last durable byte"
    await sink.write(lines_of(request(2, "c")))
    (fresh,) = set(open_files(tmp_path)) - {suspect}
    assert topics_in([fresh]) == ["c"]
    await sink.close()
    assert topics_in(closed_files(tmp_path)) == ["a", "b", "c"]
    assert not open_files(tmp_path)


async def test_a_file_that_cannot_be_finished_is_left_to_the_next_start(tmp_path: Path) -> None:
    class Unwritable(FailingStorage):
        def rewrite(self, path: Path, position: int) -> None:
            raise OSError(errno.EIO, "input/output error")

    storage = Unwritable()
    sink = json_sink(tmp_path, storage)
    await sink.write(lines_of(request(0, "a")))
    storage.failures = 1
    with pytest.raises(AuditSinkError):
        await sink.write(lines_of(request(1, "b")))
    await sink.write(lines_of(request(1, "b")))
    await sink.close()
    assert topics_in(closed_files(tmp_path)) == ["b"]
    again = json_sink(tmp_path, FileSystemStorage())
    await again.open()
    await again.close()
    assert topics_in(closed_files(tmp_path)) == ["a", "b"]


async def test_a_disk_that_keeps_failing_is_not_filled(tmp_path: Path) -> None:
    storage = FailingStorage()
    sink = json_sink(tmp_path, storage)
    storage.failures = 20
    for _ in range(20):
        with pytest.raises(AuditSinkError):
            await sink.write(lines_of(request(0, "a")))
    assert not open_files(tmp_path)
    assert not closed_files(tmp_path)
    await sink.write(lines_of(request(0, "a")))
    await sink.close()
    assert topics_in(closed_files(tmp_path)) == ["a"]


async def test_a_file_whose_partial_line_cannot_be_truncated_is_not_continued(tmp_path: Path) -> None:
    class Stuck(FailingFile):
        def append(self, data: bytes) -> None:
            self._file.append(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "no space left on device")

        def truncate(self, size_bytes: int) -> None:
            raise OSError(errno.EIO, "input/output error")

    class StuckStorage(FailingStorage):
        kind: Callable[[AppendFile, FailingStorage, Path], FailingFile] = FailingFile

        def open_append(self, path: Path) -> AppendFile:
            return self.kind(FileSystemStorage.open_append(self, path), self, path)

    storage = StuckStorage()
    sink = json_sink(tmp_path, storage)
    await sink.write(lines_of(request(0, "a")))
    await sink.close()
    storage.kind = Stuck
    with pytest.raises(AuditSinkError, match="no space"):
        await sink.write(lines_of(request(1, "b")))
    storage.kind = FailingFile
    await sink.write(lines_of(request(1, "b")))
    await sink.close()
    assert topics_in(closed_files(tmp_path)) == ["a", "b"]


async def test_the_journal_forgets_an_event_only_after_its_fsync(tmp_path: Path) -> None:
    """A process killed between a failed fsync and the retry loses nothing."""
    storage = FailingStorage()
    events = AuditEvents.of_node(1, SystemEntropy())
    rings = AuditRings.open(tmp_path / "journals", "node", (), events)
    sink = JsonFilesSink(tmp_path / "audit", max_bytes=10**6, max_files=9, storage=storage)
    log = AuditLog(events, [sink], rings=rings)
    storage.failures = 10**6
    log.record(CONTEXT, [decided("one"), decided("two")], 7)
    while not log.writers[0].failures:
        await sink._turn.acquire()
        sink._turn.release()
        await sink.open()
    for task in log._tasks:
        task.cancel()
    rings.close()
    assert sink._lock is not None
    sink._lock.release()
    after = AuditLog(
        EVENTS,
        [JsonFilesSink(tmp_path / "audit", max_bytes=10**6, max_files=9)],
        rings=AuditRings.open(tmp_path / "journals", "node", (), events),
    )
    await after.close()
    assert set(topics_in(closed_files(tmp_path / "audit"))) == {"one", "two"}


async def test_a_new_name_is_synced_before_its_events_are_written(tmp_path: Path) -> None:
    json_files, lines = json_sink(tmp_path / "json", FileSystemStorage()), tmp_path / "authorizer.log"
    for sink in (json_files, KafkaLinesSink(lines, "TRACE")):
        with failing_fsync(of_folders=True):
            for _ in range(3):
                with pytest.raises(AuditSinkError, match="input/output error"):
                    await sink.write(lines_of(request(0, "a")))
        await sink.write(lines_of(request(0, "a")))
        await sink.close()
    assert topics_in(closed_files(tmp_path / "json")) == ["a"]
    assert lines.read_text().count("LITERAL:a ") == 1


async def test_names_that_cannot_be_synced_do_not_pile_up(tmp_path: Path) -> None:
    sink = JsonFilesSink(tmp_path, max_bytes=1, max_files=9)
    await sink.write(lines_of(request(0, "a")))
    with failing_fsync(of_folders=True):
        for _ in range(20):
            with pytest.raises(AuditSinkError, match="input/output error"):
                await sink.write(lines_of(request(1, "b")))
    assert not open_files(tmp_path)
    await sink.write(lines_of(request(1, "b")))
    await sink.close()
    assert topics_in(closed_files(tmp_path)) == ["a", "b"]


async def test_a_kafka_log_with_a_failed_fsync_is_replaced(tmp_path: Path) -> None:
    """Two workers share the file: the first renames it, and neither continues to write to it."""
    path = tmp_path / "authorizer.log"
    first, second = KafkaLinesSink(path, "TRACE"), KafkaLinesSink(path, "TRACE")
    await first.write(lines_of(request(0, "a")))
    await second.write(lines_of(request(1, "b")))
    with failing_fsync(of_folders=False):
        for sink, number, name in ((first, 2, "c"), (second, 3, "d")):
            with pytest.raises(AuditSinkError, match="input/output error"):
                await sink.write(lines_of(request(number, name)))
    await first.write(lines_of(request(2, "c")))
    await second.write(lines_of(request(3, "d")))
    await first.close()
    await second.close()
    assert re.findall(r"LITERAL:(\S+)", path.read_text()) == ["c", "d"]
    aside = set(names_in(tmp_path)) - {path.name}
    assert all(name.startswith("authorizer.log.suspect-") for name in aside)
    texts = [(tmp_path / name).read_text() for name in aside]
    assert sorted(re.findall(r"LITERAL:(\S+)", "".join(texts))) == ["a", "b"]


async def test_a_kafka_log_does_not_fill_a_disk_that_keeps_failing(tmp_path: Path) -> None:
    path = tmp_path / "authorizer.log"
    sink = KafkaLinesSink(path, "TRACE")
    await sink.write(lines_of(request(0, "a")))
    with failing_fsync(of_folders=False):
        for _ in range(20):
            with pytest.raises(AuditSinkError, match="input/output error"):
                await sink.write(lines_of(request(1, "b")))
    await sink.write(lines_of(request(1, "b")))
    await sink.close()
    assert re.findall(r"LITERAL:(\S+)", path.read_text()) == ["b"]
    (aside,) = set(names_in(tmp_path)) - {path.name}
    assert re.findall(r"LITERAL:(\S+)", (tmp_path / aside).read_text()) == ["a"]


async def test_kafka_lines_may_go_to_a_device_without_a_disk() -> None:
    sink = KafkaLinesSink(Path("/dev/null"), "TRACE")
    await sink.write(lines_of(request(0, "a")))
    await sink.close()


async def test_an_old_file_that_cannot_be_deleted_duplicates_no_event(tmp_path: Path) -> None:
    class Undeletable(FailingStorage):
        def remove(self, path: Path) -> None:
            raise OSError(errno.EPERM, "operation not permitted")

    sink = JsonFilesSink(tmp_path, max_bytes=1, max_files=1, storage=Undeletable())
    for number in range(5):
        await sink.write(lines_of(request(number, f"t{number}")))
    await sink.close()
    assert topics_in(closed_files(tmp_path)) == [f"t{number}" for number in range(5)]


async def test_a_file_whose_new_name_is_refused_is_continued(tmp_path: Path) -> None:
    class Unnameable(FailingStorage):
        refuses = True

        def rename(self, path: Path, target: Path) -> None:
            if self.refuses:
                raise OSError(errno.EIO, "input/output error")
            super().rename(path, target)

    storage = Unnameable()
    sink = JsonFilesSink(tmp_path, max_bytes=10**6, max_files=9, roll_ms=40, storage=storage)
    await sink.write(lines_of(request(0, "a")))
    await sink.open()
    with capture_logs() as said:
        await asyncio.to_thread(wait_until, lambda: said, what="the age of the file is checked")
    assert said[0]["event"] == "an audit file cannot be finished"
    assert said[0]["reason"] == "input/output error"
    await sink.write(lines_of(request(1, "b")))
    storage.refuses = False
    await sink.close()
    assert topics_in(closed_files(tmp_path)) == ["a", "b"]
    wait_until(lambda: not open_files(tmp_path), what="no file is left open")
