"""Many small files of a day become few: the same rows, with columns that this version does not know."""

from collections import defaultdict
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from kustos.pipeline.errors import TablesError
from kustos.pipeline.tables import delta
from kustos.pipeline.tables.ledger import UPKEEP
from kustos.pipeline.tables.reading import rows_on_disk, spark_path, with_unknown_columns
from kustos.pipeline.tables.retention import day_taken, taken_on
from kustos.pipeline.tables.store import BY_DAY, DELTA, GROWING, SCHEMAS, Tables
from kustos.pipeline.tables.transaction import Transaction, data_files, moves_of

MOST_FILES: Final = 32
"""Files of a folder above which a run compacts it: opening one costs some milliseconds."""

MAXIMUM_FOLDERS: Final = 64
"""Folders compacted in one transaction; the next run compacts the next ones."""

FILE_BYTES: Final = 128 * 1024 * 1024
"""About the size of a compacted file."""


def compact_tables(
    spark: SparkSession, tables: Tables, *, most_files: int = MOST_FILES, keeps_days_apart: bool = False
) -> tuple[str, ...]:
    """Compact each day, or table without days, of more than `most_files` files; return their folders.

    `keeps_days_apart`: in a table without days only lines ingested on the same day are combined, since a
    retention drops them by that day. Rows do not change, and a kill at any moment leaves either the old files
    or the new ones. Raises `TablesInUseError` if another run is writing.
    """
    done: list[str] = []
    for table in sorted(GROWING):
        apart = keeps_days_apart and table not in BY_DAY
        while folders := _compact_some(spark, tables, table, most_files, apart):
            done += [folder for folder in folders if folder not in done]
            if not apart:
                break
    return tuple(done)


def _compact_some(spark: SparkSession, tables: Tables, table: str, most_files: int, apart: bool) -> list[str]:
    """Compact the folders of one transaction; return them."""
    with tables.transaction(spark) as change:
        place = tables.place(table)
        if tables.form == DELTA:
            if delta.is_delta(place):
                delta.optimize(spark, place)
            return []
        groups = _crowded(place, most_files, apart)
        if table not in BY_DAY:
            groups = groups[:1]
        if groups:
            _compact(spark, tables, change, table, [file for _, files in groups for file in files])
        return [f"{table}/{folder}".removesuffix("/.") for folder, _ in groups]


def _crowded(place: Path, most_files: int, apart: bool) -> list[tuple[str, list[str]]]:
    """Return folders with their files; if days stay apart, one entry for each folder and day."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for file in data_files(place):
        day = day_taken(place / file) if apart else ""
        groups[str(Path(file).parent), day].append(file)
    crowded = [(folder, files) for (folder, _), files in sorted(groups.items()) if len(files) > most_files]
    return crowded[:MAXIMUM_FOLDERS]


def _compact(spark: SparkSession, tables: Tables, change: Transaction, table: str, files: list[str]) -> None:
    place = tables.place(table)
    schema = with_unknown_columns(place, files, SCHEMAS[table])
    rows = spark.read.schema(schema).option("basePath", str(place))
    few = _few(rows.parquet(*(spark_path(place / file) for file in files)), place, files, table)
    writer = few.write
    if table in BY_DAY:
        writer = writer.partitionBy("day")
    writer.parquet(str(change.stage(table)))
    staged = change.staged_files(table)
    if rows_on_disk(change.staging / table, staged) != rows_on_disk(place, files):
        raise TablesError(f"compacting `{table}` would change its number of rows, nothing was changed")
    moves = moves_of(staged, table, table)
    if table not in BY_DAY:
        moves = taken_on(moves, max(day_taken(place / file) for file in files))
    change.commit(f"compact-{table}", UPKEEP, moves=moves, removes=tuple(f"{table}/{file}" for file in files))


def _few(rows: DataFrame, place: Path, files: list[str], table: str) -> DataFrame:
    size = sum((place / file).stat().st_size for file in files)
    parts = max(1, -(-size // FILE_BYTES))
    return rows.repartition(parts, "day") if table in BY_DAY else rows.coalesce(parts)
