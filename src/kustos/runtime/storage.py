"""Durable storage: the file operations of the metadata log.

The interface is small, so that tests can replace it with a failing, signalling or simulated disk. It defines
durability: file contents are durable after `sync`, a file's existence is durable after a sync of its
directory. Each operation first opens all files that it needs, so an operation that fails because it lacks a
file descriptor (EMFILE, ENFILE) has changed nothing.
"""

import contextlib
import fcntl
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

PRIVATE_FILE_MODE: Final = 0o600
"""The mode of files with secrets: the log and its snapshots contain keys derived from passwords."""
DEFAULT_FILE_MODE: Final = 0o644
DIRECTORY_MODE: Final = 0o777
"""Less the bits of the process's umask, like `os.mkdir`."""
REWRITTEN_BYTES: Final = 1024 * 1024
"""The number of bytes of a file in memory while it is rewritten."""
PART_SUFFIX: Final = ".part"
"""Suffix of a file that is still being written; Kafka treats snapshots with it as unfinished, too."""


class StorageLockedError(OSError):
    """Another process holds the lock on this directory; the text names it."""


class AppendFile(Protocol):
    """An open file that is only appended to or truncated."""

    def append(self, data: bytes) -> None:
        """Append all of `data`; raise `OSError` if not all of it was written."""

    def sync(self) -> None:
        """Return once everything appended is on the disk; raise `OSError` if that is uncertain."""

    def truncate(self, size_bytes: int) -> None:
        """Truncate the file to this size."""

    def close(self) -> None:
        """Close the file."""


class FixedFile(Protocol):
    """An open file whose content is overwritten in place by the same number of bytes, few enough for an
    atomic write."""

    def overwrite(self, data: bytes) -> None:
        """Overwrite the file's beginning with `data`; it reaches the disk some time later."""

    def close(self) -> None:
        """Close the file."""


class StorageLock(Protocol):
    """A held lock."""

    def release(self) -> None:
        """Release the lock."""


