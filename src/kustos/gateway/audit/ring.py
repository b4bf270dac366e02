"""The audit ring: the queue of one process's events; it holds each event once until every sink wrote it.

Theory of operation. The ring is a mapped file. Bytes belong to the kernel as soon as they are stored, so a
put takes no system call, and a killed process loses none. The decisions of a request become JSON lines, and
these lines become one record of the ring before the request is handed over. Each sink reads with its own
cursor and advances it once the lines are durable. The space behind the slowest cursor is free again. A killed
process leaves the other records in the file; the cursors of the next process begin there.

`tail` is the position of the oldest record, `head` the position of the next one. A record is its length and
its bytes in one piece. If the rest of the file is too short for a record, the length `WRAP` says that the
ring continues at the beginning of the file. `head` moves last, so only whole records count. A process may be
killed between any two instructions. Therefore each position changes by one store of eight bytes
(`struct.pack_into` writes zeros first), and every pair of positions that is ever in the file is a valid ring.
The kernel writes the pages back at a time of its choice: docs/how-to/audit.md describes the loss on a power
failure.

The event of a change is held. Its record is in the ring before the change takes effect, but no cursor reads
it, and its space is not free until the event with the outcome is in the ring. Then one byte marks the held
record as released. If the process is killed before that, the next process reads the held record. The ring
reserves space for the outcome, because a full ring could not be freed behind the held record.

A store into a mapped page for which the disk has no space ends the process (SIGBUS), so `open` reserves the
space. The header says which node the file belongs to and how large the ring is. A file without such a header
is never written to, and a ring of another size is read by its own size.

In memory, positions only grow: the place in the file is the position modulo the capacity.
"""

import asyncio
import fcntl
import json
import mmap
import os
import struct
import sys
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Self

from kustos.gateway.audit.errors import AuditError
from kustos.runtime import words_of

MAGIC: Final = b"kustosj3"
_TAIL: Final = 0
_HEAD: Final = 1
_POSITIONS: Final = slice(8, 24)
_HEADER: Final = struct.Struct("<8s3q32s")
"""The magic, the two positions, the size of the ring with this header, and the owner."""

_LENGTH: Final = struct.Struct("<I")
WRAP: Final = 0xFFFF_FFFF
HELD: Final = 0x8000_0000
RELEASED: Final = 0x4000_0000
"""The bits of a length that mark a held record and a released one."""

_FLAGS: Final = HELD | RELEASED

HEAD_BYTES: Final = _HEADER.size
"""The size of the header: one cache line."""

SIZE_BYTES: Final = 64 * 1024 * 1024
"""The size of a new ring: 65,536 events of 0.6 KB, and the events of a large request."""

FULL_AT: Final = 0.5
"""The fraction in use from which mode `block` makes no more decisions: a turn that has begun adds at most
5 MB. In mode `deny` requests that have begun continue; if the ring has no space for one, its connection
closes."""

FILE_MODE: Final = 0o600


class AuditRingError(AuditError):
    """The ring is unusable or has no space; decisions that it does not store must not take effect."""


class RingCursor:
    """The progress of one sink: the position of its next record, and the number of events before it.

    `put` sets `wake` once when `AuditRing.events` reaches `wake_at`.
    """

    __slots__ = ("events", "position", "wake", "wake_at")

    def __init__(self, position: int) -> None:
        self.position = position
        self.events = 0
        self.wake: Final = asyncio.Event()
        self.wake_at = sys.maxsize


class Batch(NamedTuple):
    """Consecutive events: JSON lines, each with a line feed, their number, and the position after them."""

    lines: bytes
    events: int
    end: int


