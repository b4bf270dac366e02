"""Many small files of a day become few: the same rows, also columns that this version does not know."""

from collections import Counter
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from kustos.pipeline.tables import delta
from kustos.pipeline.tables.errors import TablesError
from kustos.pipeline.tables.ledger import UPKEEP
from kustos.pipeline.tables.reading import rows_on_disk, spark_path, with_unknown_columns
from kustos.pipeline.tables.store import BY_DAY, DELTA, GROWING, SCHEMAS, Tables
from kustos.pipeline.tables.transaction import Transaction, data_files, moves_of

MOST_FILES: Final = 32
"""So many files may a folder have before a run compacts it: opening one costs some milliseconds."""

MAXIMUM_FOLDERS: Final = 64
"""So many folders are compacted in one transaction; the next run takes the next ones."""

FILE_BYTES: Final = 128 * 1024 * 1024
"""About the size of a compacted file."""


def compact_tables(spark: SparkSession, tables: Tables, *, most_files: int = MOST_FILES) -> tuple[str, ...]:
    """Compact each day, or table without days, of more than `most_files` files; return their folders.

    Rows stay as they are, and a kill at any moment leaves the old files or the new ones. Raises
    `TablesInUseError` if a run is at work.
    """
    done: list[str] = []
    for table in sorted(GROWING):
        with tables.transaction(spark) as change:
            if tables.form == DELTA:
                if delta.is_delta(tables.place(table)):
                    delta.optimize(spark, tables.place(table))
                continue
            folders = _crowded(tables.place(table), most_files)
            if folders:
                _compact(spark, tables, change, table, folders)
                done += [f"{table}/{folder}".removesuffix("/.") for folder in folders]
    return tuple(done)


def _crowded(place: Path, most_files: int) -> list[str]:
    counts = Counter(str(Path(file).parent) for file in data_files(place))
    return sorted(folder for folder, count in counts.items() if count > most_files)[:MAXIMUM_FOLDERS]


def _compact(
    spark: SparkSession, tables: Tables, change: Transaction, table: str, folders: list[str]
) -> None:
    place = tables.place(table)
    files = [str(Path(folder, file)) for folder in folders for file in data_files(place / folder)]
    schema = with_unknown_columns(place, files, SCHEMAS[table])
    rows = spark.read.schema(schema).option("basePath", str(place))
    few = _few(rows.parquet(*(spark_path(place / folder) for folder in folders)), place, files, table)
    writer = few.write
    if table in BY_DAY:
        writer = writer.partitionBy("day")
    writer.parquet(str(change.stage(table)))
    staged = change.staged_files(table)
    if rows_on_disk(change.staging / table, staged) != rows_on_disk(place, files):
        raise TablesError(f"compacting `{table}` would change its number of rows, it was left as it is")
    change.commit(
        f"compact-{table}",
        UPKEEP,
        moves=moves_of(staged, table, table),
        removes=tuple(f"{table}/{file}" for file in files),
    )


def _few(rows: DataFrame, place: Path, files: list[str], table: str) -> DataFrame:
    size = sum((place / file).stat().st_size for file in files)
    parts = max(1, -(-size // FILE_BYTES))
    return rows.repartition(parts, "day") if table in BY_DAY else rows.coalesce(parts)
