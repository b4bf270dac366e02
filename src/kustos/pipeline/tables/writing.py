"""Staging of rows, and their changes in a commit, for both forms of tables."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Self

from pyspark.sql import DataFrame

from kustos.pipeline.tables import delta
from kustos.pipeline.tables.store import BY_DAY, DELTA, Tables
from kustos.pipeline.tables.transaction import Transaction, data_files, moves_of


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of an entry to the tables; `+` combines the changes of several tables."""

    moves: tuple[tuple[str, str], ...] = ()
    removes: tuple[str, ...] = ()
    writes: tuple[dict[str, Any], ...] = ()

    def __add__(self, other: Self) -> "Changes":
        return Changes(self.moves + other.moves, self.removes + other.removes, self.writes + other.writes)

    def as_fields(self) -> dict[str, Any]:
        """Return them as fields of `LedgerEntry`."""
        return {"moves": self.moves, "removes": self.removes, "writes": self.writes}


def stage_by_day(
    rows: DataFrame,
    change: Transaction,
    table: str,
    *,
    are_few: bool = False,
    only_day: str | None = None,
    is_by_day: bool = False,
) -> None:
    """Write rows below the staging folder, in few files a day.

    Few rows are not shuffled, nor rows that all have the day `only_day` (ISO), nor if each task already has
    whole days (`is_by_day`).
    """
    if are_few:
        rows = rows.coalesce(1)
    if only_day is not None:
        # write into the day's folder: rows of one day need no sort by day
        rows.drop("day").write.parquet(str(change.stage(table) / f"day={only_day}"))
        return
    laid_out = rows if are_few or is_by_day else rows.hint("rebalance", "day")
    laid_out.write.partitionBy("day").parquet(str(change.stage(table)))


def append(tables: Tables, change: Transaction, table: str) -> Changes:
    """Return the changes that add the staged rows to the table."""
    files = change.staged_files(table)
    if not files:
        return Changes()
    if tables.form == DELTA:
        return Changes(writes=(delta.delta_write(table, delta.APPEND, (), table in BY_DAY),))
    return Changes(moves=moves_of(files, table, table))


def replace_days(tables: Tables, change: Transaction, table: str, days: Collection[str]) -> Changes:
    """Return the changes that replace these days by the staged rows."""
    files = change.staged_files(table)
    if tables.form == DELTA:
        if not files:
            return Changes()
        return Changes(writes=(delta.delta_write(table, delta.REPLACE_DAYS, tuple(days), True),))
    place = tables.place(table)
    removes = tuple(f"{table}/day={day}/{file}" for day in days for file in data_files(place / f"day={day}"))
    return Changes(moves_of(files, table, table), removes)
