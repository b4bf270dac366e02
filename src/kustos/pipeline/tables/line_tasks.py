"""Lines that tasks read by themselves, without a way through the JVM and back.

A DataFrame of lines that Python has read goes from a worker into Spark's JVM as columns, and from there, row
by row, back into a worker that parses it. `LineTasks` has the one method of a DataFrame that a run needs, and
hands what a task reads to what is mapped in the same worker.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA
from kustos.pipeline.session import numbered_tasks
from kustos.pipeline.task_errors import map_in_arrow

Batches = Iterable[pa.RecordBatch]

_LINES: Final = to_arrow_schema(INPUT_LINES_SCHEMA)


@dataclass(frozen=True, slots=True)
class LineTasks:
    """`count` tasks; `read` yields the lines of the one with a number, from 0 up.

    Its batches have columns of INPUT_LINES_SCHEMA, texts as codes where many are equal; one that would be
    null in all lines may be left out.
    """

    spark: SparkSession
    count: int
    read: Callable[[int], Iterator[pa.RecordBatch]]

    def mapInArrow(  # noqa: N802 (the name is that of the DataFrame's method)
        self, function: Callable[[Batches], Iterator[pa.RecordBatch]], schema: StructType | str
    ) -> DataFrame:
        """Return what the function makes of the lines of each task, as `DataFrame.mapInArrow` does."""
        read = self.read
        return numbered_tasks(self.spark, self.count, lambda number: function(read(number)), schema)

    def frame(self) -> DataFrame:
        """Return the lines as a DataFrame of INPUT_LINES_SCHEMA."""
        return self.mapInArrow(
            lambda batches: (as_schema(each, _LINES) for each in batches), INPUT_LINES_SCHEMA
        )


Lines = DataFrame | LineTasks
"""Lines as INPUT_LINES_SCHEMA or LINES_SCHEMA, wherever they are."""


def mapped_in_arrow(
    lines: Lines, function: Callable[[Batches], Iterator[pa.RecordBatch]], schema: StructType
) -> DataFrame:
    """Return what the function makes of the lines of each task; see `task_errors` for its errors."""
    if isinstance(lines, LineTasks):
        return lines.mapInArrow(function, schema)
    return map_in_arrow(lines, function, schema)


def as_schema(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows with the columns of a schema: missing ones null, and codes as texts where it has texts."""
    known = set(rows.schema.names)
    columns = [
        rows[field.name].cast(field.type) if field.name in known else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
