"""Events that no sink has written yet, in memory that outlives the process.

Theory of operation. The decisions of a request are kept here before the request is handed over: their JSON
lines are copied into a mapped file, which takes no system call and gives them to the kernel. Once every sink
has made them durable, their space is free again. A killed process leaves the other events in the file, and
the sinks write them for the next process under the same ids, a piece at a time.

The file is a ring: `tail` is where the oldest record begins, `head` where the next one will. A record is its
length and its bytes in one piece; if the rest of the file is too short for one, the length `WRAP` says that
it goes on at the beginning. `head` moves last, so only whole records count. A process may be killed between
any two instructions, so each position changes by one store of eight bytes (`struct.pack_into` writes zeros
first), and every pair of positions that is ever there is a valid ring. The kernel writes the pages back when
it likes: docs/how-to/audit.md says what a power cut loses.

A store into a mapped page for which the disk has no room ends the process (SIGBUS), so the space is reserved
when the file is opened. The header says which node the file belongs to and how large the ring is: a file
without such a header is never written to, and a ring of another size is read by its own size.
"""

import fcntl
import hashlib
import mmap
import os
import stat
import struct
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeAlias

from kustos.authorizer import AuthorizableRequestContext
from kustos.gateway.audit.entries import AuditEntry, AuditEvents, Entry, RecoveredEntry, RepeatedEntry
from kustos.gateway.audit.lanes import BATCH_MAX_EVENTS, LOG, AuditError, nothing
from kustos.protocol import Decided
from kustos.runtime import words_of

MAGIC: Final = b"kustosj2"
_TAIL: Final = 0
_HEAD: Final = 1
_POSITIONS: Final = slice(8, 24)
_HEADER: Final = struct.Struct("<8s3q32s")
"""The magic, the two positions, the size of the ring with this header, and the owner."""

_LENGTH: Final = struct.Struct("<I")
WRAP: Final = 0xFFFF_FFFF
HEAD_BYTES: Final = _HEADER.size
"""The header, on a cache line of its own."""

SIZE_BYTES: Final = 64 * 1024 * 1024
"""The size of a new file: the audit queue's 65,536 events of 0.6 KB, and the events of a large request."""

FULL_AT: Final = 0.5
"""The fraction from which nothing more is decided in mode `block`: a turn that began adds 5 MB at most. In
mode `deny` requests that were begun go on, and end with their connections if they find no room."""

FILE_MODE: Final = 0o600


Piece: TypeAlias = tuple[list[RecoveredEntry], Callable[[], object]]
"""Entries, and the callback for when every sink has written them."""


class AuditJournalError(AuditError):
    """The journal cannot be used, or has no room for what was decided; then nothing may be handed over."""


@dataclass(slots=True)
class Ticket:
    """One record: where it ends, and how many sinks have still to write it."""

    end: int
    waiting: int


