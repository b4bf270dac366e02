"""The roll-up of some days: the stored roll-up merged with new events, or rebuilt from the files of events.

A task takes the files of a whole day, without a shuffle.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.columns.reading import FilePart, parts_of
from kustos.pipeline.columns.rolling import rolled_up_parts
from kustos.pipeline.places import Place, size_of
from kustos.pipeline.schemas import AUDIT_ROLLUP_SCHEMA
from kustos.pipeline.stages.rollup import merge_rollups, together
from kustos.pipeline.tables.runs import UPKEEP, State
from kustos.pipeline.tables.staging import stage_by_day
from kustos.pipeline.tables.store import AUDIT_EVENTS, AUDIT_ROLLUP, Tables, stored_schema
from kustos.pipeline.tables.transaction import Write

TASK_BYTES_MAX: Final = 512 << 20
"""The largest day for a single task, some eight million events; several tasks share a larger one."""


def days_to_rebuild(tables: Tables, state: State, days: Collection[str]) -> frozenset[str]:
    """Return those of the days whose roll-up lacks committed events."""
    rolled = tables.days(AUDIT_ROLLUP)
    return frozenset(day for day in days if day in state.stale_days or day not in rolled)


@dataclass(frozen=True, slots=True)
class RolledUp:
    """A roll-up to be staged. `is_by_day`: each Spark task has whole days."""

    rows: DataFrame
    is_by_day: bool


def rolled_up(
    spark: SparkSession,
    tables: Tables,
    new_files: Sequence[Place],
    days: Collection[str],
    rebuilt: Collection[str],
) -> RolledUp:
    """Return the roll-up of these days with the new events, `rebuilt` ones from their events.

    `new_files`: files of events, each in the folder of its day.
    """
    files, parts = list(new_files), list[DataFrame]()
    merged = [day for day in days if day not in rebuilt]
    if merged:
        parts.append(tables.read(spark, AUDIT_ROLLUP).filter(is_of(merged)))
    if rebuilt:
        files += [path for path in tables.files(AUDIT_EVENTS) if day_of_file(path) in rebuilt]
    by_day: dict[str, list[Place]] = {}
    for path in files:
        by_day.setdefault(day_of_file(path), []).append(path)
    if by_day:
        parts.append(rollup_of_files(spark, by_day.values()))
    is_by_day = len(parts) == 1 and bool(by_day) and all(map(is_one_task, by_day.values()))
    return RolledUp(reduce(merge_rollups, parts), is_by_day)


def day_of_file(path: Place) -> str:
    """Return the day of a file's folder in a table by day."""
    return path.parent.name.removeprefix("day=")


def refresh_rollup(spark: SparkSession, tables: Tables) -> tuple[str, ...]:
    """Roll up the days that runs without a roll-up marked; return them.

    Raises `TablesInUseError` if another run is writing.
    """
    with tables.transaction() as change:
        days = tuple(sorted(change.state.stale_days))
        if not days:
            return ()
        found = rolled_up(spark, tables, (), days, days)
        schema = stored_schema(AUDIT_ROLLUP)
        stage_by_day(found.rows, change, AUDIT_ROLLUP, schema, is_by_day=found.is_by_day)
        write = Write(table=AUDIT_ROLLUP, schema=schema, replaces=days)
        change.commit("refresh-rollup", UPKEEP, [write], stale_days=frozenset())
    return days


def is_of(days: Collection[str]) -> Column:
    """Return whether a row is of one of these days."""
    return sql.col("day").isin([date.fromisoformat(day) for day in days])


def is_one_task(files: Sequence[Place]) -> bool:
    """Return whether a single task takes the day of these files."""
    return sum(map(size_of, files)) <= TASK_BYTES_MAX


def rollup_of_files(spark: SparkSession, days: Iterable[Sequence[Place]]) -> DataFrame:
    """Return the table `audit_rollup` of the events in files; each item has all files of one day.

    The same as `rollup` for these rows. Workers must see the files under these paths. Raises `OSError` for a
    file that is gone.
    """
    tasks: list[list[FilePart]] = []
    is_whole = True
    for files in days:
        if is_one_task(files):
            tasks.append([FilePart(str(path)) for path in files])
        else:
            tasks += [[part] for part in parts_of(files)]
            is_whole = False
    if not tasks:
        return spark.createDataFrame([], AUDIT_ROLLUP_SCHEMA)

    def rolled_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from rolled_up_parts(tasks[number])

    found = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(rolled_up, AUDIT_ROLLUP_SCHEMA)
    return found if is_whole else found.transform(together)