class AuditRing:
    """The ring of one process; its file is locked against others. Not safe for several threads."""

    def __init__(self, size_bytes: int, path: Path | None = None, descriptor: int = -1) -> None:
        self.path: Final = path
        """The file; None if the ring ends with the process."""
        self.events = 0
        """Events put since the ring was opened, and events that an earlier process left."""
        self._descriptor: Final = descriptor
        self._size: Final = size_bytes
        self._capacity: Final = size_bytes - HEAD_BYTES
        self._map: Final = mmap.mmap(descriptor, size_bytes)
        self._positions: Final = memoryview(self._map)[_POSITIONS].cast("q")
        self._cursors: Final[list[RingCursor]] = []
        self._held: Final[OrderedDict[int, int]] = OrderedDict()
        """Position of a held record → the bytes reserved for its outcome; oldest first."""
        self._kept_bytes = 0
        """The sum of these bytes."""
        self._without_outcome: Final[set[int]] = set()
        """Positions of records that an earlier process held and did not release: cursors read them."""
        if path is None:
            self._positions[_TAIL] = self._positions[_HEAD] = HEAD_BYTES
        tail, head = self._positions
        if head == HEAD_BYTES:
            # no record ends here: a process was killed while it moved an empty ring back to the start
            tail = self._positions[_TAIL] = HEAD_BYTES
        self.tail = tail - HEAD_BYTES
        """The position of the oldest record."""
        self.head = head - HEAD_BYTES + (self._capacity if head < tail else 0)
        """The position of the next record."""
        self._full_bytes: Final = int(FULL_AT * size_bytes)
        self.full_from = self.tail + self._full_bytes
        """The position of the head from which the ring is full."""

    @classmethod
    def open(cls, path: Path, owner: bytes, size_bytes: int = SIZE_BYTES) -> Self:
        """Return the ring of this file, created if it is missing; raise `AuditRingError`.

        `owner`: 32 bytes that identify the node.
        """
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _failure(path, error) from error
        return cls._opened(path, owner, size_bytes)

    @classmethod
    def open_left(cls, path: Path, owner: bytes) -> Self:
        """Return the ring that an earlier process left in this file; raise `AuditRingError`."""
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
            ring = cls(_prepared(path, descriptor, owner, size_bytes), path, descriptor)
        except BlockingIOError as error:
            os.close(descriptor)
            raise AuditRingError(
                f"the audit journal `{path}` is in use by another process; stop that process first"
            ) from error
        except OSError as error:
            os.close(descriptor)
            raise _failure(path, error) from error
        except BaseException:
            os.close(descriptor)
            raise
        try:
            ring._check_left(path)
        except BaseException:
            # the map has its own descriptor, which holds the lock
            ring.close()
            raise
        return ring

    def _check_left(self, path: Path) -> None:
        """Count the events of an earlier process; raise `AuditRingError` if they are not events.

        A start that fails must change no ring, so this only reads.
        """
        held: dict[int, set[str]] = {}
        written: set[str] = set()
        for position, flags, lines in self._records(self.tail):
            ids = _event_ids(lines, path)
            if flags == HELD:
                held[position] = ids
            elif not flags:
                written |= ids
                self.events += len(ids)
        for position, ids in held.items():
            if not ids & written:
                self._without_outcome.add(position)
                self.events += len(ids)

    def cursor(self) -> RingCursor:
        """Return a new cursor, at the oldest record."""
        cursor = RingCursor(self.tail)
        self._cursors.append(cursor)
        return cursor

    @property
    def used_bytes(self) -> int:
        """The number of bytes in use."""
        return self.head - self.tail

    @property
    def is_full(self) -> bool:
        """Whether decisions must wait now."""
        return self.head >= self.full_from

    @property
    def is_empty(self) -> bool:
        """Whether no record waits to be written or released."""
        return self.tail == self.head

    @property
    def is_durable(self) -> bool:
        """Whether the ring outlives the process."""
        return self.path is not None

    def put(self, lines: bytes, events: int, outcome_bytes: int = 0) -> int:
        """Take JSON lines, each with a line feed, as one record; return its position.

        A record with `outcome_bytes` is held, and this number of bytes is reserved for its outcome. Raise
        `AuditRingError` if the ring has no space.
        """
        needed = _LENGTH.size + len(lines)
        position = self.head
        rest = self._capacity - position % self._capacity
        if needed + _LENGTH.size > rest:
            position += rest
        # one byte stays free behind the head: a full ring must not look like an empty one
        if position + needed + self._kept_bytes + outcome_bytes - self.tail >= self._capacity:
            raise AuditRingError(f"the audit journal has no room for {needed} bytes of one request")
        if position != self.head:
            _LENGTH.pack_into(self._map, self._size - rest, WRAP)
        at = HEAD_BYTES + position % self._capacity
        self._map[at + _LENGTH.size : at + needed] = lines
        _LENGTH.pack_into(self._map, at, len(lines) | HELD if outcome_bytes else len(lines))
        self.head = position + needed
        self._positions[_HEAD] = at + needed
        self.events += events
        for cursor in self._cursors:
            if self.events >= cursor.wake_at:
                cursor.wake_at = sys.maxsize
                cursor.wake.set()
        return position

    def hold(self, lines: bytes) -> int:
        """Take lines that `settle` replaces by lines with an outcome; return the argument of `settle`.

        Raise `AuditRingError` if the ring has no space for both.
        """
        outcome_bytes = _room_bytes(len(lines))
        position = self.put(lines, 0, outcome_bytes)
        self._held[position] = outcome_bytes
        self._keep(outcome_bytes)
        return position

    def settle(self, held: int, lines: bytes, events: int) -> None:
        """Put the lines with the outcome of held lines, or the held lines again if the others do not fit."""
        self._keep(-self._held[held])
        try:
            self.put(lines, events)
        except AuditRingError:
            _, _, lines = next(self._records(held))
            self.put(lines, lines.count(b"\n"))
        del self._held[held]
        # the highest byte alone, as one store, so that a kill leaves the length as it is
        self._map[HEAD_BYTES + held % self._capacity + _LENGTH.size - 1] |= RELEASED >> 24

    def _keep(self, more_bytes: int) -> None:
        """Reserve this many more bytes for outcomes."""
        self._kept_bytes += more_bytes
        self.full_from -= more_bytes

    def has_room(self, size_bytes: int) -> bool:
        """Return whether lines of this size fit at any position of the head."""
        return self.used_bytes + self._kept_bytes + _room_bytes(size_bytes) < self._capacity

    def read(self, cursor: RingCursor, events_max: int) -> Batch:
        """Return the next events of a cursor: `events_max`, or more if the last record has more.

        `advance` moves the cursor past them. Raise `AuditRingError` if another program changed the file.
        """
        pieces: list[bytes] = []
        events, end = 0, cursor.position
        for position, flags, lines in self._records(cursor.position):
            if events >= events_max:
                break
            end = position + _LENGTH.size + len(lines)
            if not flags or position in self._without_outcome:
                pieces.append(lines)
                events += lines.count(b"\n")
        return Batch(b"".join(pieces), events, end)

    def advance(self, cursor: RingCursor, batch: Batch) -> None:
        """Move a cursor past a batch, and free the space that no cursor and no held record needs."""
        cursor.position = tail = batch.end
        cursor.events += batch.events
        for each in self._cursors:
            tail = min(tail, each.position)
        if self._held:
            tail = min(tail, next(iter(self._held)))
        self.tail = tail
        self._positions[_TAIL] = HEAD_BYTES + tail % self._capacity
        if tail == self.head:
            # an empty ring goes back to the start of the file, so that few pages stay in use; each store
            # leaves it empty
            self._positions[_HEAD] = HEAD_BYTES
            self._positions[_TAIL] = HEAD_BYTES
            self.head = self.tail = tail + -tail % self._capacity
            for each in self._cursors:
                each.position = self.head
        self.full_from = self.tail + self._full_bytes - self._kept_bytes

    def _records(self, position: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield the records from a position on: the position, the flags and the lines.

        Raise `AuditRingError` if the file is not a ring.
        """
        while position != self.head:
            at = HEAD_BYTES + position % self._capacity
            rest = self._size - at
            if rest < _LENGTH.size:
                raise _damaged(self.path)
            (word,) = _LENGTH.unpack_from(self._map, at)
            if word == WRAP:
                position += rest
                if position >= self.head:
                    raise _damaged(self.path)
                continue
            needed = _LENGTH.size + (word & ~_FLAGS)
            if position + needed > self.head or needed > rest:
                raise _damaged(self.path)
            yield position, word & _FLAGS, self._map[at + _LENGTH.size : at + needed]
            position += needed

    def close(self) -> None:
        """Close the file, which keeps its content."""
        self._positions.release()
        self._map.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def remove(self) -> None:
        """Delete the file and close it; raise OSError if it cannot be deleted."""
        try:
            if self.path is not None:
                self.path.unlink()
        finally:
            self.close()


def _room_bytes(size_bytes: int) -> int:
    """Return the free bytes that lines of this size need, so that they fit at any position of the head."""
    return 2 * (size_bytes + 2 * _LENGTH.size)


def _event_ids(lines: bytes, path: Path) -> set[str]:
    """Return the ids of the events in a record; raise `AuditRingError` if the lines are not events."""
    try:
        return {str(json.loads(line)["event_id"]) for line in lines.decode().split("\n")[:-1]}
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path) from error


def _prepared(path: Path, descriptor: int, owner: bytes, size_bytes: int | None) -> int:
    """Return the size of the ring in a file, with its space reserved.

    A ring without records starts again with `size_bytes`, unless that is None. Raise OSError or
    `AuditRingError`.
    """
    header = os.pread(descriptor, HEAD_BYTES, 0)
    if header or size_bytes is None:
        size, is_empty = _ring_in(path, header, os.fstat(descriptor).st_size, owner)
    else:
        size, is_empty = 0, True
    if is_empty and size_bytes is not None and size != size_bytes:
        size = size_bytes
        # one write, before any other change: without its header the file is not known to be a ring
        os.pwrite(descriptor, _HEADER.pack(MAGIC, HEAD_BYTES, HEAD_BYTES, size, owner), 0)
        os.ftruncate(descriptor, HEAD_BYTES)
    before_bytes = os.fstat(descriptor).st_size
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        # a partial reservation would keep the disk full
        os.ftruncate(descriptor, before_bytes)
        raise AuditRingError(
            f"cannot reserve {size} bytes for the audit journal `{path}`: {words_of(error).lower()}; make "
            "room on its disk, or name a directory on another one in `metadata.log.dir`"
        ) from error
    return size


def _ring_in(path: Path, header: bytes, file_bytes: int, owner: bytes) -> tuple[int, bool]:
    """Return the size of the ring that a file begins with, and whether it is empty."""
    if len(header) < HEAD_BYTES or not header.startswith(MAGIC):
        raise AuditRingError(
            f"`{path}` is not an audit journal of this version of kustos, and was left as it is; move it to "
            "another directory, and keep it if it may hold audit events"
        )
    _, tail, head, size, found_owner = _HEADER.unpack(header)
    if found_owner != owner:
        raise AuditRingError(
            f"the audit journal `{path}` belongs to another node or cluster, and was left as it is; move it "
            "to the node that it belongs to"
        )
    is_empty = head in {tail, HEAD_BYTES}
    if not (HEAD_BYTES <= tail <= size and HEAD_BYTES <= head <= size and (is_empty or size <= file_bytes)):
        raise _damaged(path)
    return size, is_empty


def _damaged(path: Path | None) -> AuditRingError:
    return AuditRingError(
        f"the audit journal `{path}` is damaged, by a power failure or by another program; move it to "
        "another directory, and keep it as evidence"
    )


def _failure(path: Path, error: OSError) -> AuditRingError:
    reason = (error.strerror or "the system gives no reason").lower()
    return AuditRingError(f"cannot use the audit journal `{path}`: {reason}")
