"""The ledger: committed runs, the files that they read, and file changes still to apply.

Theory of operation. An entry is one JSON file, `_ledger/<sequence>.json`, written atomically and durably: it
is the commit of a run, also across kills. An entry lists its file changes (moves and removals), so that any
later run can finish it. Applied entries are folded into `_ledger/state.json`, since a stream would otherwise
leave one for each second.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from kustos.pipeline.errors import TablesDamagedError, TablesError
from kustos.runtime import FileSystemStorage

LEDGER: Final = "_ledger"
STATE: Final = "state.json"
FORMAT_VERSION: Final = 1

MAXIMUM_ENTRIES: Final = 64
"""Entries read one by one at a start; with as many, they are folded into the state."""

MAXIMUM_RUNS: Final = 10_000
"""Finished runs kept by their id; of a stream only the last batch can be repeated."""

MAXIMUM_INPUTS: Final = 1_000_000
"""Files kept as read; a forgotten one is read again, and its lines are duplicates."""

RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,190}(@\d{1,18})?")
"""A name; after an `@`, the number of a batch of the stream with this name."""

RUN, UPKEEP = "run", "upkeep"
"""Kinds of entries: runs that read input, and changes to the layout of the tables."""

_STORAGE: Final = FileSystemStorage()
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file as it was when it was read. `log` identifies the log that it is a copy of."""

    path: str
    size_bytes: int
    modified_ns: int
    inode: int
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """The changes of one commit, complete, by paths below the tables' folder."""

    sequence: int
    run_id: str
    kind: str
    form: str
    staging: str
    moves: tuple[tuple[str, str], ...] = ()
    removes: tuple[str, ...] = ()
    writes: tuple[Mapping[str, Any], ...] = ()
    inputs: tuple[InputFile, ...] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    newest_time_ms: int | None = None
    stale_days: tuple[str, ...] = ()
    fresh_days: tuple[str, ...] = ()
    closed_before: str | None = None

    def to_json(self) -> str:
        """Return the text of its file."""
        return json.dumps({"version": FORMAT_VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the entry of such a text; raise ValueError, TypeError or KeyError."""
        values = json.loads(text)
        _check_version(values.pop("version"))
        values["inputs"] = tuple(InputFile(**one) for one in values["inputs"])
        values["moves"] = tuple((source, target) for source, target in values["moves"])
        for name in ("removes", "writes", "stale_days", "fresh_days"):
            values[name] = tuple(values[name])
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state that all entries lead to."""

    sequence: int = 0
    form: str | None = None
    runs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    batches: Mapping[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    inputs: Mapping[str, InputFile] = field(default_factory=dict)
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

    def after(self, entries: Iterable[LedgerEntry]) -> "State":
        """Return the state after these entries, in order; an entry that it includes changes nothing."""
        state, runs, batches, inputs = self, dict(self.runs), dict(self.batches), dict(self.inputs)
        for entry in entries:
            if entry.sequence <= state.sequence:
                continue
            name, number = split_run_id(entry.run_id)
            if entry.kind == RUN and number is None:
                runs[entry.run_id] = entry.summary
            elif entry.kind == RUN and number is not None:
                batches.pop(name, None)
                batches[name] = (number, entry.summary)
            for file in entry.inputs:
                inputs.pop(file.path, None)  # the latest file is last in order, and is forgotten last
                inputs[file.path] = file
            times = [time for time in (state.newest_time_ms, entry.newest_time_ms) if time is not None]
            closed = [day for day in (state.closed_before, entry.closed_before) if day is not None]
            state = replace(
                state,
                closed_before=max(closed, default=None),
                sequence=entry.sequence,
                form=entry.form,
                newest_time_ms=max(times, default=None),
                stale_days=(state.stale_days | set(entry.stale_days)) - set(entry.fresh_days),
            )
        return replace(
            state,
            runs=_last(runs, MAXIMUM_RUNS),
            batches=_last(batches, MAXIMUM_RUNS),
            inputs=_last(inputs, MAXIMUM_INPUTS),
        )

    def to_json(self) -> str:
        """Return the text of its file."""
        values = {**asdict(self), "inputs": [asdict(one) for one in self.inputs.values()]}
        values["stale_days"] = sorted(self.stale_days)
        return json.dumps({"version": FORMAT_VERSION, **values})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the state of such a text; raise ValueError, TypeError or KeyError."""
        values = json.loads(text)
        _check_version(values.pop("version"))
        values["inputs"] = {one["path"]: InputFile(**one) for one in values["inputs"]}
        values["batches"] = {name: (number, summary) for name, (number, summary) in values["batches"].items()}
        values["stale_days"] = frozenset(values["stale_days"])
        return cls(**values)


def split_run_id(run_id: str) -> tuple[str, int | None]:
    """Return a run's name and, of a stream's batch, its number; raise `TablesError` for another text."""
    if RUN_ID.fullmatch(run_id) is None:
        raise TablesError(
            f"run id `{run_id}` is not one, take letters, digits and `._:+-`, and `@NUMBER` for a batch"
        )
    name, _, number = run_id.partition("@")
    return name, int(number) if number else None


def read_state(tables: Path) -> tuple[State, tuple[LedgerEntry, ...]]:
    """Return the state of the tables and the entries not folded yet; raise `TablesDamagedError`."""
    folder = tables / LEDGER
    state = State()
    if (folder / STATE).exists():
        state = _parsed(State.from_json, folder / STATE)
    entries = tuple(_parsed(LedgerEntry.from_json, folder / name) for name in _entry_names(folder))
    return state.after(entries), entries


def write_entry(tables: Path, entry: LedgerEntry) -> None:
    """Commit an entry: after this call the run is durable, even through a power failure."""
    _STORAGE.make_directory(tables / LEDGER)
    _STORAGE.write(_place(tables, entry), entry.to_json().encode())


def has_entry(tables: Path, entry: LedgerEntry) -> bool:
    """Return whether the entry exists, durably or not."""
    return _place(tables, entry).exists()


def _place(tables: Path, entry: LedgerEntry) -> Path:
    return tables / LEDGER / f"{entry.sequence:012d}.json"


def fold(tables: Path, state: State, entries: Iterable[LedgerEntry]) -> None:
    """Replace the entries, all of them applied, by the state that they lead to."""
    _STORAGE.write(tables / LEDGER / STATE, state.to_json().encode())
    for entry in entries:
        _place(tables, entry).unlink(missing_ok=True)


def _entry_names(folder: Path) -> list[str]:
    return [name for name in _STORAGE.names(folder) if re.fullmatch(r"\d{12,}\.json", name)]


def _parsed(read: Callable[[str], _Value], path: Path) -> _Value:
    try:
        return read(path.read_text(encoding="utf-8"))
    except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        raise TablesDamagedError(
            f"`{path}` cannot be read ({error}), restore it from a backup or read the audit into a new folder"
        ) from error


def _check_version(version: Any) -> None:
    if version != FORMAT_VERSION:
        raise ValueError(f"it has version {version}, this program knows {FORMAT_VERSION}")


def _last(values: dict[str, _Value], limit: int) -> dict[str, _Value]:
    return dict(list(values.items())[-limit:]) if len(values) > limit else values
