"""Lines classified on disk: read and parsed once, and only those with a copy shuffled."""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kustos.pipeline.stages.dedupe import of_keys, repeated_keys, resolve_alone, resolve_copies
from kustos.pipeline.stages.line_keys import IDENTIFIED_SCHEMA
from kustos.pipeline.tables.reading import rows_on_disk, spark_path
from kustos.pipeline.tables.staging import StagedLines
from kustos.pipeline.tables.transaction import data_files


@dataclass(frozen=True, slots=True)
class SortedLines:
    """Classified lines, as `rows` on disk; `may_quarantine` is False if no line can be quarantined."""

    rows: DataFrame
    may_quarantine: bool


def sort_out(spark: SparkSession, staged: StagedLines, folder: Path) -> SortedLines:
    """Return the result of `classify` for each line, written below `folder`, which must exist."""
    paths = [spark_path(file) for file in staged.files]
    reader = spark.read.schema(IDENTIFIED_SCHEMA)
    identified = reader.parquet(*paths) if paths else spark.createDataFrame([], IDENTIFIED_SCHEMA)
    found = repeated_keys(identified)
    keys, repeated = _written(spark, found, folder / "repeated", found.schema)
    if not repeated:
        return SortedLines(identified.transform(resolve_alone), may_quarantine=staged.quarantined > 0)
    copies = of_keys(identified, keys).transform(resolve_copies)
    resolved, _ = _written(spark, copies, folder / "settled", copies.schema)
    alone = of_keys(identified, keys, others=True).transform(resolve_alone)
    return SortedLines(alone.unionByName(resolved), may_quarantine=True)


def _written(spark: SparkSession, rows: DataFrame, folder: Path, schema: StructType) -> tuple[DataFrame, int]:
    """Write rows; return them as read from there, and their number."""
    rows.write.parquet(str(folder))
    return spark.read.schema(schema).parquet(spark_path(folder)), rows_on_disk(folder, data_files(folder))
