"""Rows made of rows, a batch at a time, by the workers' Python."""

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StructType

_RESULT: Final = "result"


def by_batch(
    rows: DataFrame, function: Callable[[pa.RecordBatch], pa.RecordBatch], schema: StructType
) -> DataFrame:
    """Return what the function makes of batches of rows, of this schema, a row of each row.

    It does what `mapInArrow` does, which asks Spark at once what columns there are: where tables are
    declared and not yet there (Declarative Pipelines) that is refused.
    """

    def make(batch: pa.Array) -> pa.Array:
        return function(pa.RecordBatch.from_struct_array(batch)).to_struct_array()

    udf: Any = arrow_udf
    result = udf(make, schema).asNondeterministic()(sql.struct("*"))  # else a filter on it has it made twice
    return rows.select(result.alias(_RESULT)).select(f"{_RESULT}.*")
