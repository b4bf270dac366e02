"""Events that no sink has written yet, in memory that outlives the process.

Theory of operation. The decisions of a request are kept here before the request is handed over: their JSON
lines are copied into a mapped file, which takes no system call and gives them to the kernel. Once every sink
has written them, their space is free again. A killed process leaves what was not written; the next process
that opens the file recovers it, and the sinks write it under its old ids.

The file is a ring: `tail` is where the oldest record begins, `head` where the next one will. A record is its
length and its bytes in one piece; if the rest of the file is too short for one, the length `WRAP` says that
it goes on at the beginning. `head` moves last, so only whole records count. A process may be killed between
any two instructions, so each position changes by one store of eight bytes (`struct.pack_into` writes zeros
first), and every pair of positions that is ever there is a valid ring. The kernel writes the pages back when
it likes: docs/how-to/audit.md says what a power cut loses.
"""

import fcntl
import mmap
import os
import struct
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self

from kustos.authorizer import AuthorizableRequestContext
from kustos.gateway.audit.entries import AuditEntry, AuditEvents, Entry, RecoveredEntry, RepeatedEntry
from kustos.gateway.audit.lanes import AuditError, nothing
from kustos.protocol import Decided

MAGIC: Final = b"kustosj1"
_TAIL: Final = 0
_HEAD: Final = 1
_LENGTH: Final = struct.Struct("<I")
WRAP: Final = 0xFFFF_FFFF
HEAD_BYTES: Final = 64
"""The magic and the two positions, on a cache line of their own."""

SIZE_BYTES: Final = 64 * 1024 * 1024
"""The size of the file, which is sparse: the audit queue's 65,536 events of 0.6 KB, and those of a large
request."""

FULL_AT: Final = 0.5
"""The fraction from which nothing more is decided in mode `block`: a turn that began adds 5 MB at most. In
mode `deny` requests that were begun go on, and end with their connections if they find no room."""

FILE_MODE: Final = 0o600


class AuditJournalError(AuditError):
    """The journal cannot be used, or has no room for what was decided; then nothing may be handed over."""


@dataclass(slots=True)
class Ticket:
    """One record: where it ends, and how many sinks have still to write it."""

    end: int
    waiting: int


