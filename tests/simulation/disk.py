"""A disk that forgets: what is not synced may be lost, in part, out of order, sector by sector.

The steps of each operation are those of `FileSystemStorage` (held to that by a test), and the power may
fail before each of them. What a process sees is the cache; what a power cut leaves is decided then, by
the simulation's own chance. A failed fsync leaves bytes in the cache that no later fsync saves.
"""

import errno
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from kustos.runtime.storage import (
    DEFAULT_FILE_MODE,
    DIRECTORY_MODE,
    PART_SUFFIX,
    AppendFile,
    FixedFile,
    StorageLock,
)

SECTOR = 512


class PowerCutError(BaseException):
    """The machine is gone: no handler may go on as if it were not."""


@dataclass
class File:
    """What is seen, what is on the disk, and which ranges were written since, of those still to be saved."""

    seen: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    dirty: list[tuple[int, int]] = field(default_factory=list)
    holds_garbage: bool = False
    """Whether the power failed while a sector was written, and it holds neither the old nor the new."""

    def write(self, position: int, data: bytes) -> None:
        self.seen[position : position + len(data)] = data
        self.dirty.append((position, position + len(data)))

    def truncate(self, size: int) -> None:
        del self.seen[size:]
        self.dirty.append((size, size))

    def sync(self) -> None:
        if self.dirty:
            self.durable = self._saved(lambda _sector: True, len(self.seen))
            self.dirty.clear()

    def lose_dirty(self) -> None:
        """As after an fsync that failed: the pages count as clean, and will never be written."""
        self.dirty.clear()

    def cut(self, chance: random.Random, garbage_probability: float) -> None:
        """The power fails."""
        if self.dirty:
            size = chance.choice((len(self.durable), len(self.seen), *(end for _, end in self.dirty)))
            mood = chance.choice((0.0, 0.5, 1.0))
            disk = bytearray(self._saved(lambda _: chance.random() < mood, min(size, len(self.seen))))
            if chance.random() < garbage_probability:
                start = chance.choice(self.dirty)[0] // SECTOR * SECTOR
                garbage = chance.randbytes(len(disk[start : start + SECTOR]))
                disk[start : start + len(garbage)] = garbage
                self.holds_garbage = bool(garbage)
            self.durable = bytes(disk)
        self.seen = bytearray(self.durable)
        self.dirty.clear()

    def _saved(self, is_saved: Callable[[int], bool], size: int) -> bytes:
        disk = bytearray(self.durable[:size]).ljust(size, b"\0")
        sectors = {
            sector
            for start, end in self.dirty
            for sector in range(start // SECTOR, -(-max(end, start + 1) // SECTOR))
        }
        for sector in sorted(sectors):
            if is_saved(sector):
                start, end = sector * SECTOR, min((sector + 1) * SECTOR, size)
                if start < size:
                    disk[start:end] = self.seen[start:end].ljust(end - start, b"\0")
        return bytes(disk)


class SimulatedLock:
    def __init__(self, disk: "SimulatedDisk") -> None:
        self._disk = disk

    def release(self) -> None:
        self._disk.is_locked = False


class SimulatedAppendFile:
    def __init__(self, disk: "SimulatedDisk", file: File) -> None:
        self._disk = disk
        self._file = file

    def append(self, data: bytes) -> None:
        self._disk.write_into(self._file, data)

    def sync(self) -> None:
        self._disk.sync(self._file)

    def truncate(self, size_bytes: int) -> None:
        self._disk.step("truncate")
        self._file.truncate(size_bytes)

    def close(self) -> None:
        pass


class SimulatedFixedFile:
    def __init__(self, disk: "SimulatedDisk", file: File) -> None:
        self._disk = disk
        self._file = file

    def overwrite(self, data: bytes) -> None:
        self._disk.step("overwrite")
        self._file.write(0, data)

    def close(self) -> None:
        pass


class SimulatedDisk:
    """A `Storage`. Set `cut_at` to let the power fail so many steps from now."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.names_seen: dict[PurePath, File] = {}
        self.names_durable: dict[PurePath, File] = {}
        self.unsynced_names: list[tuple[PurePath, File | None]] = []
        self.is_locked = False
        self.is_off = False
        self.steps = 0
        self.cut_at: int | None = None
        self.fails_sync_at: int | None = None
        self.is_full_at: int | None = None
        self.garbage_probability = 0.0
        """Of files that a power cut meets unsynced: that one sector holds what nobody wrote."""
        self.failures: list[str] = []
        self.trace: list[str] = []
        self.between_pieces: Callable[[], None] = lambda: None

    # what happens

    def step(self, what: str) -> None:
        """Take one step of the machine's life; the power may fail before it."""
        if self.is_off or self.steps == self.cut_at:
            self.is_off = True
            raise PowerCutError
        self.steps += 1
        self.trace.append(what)

    def write_into(self, file: File, data: bytes) -> None:
        if self.is_full_at is not None and self.steps >= self.is_full_at:
            self.failures.append("full")
            file.write(len(file.seen), data[: self.chance.randrange(len(data) + 1)])
            raise OSError(errno.ENOSPC, "no space left on device")
        at, cut = len(file.seen), self.steps == self.cut_at
        if cut and not self.is_off:
            # amid the write: some of it reached the cache, from where it may reach the disk
            file.write(at, data[: self.chance.randrange(len(data) + 1)])
        self.step("write")
        file.write(at, data)

    def sync(self, file: File) -> None:
        self.step("fsync")
        if self.fails_sync_at is not None and self.steps >= self.fails_sync_at:
            self.fails_sync_at = None
            self.failures.append("fsync")
            if self.chance.random() < 0.7:
                file.lose_dirty()
            raise OSError(errno.EIO, "input/output error")
        file.sync()

    def _name(self, path: PurePath, file: File | None) -> None:
        if file is None:
            self.names_seen.pop(path, None)
        else:
            self.names_seen[path] = file
        self.unsynced_names.append((path, file))

    def _sync_directory(self) -> None:
        self.step("fsync directory")
        self._settle_names(lambda: True)

    def _settle_names(self, is_saved: Callable[[], bool]) -> None:
        for path, file in self.unsynced_names:
            if not is_saved():
                continue
            if file is None:
                self.names_durable.pop(path, None)
            else:
                self.names_durable[path] = file
        self.unsynced_names.clear()

    def restart(self, *, power_cut: bool) -> None:
        """Come up again: after a power cut with what the disk holds, after a kill with all that was seen."""
        if power_cut:
            self._settle_names(lambda: self.chance.random() < 0.5)
            self.names_seen = dict(self.names_durable)
            for file in {id(each): each for each in self.names_seen.values()}.values():
                file.cut(self.chance, self.garbage_probability)
        self.is_locked = self.is_off = False
        self.steps, self.cut_at, self.fails_sync_at, self.is_full_at = 0, None, None, None
        self.failures.clear()
        self.trace.clear()
        self.between_pieces = lambda: None

    # damage at rest

    def copied(self) -> dict[PurePath, File]:
        """Return what all files hold, to be put back by `put_back`."""
        return {path: File(bytearray(file.seen), bytes(file.seen)) for path, file in self.names_seen.items()}

    def put_back(self, files: dict[PurePath, File]) -> None:
        """Let the disk hold this, durably."""
        self.names_seen, self.names_durable = dict(files), dict(files)
        self.unsynced_names.clear()

    @property
    def damages(self) -> dict[str, Callable[[PurePath], None]]:
        """What may happen to a file that nobody writes to."""
        return {
            "a bit that turned": self._turn_bit,
            "garbage": lambda path: self._spoil(path, self.chance.randbytes),
            "zeros": lambda path: self._spoil(path, bytes),
            "a file cut short": self._cut_short,
            "a file deleted": self._delete,
        }

    def _turn_bit(self, path: PurePath) -> None:
        data = bytearray(self.names_seen[path].seen)
        if data:
            # half of them where the offset and the epoch of a batch stand, which no checksum covers
            size = self.chance.choice((len(data), min(16, len(data))))
            data[self.chance.randrange(size)] ^= 1 << self.chance.randrange(8)
        self._rest(path, data)

    @property
    def holds_garbage(self) -> bool:
        """Whether a power cut left a sector that holds what nobody wrote."""
        return any(file.holds_garbage for file in self.names_seen.values())

    def _spoil(self, path: PurePath, content: Callable[[int], bytes]) -> None:
        """Some sectors, or a piece from any byte on, hold something else."""
        data = bytearray(self.names_seen[path].seen)
        if not data:
            return
        start = self.chance.randrange(len(data))
        if self.chance.random() < 0.5:
            start -= start % SECTOR
        end = min(start + self.chance.choice((1, 17, 61, SECTOR, 4 * SECTOR)), len(data))
        data[start:end] = content(end - start)
        self._rest(path, data)

    def _cut_short(self, path: PurePath) -> None:
        data = self.names_seen[path].seen
        self._rest(path, data[: self.chance.randrange(len(data) + 1)])

    def _delete(self, path: PurePath) -> None:
        self.names_seen.pop(path)
        self.names_durable.pop(path, None)

    def _rest(self, path: PurePath, data: bytearray) -> None:
        file = self.names_seen[path]
        file.seen, file.durable = bytearray(data), bytes(data)
        file.dirty.clear()

    # the interface of a storage

    def exists(self, path: Path) -> bool:
        return path in self.names_seen or any(path in name.parents for name in self.names_seen)

    def names(self, directory: Path) -> list[str]:
        return sorted(name.name for name in self.names_seen if name.parent == directory)

    def read(self, path: Path) -> bytes:
        if path not in self.names_seen:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        return bytes(self.names_seen[path].seen)

    def read_part(self, path: Path, position: int, size_bytes: int) -> bytes:
        return self.read(path)[position : position + size_bytes]

    def size_bytes(self, path: Path) -> int:
        return len(self.read(path))

    def make_directory(self, path: Path, mode: int = DIRECTORY_MODE) -> None:
        self.step("mkdir")

    def open_append(self, path: Path) -> AppendFile:
        self.step("open")
        if path not in self.names_seen:
            self._name(path, File())
        self._sync_directory()
        return SimulatedAppendFile(self, self.names_seen[path])

    def open_fixed(self, path: Path) -> FixedFile:
        return SimulatedFixedFile(self, self.names_seen[path])

    def write_pieces(self, path: Path, pieces: Iterable[bytes], mode: int = DEFAULT_FILE_MODE) -> None:
        part = path.with_name(path.name + PART_SUFFIX)
        self.step("create")
        file = File()
        self._name(part, file)
        try:
            for piece in pieces:
                self.write_into(file, piece)
                self.between_pieces()
            self.sync(file)
            self.step("rename")
        except Exception:
            self.step("unlink")
            self._name(part, None)
            raise
        # one step of the file system: both names change, or neither
        self.names_seen.pop(part, None)
        self.names_seen[path] = file
        self.unsynced_names = [each for each in self.unsynced_names if each[0] != part]
        self.unsynced_names.append((path, file))
        self._sync_directory()

    def write(self, path: Path, data: bytes, mode: int = DEFAULT_FILE_MODE) -> None:
        self.write_pieces(path, (data,), mode)

    def rewrite(self, path: Path, position: int) -> None:
        self.step("rewrite")
        file = self.names_seen[path]
        data = bytes(file.seen[position:])
        file.write(position, data)
        self.sync(file)

    def rename(self, path: Path, target: Path) -> None:
        self.step("rename")
        file = self.names_seen[path]
        self._name(target, file)
        self._name(path, None)
        self._sync_directory()

    def remove(self, path: Path) -> None:
        self.step("unlink")
        self._name(path, None)
        self._sync_directory()

    def lock(self, path: Path) -> StorageLock:
        assert not self.is_locked
        self.is_locked = True
        return SimulatedLock(self)
