"""Audit events as files of JSON lines, rotated by size and by age.

The file being written is `_audit-<UTC time>-<number>.jsonl`. Once it is full and on the disk, it loses the
underscore. Readers such as Spark skip names with a leading underscore, so they see complete files only. The
next start cuts a file that a crash left open after its last complete line, and closes it.

An event counts as written after its file was synced. After a failed fsync the kernel may drop the bytes and
report success for the next fsync. Therefore such a file takes no more events: the sink cuts it after the
synced events and writes the others again, into a new file.
"""

import asyncio
import json
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from kustos.authorizer.audit import AuditFormat, formatter
from kustos.client import supervised
from kustos.gateway.audit.errors import AuditSinkError
from kustos.gateway.audit.events import text_lines
from kustos.gateway.audit.sink_writer import LOG
from kustos.runtime import (
    AppendFile,
    Clock,
    FileSystemStorage,
    Storage,
    StorageLock,
    SystemClock,
    words_of,
)

DIRECTORY_MODE: Final = 0o700
"""Only the user of the process may read audit events."""

LOCK_NAME: Final = "_lock"
OPEN_PREFIX: Final = "_"
CLOSED_NAME: Final = re.compile(r"audit-\d{8}T\d{6}Z-(\d{6,})\.jsonl")
TAIL_BYTES: Final = 64 * 1024
"""The size of the pieces in which a file is searched for its last complete line."""

ROLL_CHECKS: Final = 4
"""The number of checks of the file's age within `roll_ms`."""

UNFINISHED: Final = "an audit file cannot be finished"