class AuditJournal:
    """One process's journal, locked against others. Not safe for several threads."""

    def __init__(self, path: Path, descriptor: int, size_bytes: int) -> None:
        self._path: Final = path
        self._descriptor: Final = descriptor
        self._size: Final = size_bytes
        self._full_bytes: Final = FULL_AT * size_bytes
        self._map: Final = mmap.mmap(descriptor, size_bytes)
        self._positions: Final = memoryview(self._map)[len(MAGIC) : HEAD_BYTES].cast("q")
        self._tickets: Final[deque[Ticket]] = deque()
        self.used_bytes = 0
        """How much of the ring is in use."""
        self.is_full = False
        """Whether nothing more may be decided now."""
        if self._map[: len(MAGIC)] != MAGIC:
            self._positions[_TAIL] = self._positions[_HEAD] = HEAD_BYTES
            self._map[: len(MAGIC)] = MAGIC
        self._tail = self._positions[_TAIL]
        self._head = self._positions[_HEAD]
        self._count_used()

    @classmethod
    def open(cls, path: Path, size_bytes: int = SIZE_BYTES) -> Self:
        """Return the journal of this file, created if it is missing; raise `AuditJournalError`."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        except OSError as error:
            raise _failure(path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_size != size_bytes:
                # a file of another size is no journal of this version, or one that was never begun
                os.ftruncate(descriptor, 0)
                os.ftruncate(descriptor, size_bytes)
            return cls(path, descriptor, size_bytes)
        except OSError as error:
            os.close(descriptor)
            raise _failure(path, error) from error

    def put(self, data: bytes, waiting: int) -> Ticket:
        """Keep a record until `done` was called `waiting` times; raise `AuditJournalError` if it is full."""
        ticket = Ticket(self.append(data), waiting)
        self._tickets.append(ticket)
        return ticket

    def append(self, data: bytes) -> int:
        """Keep a record as if it had been left here; return where it ends, raise as `put` does."""
        needed = _LENGTH.size + len(data)
        at = self._head
        if at >= self._tail:
            # one byte stays free behind the head: a full ring must not look like an empty one
            if at + needed + _LENGTH.size > self._size:
                if HEAD_BYTES + needed >= self._tail:
                    raise self._no_room(needed)
                _LENGTH.pack_into(self._map, at, WRAP)
                at = HEAD_BYTES
        elif at + needed >= self._tail:
            raise self._no_room(needed)
        _LENGTH.pack_into(self._map, at, len(data))
        self._map[at + _LENGTH.size : at + needed] = data
        self._head = self._positions[_HEAD] = at + needed
        self._count_used()
        return self._head

    def done(self, ticket: Ticket) -> None:
        """Record that one more sink has written the record."""
        ticket.waiting -= 1
        if self._tickets and self._tickets[0].waiting <= 0:
            while self._tickets and self._tickets[0].waiting <= 0:
                self._tail = self._tickets.popleft().end
            self._positions[_TAIL] = self._tail
            if not self._tickets:
                self._start_again()
            self._count_used()

    def _start_again(self) -> None:
        """Move an empty ring back to the start, so few pages stay in use; it is empty after each store."""
        if self._head != HEAD_BYTES:
            _LENGTH.pack_into(self._map, self._head, WRAP)
            self._head = self._positions[_HEAD] = HEAD_BYTES
            self._tail = self._positions[_TAIL] = HEAD_BYTES

    def take_left(self, waiting: int) -> list[tuple[bytes, Ticket]]:
        """Return what an earlier process left, oldest first; each is to be `done` `waiting` times.

        Raise `AuditJournalError` if the file is not a ring.
        """
        left = []
        for data, end in self._records():
            ticket = Ticket(end, waiting)
            self._tickets.append(ticket)
            left.append((data, ticket))
        return left

    def _records(self) -> Iterator[tuple[bytes, int]]:
        at = self._tail
        if not (HEAD_BYTES <= at <= self._size and HEAD_BYTES <= self._head <= self._size):
            raise self._broken()
        wrapped = False
        while at != self._head:
            if at + _LENGTH.size > self._size:
                raise self._broken()
            (length,) = _LENGTH.unpack_from(self._map, at)
            if length == WRAP:
                if wrapped:
                    raise self._broken()
                at, wrapped = HEAD_BYTES, True
                continue
            end = at + _LENGTH.size + length
            if end > self._size or (at < self._head < end):
                raise self._broken()
            yield self._map[at + _LENGTH.size : end], end
            at = end

    def _count_used(self) -> None:
        used = self._head - self._tail
        self.used_bytes = used if used >= 0 else used + self._size - HEAD_BYTES
        self.is_full = self.used_bytes >= self._full_bytes

    def _no_room(self, needed: int) -> AuditJournalError:
        return AuditJournalError(f"the audit journal has no room for {needed} bytes of one request")

    def _broken(self) -> AuditJournalError:
        return AuditJournalError(
            f"`{self._path}` is not an audit journal, or was changed by others; keep a copy to find out "
            "why, and remove it"
        )

    def close(self) -> None:
        """Close the file; what is in it stays."""
        self._positions.release()
        self._map.close()
        os.close(self._descriptor)


class AuditKeeper:
    """Keeps the entries of one process in its journal, and recovers what earlier ones left."""

    def __init__(self, journal: AuditJournal, events: AuditEvents) -> None:
        self.journal: Final = journal
        self._events: Final = events
        self._lines: Final = events.writer()

    @classmethod
    def open(cls, directory: Path, name: str, living: Collection[str], events: AuditEvents) -> Self:
        """Return the keeper of this name; raise `AuditJournalError`.

        Journals of other names are taken over, except those of `living` processes.
        """
        journal = AuditJournal.open(directory / name)
        try:
            for path in sorted(directory.iterdir()):
                if path.name != name and path.name not in living:
                    _take_over(path, journal)
        except BaseException:
            journal.close()
            raise
        return cls(journal, events)

    def keep(self, entry: Entry, waiting: int) -> tuple[Entry, Callable[[], object]]:
        """Return the entry, and the callback for each sink that has written it; raise `AuditJournalError`."""
        encoded = self._events.encoded(entry, self._lines)
        if isinstance(entry, AuditEntry) and entry.encoded is None:
            entry = entry._replace(encoded=encoded)
        # a record has ended without a line feed since the first version, which may come back to read it
        ticket = self.journal.put(encoded.removesuffix(b"\n"), waiting)
        return entry, partial(self.journal.done, ticket)

    def repeated(self, context: AuthorizableRequestContext, decided: tuple[Decided, ...]) -> RepeatedEntry:
        """Return what makes the entries of requests that repeat one."""
        return self._events.repeated(context, decided, self._lines)

    def recovered(self, waiting: int) -> list[tuple[Entry, Callable[[], object]]]:
        """Return what an earlier process left, as `keep` does; raise `AuditJournalError`.

        The last event with an id counts: that of a change was kept before and after its outcome.
        """
        left = self.journal.take_left(waiting)
        entries: dict[str, Entry] = {}
        for data, _ in left:
            for line in data.split(b"\n"):
                entry = _recovered(line)
                entries[entry.event_id] = entry
        if not entries:
            return []
        *others, (_, last) = left
        for _, ticket in others:
            ticket.waiting = 0
        *before, final = entries.values()
        return [*((entry, nothing) for entry in before), (final, partial(self.journal.done, last))]

    def close(self) -> None:
        """Close the journal; what is in it stays."""
        self.journal.close()


def _recovered(line: bytes) -> RecoveredEntry:
    try:
        return RecoveredEntry.of(line.decode())
    except (ValueError, KeyError, TypeError) as error:
        reason = type(error).__name__
        raise AuditJournalError(f"the audit journal contains an invalid event ({reason})") from None


def _take_over(path: Path, journal: AuditJournal) -> None:
    """Move what was left by a process that will not return."""
    other = AuditJournal.open(path)
    try:
        for data, _ in other.take_left(0):
            journal.append(data)
    finally:
        other.close()
    path.unlink()


def _failure(path: Path, error: OSError) -> AuditJournalError:
    reason = (error.strerror or "the system gives no reason").lower()
    return AuditJournalError(f"cannot use the audit journal `{path}`: {reason}")
