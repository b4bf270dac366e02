"""Whether a table's files are those that its log and `runs` name: finds what other programs did to them.

Delta's log alone cannot tell: a table whose log lost an entry has fewer rows and gives no error. So the files
by the log must be those that `runs` has for the table, by their number of rows and a digest, and each must be
there with the size that the log has. A file that another one of the same size replaced is not found here:
`check` reads every file.
"""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

from deltalake import DeltaTable

from kustos.pipeline.errors import TablesDamagedError, TablesError
from kustos.pipeline.places import (
    Place,
    StorePath,
    in_parallel,
    names_below,
    remove_folder,
    size_of,
    states_below,
)
from kustos.pipeline.tables import delta
from kustos.pipeline.tables.commits import foreign_operations, removed_files
from kustos.pipeline.tables.delta import DataFile
from kustos.pipeline.tables.layout import RUNS, Loss, loss_of
from kustos.runtime import listed, quoted, reason_of

SNAPSHOTS_MAX: Final = 64
"""Lists of files kept: some hundred bytes for each file, of the tables of a few folders."""

REQUESTS_MAX: Final = 64
"""Objects whose sizes are asked for one by one; a listing has a thousand in each answer."""

DIGEST_BYTES: Final = 16
"""As no two lists of files share by chance."""

_checked: OrderedDict[Place, Sequence[DataFile]] = OrderedDict()
"""The files of each table that this process has checked: a stream opens its tables with each batch."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What `runs` has of a table: its rows, and a digest of the names, sizes and rows of its files."""

    rows: int
    digest: str

    @classmethod
    def of(cls, files: Sequence[DataFile]) -> "Contents":
        """Return the contents of these files, which are sorted by name."""
        text = "\n".join(f"{file.name} {file.size_bytes} {file.rows}" for file in files)
        digest = hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()
        return cls(sum(file.rows for file in files), digest)


class LastRun(Protocol):
    """What the last committed run left, as `runs` says."""

    @property
    def number(self) -> int:
        """Its number, 0 before the first."""

    @property
    def versions(self) -> Mapping[str, int]:
        """The version of each table in Delta's log."""

    @property
    def contents(self) -> Mapping[str, Contents]:
        """The contents of tables."""

    @property
    def last(self) -> str:
        """Its number and id, for a message."""

    def writer_of(self, file: str) -> str | None:
        """Return the id of the run that wrote a file, None if it is not known any more."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What is wrong with a table, or with one of its files (`file`, below the table's folder)."""

    text: str
    file: DataFile | None = None


def remedy(table: str, *, of_file: bool = False) -> str:
    """Return what to do about a damaged table; `of_file`: about a file whose damage no opening finds."""
    loss = loss_of(table)
    if of_file and loss is Loss.REBUILD:
        return f"if the events are right, remove the file; {loss.value}"
    return loss.value


def committed_files(place: Place, state: LastRun, table: DeltaTable | None = None) -> tuple[DataFile, ...]:
    """Return the files of a table as of a state, none if that has no such table; check them.

    `table`: the newest version, if it is open already. Raises `TablesDamagedError` if another program has
    changed the log or the files, `TablesError` for a place that cannot be read.
    """
    version = state.versions.get(place.name)
    if version is None:
        return ()
    place = place.absolute() if isinstance(place, Path) else place
    try:
        files, number = _by_log(place, version, state, table)
    except TablesDamagedError as error:
        raise TablesDamagedError(f"{error}; {remedy(place.name)}") from error
    if loss_of(place.name) is Loss.RESTORE:
        check_number(place, number, state.number)
    for fault in faults(place, files, state, _checked.get(place)):
        raise TablesDamagedError(f"{fault.text}; {remedy(place.name)}")
    _checked.pop(place, None)
    _checked[place] = files  # as the latest
    while len(_checked) > SNAPSHOTS_MAX:
        _checked.popitem(last=False)
    return files


def files_by_log(place: Place, version: int, state: LastRun) -> tuple[DataFile, ...]:
    """Return the files of a table by its log alone; raise `TablesDamagedError` if that lacks the version."""
    return _by_log(place, version, state, None)[0]


def _by_log(
    place: Place, version: int, state: LastRun, table: DeltaTable | None
) -> tuple[tuple[DataFile, ...], int]:
    try:
        return _files(place, version, delta.newest_commit(place, table))
    except TablesDamagedError as error:
        newest = _newest_version(place)
        if newest is None or newest >= version:
            raise
        raise TablesDamagedError(
            f"the log of `{place}` ends at version {newest}, but {state.last} left version {version}: "
            "another program has restored an older state"
        ) from error


@lru_cache(maxsize=SNAPSHOTS_MAX)
def _files(place: Place, version: int, _newest: Any) -> tuple[tuple[DataFile, ...], int]:
    """Return the files of a table at a version, and the number of the run that committed to it last."""
    try:
        table = delta.open_table(place)
    except TablesError:
        table = None  # what came after the version does not matter to its readers
    number = run_of(table)
    if table is None or table.version() != version:
        table = delta.open_table(place, version)
    if table is None:
        raise TablesDamagedError(f"`{place}` was committed but is gone")
    return delta.files_of(table), number


