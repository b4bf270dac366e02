"""Errors that tasks raise, with their type, in the driver.

Spark turns an exception of a worker into the text of a traceback, and an executor on another machine shares
no disk with the driver. So a task that fails yields a row with its error as JSON, Spark's `raise_error` fails
the task with this text, and the driver reads it from the parameters of Spark's exception, where it is a
value of its own. This works alike in classic Spark and in Spark Connect, also for rows that are not
collected here, and Spark repeats a failed task as before. Arrow functions of single columns and of groups
have no row to yield: their errors remain tracebacks.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kustos.pipeline.errors import PipelineError
from kustos.pipeline.spark_failures import disk_failure, is_of_spark, whole_text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

FAILURE: Final = "_failure"
"""The column of the error; null in rows of tasks that did not fail."""

_TYPE: Final = "kustos_error"
"""The key of the error's class."""

_BEGIN: Final = f'{{"{_TYPE}": '
"""What the JSON of an error begins with."""

_Batches = Iterator[Any]


def map_in_arrow(
    rows: "DataFrame", function: "Callable[[_Batches], Iterable[pa.RecordBatch]]", schema: "StructType | str"
) -> "DataFrame":
    """Return what `DataFrame.mapInArrow` returns; see `task_errors` for errors that `function` raises."""
    from pyspark.sql import functions as sql
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StringType, StructType

    found = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    assert isinstance(found, StructType)
    arrow = to_arrow_schema(StructType([*found.fields]).add(FAILURE, StringType()), timezone="UTC")

    def run(batches: _Batches) -> "Iterator[pa.RecordBatch]":
        return _with_failure(function(batches), arrow)

    mapped = rows.mapInArrow(run, StructType([*found.fields]).add(FAILURE, StringType()))
    is_whole = sql.when(sql.col(FAILURE).isNotNull(), sql.raise_error(sql.col(FAILURE)).cast("boolean"))
    # A number that is new in each row: past a condition that varies Spark moves no other one, which would
    # drop the row that must raise.
    return mapped.where(is_whole.otherwise(sql.monotonically_increasing_id() >= 0)).drop(FAILURE)


def _with_failure(batches: "Iterable[pa.RecordBatch]", schema: "pa.Schema") -> "Iterator[pa.RecordBatch]":
    """Yield the batches with the column FAILURE; a typed error ends them with a row of its own."""
    import pyarrow as pa

    try:
        for batch in batches:
            yield batch.append_column(FAILURE, pa.nulls(batch.num_rows, pa.string()))
    except (PipelineError, OSError) as error:
        failure = disk_failure(error) if isinstance(error, OSError) else error
        if failure is None:
            raise
        columns = [pa.nulls(1, field.type) for field in schema][:-1]
        yield pa.RecordBatch.from_arrays([*columns, pa.array([_text_of(failure)])], schema=schema)


def refusal(error: PipelineError) -> "Column":
    """Return a column that fails the query with this error where it is evaluated."""
    from pyspark.sql import functions as sql

    return sql.raise_error(sql.lit(_text_of(error)))


def _text_of(error: PipelineError) -> str:
    """Return an error as JSON: its class, arguments and attributes; what JSON does not know is a text."""
    said = {_TYPE: type(error).__name__, "args": error.args, "attributes": vars(error)}
    return json.dumps(said, default=str)


def task_failure(error: BaseException) -> PipelineError | None:
    """Return the error that a task raised, from Spark's exception about its query; None without one."""
    if not is_of_spark(error):
        return None
    try:
        said, _ = json.JSONDecoder().raw_decode(_said_by_task(error))
        kind = _kinds().get(said[_TYPE], PipelineError)
        failure = kind.__new__(kind, *said["args"])
        vars(failure).update(said["attributes"])
    except (ValueError, LookupError, TypeError):
        return None  # a query of somebody else raised it
    return failure


def _said_by_task(error: BaseException) -> str:
    """Return the text that begins with the JSON of a task's error; empty without one.

    An exception that Spark wraps into another one, as where a join broadcasts the rows, has no parameters.
    The JSON is whole in its text, and cannot be within another one, which would escape its quotation marks.
    """
    parameters: Any = getattr(error, "getMessageParameters", dict)() or {}
    if "errorMessage" in parameters:
        return str(parameters["errorMessage"])
    text = whole_text(error)
    return text[text.find(_BEGIN) :] if _BEGIN in text else ""


def _kinds() -> dict[str, type[PipelineError]]:
    """Return the classes of errors by name."""
    found: dict[str, type[PipelineError]] = {}
    left: list[type[PipelineError]] = [PipelineError]
    while left:
        kind = left.pop()
        found[kind.__name__] = kind
        left += kind.__subclasses__()
    return found


@contextmanager
def task_errors() -> Iterator[None]:
    """Raise the error of a task in place of Spark's exception about the failed query."""
    try:
        yield
    except Exception as error:
        failure = task_failure(error)
        if failure is None:
            raise
        raise failure from None  # the traces of the JVM and of a worker say nothing more
