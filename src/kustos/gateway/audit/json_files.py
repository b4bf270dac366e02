"""Audit events as files of JSON lines, rotated by size and by age.

The file being written is `_audit-<UTC time>-<number>.jsonl`; once it is full and on the disk it loses the
underscore. Readers such as Spark skip names with a leading underscore, and thus see whole files only. A file
that a crash left open is cut after its last whole line and closed at the next start.
"""

import asyncio
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from kustos.authorizer.audit import AuditFormat
from kustos.client import supervised
from kustos.gateway.audit.entries import AuditEvents, Entry
from kustos.gateway.audit.lanes import AuditSinkError, append_whole
from kustos.runtime import Clock, FileSystemStorage, StorageLock, SystemClock

FILE_MODE: Final = 0o600
"""Only the user that kustos runs as may read audit events."""

LOCK_NAME: Final = "_lock"
OPEN_PREFIX: Final = "_"
CLOSED_NAME: Final = re.compile(r"audit-\d{8}T\d{6}Z-(\d{6,})\.jsonl")
TAIL_BYTES: Final = 64 * 1024
"""How much of a crashed file is read at once to find its last whole line."""

ROLL_CHECKS: Final = 4
"""How often within `roll_ms` the file's age is checked."""


class JsonFilesSink:
    """Writes to one directory, which is locked against other processes.

    A file holds up to `max_bytes`, or one event that is longer, and is finished `roll_ms` after its first
    event at the latest, so that a quiet node publishes its events; `max_files` finished ones are kept.
    """

    name = "json"
    shortened_events = 0

    def __init__(
        self,
        directory: Path,
        events: AuditEvents,
        *,
        max_bytes: int,
        max_files: int,
        roll_ms: int = 3_600_000,
        clock: Clock | None = None,
        line_format: AuditFormat = AuditFormat.KUSTOS,
    ) -> None:
        self._format: Final = line_format
        self._directory: Final = directory
        self._events: Final = events
        self._max_bytes: Final = max_bytes
        self._max_files: Final = max_files
        self._roll_ms: Final = roll_ms
        self._clock: Final = clock or SystemClock()
        self._lines: Final = events.writer()
        self._descriptor: int | None = None
        self._path = directory
        self._size_bytes = 0
        self._number = 0
        self._lock: StorageLock | None = None
        self._first_ms = 0
        self._turn: Final = asyncio.Lock()
        self._roller: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Create and test the directory, close files that a crash left open; raise `AuditSinkError`."""
        try:
            async with self._turn:
                await asyncio.to_thread(self._start)
        except OSError as error:
            raise _failure(f"cannot write audit files into `{self._directory}`", error) from error
        if self._roller is None:
            self._roller = supervised("audit-file-roller", self._roll)

    async def write(self, entries: Sequence[Entry]) -> None:
        """Return when the operating system has the lines; raise `AuditSinkError`.

        After an error only the lines of files that were finished on the way are there.
        """
        try:
            async with self._turn:
                await asyncio.to_thread(self._write, entries)
        except OSError as error:
            raise _failure(f"cannot write to `{self._path}`", error) from error

    async def close(self) -> None:
        """Put the last file on the disk and give it its name; raise `AuditSinkError`."""
        if self._roller is not None:
            self._roller.cancel()
        try:
            async with self._turn:
                await asyncio.to_thread(self._end)
        except OSError as error:
            raise _failure(f"cannot close `{self._path}`", error) from error

    async def _roll(self) -> None:
        """Finish the file when it is old enough; what fails here fails again, loudly, at the next write."""
        while True:
            await asyncio.sleep(self._roll_ms / ROLL_CHECKS / 1000)
            with suppress(OSError):
                async with self._turn:
                    await asyncio.to_thread(self._finish_if_old)

    def _finish_if_old(self) -> None:
        if self._size_bytes and self._clock.wall_ms() - self._first_ms >= self._roll_ms:
            self._finish()

    def _start(self) -> None:
        if self._lock is not None:
            return
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        # another process's open file is not a crashed one
        lock = FileSystemStorage().lock(self._directory / LOCK_NAME)
        try:
            self._recover_all()
        except BaseException:
            lock.release()
            raise
        self._lock = lock

    def _recover_all(self) -> None:
        for path in sorted(self._directory.glob(f"{OPEN_PREFIX}audit-*.jsonl")):
            self._recover(path)
        numbers = [int(match[1]) for match in map(CLOSED_NAME.fullmatch, self._names()) if match]
        self._number = max(numbers, default=0)
        self._begin()

    def _names(self) -> list[str]:
        return sorted(path.name for path in self._directory.iterdir())

    def _recover(self, path: Path) -> None:
        """Close a file that a crash left open."""
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            size_bytes = _whole_lines_size(descriptor)
            os.ftruncate(descriptor, size_bytes)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._publish(path, size_bytes)

    def _publish(self, path: Path, size_bytes: int) -> None:
        """Give a finished file the name that readers look for, or remove an empty one."""
        if size_bytes:
            path.rename(path.with_name(path.name.removeprefix(OPEN_PREFIX)))
        else:
            path.unlink()
        descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _begin(self) -> None:
        self._number += 1
        name = f"{OPEN_PREFIX}audit-{utc_stamp(self._clock.wall_ms())}-{self._number:06}.jsonl"
        self._path = self._directory / name
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, FILE_MODE)
        self._size_bytes = 0

    def _end(self) -> None:
        self._finish()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _finish(self) -> None:
        if self._descriptor is None:
            return
        os.fsync(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = None
        size_bytes, self._size_bytes = self._size_bytes, 0
        self._publish(self._path, size_bytes)
        self._delete_oldest()

    def _write(self, entries: Sequence[Entry]) -> None:
        self._start()
        encoded = [self._events.encoded(entry, self._lines, self._format) for entry in entries]
        data = b"".join(encoded)
        if self._size_bytes + len(data) <= self._max_bytes:
            self._append(data)
        else:
            self._append_by_line(data.splitlines(keepends=True))

    def _append_by_line(self, lines: Sequence[bytes]) -> None:
        """Begin a new file before each line that the present one has no room for."""
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
        if self._descriptor is None:
            self._begin()

    def _append(self, data: bytes | bytearray) -> None:
        """Write all of it, or leave the file as it was."""
        if self._descriptor is None:
            self._begin()
        descriptor = self._descriptor
        if descriptor is None or not data:
            return
        append_whole(descriptor, bytes(data), self._size_bytes)
        if not self._size_bytes:
            self._first_ms = self._clock.wall_ms()
        self._size_bytes += len(data)

    def _delete_oldest(self) -> None:
        closed = [name for name in self._names() if CLOSED_NAME.fullmatch(name)]
        closed.sort(key=_number_of)
        for name in closed[: -self._max_files]:
            (self._directory / name).unlink(missing_ok=True)


def utc_stamp(time_ms: int) -> str:
    """Return a time as file names have it: `20261121T042655Z`."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time_ms // 1000))


def _number_of(name: str) -> int:
    match = CLOSED_NAME.fullmatch(name)
    return int(match[1]) if match else 0


def _whole_lines_size(descriptor: int) -> int:
    """Return how many bytes of a file are whole lines."""
    end = os.lseek(descriptor, 0, os.SEEK_END)
    while end:
        start = max(0, end - TAIL_BYTES)
        last = os.pread(descriptor, end - start, start).rfind(b"\n")
        if last >= 0:
            return start + last + 1
        end = start
    return 0


def _failure(what: str, error: OSError) -> AuditSinkError:
    reason = (error.strerror or "the system gives no reason").lower()
    return AuditSinkError(f"{what}: {reason}; make room or give kustos the right to write there")
