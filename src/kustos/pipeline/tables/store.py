"""The tables on disk: their places, reading, and replacement as a whole."""

import fcntl
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DateType, StructField, StructType

from kustos.pipeline.errors import TablesError, TablesInUseError
from kustos.pipeline.schemas import (
    ACCESS_REVIEW_SCHEMA,
    AUDIT_EVENTS_SCHEMA,
    AUDIT_ROLLUP_SCHEMA,
    DECISIONS_SCHEMA,
    FINDINGS_SCHEMA,
    JUDGED_SCHEMA,
    QUARANTINE_SCHEMA,
    SECURITY_EVENTS_SCHEMA,
)
from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA
from kustos.pipeline.tables import delta
from kustos.pipeline.tables.ledger import UPKEEP, State, read_state
from kustos.pipeline.tables.reading import check_schemas, read_parquet
from kustos.pipeline.tables.transaction import (
    Transaction,
    data_files,
    is_unfinished,
    moves_of,
    place_lock,
    transaction,
)

PARQUET, DELTA = "parquet", "delta"
AUDIT_RAW, AUDIT_EVENTS, AUDIT_ROLLUP, QUARANTINE = "audit_raw", "audit_events", "audit_rollup", "quarantine"
SECURITY_EVENTS: Final = "security_events"

SCHEMAS: Final[Mapping[str, StructType]] = {
    AUDIT_RAW: INPUT_LINES_SCHEMA,
    AUDIT_EVENTS: StructType([*AUDIT_EVENTS_SCHEMA.fields, StructField("day", DateType())]),
    SECURITY_EVENTS: StructType([*SECURITY_EVENTS_SCHEMA.fields, StructField("day", DateType())]),
    AUDIT_ROLLUP: AUDIT_ROLLUP_SCHEMA,
    QUARANTINE: QUARANTINE_SCHEMA,
    "decisions": DECISIONS_SCHEMA,
    "access_review": ACCESS_REVIEW_SCHEMA,
    "findings": FINDINGS_SCHEMA,
    "judged": JUDGED_SCHEMA,
    "history_findings": FINDINGS_SCHEMA,
}
"""Tables and their columns; a table of any other name has the columns that `replace` wrote."""

BY_DAY: Final = frozenset({AUDIT_EVENTS, SECURITY_EVENTS, AUDIT_ROLLUP})
"""Partitioned by `day`, the UTC date of the events."""

