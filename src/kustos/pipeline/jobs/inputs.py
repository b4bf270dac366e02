"""The audit files that are new, and the log that each is a copy of."""

import bz2
import gzip
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.files import list_audit_files
from kustos.pipeline.inputs.beginnings import Beginning, read_beginning
from kustos.pipeline.inputs.logs import Logs
from kustos.runtime import reason_of

if TYPE_CHECKING:
    from kustos.pipeline.tables import InputFile, Tables

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
    """All files of the folders, and those among them that no run has read yet.

    `said` has a sentence for each file whose log was chosen without certainty.
    """

    count: int
    new: tuple[FoundFile, ...]
    said: tuple[str, ...] = ()

    @property
    def new_bytes(self) -> int:
        """The size of the files to read, still compressed."""
        return sum(file.identity.size_bytes for file in self.new)


def find_new_files(
    audit: Path | Sequence[Path], tables: "Tables", *, source: str | None = None
) -> FoundFiles:
    """Return what a run would read; raise `AuditInputError`, `TablesDamagedError`.

    A file is known by path, size, time of change and the beginning of its content; a renamed one by its
    inode instead of the path. A file that grew is read again as a whole: its old lines become duplicates.
    `source` names what wrote all these files, such as a broker; `Logs` says which files are copies of a log.
    """
    logs = Logs(tables.inputs().values())
    count = 0
    new: list[FoundFile] = []
    said: list[str] = []
    roots = [audit] if isinstance(audit, Path) else list(audit)
    if not roots:
        raise AuditInputError("no audit folder was given")
    for root in roots:
        _check_apart(root.resolve(), tables.folder.resolve())
        found = list_audit_files(root)
        count += len(found.files)
        for path in found.files:
            file = described(path, source)
            if logs.is_known(file):
                continue
            choice = logs.choose(file)
            new.append(FoundFile(str(path.relative_to(found.root)), replace(file, log=choice.log)))
            if choice.said is not None:
                said.append(choice.said)
    return FoundFiles(count, tuple(new), tuple(said))


def described(path: Path, source: str | None = None) -> "InputFile":
    """Return the current state of a file, as if no other was known; raise `AuditInputError`."""
    from kustos.pipeline.tables import InputFile

    try:
        status = path.stat()
        beginning = beginning_of(path)
    except OSError as error:
        raise AuditInputError(f"cannot read `{path}`: {reason_of(error)}") from error
    return InputFile(
        str(path),
        status.st_size,
        status.st_mtime_ns,
        status.st_ino,
        f"file:{path}",
        beginning.to_text(),
        source,
    )


def beginning_of(path: Path) -> Beginning:
    """Return the beginning of a file's content, unpacked; of a damaged one, nothing."""
    try:
        with _opened(path) as file:
            return read_beginning(file)
    except _DAMAGE:
        if path.suffix not in _OPENERS:
            raise
    return Beginning()


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
