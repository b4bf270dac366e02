"""Parquet files of a table as rows of its schema, also files of an older or a newer kustos.

Spark reads files on a disk itself. In an object store workers read them with Arrow: Spark would need jars
and credentials of its own for each kind of store.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow as arrow
import pyarrow.compute
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kustos.pipeline.errors import SchemaConflictError, TablesDamagedError, TablesError
from kustos.pipeline.places import (
    Place,
    StorePath,
    in_parallel,
    source_of,
    spark_path,
    spark_paths_read,
    stamp_of,
)
from kustos.pipeline.session import frame_of_rows, numbered_tasks
from kustos.pipeline.tables.integrity import remedy
from kustos.runtime import reason_of

MAXIMUM_FOOTERS: Final = 2_000
"""Files whose schema is checked; of more, one of each folder."""

BATCH_ROWS: Final = 16_384
"""Rows that a worker reads at a time: some megabytes."""

_IS_READ_AS: Final = {
    BooleanType: (arrow.types.is_boolean,),
    StringType: (arrow.types.is_string, arrow.types.is_large_string, arrow.types.is_string_view),
    IntegerType: (arrow.types.is_int8, arrow.types.is_int16, arrow.types.is_int32),
    LongType: (arrow.types.is_int8, arrow.types.is_int16, arrow.types.is_int32, arrow.types.is_int64),
    DoubleType: (arrow.types.is_float32, arrow.types.is_float64),
    DateType: (arrow.types.is_date32,),
    TimestampType: (arrow.types.is_timestamp,),
}


def read_parquet(spark: SparkSession, folder: Place, files: Sequence[str], schema: StructType) -> DataFrame:
    """Return the table of these files as `schema`: missing columns are null, unknown ones are left out.

    Raises `SchemaConflictError` for a file with a column of an incompatible type, `TablesDamagedError` for a
    file that is not Parquet.
    """
    check_schemas(folder, files, schema)
    if not files:
        return frame_of_rows(spark, [], schema)
    if isinstance(folder, StorePath):
        return _read_from_store(spark, [folder / file for file in files], schema)
    reader = spark.read.schema(schema).option("basePath", spark_path(folder))
    paths = spark_paths_read(*(folder / file for file in files))
    return reader.parquet(*paths).select(*schema.fieldNames())


def _read_from_store(spark: SparkSession, files: Sequence[StorePath], schema: StructType) -> DataFrame:
    return numbered_tasks(spark, len(files), lambda number: _rows(files[number], schema), schema)


def _rows(file: StorePath, schema: StructType) -> Iterator[arrow.RecordBatch]:
    types = {field.name: to_arrow_type(field.dataType, timezone="UTC") for field in schema.fields}
    name, is_of_day, value = file.parent.name.partition("=")
    fixed = {name: arrow.scalar(value).cast(types[name])} if is_of_day and name in types else {}
    with arrow.parquet.ParquetFile(source_of(file), coerce_int96_timestamp_unit="us") as content:
        known = set(content.schema_arrow.names) - fixed.keys()
        wanted = [each for each in types if each in known]
        if not wanted:
            wanted = content.schema_arrow.names[:1]
        for batch in content.iter_batches(BATCH_ROWS, columns=wanted):
            yield arrow.RecordBatch.from_arrays(
                [_column(batch, each, kind, fixed.get(each)) for each, kind in types.items()], list(types)
            )


def _column(batch: arrow.RecordBatch, name: str, kind: arrow.DataType, fixed: Any) -> arrow.Array:
    """Return a column of a batch as a type: null if it is missing, of a struct also its missing fields."""
    if fixed is not None:
        return arrow.repeat(fixed, batch.num_rows)
    position = batch.schema.get_field_index(name)
    if position < 0:
        return arrow.nulls(batch.num_rows, kind)
    return batch.column(position).cast(kind)


def check_schemas(folder: Place, files: Sequence[str], schema: StructType) -> None:
    """Raise the errors of `read_parquet` about files."""
    if len(files) > MAXIMUM_FOOTERS:
        files = list({str(Path(file).parent): file for file in files}.values())
    paths = [folder / file for file in files]
    for path, found in zip(
        paths, in_parallel(paths, lambda path: _footer(path, stamp_of(path))), strict=True
    ):
        for field in schema.fields:
            position = found.get_field_index(field.name)
            if position >= 0:
                _check_column(path, field.name, found.field(position).type, field.dataType)


def with_unknown_columns(folder: Place, files: Sequence[str], schema: StructType) -> StructType:
    """Return the schema with all further columns of these files, also inside of structs.

    Raises `SchemaConflictError` if two files have one of them with different types.
    """
    for file in files:
        path = folder / file
        schema = _widened(path, schema, list(_footer(path, stamp_of(path))))
    return schema


def _widened(path: Place, schema: StructType, found: Sequence[arrow.Field]) -> StructType:
    known = {field.name: field for field in schema.fields}
    for field in found:
        former = known.get(field.name)
        if former is None:
            known[field.name] = StructField(field.name, from_arrow_type(field.type))
        elif isinstance(former.dataType, StructType) and arrow.types.is_struct(field.type):
            known[field.name] = StructField(field.name, _widened(path, former.dataType, list(field.type)))
        else:
            _check_column(path, field.name, field.type, former.dataType)
    return StructType(list(known.values()))


def _check_column(path: Place, name: str, found: arrow.DataType, wanted: DataType) -> None:
    if isinstance(wanted, StructType) and arrow.types.is_struct(found):
        for member in wanted.fields:
            position = found.get_field_index(member.name)
            if position >= 0:
                _check_column(path, f"{name}.{member.name}", found.field(position).type, member.dataType)
        return
    if isinstance(wanted, ArrayType) and arrow.types.is_list(found):
        _check_column(path, f"{name}[]", found.value_type, wanted.elementType)
        return
    if not any(is_read(found) for is_read in _IS_READ_AS.get(type(wanted), ())):
        raise SchemaConflictError(
            f"column `{name}` of `{path}` is {found}, not {wanted.simpleString()}; take it out, or read "
            "the audit into a new folder"
        )


@lru_cache(maxsize=2 * MAXIMUM_FOOTERS)
def _footer(path: Place, _modified_ns: int) -> Any:
    try:
        return arrow.parquet.read_schema(source_of(path))
    except PermissionError as error:
        raise TablesError(f"cannot read `{path}`: {reason_of(error)}") from error
    except (OSError, arrow.ArrowInvalid) as error:
        folder = path.parent.parent if path.parent.name.startswith("day=") else path.parent
        raise TablesDamagedError(
            f"`{path}` is not a readable Parquet file ({error}); {remedy(folder.name, of_file=True)}"
        ) from error


def within_days(rows: DataFrame, first_day: date | None, last_day: date | None) -> DataFrame:
    """Return the rows from the first to the last day, both included; None leaves that end open."""
    if first_day is not None:
        rows = rows.filter(sql.col("day") >= sql.lit(first_day))
    return rows if last_day is None else rows.filter(sql.col("day") <= sql.lit(last_day))


def count_of(folder: Place, files: Sequence[str], column: str, value: str) -> int:
    """Return how many rows of these files have this text in a column."""
    count = 0
    for file in files:
        with arrow.parquet.ParquetFile(source_of(folder / file)) as content:
            for batch in content.iter_batches(BATCH_ROWS, columns=[column], use_threads=False):
                count += arrow.compute.sum(arrow.compute.equal(batch[column], value)).as_py() or 0
    return count