class Storage(Protocol):
    """A tree of files. Every method raises `OSError` as the operating system does."""

    def exists(self, path: Path) -> bool:
        """Return whether a file or directory exists."""

    def names(self, directory: Path) -> list[str]:
        """Return the names in a directory, sorted; none if it does not exist."""

    def read(self, path: Path) -> bytes:
        """Return a file's whole contents."""

    def read_part(self, path: Path, position: int, size_bytes: int) -> bytes:
        """Return at most `size_bytes` bytes of a file from `position` on."""

    def make_directory(self, path: Path, mode: int = DIRECTORY_MODE) -> None:
        """Create a directory and its parents durably; an existing one is fine, whatever its mode."""

    def open_append(self, path: Path) -> AppendFile:
        """Open a file for appending; create it, durably and for its owner alone, if there is none."""

    def open_fixed(self, path: Path) -> FixedFile:
        """Open an existing file, to overwrite its content in place."""

    def write(self, path: Path, data: bytes, mode: int = DEFAULT_FILE_MODE) -> None:
        """Write a file durably and atomically: readers see the complete new file or the old one."""

    def write_pieces(self, path: Path, pieces: Iterable[bytes], mode: int = DEFAULT_FILE_MODE) -> None:
        """Write a file as `write` does, piece by piece.

        Errors raised by `pieces` propagate; then, as after any failure, no file is written.
        """

    def rewrite(self, path: Path, position: int) -> None:
        """Rewrite the contents of a file from `position` on, and return once they are on the disk.

        After a failed fsync, the kernel may return bytes that it will never write: they are durable only
        after being written again.
        """

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file durably within its directory; after an `OSError` it has either name."""

    def remove(self, path: Path) -> None:
        """Remove a file durably; a missing one is fine."""

    def size_bytes(self, path: Path) -> int:
        """Return the size of a file."""

    def lock(self, path: Path) -> StorageLock:
        """Hold an exclusive lock on this file, created if need be; raise `StorageLockedError`."""


class FileSystemStorage:
    """The machine's own file system (POSIX)."""

    __slots__ = ()

    def exists(self, path: Path) -> bool:
        """Return whether a file or directory exists."""
        return path.exists()

    def names(self, directory: Path) -> list[str]:
        """Return the names in a directory, sorted; none if it does not exist."""
        return sorted(entry.name for entry in directory.iterdir()) if directory.is_dir() else []

    def read(self, path: Path) -> bytes:
        """Return a file's whole contents."""
        return path.read_bytes()

    def read_part(self, path: Path, position: int, size_bytes: int) -> bytes:
        """Return at most `size_bytes` bytes of a file from `position` on."""
        with path.open("rb", buffering=0) as file:
            file.seek(position)
            return _read_fully(file, size_bytes)

    def make_directory(self, path: Path, mode: int = DIRECTORY_MODE) -> None:
        """Create a directory and its parents durably; an existing one is fine, whatever its mode."""
        if path.is_dir():
            return
        self.make_directory(path.parent)
        try:
            with _synced(path.parent):
                path.mkdir(mode, exist_ok=True)
        except OSError:
            # the next attempt must not treat an unsynced name as durable
            with contextlib.suppress(OSError):
                path.rmdir()
            raise

    def open_append(self, path: Path) -> AppendFile:
        """Open a file for appending; create it, durably and for its owner alone, if there is none."""
        file = None
        try:
            # also if the file exists: an earlier attempt may have created it and failed to sync its name
            with _synced(path.parent):
                file = _PosixAppendFile(path)
        except OSError:
            if file is not None:
                file.close()
            raise
        return file

    def open_fixed(self, path: Path) -> FixedFile:
        """Open an existing file, to overwrite its content in place."""
        return _PosixFixedFile(path)

    def write(self, path: Path, data: bytes, mode: int = DEFAULT_FILE_MODE) -> None:
        """Write a file durably and atomically: readers see the complete new file or the old one."""
        self.write_pieces(path, (data,), mode)

    def write_pieces(self, path: Path, pieces: Iterable[bytes], mode: int = DEFAULT_FILE_MODE) -> None:
        """Write a file as `write` does, piece by piece.

        Errors raised by `pieces` propagate; then, as after any failure, no file is written.
        """
        # the file is created with its final mode, so a secret is never readable by others
        part = path.with_name(path.name + PART_SUFFIX)
        with _synced(path.parent):
            self._write_part(part, pieces, mode)
            part.replace(path)

    def _write_part(self, part: Path, pieces: Iterable[bytes], mode: int) -> None:
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            # free the space again if the disk is full
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise

    def rewrite(self, path: Path, position: int) -> None:
        """Rewrite the contents of a file from `position` on, and return once they are on the disk.

        After a failed fsync, the kernel may return bytes that it will never write: they are durable only
        after being written again.
        """
        with path.open("r+b") as file:
            file.seek(position)
            while data := file.read(REWRITTEN_BYTES):
                file.seek(position)
                file.write(data)
                position += len(data)
                file.seek(position)
            file.flush()
            os.fsync(file.fileno())

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file durably within its directory; after an `OSError` it has either name."""
        with _synced(path.parent):
            path.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file durably; a missing one is fine."""
        with _synced(path.parent):
            path.unlink(missing_ok=True)

    def size_bytes(self, path: Path) -> int:
        """Return the size of a file."""
        return path.stat().st_size

    def lock(self, path: Path) -> StorageLock:
        """Hold an exclusive lock on this file, created if need be; raise `StorageLockedError`.

        The file's mode becomes 0600, even if it existed. It is a POSIX lock, as in Java's `FileChannel.lock`,
        so a broker and kustos exclude each other. Such a lock belongs to the process, so this function
        refuses a second lock on the path within one process.
        """
        return _PosixLock(path)


def _read_fully(file: io.FileIO, size_bytes: int) -> bytes:
    """Return `size_bytes` bytes, fewer only at the file's end: one system call reads at most 2 GiB."""
    pieces: list[bytes] = []
    while size_bytes and (piece := file.read(size_bytes)):
        pieces.append(piece)
        size_bytes -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class _PosixAppendFile:
    __slots__ = ("_descriptor",)

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(
            path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE_MODE
        )

    def append(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def truncate(self, size_bytes: int) -> None:
        os.ftruncate(self._descriptor, size_bytes)

    def close(self) -> None:
        # the descriptor number will be reused: never write to it again
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class _PosixFixedFile:
    __slots__ = ("_descriptor",)

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def overwrite(self, data: bytes) -> None:
        os.pwrite(self._descriptor, data, 0)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class _PosixLock:
    """A POSIX record lock is lost when the process closes any descriptor of the file, hence the set."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        if self._path in _LOCKED_HERE:
            raise StorageLockedError(f"`{path.parent}` is already open for writing in this process")
        # any process that can open it can take a read lock and prevent the start of a node
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE_MODE)
        with contextlib.suppress(PermissionError):
            # an existing file may be from an earlier version; another user's file is not changed
            os.fchmod(self._descriptor, PRIVATE_FILE_MODE)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise StorageLockedError(
                f"`{path.parent}` is in use by another process, which holds the lock `{path.name}`; "
                "stop it first, two writers would destroy the log"
            ) from error
        _LOCKED_HERE.add(self._path)

    def release(self) -> None:
        if self._path in _LOCKED_HERE:
            _LOCKED_HERE.discard(self._path)
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


_LOCKED_HERE: Final[set[Path]] = set()
"""Paths locked by this process: one per directory open for writing."""


@contextlib.contextmanager
def _synced(directory: Path) -> Iterator[None]:
    """Make changes to the entries of a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
