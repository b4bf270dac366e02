"""The table `runs`: a row for each commit, the last of which is the state of all tables.

Theory of operation. A run is a number. It commits to each table, then adds its row to `runs`: that is its
commit. The row has the version that each table has from then on, and readers read those versions; what a
killed run committed to some tables is above them, seen by no reader of kustos, and undone by the next run
that writes to that table. Of two runs with the same number `runs` takes one. What was read is in the table
`inputs`, committed before.

Rows that are no longer needed are dropped when `runs` has many files, since a stream adds one each second.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import parquet

from kustos.pipeline.errors import TablesDamagedError, TablesError
from kustos.pipeline.lines.clusters import UNNAMED
from kustos.pipeline.places import Place, source_of, sync
from kustos.pipeline.tables.delta import (
    APPLICATION,
    DataFile,
    files_of,
    new_name,
    newest_commit,
    open_table,
    write,
    write_file,
)
from kustos.pipeline.tables.integrity import Contents, committed_files
from kustos.pipeline.tables.layout import INPUTS, RUNS, Loss, stored_schema
from kustos.runtime import reason_of

RUN, UPKEEP = "run", "upkeep"
"""Kinds of rows: runs that read input, and changes to the layout of the tables."""

ENDS: Final = "ends"
"""The key of a summary under which a stream's batch has the offsets at which the next one begins."""

CONTENTS: Final = "contents"
"""The key of a summary under which a commit has the `Contents` of each table after it."""

COUNT: Final = "runs"
"""The key of a summary under which a commit has the number of rows in `runs` after it."""

MARK: Final = "mark"
"""The key of a summary under which a commit has the mark in the names of the files that it wrote."""

_MARK_OF_FILE: Final = re.compile(r"(?:.*/)?part-([0-9a-f]{32})-[0-9a-f]{32}\.parquet")

LEDGER: Final = "_ledger"
"""A folder in the tables of earlier versions, which were not Delta tables."""

MAXIMUM_FILES: Final = 64
"""Files of `runs` and of `inputs` read one by one; with as many, they become one."""

MAXIMUM_RUNS: Final = 10_000
"""Finished runs kept by their id; of a stream only the last batch can be repeated."""

MAXIMUM_INPUTS: Final = 1_000_000
"""Files kept as read; a forgotten one is read again, and its lines are duplicates."""

MAXIMUM_FORMER: Final = 10_000
"""Logs kept whose path another one has now. One that was moved is met again within a few runs, in another
input, and each costs every run some microseconds."""

STATES_MAX: Final = 16
"""States kept in memory, of so many folders; one has up to `MAXIMUM_RUNS` summaries."""

RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,190}(@\d{1,18})?")
"""A name; after an `@`, the number of a batch of the stream with this name."""