def run_of(table: DeltaTable | None) -> int:
    """Return the number of the run that committed to a table last, 0 for none."""
    return 0 if table is None else table.transaction_version(delta.APPLICATION) or 0


def _newest_version(place: Place) -> int | None:
    try:
        table = delta.open_table(place)
    except TablesError:
        return None
    return None if table is None else int(table.version())


def faults(
    place: Place, files: Sequence[DataFile], state: LastRun, known: Sequence[DataFile] | None = None
) -> Iterator[Mismatch]:
    """Yield what is wrong with the files that the log of a table has, and with their sizes.

    Files that are `known` to be whole are not looked at. Raises `TablesError` for a place that cannot be
    read.
    """
    if files is known:
        return
    found, left = Contents.of(files), state.contents.get(place.name)
    if left is not None and found != left:
        rows = f"{found.rows:,} rows" if found.rows != left.rows else f"other files with {found.rows:,} rows"
        yield Mismatch(
            f"`{place}` has {rows} by its log, but {state.last} left {left.rows:,}: another program has "
            f"changed the log{_unlisted(place, files)}"
        )
    sizes = {file.name: file.size_bytes for file in known or ()}
    new = [file for file in files if sizes.get(file.name) != file.size_bytes]
    for file, size in zip(new, _sizes(place, [file.name for file in new]), strict=True):
        if size != file.size_bytes:
            what = "is gone" if size is None else f"has {size:,} bytes, not {file.size_bytes:,}"
            yield Mismatch(f"`{place / file.name}` {what}: {whose(file, state)}{_how(place, state)}", file)


def whose(file: DataFile, state: LastRun) -> str:
    """Return how many rows a file has by the log, and which run wrote them or left them."""
    run, rows = state.writer_of(file.name), f"{file.rows:,} row{'' if file.rows == 1 else 's'}"
    return f"{state.last} left it with {rows}" if run is None else f"run `{run}` wrote {rows} into it"


def _how(place: Place, state: LastRun) -> str:
    """Return what other programs did to a table after the version that `runs` names."""
    try:
        found = foreign_operations(place / delta.LOG, state.versions.get(place.name, 0) + 1)
    except (OSError, TablesError):
        return ""
    return f"; the log has, by another program, {listed(found, 'and')}" if found else ""


def _sizes(place: Place, names: Sequence[str]) -> list[int | None]:
    """Return the sizes of files below a folder, None for one that is gone."""
    try:
        if isinstance(place, Path):
            return [_size_on_disk(f"{place}/{name}") for name in names]
        if len(names) <= REQUESTS_MAX:
            return in_parallel(names, lambda name: _size_in_store(place / name))
        there = states_below(place)
        return [there[name].size_bytes if name in there else None for name in names]
    except OSError as error:
        raise TablesError(f"cannot list `{place}`: {reason_of(error)}") from error


def _size_on_disk(path: str) -> int | None:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - a `Path` takes twice the time
    except (FileNotFoundError, NotADirectoryError):
        return None


def _size_in_store(place: StorePath) -> int | None:
    try:
        return size_of(place)
    except FileNotFoundError:
        return None


def _unlisted(place: Place, files: Sequence[DataFile]) -> str:
    """Return the files that the log lost, as the end of a sentence."""
    try:
        names = [quoted(name) for name in orphans(place, files)]
    except (OSError, TablesError):
        return ""
    return f", which does not name {listed(names, 'and')}" if names else ""


def orphans(place: Place, files: Sequence[DataFile]) -> list[str]:
    """Return the files below a table's folder that its log has never named, or names no more; raise OSError.

    They are those of killed runs, of a run at work, and of entries that another program took out of the log.
    """
    known = {file.name for file in files} | removed_files(place / delta.LOG)
    newest = delta.open_table(place)
    if newest is not None:
        known |= {file.name for file in delta.files_of(newest)}
    return [name for name in names_below(place) if not name.startswith(("_", ".")) and name not in known]


def check_number(place: Place, found: int, number: int) -> None:
    """Raise `TablesDamagedError` for a table with a commit of a later run than `runs` can have missed.

    `found` is the number of the run that committed to the table last, `number` that of the last run of the
    state that is read. The next number is that of a run that was killed, or is at work; a later one shows
    that `runs` is gone or lacks runs, unless these ran meanwhile.
    """
    if found <= number + 1:
        return
    runs = place.parent / RUNS
    last = run_of(delta.open_table(runs))
    if found > last + 1:
        what = f"ends at run {last}" if last else "is gone"
        raise TablesDamagedError(
            f"`{runs}` {what}, while `{place}` has a commit of run {found}; {Loss.RESTORE.value}"
        )


def replaceable(place: Place) -> DeltaTable | None:
    """Return a table that is about to be replaced as a whole, whatever became of its files.

    None if there is none, or if its log cannot be read: that log is removed.
    """
    try:
        return delta.open_table(place)
    except TablesDamagedError:
        remove_folder(place / delta.LOG)
        return None
