"""Rows from rows, a batch at a time, by the workers' Python."""

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
    """Return the function's results on batches of rows, of this schema: one row for each row.

    Like `mapInArrow`, which analyses the columns at once: Declarative Pipelines refuse that for tables that
    are declared but do not exist yet.
    """

    def make(batch: pa.Array) -> pa.Array:
        return function(pa.RecordBatch.from_struct_array(batch)).to_struct_array()

    udf: Any = arrow_udf
    result = udf(make, schema).asNondeterministic()(sql.struct("*"))  # else a filter on it evaluates it twice
    return rows.select(result.alias(_RESULT)).select(f"{_RESULT}.*")