class JsonFilesSink:
    """Writes to one directory, which is locked against other processes.

    A file holds at most `max_bytes`, or one event that is longer. It is finished at the latest `roll_ms`
    after its first event, so that an idle node publishes its events. The sink keeps `max_files` finished
    files.
    """

    name = "json"
    shortened_events = 0

    def __init__(
        self,
        directory: Path,
        *,
        max_bytes: int,
        max_files: int,
        roll_ms: int = 3_600_000,
        clock: Clock | None = None,
        line_format: AuditFormat = AuditFormat.KUSTOS,
        storage: Storage | None = None,
    ) -> None:
        self._format: Final = line_format
        self._directory: Final = directory
        self._max_bytes: Final = max_bytes
        self._max_files: Final = max_files
        self._roll_ms: Final = roll_ms
        self._clock: Final = clock or SystemClock()
        self._storage: Final = storage or FileSystemStorage()
        self._file: AppendFile | None = None
        self._path = directory
        self._suspects: Final[dict[Path, int]] = {}
        """Files that take no more events → the number of their durable bytes."""
        self._size_bytes = 0
        self._number = 0
        self._lock: StorageLock | None = None
        self._first_ms = 0
        self._turn: Final = asyncio.Lock()
        self._roller: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Create and lock the directory, and close files that a crash left open; raise `AuditSinkError`."""
        try:
            async with self._turn:
                await asyncio.to_thread(self._start)
        except OSError as error:
            raise _failure(f"cannot write audit files into `{self._directory}`", error) from error
        if self._roller is None:
            self._roller = supervised("audit-file-roller", self._roll)

    async def write(self, lines: bytes) -> None:
        """Return when the lines are on the disk; raise `AuditSinkError`.

        After an error some of them may be on the disk.
        """
        try:
            async with self._turn:
                await asyncio.to_thread(self._write, lines)
        except OSError as error:
            raise _failure(f"cannot write to `{self._path}`", error) from error

    async def close(self) -> None:
        """Finish the last file; raise `AuditSinkError`."""
        if self._roller is not None:
            self._roller.cancel()
        try:
            async with self._turn:
                await asyncio.to_thread(self._end)
        except OSError as error:
            raise _failure(f"cannot close `{self._path}`", error) from error

    async def _roll(self) -> None:
        """Finish the file when it is old enough; after an error the next check tries again."""
        while True:
            await asyncio.sleep(self._roll_ms / ROLL_CHECKS / 1000)
            try:
                async with self._turn:
                    await asyncio.to_thread(self._finish_if_old)
            except OSError as error:
                LOG.error(UNFINISHED, file=self._path.name, reason=words_of(error))

    def _finish_if_old(self) -> None:
        if self._size_bytes and self._clock.wall_ms() - self._first_ms >= self._roll_ms:
            self._finish()

    def _start(self) -> None:
        if self._lock is not None:
            return
        self._storage.make_directory(self._directory, DIRECTORY_MODE)
        # the open file of another process is not a file that a crash left
        lock = self._storage.lock(self._directory / LOCK_NAME)
        try:
            self._recover_all()
        except BaseException:
            lock.release()
            raise
        self._lock = lock

    def _recover_all(self) -> None:
        for name in self._names():
            if name.startswith(f"{OPEN_PREFIX}audit-") and name.endswith(".jsonl"):
                path = self._directory / name
                self._recover(path, self._whole_lines_size(path))
        self._number = max(map(_number_of, self._names()), default=0)
        self._begin()

    def _names(self) -> list[str]:
        return self._storage.names(self._directory)

    def _recover(self, path: Path, size_bytes: int) -> None:
        """Finish a file that a crash or a failed fsync left open, with its first `size_bytes`."""
        file = self._storage.open_append(path)
        try:
            file.truncate(size_bytes)
        finally:
            file.close()
        # the kernel may show bytes that an fsync failed to write
        self._storage.rewrite(path, 0)
        self._publish(path, size_bytes)

    def _whole_lines_size(self, path: Path) -> int:
        """Return the size of the complete lines of a file."""
        end = self._storage.size_bytes(path)
        while end:
            start = max(0, end - TAIL_BYTES)
            last = self._storage.read_part(path, start, end - start).rfind(b"\n")
            if last >= 0:
                return start + last + 1
            end = start
        return 0

    def _publish(self, path: Path, size_bytes: int) -> None:
        """Rename a finished file so that readers see it, or remove an empty file."""
        if not size_bytes:
            self._storage.remove(path)
            return
        try:
            self._storage.rename(path, path.with_name(path.name.removeprefix(OPEN_PREFIX)))
        except OSError:
            if self._storage.exists(path):
                raise
            # if a power failure undoes the rename, the next start repeats it

    def _begin(self) -> AppendFile:
        self._number += 1
        name = f"{OPEN_PREFIX}audit-{utc_stamp(self._clock.wall_ms())}-{self._number:06}.jsonl"
        self._path = self._directory / name
        try:
            self._file = self._storage.open_append(self._path)
        except OSError:
            # the file may exist, and the next attempt takes another name
            with suppress(OSError):
                self._storage.remove(self._path)
            raise
        self._size_bytes = 0
        return self._file

    def _end(self) -> None:
        self._finish()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _finish(self) -> None:
        if self._file is not None:
            self._publish(self._path, self._size_bytes)
            self._leave()
            self._delete_oldest()
        for path, size_bytes in list(self._suspects.items()):
            try:
                self._recover(path, size_bytes)
            except OSError as error:
                LOG.error(UNFINISHED, file=path.name, reason=words_of(error))
            else:
                del self._suspects[path]

    def _leave(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._size_bytes = None, 0

    def _abandon(self, file: AppendFile) -> None:
        """Leave a file whose end is uncertain; its durable events are published with the next file."""
        path, size_bytes = self._path, self._size_bytes
        self._suspects[path] = size_bytes
        with suppress(OSError):
            # the events are written again elsewhere, and must not fill the disk
            file.truncate(size_bytes)
            if not size_bytes:
                self._storage.remove(path)
                del self._suspects[path]
        self._leave()

    def _write(self, lines: bytes) -> None:
        self._start()
        data = formatted(lines, self._format)
        if self._size_bytes + len(data) <= self._max_bytes:
            self._append(data)
        else:
            self._append_by_line(data.splitlines(keepends=True))

    def _append_by_line(self, lines: Sequence[bytes]) -> None:
        """Append lines, and begin a new file before each line that would make the file too large."""
        waiting = bytearray()
        for line in lines:
            if self._size_bytes + len(waiting) + len(line) > self._max_bytes:
                self._append(waiting)
                waiting.clear()
                self._rotate()
            waiting += line
        self._append(waiting)

    def _rotate(self) -> None:
        if self._size_bytes:
            self._finish()
        if self._file is None:
            self._begin()

    def _append(self, data: bytes | bytearray) -> None:
        """Write and sync the data; after an error the file is as it was, or abandoned."""
        if not data:
            return
        file = self._file or self._begin()
        try:
            file.append(bytes(data))
        except OSError:
            try:
                file.truncate(self._size_bytes)
            except OSError:
                self._abandon(file)
            raise
        try:
            file.sync()
        except OSError:
            self._abandon(file)
            raise
        if not self._size_bytes:
            self._first_ms = self._clock.wall_ms()
        self._size_bytes += len(data)

    def _delete_oldest(self) -> None:
        closed = [name for name in self._names() if CLOSED_NAME.fullmatch(name)]
        closed.sort(key=_number_of)
        for name in closed[: -self._max_files]:
            try:
                self._storage.remove(self._directory / name)
            except OSError as error:
                # an error here must not cause the sink to write the events again and again
                LOG.error("an old audit file cannot be deleted", file=name, reason=words_of(error))


def formatted(lines: bytes, line_format: AuditFormat) -> bytes:
    """Return the events in a format, one line each."""
    if line_format is AuditFormat.KUSTOS:
        return lines
    in_format = formatter(line_format)
    return "".join(f"{in_format(line, json.loads(line))}\n" for line in text_lines(lines)).encode()


def utc_stamp(time_ms: int) -> str:
    """Return a time in the form of file names: `20261121T042655Z`."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time_ms // 1000))


def _number_of(name: str) -> int:
    match = CLOSED_NAME.fullmatch(name)
    return int(match[1]) if match else 0


def _failure(what: str, error: OSError) -> AuditSinkError:
    reason = (error.strerror or "the system gives no reason").lower()
    return AuditSinkError(f"{what}: {reason}; make room or give kustos the right to write there")