class AuditJournal:
    """One process's journal, locked against others. Not safe for several threads, except `left`."""

    def __init__(self, path: Path, descriptor: int, size_bytes: int) -> None:
        self.path: Final = path
        """Its file."""
        self._descriptor: Final = descriptor
        self._size: Final = size_bytes
        self._full_bytes: Final = FULL_AT * size_bytes
        self._map: Final = mmap.mmap(descriptor, size_bytes)
        self._positions: Final = memoryview(self._map)[_POSITIONS].cast("q")
        self._tickets: Final[deque[Ticket]] = deque()
        self.used_bytes = 0
        """How much of the ring is in use."""
        self.is_full = False
        """Whether nothing more may be decided now."""
        self._head = self._positions[_HEAD]
        if self._head == HEAD_BYTES:
            # no record ends there: a process was killed while it moved an empty ring back to the start
            self._positions[_TAIL] = HEAD_BYTES
        self._tail = self._positions[_TAIL]
        self._left: Final = Ticket(self._head, int(self._tail != self._head))
        """All records of an earlier process."""
        if self.has_left:
            self._tickets.append(self._left)
        self._count_used()

    @classmethod
    def open(cls, path: Path, owner: bytes, size_bytes: int = SIZE_BYTES) -> Self:
        """Return the journal of this file, created if it is missing; raise `AuditJournalError`.

        `owner`: 32 bytes that tell its node from all others.
        """
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _failure(path, error) from error
        return cls._opened(path, owner, size_bytes)

    @classmethod
    def open_left(cls, path: Path, owner: bytes) -> Self:
        """Return the journal that an earlier process left in this file; raise `AuditJournalError`."""
        return cls._opened(path, owner, None)

    @classmethod
    def _opened(cls, path: Path, owner: bytes, size_bytes: int | None) -> Self:
        flags = os.O_RDWR | os.O_CLOEXEC | (0 if size_bytes is None else os.O_CREAT)
        try:
            descriptor = os.open(path, flags, FILE_MODE)
        except OSError as error:
            raise _failure(path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return cls(path, descriptor, _prepared(path, descriptor, owner, size_bytes))
        except BlockingIOError as error:
            os.close(descriptor)
            raise AuditJournalError(
                f"the audit journal `{path}` is in use by another process; stop that process first"
            ) from error
        except OSError as error:
            os.close(descriptor)
            raise _failure(path, error) from error
        except BaseException:
            os.close(descriptor)
            raise

    @property
    def has_left(self) -> bool:
        """Whether it holds records of an earlier process."""
        return self._left.waiting > 0

    def put(self, data: bytes, waiting: int) -> Ticket:
        """Keep a record until `done` was called `waiting` times; raise `AuditJournalError` if it is full."""
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
        ticket = Ticket(self._head, waiting)
        self._tickets.append(ticket)
        return ticket

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

    def left(self) -> Iterator[tuple[bytes, int]]:
        """Yield the records that an earlier process left, oldest first, and the place where each ends.

        Records may be put meanwhile, and freed up to the last one that was yielded. Raise
        `AuditJournalError` if the file is not a ring.
        """
        if not self.has_left:
            return
        at, end_of_all, wrapped = self._tail, self._left.end, False
        while at != end_of_all:
            if at + _LENGTH.size > self._size:
                raise _damaged(self.path)
            (length,) = _LENGTH.unpack_from(self._map, at)
            if length == WRAP:
                if wrapped:
                    raise _damaged(self.path)
                at, wrapped = HEAD_BYTES, True
                continue
            end = at + _LENGTH.size + length
            if end > self._size or (at < end_of_all < end):
                raise _damaged(self.path)
            yield self._map[at + _LENGTH.size : end], end
            at = end

    def free(self, end: int) -> None:
        """Free the records that an earlier process left up to this place: all sinks have written them."""
        if end == self._left.end:
            self.done(self._left)
        else:
            self._tail = self._positions[_TAIL] = end
            self._count_used()

    def _count_used(self) -> None:
        used = self._head - self._tail
        self.used_bytes = used if used >= 0 else used + self._size - HEAD_BYTES
        self.is_full = self.used_bytes >= self._full_bytes

    def _no_room(self, needed: int) -> AuditJournalError:
        return AuditJournalError(f"the audit journal has no room for {needed} bytes of one request")

    def close(self) -> None:
        """Close the file; what is in it stays."""
        self._positions.release()
        self._map.close()
        os.close(self._descriptor)

    def remove(self) -> None:
        """Delete the file and close it; raise OSError if it cannot be deleted."""
        try:
            self.path.unlink()
        finally:
            self.close()


class AuditKeeper:
    """Keeps the entries of one process in its journal, and recovers what earlier ones left."""

    def __init__(
        self, events: AuditEvents, journal: AuditJournal | None, orphans: Collection[AuditJournal] = ()
    ) -> None:
        self._journal: Final = journal
        self._orphans: Final = list(orphans)
        """Journals that no process will write to again."""
        self._events: Final = events
        self._lines: Final = events.writer()
        self._repeated: Final = {each: _repeated_ids(each) for each in self._with_left()}

    @classmethod
    def open(
        cls,
        directory: Path,
        name: str,
        living: Collection[str] | None,
        events: AuditEvents,
        *,
        has_journal: bool = True,
    ) -> Self:
        """Return the keeper of this name; raise `AuditJournalError`, with all journals as they were.

        It also recovers the journals of all names that are not `living`, or of no other if that is None.
        Without a journal it keeps nothing, but recovers what an earlier process of its name kept.
        """
        owner = _owner(events)
        journal, orphans = None, []
        try:
            if has_journal:
                journal = AuditJournal.open(directory / name, owner)
            for path in sorted(directory.iterdir()) if directory.is_dir() else ():
                if path.name == name:
                    is_orphan = not has_journal
                else:
                    is_orphan = living is not None and path.name not in living
                if is_orphan and not _is_blank(path):
                    orphans.append(AuditJournal.open_left(path, owner))
            return cls(events, journal, orphans)
        except BaseException:
            for each in (journal, *orphans):
                if each is not None:
                    each.close()
            raise

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be decided now."""
        return self._journal is not None and self._journal.is_full

    @property
    def has_left(self) -> bool:
        """Whether an earlier process left a journal to be written, or removed."""
        return bool(self._orphans or self._with_left())

    def _with_left(self) -> list[AuditJournal]:
        own = self._journal
        return [*self._orphans] if own is None or not own.has_left else [own, *self._orphans]

    def keep(self, entry: Entry, waiting: int) -> tuple[Entry, Callable[[], object]]:
        """Return the entry, and the callback for each sink that has written it; raise `AuditJournalError`."""
        if self._journal is None:
            return entry, nothing
        encoded = self._events.encoded(entry, self._lines)
        if isinstance(entry, AuditEntry) and entry.encoded is None:
            entry = entry._replace(encoded=encoded)
        ticket = self._journal.put(encoded.removesuffix(b"\n"), waiting)
        return entry, partial(self._journal.done, ticket)

    def repeated(self, context: AuthorizableRequestContext, decided: tuple[Decided, ...]) -> RepeatedEntry:
        """Return what makes the entries of requests that repeat one."""
        return self._events.repeated(context, decided, self._lines)

    def left(self) -> Iterator[Piece]:
        """Yield what earlier processes left, in pieces.

        A piece must be written before the next one is asked for. The last event with an id counts: that of
        a change was kept before and after its outcome. A journal of a process that will not return is
        removed when all of it was written.
        """
        for journal in self._with_left():
            repeated = self._repeated[journal]
            entries: list[RecoveredEntry] = []
            for data, end in journal.left():
                found = (_recovered(line, journal.path) for line in data.split(b"\n"))
                entries += [each for each in found if repeated.get(each.event_id, end) == end]
                if len(entries) >= BATCH_MAX_EVENTS:
                    yield entries, partial(journal.free, end)
                    entries = []
            if entries:
                yield entries, partial(journal.free, end)
            if journal in self._orphans:
                self._orphans.remove(journal)
                try:
                    journal.remove()
                except OSError as error:
                    LOG.warning("an empty audit journal could not be deleted", reason=words_of(error))

    def close(self) -> None:
        """Close the journals; what is in them stays."""
        for each in (self._journal, *self._orphans):
            if each is not None:
                each.close()


def _owner(events: AuditEvents) -> bytes:
    """Return what distinguishes a node's journals from other nodes' journals."""
    return hashlib.sha256(f"{events.node_id} {events.cluster_id}".encode()).digest()


def _is_blank(path: Path) -> bool:
    """Return whether there is nothing to recover: a folder, or a file that was never begun."""
    found = path.stat()
    return stat.S_ISDIR(found.st_mode) or found.st_size == 0


def _repeated_ids(journal: AuditJournal) -> dict[str, int]:
    """Return the ids of events that several records hold, and where the last of these records ends."""
    seen: set[str] = set()
    repeated = {}
    for data, end in journal.left():
        for line in data.split(b"\n"):
            event_id = _recovered(line, journal.path).event_id
            if event_id in seen:
                repeated[event_id] = end
            seen.add(event_id)
    return repeated


def _recovered(line: bytes, path: Path) -> RecoveredEntry:
    try:
        return RecoveredEntry.of(line.decode())
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path) from error


def _prepared(path: Path, descriptor: int, owner: bytes, size_bytes: int | None) -> int:
    """Return the size of the ring in a file, with its space reserved.

    A ring without records is begun anew with `size_bytes`, unless that is None. Raise OSError or
    `AuditJournalError`.
    """
    header = os.pread(descriptor, HEAD_BYTES, 0)
    if header or size_bytes is None:
        size, is_empty = _ring_in(path, header, os.fstat(descriptor).st_size, owner)
    else:
        size, is_empty = 0, True
    if is_empty and size_bytes is not None and size != size_bytes:
        size = size_bytes
        # one write, before any other change: without its header the file is not known to be a journal
        os.pwrite(descriptor, _HEADER.pack(MAGIC, HEAD_BYTES, HEAD_BYTES, size, owner), 0)
        os.ftruncate(descriptor, HEAD_BYTES)
    before_bytes = os.fstat(descriptor).st_size
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        # what was reserved in part would keep the disk full
        os.ftruncate(descriptor, before_bytes)
        raise AuditJournalError(
            f"cannot reserve {size} bytes for the audit journal `{path}`: {words_of(error).lower()}; make "
            "room on its disk, or name a directory on another one in `metadata.log.dir`"
        ) from error
    return size


def _ring_in(path: Path, header: bytes, file_bytes: int, owner: bytes) -> tuple[int, bool]:
    """Return the size of the ring that a file begins with, and whether it is empty."""
    if len(header) < HEAD_BYTES or not header.startswith(MAGIC):
        raise AuditJournalError(
            f"`{path}` is not an audit journal of this version of kustos, and was left as it is; move it to "
            "another directory, and keep it if it may hold audit events"
        )
    _, tail, head, size, found_owner = _HEADER.unpack(header)
    if found_owner != owner:
        raise AuditJournalError(
            f"the audit journal `{path}` belongs to another node or cluster, and was left as it is; move it "
            "to the node that it belongs to"
        )
    is_empty = head in {tail, HEAD_BYTES}
    if not (HEAD_BYTES <= tail <= size and HEAD_BYTES <= head <= size and (is_empty or size <= file_bytes)):
        raise _damaged(path)
    return size, is_empty


def _damaged(path: Path) -> AuditJournalError:
    return AuditJournalError(
        f"the audit journal `{path}` is damaged, by a power failure or by another program; move it to "
        "another directory, and keep it as evidence"
    )


def _failure(path: Path, error: OSError) -> AuditJournalError:
    reason = (error.strerror or "the system gives no reason").lower()
    return AuditJournalError(f"cannot use the audit journal `{path}`: {reason}")
