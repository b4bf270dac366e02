"""Which audit files are new, and of which log each is a copy."""

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
"""A log is known by its first line that is not blank; of a longer one by so much of it."""

_CHUNK_BYTES: Final = 1 << 20
_OPENERS: Final[Mapping[str, Any]] = {".gz": gzip.open, ".bz2": bz2.open}
"""What Spark unpacks by the name, and we can look into."""

_DAMAGE: Final = (EOFError, OSError, zlib.error)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read. `name` is its path below its folder; `fault` why it is quarantined unread, if it is."""

    name: str
    identity: "InputFile"
    fault: str | None = None

    @property
    def fault_log(self) -> str:
        """What tells this state of a damaged file from others."""
        return f"{self.identity.log}:{self.identity.size_bytes}:{self.identity.modified_ns}"


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """All files of the folders, and those among them that no run has read yet."""

    count: int
    new: tuple[FoundFile, ...]

    @property
    def new_bytes(self) -> int:
        """The size of what is to be read, packed as it is."""
        return sum(file.identity.size_bytes for file in self.new)


def find_new_files(audit: Path | Sequence[Path], tables: "Tables") -> FoundFiles:
    """Return what a run would read; raise `AuditInputError`, `TablesDamagedError`.

    A file is known by path, size, time of change and the beginning of its content; or, renamed, by its inode
    and the same. One that grew is read again as a whole: its known lines come out as duplicates.
    """
    known = tables.state().inputs
    inodes = {(one.inode, one.size_bytes, one.modified_ns, one.log) for one in known.values()}
    count, new = 0, []
    roots = [audit] if isinstance(audit, Path) else list(audit)
    if not roots:
        raise AuditInputError("no audit folder was given")
    for root in roots:
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
    """Return a file as it is now; raise `AuditInputError` if it cannot be looked at."""
    from kustos.pipeline.tables import InputFile

    try:
        status = path.stat()
        log = log_of(path)
    except OSError as error:
        raise AuditInputError(f"cannot read `{path}`: {reason_of(error)}") from error
    return InputFile(str(path), status.st_size, status.st_mtime_ns, status.st_ino, log)


def log_of(path: Path) -> str:
    """Return a name of the log that a file holds, from its first line: equal for every copy, packed or not.

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
    """Return the files with a `fault` for each that is packed and cannot be unpacked to its end.

    `named` is the one that Spark stumbled over.
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