RUNS_SCHEMA: Final = stored_schema(RUNS)
INPUTS_SCHEMA: Final = stored_schema(INPUTS)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file as it was when it was read. `log` identifies the log that it is a copy of.

    Of a plain file `size_bytes` are those that were read: a last line may have been half written.
    `inode` is 0 for a file within an archive. `beginning` is the text of its `Beginning`, `source` the source
    of its input, `cluster` the cluster that was declared for its log, empty for no cluster.
    """

    path: str
    size_bytes: int
    modified_ns: int
    inode: int
    log: str
    beginning: str
    source: str | None = None
    cluster: str = UNNAMED


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The tables as the last committed run left them; `number` is its number, 0 before the first.

    `contents` has no tables that only versions which did not keep them have written.
    """

    number: int = 0
    run_id: str = ""
    versions: Mapping[str, int] = field(default_factory=dict)
    contents: Mapping[str, Contents] = field(default_factory=dict)
    runs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    batches: Mapping[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    newest_time_ms: int | None = None
    stale_days: frozenset[str] = frozenset()
    closed_before: str | None = None

    def summary_of(self, run_id: str) -> Mapping[str, Any] | None:
        """Return the summary of a committed run, else None; so for batches up to a stream's last one."""
        name, number = split_run_id(run_id)
        if number is None:
            return self.runs.get(run_id)
        last, summary = self.batches.get(name, (-1, {}))
        return summary if number <= last else None

    def ends_of(self, name: str) -> dict[int, int] | None:
        """Return the offsets at which a stream's next batch begins; None if no batch has stored any."""
        _, summary = self.batches.get(name, (-1, {}))
        ends = summary.get(ENDS)
        return None if ends is None else {int(partition): int(end) for partition, end in ends.items()}

    @property
    def last(self) -> str:
        """The last committed run, for a message."""
        return f"run {self.number} (`{self.run_id}`)"

    def writer_of(self, file: str) -> str | None:
        """Return the id of the run that wrote a file, None if it is not known any more."""
        match = _MARK_OF_FILE.fullmatch(file)
        batches = ((f"{name}@{number}", summary) for name, (number, summary) in self.batches.items())
        return next(
            (
                run_id
                for run_id, summary in (*self.runs.items(), *batches)
                if match is not None and summary.get(MARK) == match[1]
            ),
            None,
        )

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "State":
        """Return the state that these rows of `runs` lead to; raise ValueError, TypeError or KeyError."""
        ordered = sorted(rows, key=lambda row: int(row["number"]))
        if not ordered:
            return cls()
        last = ordered[-1]
        runs: dict[str, Mapping[str, Any]] = {}
        batches: dict[str, tuple[int, Mapping[str, Any]]] = {}
        for row in ordered:
            if row["kind"] != RUN:
                continue
            name, number = split_run_id(row["run_id"])
            summary = json.loads(row["summary"])
            summary.pop(CONTENTS, None)
            if number is None:
                runs[row["run_id"]] = summary
            else:
                batches.pop(name, None)
                batches[name] = (number, summary)
        return cls(
            number=last["number"],
            run_id=last["run_id"],
            versions=json.loads(last["versions"]),
            contents={
                name: Contents(**one) for name, one in json.loads(last["summary"]).get(CONTENTS, {}).items()
            },
            runs=runs,
            batches=batches,
            newest_time_ms=last["newest_time_ms"],
            stale_days=frozenset(last["stale_days"]),
            closed_before=last["closed_before"],
        )


def kept_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows without which `State.of` would return another state, within the limits."""
    ordered = sorted(rows, key=lambda row: int(row["number"]))
    runs: dict[str, Row] = {}
    batches: dict[str, Row] = {}
    for row in ordered:
        if row["kind"] == RUN:
            name, number = split_run_id(row["run_id"])
            chosen = runs if number is None else batches
            chosen.pop(name, None)
            chosen[name] = row
    kept = {id(row): _without_contents(row) for row in (*_last(runs), *_last(batches))}
    kept |= {id(row): row for row in ordered[-1:]}
    return sorted(kept.values(), key=lambda row: int(row["number"]))


def _without_contents(row: Row) -> Row:
    """Return a row without the contents of tables, of which only those of the last run count."""
    if not isinstance(row["summary"], str):
        return row
    summary = {name: value for name, value in json.loads(row["summary"]).items() if name != CONTENTS}
    return {**row, "summary": json.dumps(summary)}


def _last(rows: dict[str, Row]) -> list[Row]:
    return list(rows.values())[-MAXIMUM_RUNS:]


def split_run_id(run_id: str) -> tuple[str, int | None]:
    """Return a run's name and, of a stream's batch, its number; raise `TablesError` for another text."""
    if RUN_ID.fullmatch(run_id) is None:
        raise TablesError(
            f"run id `{run_id}` is not one, take letters, digits and `._:+-`, and `@NUMBER` for a batch"
        )
    name, _, number = run_id.partition("@")
    return name, int(number) if number else None


def read_state(folder: Place) -> State:
    """Return the state of the tables in a folder; raise `TablesDamagedError`, `TablesError`.

    Raises `TablesError` for tables of an earlier version.
    """
    _check_version(folder)
    newest = newest_commit(folder / RUNS)
    if newest is None:
        return State()
    return _state(folder.absolute() if isinstance(folder, Path) else folder, newest)


@lru_cache(maxsize=STATES_MAX)
def _state(folder: Place, _newest: tuple[str, int, int]) -> State:
    """Return the state after a commit; a run needs it again and again."""
    return state_of(folder, read_runs(folder)[1])


def read_runs(folder: Place) -> tuple[DeltaTable | None, list[Row]]:
    """Return the table `runs`, None before the first run, and its rows; raise what `read_state` raises."""
    _check_version(folder)
    place = folder / RUNS
    table = open_table(place)
    if table is None:
        return None, []
    rows = rows_of(place, table, RUNS_SCHEMA)
    _check_runs(place, rows, table.transaction_version(APPLICATION) or 0)
    return table, rows


def _check_runs(place: Place, rows: Sequence[Row], committed: int) -> None:
    """Raise `TablesDamagedError` if `runs` lacks rows: of the run that its log names, or of those before."""
    last = max(rows, key=lambda row: int(row["number"]), default=None)
    if committed > (0 if last is None else int(last["number"])):
        raise TablesDamagedError(
            f"`{place}` has no row of run {committed}, which its log names: another program has changed the "
            f"log; {Loss.RESTORE.value}"
        )
    if last is None:
        return
    try:
        count = json.loads(last["summary"]).get(COUNT, len(rows))
    except (ValueError, AttributeError):
        return  # `state_of` says what is wrong
    if count != len(rows):
        left = f"run {last['number']} (`{last['run_id']}`) left {count}"
        raise TablesDamagedError(
            f"`{place}` has {len(rows)} rows, but {left}: another program has changed the log; "
            f"{Loss.RESTORE.value}"
        )


def _check_version(folder: Place) -> None:
    """Raise `TablesError` for tables that were not Delta: a run would begin new tables among their files."""
    if isinstance(folder, Path) and (folder / LEDGER).is_dir():  # they were on local disks only
        raise TablesError(
            f"the tables in `{folder}` are of an earlier version, read the audit into a new folder"
        )


def state_of(folder: Place, rows: Iterable[Row]) -> State:
    """Return the state that rows of `runs` lead to; raise `TablesDamagedError`."""
    try:
        return State.of(rows)
    except (ValueError, TypeError, KeyError) as error:
        raise TablesDamagedError(
            f"`{folder / RUNS}` cannot be read ({error}); {Loss.RESTORE.value}"
        ) from error


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files that runs have read, by path, the latest last, and `former` states of paths.

    Of a log whose path another log has now, the last state is kept there: it may have been moved away.
    """

    files: Mapping[str, InputFile]
    former: tuple[InputFile, ...] = ()

    def all(self) -> tuple[InputFile, ...]:
        """Return all that are known, so that of one path the present one comes last."""
        return (*self.former, *self.files.values())


def read_inputs(folder: Place, state: State) -> Inputs:
    """Return the files that runs have read; raise `TablesDamagedError`."""
    place = folder / INPUTS
    return latest_inputs(rows_in(place, committed_files(place, state), INPUTS_SCHEMA))


def latest_inputs(rows: Iterable[Row]) -> Inputs:
    """Return the files in rows of `inputs`."""
    files: dict[str, InputFile] = {}
    former: dict[str, InputFile] = {}
    for row in sorted(rows, key=lambda row: int(row["number"])):
        names = ("path", "size_bytes", "modified_ns", "log")
        values = {name: row[name] for name in (*names, "beginning", "source", "cluster")}
        file = InputFile(**values, inode=int(row["inode"]))
        gone = files.pop(file.path, None)
        if gone is not None and gone.log != file.log:
            former.pop(gone.log, None)
            former[gone.log] = gone
        files[file.path] = file
    files = dict(list(files.items())[-MAXIMUM_INPUTS:])
    logs = {file.log for file in files.values()}
    gone_away = [file for log, file in former.items() if log not in logs]
    return Inputs(files, tuple(gone_away[-MAXIMUM_FORMER:]))


def input_rows(inputs: Iterable[InputFile], number: int) -> list[Row]:
    """Return the rows of `inputs` for files that a run has read."""
    return [
        {
            "path": one.path,
            "size_bytes": one.size_bytes,
            "modified_ns": one.modified_ns,
            "inode": str(one.inode),
            "log": one.log,
            "number": number,
            "beginning": one.beginning,
            "source": one.source,
            "cluster": one.cluster,
        }
        for one in inputs
    ]


def rows_of(place: Place, table: DeltaTable, schema: pa.Schema) -> list[Row]:
    """Return all rows of a small table; raise `TablesDamagedError`."""
    return rows_in(place, files_of(table), schema)


def rows_in(place: Place, files: Iterable[DataFile], schema: pa.Schema) -> list[Row]:
    """Return the rows of these files of a small table; raise `TablesDamagedError`."""
    return [row for file in files for row in _rows(place / file.name, schema)]


@lru_cache(maxsize=4 * MAXIMUM_FILES)
def _rows(path: Place, schema: pa.Schema) -> tuple[Row, ...]:
    """Return the rows of a file, which never changes."""
    try:
        return tuple(parquet.read_table(source_of(path), schema=schema, partitioning=None).to_pylist())
    except (OSError, pa.ArrowInvalid) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise TablesDamagedError(f"cannot read `{path}`: {reason}") from error


def add_rows(
    place: Place,
    table: DeltaTable,
    rows: Sequence[Row],
    schema: pa.Schema,
    *,
    replaces_all: bool,
    number: int,
    token: str | None = None,
) -> int:
    """Write rows into a small table, on request in place of all others; return its version.

    `token` is that of `delta.write`.

    Raises `TablesInUseError`, `TablesError`, OSError.
    """
    written = pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
    file = write_file(place, new_name(str(number)), written)
    sync(place)
    replaces = None if replaces_all else ()
    return write(place, table, [file], schema, replaces=replaces, number=number, token=token)
