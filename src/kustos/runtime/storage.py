"""Where bytes survive: the few file operations that the metadata log needs, and no more.

A small interface, so that tests can put a failing, signalling or simulated disk in its place. What
counts as durable is spelled out here once: file contents after `sync`, a file's existence after
`sync_directory` of its folder.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

PRIVATE_FILE_MODE: Final = 0o600
"""For what holds secrets, and keys of passwords are such: the log and its snapshots too."""
DEFAULT_FILE_MODE: Final = 0o644
PART_SUFFIX: Final = ".part"
"""Of a file that is still being written; Kafka knows the snapshots so named as unfinished, too."""


class StorageLockedError(OSError):
    """Another process holds the lock on this directory; the text names it."""


class AppendFile(Protocol):
    """An open file that only grows at its end, or is cut there."""

    def append(self, data: bytes) -> None:
        """Write all of `data` at the end; raise `OSError` if not all of it went."""

    def sync(self) -> None:
        """Return once everything appended is on the disk; raise `OSError` if that is not known."""

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to this size."""

    def close(self) -> None:
        """Let go of the file."""


class StorageLock(Protocol):
    """A held lock."""

    def release(self) -> None:
        """Let others have it."""


class Storage(Protocol):
    """A tree of files. Every method raises `OSError` as the operating system does."""

    def exists(self, path: Path) -> bool:
        """Return whether there is a file or directory."""

    def names(self, directory: Path) -> list[str]:
        """Return the names in a directory, sorted; none if it does not exist."""

    def read(self, path: Path) -> bytes:
        """Return a file's whole contents."""

    def read_start(self, path: Path, size_bytes: int) -> bytes:
        """Return the first bytes of a file, so many at most."""

    def make_directory(self, path: Path) -> None:
        """Create a directory and its parents, durably; one that exists is fine."""

    def open_append(self, path: Path) -> AppendFile:
        """Open a file for appending; create it, durably and for its owner alone, if there is none."""

    def write(self, path: Path, data: bytes, mode: int = DEFAULT_FILE_MODE) -> None:
        """Put a file there with this content, durably and at once: readers see all of it or the old one."""

    def write_pieces(self, path: Path, pieces: Iterable[bytes], mode: int = DEFAULT_FILE_MODE) -> None:
        """Put a file there as `write` does, its content piece by piece.

        Whatever `pieces` raises is passed on; then, as after any failure, nothing is put there.
        """

    def rewrite(self, path: Path, position: int) -> None:
        """Write what a file holds from `position` on once more, and return once it is on the disk.

        After an fsync that failed, the kernel may show bytes that it will never write: what was read is
        durable only when it was written again.
        """

    def remove(self, path: Path) -> None:
        """Take a file away, durably; one that is not there is fine."""

    def size_bytes(self, path: Path) -> int:
        """Return the size of a file."""

    def lock(self, path: Path) -> StorageLock:
        """Hold an exclusive lock on this file, created if need be; raise `StorageLockedError`."""


class FileSystemStorage:
    """The machine's own file system (POSIX)."""

    __slots__ = ()

    def exists(self, path: Path) -> bool:
        """Return whether there is a file or directory."""
        return path.exists()

    def names(self, directory: Path) -> list[str]:
        """Return the names in a directory, sorted; none if it does not exist."""
        return sorted(entry.name for entry in directory.iterdir()) if directory.is_dir() else []

    def read(self, path: Path) -> bytes:
        """Return a file's whole contents."""
        return path.read_bytes()

    def read_start(self, path: Path, size_bytes: int) -> bytes:
        """Return the first bytes of a file, so many at most."""
        with path.open("rb") as file:
            return file.read(size_bytes)

    def make_directory(self, path: Path) -> None:
        """Create a directory and its parents, durably; one that exists is fine."""
        if path.is_dir():
            return
        self.make_directory(path.parent)
        path.mkdir(exist_ok=True)
        _sync_directory(path.parent)

    def open_append(self, path: Path) -> AppendFile:
        """Open a file for appending; create it, durably and for its owner alone, if there is none."""
        is_new = not path.exists()
        file = _PosixAppendFile(path)
        if is_new:
            _sync_directory(path.parent)
        return file

    def write(self, path: Path, data: bytes, mode: int = DEFAULT_FILE_MODE) -> None:
        """Put a file there with this content, durably and at once: readers see all of it or the old one."""
        self.write_pieces(path, (data,), mode)

    def write_pieces(self, path: Path, pieces: Iterable[bytes], mode: int = DEFAULT_FILE_MODE) -> None:
        """Put a file there as `write` does, its content piece by piece.

        Whatever `pieces` raises is passed on; then, as after any failure, nothing is put there.
        """
        # the new file has its final mode from birth: a secret is never readable, not even for a moment
        part = path.with_name(path.name + PART_SUFFIX)
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            # what fills the disk makes room again
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        _sync_directory(path.parent)

    def rewrite(self, path: Path, position: int) -> None:
        """Write what a file holds from `position` on once more, and return once it is on the disk.

        After an fsync that failed, the kernel may show bytes that it will never write: what was read is
        durable only when it was written again.
        """
        with path.open("r+b") as file:
            file.seek(position)
            data = file.read()
            file.seek(position)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def remove(self, path: Path) -> None:
        """Take a file away, durably; one that is not there is fine."""
        path.unlink(missing_ok=True)
        _sync_directory(path.parent)

    def size_bytes(self, path: Path) -> int:
        """Return the size of a file."""
        return path.stat().st_size

    def lock(self, path: Path) -> StorageLock:
        """Hold an exclusive lock on this file, created if need be; raise `StorageLockedError`.

        The POSIX kind of lock that Java's `FileChannel.lock` takes too, so a broker and kustos keep each
        other out. It belongs to the process: a second lock within one process is refused here by name.
        """
        return _PosixLock(path)


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
        # the number will soon be another file's: nothing more is ever written to it
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class _PosixLock:
    """A POSIX record lock vanishes when the process closes any descriptor of the file, hence the set."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        if self._path in _LOCKED_HERE:
            raise StorageLockedError(f"`{path.parent}` is already open for writing in this process")
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, DEFAULT_FILE_MODE)
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
"""Paths that this process holds; as many as directories it has open for writing."""


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
