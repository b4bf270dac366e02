"""Tables of versions before Delta become Delta tables, in place: no file of rows is written again.

Those versions kept folders of Parquet files, and in `_ledger` one JSON file for each commit, with the files
that it moved into place, and `state.json` for older commits. While `_ledger` is there the tables are of that
version, and a conversion that was killed begins again.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.pandas.types import from_arrow_schema

from kustos.pipeline.errors import TablesDamagedError, TablesError
from kustos.pipeline.files import run_lock
from kustos.pipeline.places import Place, sync
from kustos.pipeline.tables import delta
from kustos.pipeline.tables.layout import BY_DAY, LINES, SCHEMAS, stored_schema
from kustos.pipeline.tables.parquet_reader import with_unknown_columns
from kustos.pipeline.tables.runs import (
    FORMER_LEDGER,
    INPUTS,
    INPUTS_SCHEMA,
    RUN,
    RUNS,
    RUNS_SCHEMA,
    UPKEEP,
    InputFile,
    Row,
    add_rows,
    input_rows,
)
from kustos.pipeline.tables.transaction import data_files
from kustos.runtime import reason_of

_STATE: Final = "state.json"
_LEFT: Final = ("_staging-*", "_finished-*", "_place.lock")
_TAKEN: Final = re.compile(r"(\d{4}-\d\d-\d\d)_")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NUMBER: Final = 2
"""Not that of a first run: if `runs` went later, tables would look like those of one that was killed."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A table that was converted."""

    table: str
    files: int
    rows: int


@dataclass(slots=True)
class _Former:
    """The state of the former ledger."""

    sequence: int
    runs: dict[str, Mapping[str, Any]]
    batches: dict[str, tuple[int, Mapping[str, Any]]]
    inputs: dict[str, InputFile]
    newest_time_ms: int | None
    stale_days: set[str]
    closed_before: str | None


def convert_tables(folder: Place) -> tuple[Converted, ...]:
    """Convert the tables in a folder, all or none; return what there is.

    Raises `TablesError` if they are of another form, `TablesInUseError`, `TablesDamagedError`.
    """
    if not isinstance(folder, Path) or not (folder / FORMER_LEDGER).is_dir():
        raise TablesError(f"the tables in `{folder}` are not of an earlier version, use them as they are")
    with run_lock(folder):
        try:
            former = _finished(folder)
            shutil.rmtree(folder / RUNS, ignore_errors=True)
            shutil.rmtree(folder / INPUTS, ignore_errors=True)
            names = sorted(
                each.name for each in folder.iterdir() if each.is_dir() and _NAME.fullmatch(each.name)
            )
            converted = [one for name in names if (one := _convert(folder / name)) is not None]
            versions = {one.table: version for one, version in converted}
            if former.inputs:
                versions[INPUTS] = _add(folder / INPUTS, input_rows(former.inputs.values(), 0), INPUTS_SCHEMA)
            _add(folder / RUNS, _run_rows(former, versions), RUNS_SCHEMA)
            converted_ledger = folder / f"{FORMER_LEDGER}_converted"
            (folder / FORMER_LEDGER).rename(converted_ledger)  # atomically: the conversion's commit
            sync(folder)
            shutil.rmtree(converted_ledger, ignore_errors=True)
        except OSError as error:
            raise TablesError(f"cannot convert `{error.filename or folder}`: {reason_of(error)}") from error
    return tuple(one for one, _ in converted)


def _finished(folder: Path) -> _Former:
    """Move the files of a killed commit into place, remove what was not committed; return the state."""
    former = _Former(0, {}, {}, {}, None, set(), None)
    ledger = folder / FORMER_LEDGER
    state = ledger / _STATE
    try:
        if state.exists():
            values = json.loads(state.read_text(encoding="utf-8"))
            _check_form(folder, values)
            former = _Former(
                values["sequence"],
                dict(values["runs"]),
                {name: (number, summary) for name, (number, summary) in values["batches"].items()},
                {one["path"]: InputFile(**one) for one in values["inputs"]},
                values["newest_time_ms"],
                set(values["stale_days"]),
                values.get("closed_before"),
            )
        for path in sorted(ledger.glob("[0-9]*.json")):
            entry = json.loads(path.read_text(encoding="utf-8"))
            _check_form(folder, entry)
            if (folder / entry["staging"]).exists():
                _move(folder, entry)
            if entry["sequence"] > former.sequence:
                _take(former, entry)
    except (ValueError, TypeError, KeyError) as error:
        raise TablesDamagedError(
            f"`{ledger}` cannot be read ({error}), restore it or read the audit into a new folder"
        ) from error
    for pattern in _LEFT:
        for left in folder.glob(pattern):
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()
    return former


