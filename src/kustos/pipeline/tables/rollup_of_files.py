"""The roll-up of events from their files: a task takes a whole day, without a shuffle."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kustos.pipeline.columns.parts import FilePart, parts_of
from kustos.pipeline.columns.rolling import rolled_up_parts
from kustos.pipeline.schemas import AUDIT_ROLLUP_SCHEMA
from kustos.pipeline.stages.rollup import together

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASK_BYTES_MAX: Final = 512 << 20
"""The largest day for a single task, some eight million events; several tasks share a larger one."""


def is_one_task(files: Sequence[Path]) -> bool:
    """Return whether a single task takes the day of these files."""
    return sum(path.stat().st_size for path in files) <= TASK_BYTES_MAX


def rollup_of_files(spark: "SparkSession", days: Iterable[Sequence[Path]]) -> "DataFrame":
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
