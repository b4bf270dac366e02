"""The audit files that are new, the log that each is a copy of, and how far it is whole."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.files import list_audit_files
from kustos.pipeline.inputs.beginnings import Beginning, read_beginning
from kustos.pipeline.inputs.formats import UnknownFormatError, layout_of
from kustos.pipeline.inputs.logs import Logs, family_of, is_numbered
from kustos.pipeline.inputs.packing import (
    DAMAGE,
    IN_ARCHIVE,
    Packing,
    members_of,
    packing_of,
    split_place,
    unpacked,
)
from kustos.pipeline.inputs.pieces import Readable, whole_bytes
from kustos.runtime import reason_of

if TYPE_CHECKING:
    from kustos.pipeline.tables import InputFile, Tables

_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read.

    `name` is its path below its folder, `identity` its current state as `inputs` has it, and `fault` the
    reason for quarantining it unread, if any. Of a plain file `size_bytes` are read. `layout` is log4j's
    pattern of its lines, None for Kafka's own.
    """

    name: str
    identity: "InputFile"
    fault: str | None = None
    packing: Packing = Packing.PLAIN
    layout: str | None = None

    @property
    def fault_log(self) -> str:
        """The log name for this state of a damaged file."""
        return f"{self.identity.log}:{self.identity.size_bytes}:{self.identity.modified_ns}"

    def readable(self) -> Readable:
        """Return what a task needs to read it."""
        file = self.identity
        end = file.size_bytes if self.packing is Packing.PLAIN else None
        return Readable(file.path, self.name, file.log, self.packing, end, file.size_bytes, self.layout)


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """All files of the folders, and those among them that no run has read yet.

    `said` has a sentence for each file whose log was chosen without certainty. `half_lines` are last lines
    without their end, which are held back until they have it or their file is closed by rotation.
    """

    count: int
    new: tuple[FoundFile, ...]
    said: tuple[str, ...] = ()
    half_lines: int = 0
    refused_files: int = 0
    overlapping_files: int = 0

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
    count = half_lines = 0
    new: list[FoundFile] = []
    said: list[str] = []
    roots = [audit] if isinstance(audit, Path) else list(audit)
    if not roots:
        raise AuditInputError("no audit folder was given")
    for root in roots:
        if isinstance(tables.folder, Path):
            _check_apart(root.resolve(), tables.folder.resolve())
        found = list_audit_files(root)
        closed = closed_files(found.files)
        for path in found.files:
            for place, packing in places_of(path):
                count += 1
                file = described(place, packing, source, is_closed=path in closed)
                half_lines += packing is Packing.PLAIN and file.size_bytes < path.stat().st_size
                if logs.is_known(file):
                    continue
                choice = logs.choose(file)
                name = place.removeprefix(f"{found.root}/")
                new.append(FoundFile(name, replace(file, log=choice.log), packing=packing))
                if choice.said is not None:
                    said.append(choice.said)
    return FoundFiles(count, tuple(new), tuple(said), half_lines)


def with_layouts(
    files: Iterable[FoundFile], layout: str | None, *, may_be_unknown: bool
) -> tuple[FoundFile, ...]:
    """Return the files with their layouts: that which was set, or what their first lines tell.

    Raises `UnknownFormatError` for a file in no known format unless that `may_be_unknown`.
    """
    found = []
    for file in files:
        try:
            with unpacked(file.identity.path, file.packing) as content:
                found.append(replace(file, layout=layout_of(content, file.identity.path, layout)))
        except UnknownFormatError:
            if not may_be_unknown:
                raise
            found.append(file)
        except DAMAGE:
            found.append(file)  # reading it fails too, with its name
    return tuple(found)


def closed_files(files: Sequence[Path]) -> frozenset[Path]:
    """Return the files that rotation has closed: numbered ones, and those with a newer one of their name."""
    newest: dict[str, int] = {}
    times = {path: path.stat().st_mtime_ns for path in files}
    for path, time in times.items():
        family = family_of(str(path))
        newest[family] = max(time, newest.get(family, 0))
    return frozenset(
        path for path, time in times.items() if is_numbered(path) or time < newest[family_of(str(path))]
    )


def places_of(path: Path) -> Iterator[tuple[str, Packing]]:
    """Yield the inputs in a file, one but for an archive; raise `AuditInputError`."""
    try:
        packing = packing_of(path)
    except OSError as error:
        raise AuditInputError(f"cannot read `{path}`: {reason_of(error)}") from error
    if packing is Packing.ZIP:
        try:
            members = members_of(path)
        except DAMAGE:
            pass  # reading it fails too, with its name
        else:
            yield from ((f"{path}{IN_ARCHIVE}{member}", packing) for member in members)
            return
    yield str(path), packing


def described(
    place: str, packing: Packing, source: str | None = None, *, is_closed: bool = False
) -> "InputFile":
    """Return the current state of a file, as if no other was known; raise `AuditInputError`.

    The size of a plain file is that of its whole lines.
    """
    from kustos.pipeline.tables import InputFile

    path, member = split_place(place)
    try:
        status = path.stat()
        size = status.st_size
        if packing is Packing.PLAIN:
            size = whole_bytes(path, size, is_closed=is_closed)
        beginning = beginning_of(place, packing)
    except OSError as error:
        raise AuditInputError(f"cannot read `{path}`: {reason_of(error)}") from error
    inode = status.st_ino if member is None else 0
    return InputFile(place, size, status.st_mtime_ns, inode, f"file:{place}", beginning.to_text(), source)


def beginning_of(place: str, packing: Packing) -> Beginning:
    """Return the beginning of a file's content, unpacked; of a damaged one, nothing."""
    try:
        with unpacked(place, packing) as content:
            return read_beginning(content)
    except DAMAGE:
        if packing is Packing.PLAIN:
            raise
    return Beginning()


def with_damage(files: Iterable[FoundFile], named: str) -> tuple[FoundFile, ...]:
    """Return the files, with a `fault` for each compressed one that cannot be decompressed to its end.

    `named` is the file that could not be read.
    """
    return tuple(file if file.fault else replace(file, fault=_fault(file, named)) for file in files)


def _fault(file: FoundFile, named: str) -> str | None:
    if file.packing is not Packing.PLAIN:
        try:
            with unpacked(file.identity.path, file.packing) as content:
                while content.read(_CHUNK_BYTES):
                    pass
        except EOFError:
            return "file_damaged: it ends too early"
        except DAMAGE:
            return "file_damaged: it cannot be unpacked"
    return "file_damaged: it cannot be read to its end" if file.identity.path == named else None


def _check_apart(audit: Path, tables: Path) -> None:
    if audit == tables or audit in tables.parents or tables in audit.parents:
        raise AuditInputError(f"audit folder `{audit}` and the tables in `{tables}` must lie apart")
