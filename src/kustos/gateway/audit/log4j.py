"""Audit events as the file that Kafka's `kafka.authorizer.logger` writes through log4j.

The pattern is `[%d] %p %m (%c)%n`, with times in the zone of the machine, as in log4j. Kafka prints names
unchanged. This sink writes invisible characters (`UNSEEN`) as escapes, because a line feed in a client's name
would allow the client to forge whole lines. Kafka's logger has no security events. The sink reopens the file
after it was moved away, so logrotate needs no signal. If a file cannot be synced, the sink moves it away and
writes the lines again into a new file: a later fsync of the same file would prove nothing.
"""

import asyncio
import fcntl
import json
import os
import stat
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from kustos.authorizer.audit import AuditLevel, audit_level, audit_line, parts_of, visible
from kustos.authorizer.index import PROBED_NAME
from kustos.gateway.audit.errors import AuditSinkError
from kustos.gateway.audit.events import text_lines
from kustos.runtime import FileSystemStorage

FILE_MODE: Final = 0o600
LOGGER: Final = "kafka.authorizer.logger"

SHOWN_LEVELS: Final[dict[str, frozenset[AuditLevel]]] = {
    "INFO": frozenset({AuditLevel.INFO}),
    "DEBUG": frozenset({AuditLevel.INFO, AuditLevel.DEBUG}),
    "TRACE": frozenset(AuditLevel),
}
"""The level of the logger -> the levels of the lines that it writes."""


class KafkaLinesSink:
    """Appends to one file the lines that the level (INFO, DEBUG or TRACE) allows."""

    name = "log4j"
    shortened_events = 0

    def __init__(self, path: Path, level: str) -> None:
        self._path: Final = path
        self._shown: Final = SHOWN_LEVELS[level]
        self._descriptor: int | None = None

    async def open(self) -> None:
        """Open the file; raise `AuditSinkError`."""
        try:
            await asyncio.to_thread(self._current)
        except OSError as error:
            raise _failure(self._path, error) from error

    async def write(self, lines: bytes) -> None:
        """Return when the lines are on the disk; raise `AuditSinkError` if none of them counts as written."""
        try:
            await asyncio.to_thread(self._write, lines)
        except OSError as error:
            raise _failure(self._path, error) from error

    async def close(self) -> None:
        """Close the file."""
        self._close()

    def _reopen(self) -> int:
        # the name must be durable too
        FileSystemStorage().open_append(self._path).close()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, FILE_MODE)
        return self._descriptor

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _current(self) -> int:
        """Return the descriptor of the file that currently has the name."""
        if self._descriptor is not None:
            if self._has_name(self._descriptor):
                return self._descriptor
            self._close()
        return self._reopen()

    def _has_name(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except FileNotFoundError:
            return False  # the file was moved away, and no new file exists yet

    def _write(self, lines: bytes) -> None:
        data = "".join(map(self._line_of, text_lines(lines))).encode()
        if not data:
            return
        descriptor = self._current()
        # the workers of a node share the file: one must not truncate the lines of another
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            before_bytes = os.fstat(descriptor).st_size
            _append_whole(descriptor, data, before_bytes)
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            try:
                os.fsync(descriptor)
            except OSError:
                self._abandon(descriptor, before_bytes, before_bytes + len(data))
                raise

    def _abandon(self, descriptor: int, before_bytes: int, after_bytes: int) -> None:
        """Move away a file whose end is uncertain, unless another worker has done so.

        Cut off the lines between the two sizes, because they are written again elsewhere and must not fill
        the disk. A file without other lines is used again.
        """
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_size == after_bytes:
                os.ftruncate(descriptor, before_bytes)
            left = os.fstat(descriptor)
            if left.st_size and self._has_name(descriptor):
                # no two files have the same inode, so none is overwritten
                self._path.rename(self._path.with_name(f"{self._path.name}.suspect-{left.st_ino}"))
        self._close()

    def _line_of(self, line: str) -> str:
        """Return the line of an event; empty for a security event and for a level that is not shown."""
        event = json.loads(line)
        if "event_type" in event:
            return ""
        context, action, decision = parts_of(event)
        level = audit_level(action, decision)
        if level not in self._shown:
            return ""
        if event["resource_name"] is None:
            # Kafka logs a check of any resource with the name that its probe uses
            action = replace(action, resource_name=PROBED_NAME)
        text = audit_line(context, action, decision, api_name=event["api_name"])
        return f"[{log4j_time(event['time_ms'])}] {level.value} {visible(text)} ({LOGGER})\n"


def _append_whole(descriptor: int, data: bytes, size_bytes: int) -> None:
    """Write all of `data` at the end of a file of this size, or raise OSError with the file as it was."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        # the first error matters more than this one; the file may then end with half a line
        with suppress(OSError):
            os.ftruncate(descriptor, size_bytes)
        raise


def log4j_time(time_ms: int) -> str:
    """Return a time in the form of log4j's `%d`: `2026-11-21 04:26:55,815`, in the zone of the machine."""
    seconds, milliseconds = divmod(time_ms, 1000)
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))},{milliseconds:03}"


def _failure(path: Path, error: OSError) -> AuditSinkError:
    reason = (error.strerror or "the system gives no reason").lower()
    return AuditSinkError(
        f"cannot write to `{path}`: {reason}; make room or give kustos the right to write there"
    )
