"""The audit files that are new, and the log that each is a copy of."""

import bz2
import gzip
import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.files import list_audit_files
from kustos.runtime import reason_of

if TYPE_CHECKING:
    from kustos.pipeline.tables import InputFile, Tables

MAXIMUM_HEAD_BYTES: Final = 65_536
"""A log is identified by its first line that is not blank, cut to this length."""

_CHUNK_BYTES: Final = 1 << 20
_OPENERS: Final[Mapping[str, Any]] = {".gz": gzip.open, ".bz2": bz2.open}
"""Endings that both Spark and Python can decompress."""

_DAMAGE: Final = (EOFError, OSError, zlib.error)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read.

    `name` is its path below its folder, `identity` its current state as `inputs` has it, and `fault` the
    reason for quarantining it unread, if any.
    """

    name: str
    identity: "InputFile"
    fault: str | None = None

    @property
    def fault_log(self) -> str:
        """The log name for this state of a damaged file."""
        return f"{self.identity.log}:{self.identity.size_bytes}:{self.identity.modified_ns}"


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """All files of the folders, and those among them that no run has read yet."""

    count: int
    new: tuple[FoundFile, ...]

    @property
    def new_bytes(self) -> int:
        """The size of the files to read, still compressed."""
        return sum(file.identity.size_bytes for file in self.new)


def find_new_files(audit: Path | Sequence[Path], tables: "Tables") -> FoundFiles:
    """Return what a run would read; raise `AuditInputError`, `TablesDamagedError`.

    A file is identified by path, size, time of change and the beginning of its content; a renamed one by its
    inode instead of the path. A file that grew is read again as a whole: its old lines become duplicates.
    """
    known = tables.inputs()
    inodes = {(one.inode, one.size_bytes, one.modified_ns, one.log) for one in known.values()}
    count, new = 0, []
    roots = [audit] if isinstance(audit, Path) else list(audit)
    if not roots:
        raise AuditInputError("no audit folder was given")
    for root in roots:
        if isinstance(tables.folder, Path):
            _check_apart(root.resolve(), tables.folder.resolve())
        found = list_audit_files(root)
        count += len(found.files)
        for path in found.files:
            file = described(path)
            is_known = known.get(file.path) == file
            if not is_known and (file.inode, file.size_bytes, file.modified_ns, file.log) not in inodes:
                new.append(FoundFile(str(path.relative_to(found.root)), file))
    return FoundFiles(count, tuple(new))


def described(path: Path) -> "InputFile":
    """Return the current state of a file; raise `AuditInputError` if it cannot be read."""
    from kustos.pipeline.tables import InputFile

    try:
        status = path.stat()
        log = log_of(path)
    except OSError as error:
        raise AuditInputError(f"cannot read `{path}`: {reason_of(error)}") from error
    return InputFile(str(path), status.st_size, status.st_mtime_ns, status.st_ino, log)


def log_of(path: Path) -> str:
    """Return a name of a file's log from its first line: equal for every copy, compressed or not.

    A file without a line, or a damaged one, is a log of its own.
    """
    try:
        with _opened(path) as file:
            left = MAXIMUM_HEAD_BYTES
            while left > 0 and (line := file.readline(left)):
                left -= len(line)
                if line.strip():
                    return hashlib.sha256(line.rstrip(b"\r\n")).hexdigest()[:32]
    except _DAMAGE:
        if path.suffix not in _OPENERS:
            raise
    return f"file:{path}"


def with_damage(files: Iterable[FoundFile], named: str) -> tuple[FoundFile, ...]:
    """Return the files, with a `fault` for each compressed one that cannot be decompressed to its end.

    `named` is the file that Spark failed on.
    """
    return tuple(file if file.fault else replace(file, fault=_fault(file, named)) for file in files)


def _fault(file: FoundFile, named: str) -> str | None:
    path = Path(file.identity.path)
    if path.suffix in _OPENERS:
        try:
            with _opened(path) as content:
                while content.read(_CHUNK_BYTES):
                    pass
        except EOFError:
            return "file_damaged: it ends too early"
        except _DAMAGE:
            return "file_damaged: it cannot be unpacked"
    return "file_damaged: it cannot be read to its end" if file.identity.path == named else None


def _opened(path: Path) -> IO[bytes]:
    opener = _OPENERS.get(path.suffix)
    return path.open("rb") if opener is None else opener(path, "rb")


def _check_apart(audit: Path, tables: Path) -> None:
    if audit == tables or audit in tables.parents or tables in audit.parents:
        raise AuditInputError(f"audit folder `{audit}` and the tables in `{tables}` must lie apart")
