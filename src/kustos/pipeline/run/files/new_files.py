"""The audit files that are new, the log that each is a copy of, and how far it is whole."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.files import are_nested, list_audit_files
from kustos.pipeline.lines.clusters import UNNAMED
from kustos.pipeline.places import FileState, Place, StorePath, in_parallel
from kustos.pipeline.run.files.beginnings import Beginning, read_beginning
from kustos.pipeline.run.files.compression import (
    DAMAGE,
    IN_ARCHIVE,
    Packing,
    members_of,
    packing_of,
    split_place,
    unpacked,
)
from kustos.pipeline.run.files.content import FIRST_BYTES
from kustos.pipeline.run.files.formats import UnknownFormatError, layout_of
from kustos.pipeline.run.files.logs import Logs, family_of, is_numbered, is_packed_by_name
from kustos.pipeline.run.files.pieces import Readable, whole_bytes
from kustos.runtime import reason_of

if TYPE_CHECKING:
    from kustos.pipeline.tables import InputFile, Tables

_CHUNK_BYTES: Final = 1 << 20
TAR_MAGIC: Final = b"ustar"
TAR_BEGIN_BYTES: Final = 257 + len(TAR_MAGIC)
"""Where the header of a tar archive names its format (POSIX.1-1988)."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read.

    `name` is its path below its folder, `identity` its current state as `inputs` has it, and `fault` the
    reason for quarantining it unread, if any. Of a plain file `size_bytes` are read. `layout` is log4j's
    pattern of its lines, None for Kafka's own. `exports` are as `Readable` has them.
    """

    name: str
    identity: "InputFile"
    fault: str | None = None
    packing: Packing = Packing.PLAIN
    layout: str | None = None
    exports: tuple[int, ...] = ()

    @property
    def fault_log(self) -> str:
        """The log name for this state of a damaged file."""
        return f"{self.identity.log}:{self.identity.size_bytes}:{self.identity.modified_ns}"

    def readable(self) -> Readable:
        """Return what a task needs to read it."""
        file = self.identity
        end = file.size_bytes if self.packing is Packing.PLAIN else None
        packed_bytes = file.size_bytes
        return Readable(
            file.path,
            self.name,
            file.log,
            self.packing,
            end,
            packed_bytes,
            self.layout,
            self.cluster,
            file.inode,
            file.modified_ns,
            file.beginning,
            self.exports,
        )

    @property
    def cluster(self) -> str | None:
        """The cluster of its lines, as INPUT_LINES_SCHEMA has it."""
        return self.identity.cluster or None


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """All files of the folders, and those among them that no run has read yet.

    `said` has a sentence for each file whose log was chosen without certainty. `half_lines` are last lines
    without their end, which are held back until they have it or their file is closed by rotation. `renamed`
    were read under another path. `known` are all files and logs that former runs have read.
    """

    count: int
    new: tuple[FoundFile, ...]
    said: tuple[str, ...] = ()
    half_lines: int = 0
    refused_files: int = 0
    overlapping_files: int = 0
    renamed: "tuple[InputFile, ...]" = ()
    known: "tuple[InputFile, ...]" = ()

    @property
    def new_bytes(self) -> int:
        """The size of the files to read, still compressed."""
        return sum(file.identity.size_bytes for file in self.new)


def find_new_files(
    audit: Place | Sequence[Place],
    tables: "Tables",
    *,
    source: str | None = None,
    cluster: str | None = None,
) -> FoundFiles:
    """Return what a run would read; raise `AuditInputError`, `TablesDamagedError`.

    A file is known by path, size, time of change and the beginning of its content; a renamed one by its
    inode instead of the path. A file that grew is read again as a whole: its old lines become duplicates.
    `source` names what wrote all these files, such as a broker, `cluster` the cluster that they are of;
    `Logs` says which files are copies of a log.
    """
    known = tables.known_inputs()
    logs = Logs(known)
    count = half_lines = 0
    new: dict[str, FoundFile] = {}
    names: set[str] = set()
    renamed: list[InputFile] = []
    said: list[str] = []
    roots = [audit] if isinstance(audit, Path | StorePath) else list(audit)
    if not roots:
        raise AuditInputError("no audit folder was given")
    for root in roots:
        _check_apart(root, tables.folder)
        found = list_audit_files(root)
        for linked in found.linked:
            _check_apart(linked, tables.folder)
        changed = {
            path: state
            for path, state in found.states.items()
            if state.size_bytes and not (isinstance(path, StorePath) and logs.is_unchanged(str(path), state))
        }
        count += len(found.states) - len(changed)
        looked_at = _looked_at(changed, closed_files(found.states), source, cluster)
        for state, files in zip(changed.values(), looked_at, strict=True):
            for packing, file in files:
                place = file.path
                count += 1
                half_lines += packing is Packing.PLAIN and file.size_bytes < state.size_bytes
                former = logs.read_as(file)
                met = new.get(former.path) if former is not None else None  # by another name, in this run
                if former is not None and former.path != place and (met is None or met.identity != former):
                    renamed.append(replace(file, log=former.log, cluster=former.cluster))
                # a file in which nothing is to be read as yet must not take the place of the log before it
                if former is not None or not file.size_bytes:
                    continue
                choice = logs.choose(file)
                name = place.removeprefix(f"{found.root}/")
                name = place if name in names else name  # equal lines are numbered by the name of their file
                names.add(name)
                new[place] = FoundFile(name, replace(file, log=choice.log), packing=packing)
                if choice.said is not None:
                    said.append(choice.said)
    found_new = tuple(new.values())
    return FoundFiles(count, found_new, tuple(said), half_lines, renamed=tuple(renamed), known=known)


def _looked_at(
    states: Mapping[Place, FileState], closed: Set[Place], source: str | None, cluster: str | None
) -> "list[list[tuple[Packing, InputFile]]]":
    """Return the inputs in each of these files; several are looked at together, as a store lets wait."""

    def inputs_in(each: tuple[Place, FileState]) -> "list[tuple[Packing, InputFile]]":
        path, state = each
        return [
            (packing, described(place, packing, state, source, cluster, is_closed=path in closed))
            for place, packing in places_of(path)
        ]

    return in_parallel([*states.items()], inputs_in)


def with_clusters(found: FoundFiles) -> FoundFiles:
    """Return the files with the clusters of their logs: a known log stays what it was first declared to be.

    Its lines would count again in another cluster.
    """
    known = {one.log: one.cluster for one in found.known}
    new, said = [], list(found.said)
    for file in found.new:
        identity = file.identity
        cluster = known.get(identity.log, identity.cluster)
        if identity.cluster and cluster != identity.cluster:
            former = f"cluster `{cluster}`" if cluster else "no cluster"
            said.append(
                f"`{identity.path}` is of a log that was read as one of {former}, and stays so, else "
                f"its lines would count twice; logs not read before are of cluster `{identity.cluster}`"
            )
        new.append(replace(file, identity=replace(identity, cluster=cluster)))
    return replace(found, new=tuple(new), said=tuple(said))


def with_layouts(
    files: Sequence[FoundFile], layout: str | None, *, may_be_unknown: bool
) -> tuple[FoundFile, ...]:
    """Return the files with their layouts: the one that was set, or the one of their first lines.

    Raises `UnknownFormatError` for a file in no known format unless that `may_be_unknown`.
    """

    def layout_in(file: FoundFile) -> str | None:
        return layout_at(file.identity.path, file.packing, layout, may_be_unknown=may_be_unknown)

    return tuple(
        replace(file, layout=found) for file, found in zip(files, in_parallel(files, layout_in), strict=True)
    )


def layout_at(path: str, packing: Packing, layout: str | None, *, may_be_unknown: bool) -> str | None:
    """Return the layout of one file, as `with_layouts`."""
    try:
        with unpacked(path, packing, FIRST_BYTES) as content:
            return layout_of(content, path, layout)
    except UnknownFormatError:
        if not may_be_unknown:
            raise
    except DAMAGE:
        pass  # reading it fails too, with its name
    return None


def closed_files(states: Mapping[Place, FileState]) -> frozenset[Place]:
    """Return the files that rotation has closed: those with a newer one of their name, and numbered ones.

    The newest of several may be a copy that is still being made, as by logrotate's `copytruncate`, whatever
    its number. A file that bears the bare name is the one that is written to: copies of the others may be
    newer. Packed files are made of closed ones, and tell nothing.
    """
    times: dict[str, list[int]] = {}
    for path, state in states.items():
        if not is_packed_by_name(path):
            times.setdefault(family_of(str(path)), []).append(state.modified_ns)
    closed = set()
    for path, state in states.items():
        family = family_of(str(path))
        of_name = times.get(family, [])
        if path.name == Path(family).name:
            continue
        if state.modified_ns < max(of_name, default=0) or (is_numbered(path) and len(of_name) == 1):
            closed.add(path)
    return frozenset(closed)


def places_of(path: Place) -> Iterator[tuple[str, Packing]]:
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
    place: str,
    packing: Packing,
    state: FileState,
    source: str | None = None,
    cluster: str | None = None,
    *,
    is_closed: bool = False,
) -> "InputFile":
    """Return the current state of a file, as if no other was known; raise `AuditInputError`.

    The size of a plain file is that of its whole lines.
    """
    from kustos.pipeline.tables import InputFile

    path, member = split_place(place)
    try:
        # first: a file that is truncated and grows meanwhile has another beginning when its lines are read
        beginning = beginning_of(place, packing)
        size = state.size_bytes
        if packing is Packing.PLAIN:
            size = whole_bytes(path, size, is_closed=is_closed)
    except OSError as error:
        raise AuditInputError(f"cannot read `{path}`: {reason_of(error)}") from error
    inode = state.inode if member is None else 0
    text = beginning.to_text()
    return InputFile(place, size, state.modified_ns, inode, f"file:{place}", text, source, cluster or UNNAMED)


def beginning_of(place: str, packing: Packing) -> Beginning:
    """Return the beginning of a file's content, unpacked; of a damaged one, nothing.

    Raises `AuditInputError` for a tar archive: the first line of each of its files would be lost, and copies
    of the files would not be recognized.
    """
    try:
        with unpacked(place, packing, FIRST_BYTES) as content:
            if content.read(TAR_BEGIN_BYTES).endswith(TAR_MAGIC):
                raise AuditInputError(f"`{place}` is a tar archive: unpack it, or make it a zip archive")
            content.seek(0)
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


def _check_apart(audit: Place, tables: Place) -> None:
    one, other = (each.resolve() if isinstance(each, Path) else each for each in (audit, tables))
    if are_nested(one, other):
        raise AuditInputError(f"audit folder `{one}` and the tables in `{other}` must lie apart")