def _check_form(folder: Path, values: Mapping[str, Any]) -> None:
    if values["form"] not in (None, "parquet"):
        raise TablesError(
            f"the tables in `{folder}` were kept as {values['form']}, read the audit into a new folder"
        )


def _move(folder: Path, entry: Mapping[str, Any]) -> None:
    staging = folder / entry["staging"]
    for source, target in entry["moves"]:
        if (staging / source).exists():
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            (staging / source).rename(folder / target)
            sync((folder / target).parent)
        elif not (folder / target).exists():
            raise TablesDamagedError(
                f"`{folder / target}` was committed but is gone, restore it or read the audit into a new "
                "folder"
            )
    for name in entry["removes"]:
        (folder / name).unlink(missing_ok=True)


def _take(former: _Former, entry: Mapping[str, Any]) -> None:
    """Bring the state after an entry."""
    name, _, number = entry["run_id"].partition("@")
    if entry["kind"] == RUN and number:
        former.batches[name] = (int(number), entry["summary"])
    elif entry["kind"] == RUN:
        former.runs[name] = entry["summary"]
    for one in entry["inputs"]:
        former.inputs.pop(one["path"], None)
        former.inputs[one["path"]] = InputFile(**one)
    former.sequence = entry["sequence"]
    times = (former.newest_time_ms, entry["newest_time_ms"])
    former.newest_time_ms = max((time for time in times if time is not None), default=None)
    former.stale_days = (former.stale_days | set(entry["stale_days"])) - set(entry["fresh_days"])
    closed = (former.closed_before, entry.get("closed_before"))
    former.closed_before = max((day for day in closed if day is not None), default=None)


def _convert(place: Path) -> tuple[Converted, int] | None:
    """Make a Delta table of a folder of files; return its version, too; None without files."""
    files = data_files(place)
    if not files:
        return None
    shutil.rmtree(place / delta.LOG, ignore_errors=True)  # of a conversion that was killed
    has_days = place.name in BY_DAY | LINES
    table = delta.create_table(place, schema := _schema_of(place, files), has_days=has_days)
    added = [delta.described(place, file, _day_of(place, file)) for file in files]
    version = delta.write(place, table, added, schema, replaces=(), number=_NUMBER)
    rows = sum(parquet.read_metadata(place / file).num_rows for file in files)
    return Converted(place.name, len(files), rows), version


def _schema_of(place: Path, files: Sequence[str]) -> pa.Schema:
    schema = SCHEMAS.get(place.name) or from_arrow_schema(parquet.read_schema(place / files[0]))
    return stored_schema(place.name, with_unknown_columns(place, files, schema))


def _day_of(place: Path, file: str) -> str | None:
    """Return the day of a file: by its folder, or, for lines, by its name or the time of writing."""
    if place.name in BY_DAY:
        return Path(file).parent.name.removeprefix(f"{delta.DAY}=")
    if place.name not in LINES:
        return None
    match = _TAKEN.match(Path(file).name)
    if match is not None:
        return match[1]
    return datetime.fromtimestamp((place / file).stat().st_mtime, UTC).date().isoformat()


def _run_rows(former: _Former, versions: Mapping[str, int]) -> list[Row]:
    """Return the rows of `runs`; the last one is the conversion itself.

    No number is below `_NUMBER`, with which the tables are committed: `runs` would seem to lack a row.
    """
    return [
        {
            "number": number,
            "run_id": run_id,
            "kind": kind,
            "summary": json.dumps(summary),
            "newest_time_ms": former.newest_time_ms,
            "stale_days": sorted(former.stale_days),
            "closed_before": former.closed_before,
            "versions": json.dumps(versions),
        }
        for number, (run_id, kind, summary) in enumerate(_runs_of(former), start=_NUMBER)
    ]


def _runs_of(former: _Former) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    yield from ((run_id, RUN, summary) for run_id, summary in former.runs.items())
    yield from ((f"{name}@{number}", RUN, summary) for name, (number, summary) in former.batches.items())
    yield "convert", UPKEEP, {}


def _add(place: Path, rows: Sequence[Row], schema: pa.Schema) -> int:
    table = delta.create_table(place, schema, has_days=False)
    return add_rows(place, table, rows, schema, replaces_all=False, number=_NUMBER)