GROWING: Final = frozenset({AUDIT_RAW, AUDIT_EVENTS, SECURITY_EVENTS, AUDIT_ROLLUP, QUARANTINE})
"""Only runs write these; all others are replaced whole."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Tables:
    """A folder of tables. `form` is `parquet` (plain folders of Parquet files) or `delta`."""

    folder: Path
    form: Literal["parquet", "delta"] = "parquet"

    def read(self, spark: SparkSession, name: str) -> DataFrame:
        """Return a table as of the last committed run; empty if nothing was ever written.

        First this finishes a run that was killed after its commit. An action reads the rows: it fails if
        their day was compacted, rolled up again or replaced meanwhile; then call `read` again. Raises
        `TablesError` for an unknown name, `SchemaConflictError`, `TablesDamagedError`.
        """
        place = self.place(name)
        self._finish(spark)
        with place_lock(self.folder, fcntl.LOCK_SH):
            return self._read(spark, name, place)

    def _read(self, spark: SparkSession, name: str, place: Path) -> DataFrame:
        schema = SCHEMAS.get(name)
        if self.form == DELTA:
            if delta.is_delta(place):
                rows = delta.read_delta(spark, place)
                return rows if schema is None else rows.select(*_selected(rows, schema))
            files: tuple[str, ...] = ()
        else:
            files = data_files(place)
        if schema is None:
            if not files:
                raise TablesError(f"there is no table `{name}` in `{self.folder}`")
            return spark.read.parquet(str(place))
        return read_parquet(spark, place, files, schema)

    def files(
        self, spark: SparkSession, name: str, first_day: date | None = None, last_day: date | None = None
    ) -> list[Path]:
        """Return the current files of a table that runs write; if it is by day, only those of these days.

        For readers of files instead of rows (`columns`); as with `read`, killed runs are finished first, and
        files may change meanwhile. Raises `TablesError` for a Delta table, whose files alone are not its
        rows, and what `read` raises.
        """
        place = self.place(name)
        if self.form == DELTA:
            raise TablesError(f"`{name}` is a Delta table, its files alone are not its rows")
        self._finish(spark)
        with place_lock(self.folder, fcntl.LOCK_SH):
            files = data_files(place)
            if name in BY_DAY:
                files = tuple(file for file in files if _is_within(file, first_day, last_day))
            check_schemas(place, files, SCHEMAS[name])
        return [place / file for file in files]

    def replace(self, spark: SparkSession, name: str, rows: DataFrame) -> None:
        """Replace a whole table by rows, atomically; raise `TablesError` for one that only runs write.

        `rows` may depend on the former table: they are staged before it is removed.
        """
        if name in GROWING:
            raise TablesError(f"`{name}` is written by runs only")
        place = self.place(name)
        schema = SCHEMAS.get(name)
        with self.transaction(spark) as change:
            staged = rows if schema is None else rows.to(schema)
            staged.write.parquet(str(change.stage(name)))
            if self.form == DELTA:
                writes = (delta.delta_write(name, delta.REPLACE, (), False),)
                change.commit(f"replace-{name}", UPKEEP, writes=writes)
            else:
                removes = tuple(f"{name}/{file}" for file in data_files(place))
                moves = moves_of(change.staged_files(name), name, name)
                change.commit(f"replace-{name}", UPKEEP, moves=moves, removes=removes)

    def place(self, name: str) -> Path:
        """Return the folder of a table, which need not exist; raise `TablesError` for an invalid name."""
        if _NAME.fullmatch(name) is None:
            raise TablesError(f"`{name}` is no name of a table, take small letters, digits and `_`")
        return self.folder / name

    def days(self, name: str) -> frozenset[str]:
        """Return the days (ISO dates) for which a table by day has files; raise `TablesError`."""
        folders = (file.partition("/")[0] for file in data_files(self.place(name)))
        return frozenset(folder.removeprefix("day=") for folder in folders if folder.startswith("day="))

    def state(self) -> State:
        """Return the state of the ledger; raise `TablesDamagedError`."""
        return read_state(self.folder)[0]

    @contextmanager
    def transaction(self, spark: SparkSession) -> Iterator[Transaction]:
        """Lock the tables and yield a transaction, after finishing or removing the rest of a killed run.

        Raises `TablesInUseError`, `TablesDamagedError` or `TablesError`.
        """
        with transaction(self.folder, self.form, partial(_apply, spark, self.folder)) as change:
            yield change

    def _finish(self, spark: SparkSession) -> None:
        """Finish a run that was killed after its commit."""
        if not is_unfinished(self.folder):
            return
        try:
            with self.transaction(spark):
                pass
        except TablesInUseError:
            return  # another run is writing: read the rows from before it


def _is_within(file: str, first_day: date | None, last_day: date | None) -> bool:
    day = date.fromisoformat(file.partition("/")[0].removeprefix("day="))
    return (first_day is None or first_day <= day) and (last_day is None or day <= last_day)


def _apply(spark: SparkSession, folder: Path, staging: Path, write: Mapping[str, Any], sequence: int) -> None:
    delta.apply_delta_write(spark, folder, staging, write, sequence)


def _selected(rows: DataFrame, schema: StructType) -> list[Any]:
    from pyspark.sql import functions as sql

    return [
        sql.col(field.name)
        if field.name in rows.columns
        else sql.lit(None).cast(field.dataType).alias(field.name)
        for field in schema.fields
    ]
