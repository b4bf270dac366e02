"""Records of a topic as lines: of each its value, its partition and its offset there.

For a topic the partition is the log, and the offset the position in it: the same record is the same line in
every read, and equal lines at two offsets are two lines. A stream sends Python the records as they are, and
the texts that their partitions give are made there: Spark would write each of them for each line.
"""

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITION: Final = "partition"
_LOG_BEGIN: Final = "topic:"


def lines_of_records(records: "DataFrame", topic: str) -> "DataFrame":
    """Return records of a topic (`line`, PARTITION, `position`, and more) as lines, as `placed` does."""
    from pyspark.sql import functions as sql

    file = sql.concat(sql.lit(f"{topic}-"), sql.col(PARTITION).cast("string"))
    value = sql.col("line").cast("binary")
    ends = sql.when(sql.endswith(value, sql.lit(b"\r\n")), 2).when(sql.endswith(value, sql.lit(b"\n")), 1)
    line = sql.substring(value, sql.lit(1), sql.length(value) - sql.coalesce(ends, sql.lit(0)))
    columns = {
        "file": file,
        # as bytes up to here: not every record is UTF-8, and one that is not is quarantined as it is
        "line": sql.coalesce(line.cast("string"), sql.lit("")),
        "log": sql.concat(sql.lit(_LOG_BEGIN), file),
    }
    return records.withColumns(columns).drop(PARTITION)


def placed(records: pa.RecordBatch, topic: str) -> pa.RecordBatch:
    """Return records of a topic (`line`, PARTITION, `position`, and more) as lines with `file` and `log`.

    A record without a value is a blank line. An appender of log4j ends each record as its layout ends a line
    (`%n`): that end is not part of the line.
    """
    partitions = records[PARTITION].dictionary_encode()
    files = pc.binary_join_element_wise(topic, partitions.dictionary.cast(pa.string()), "-")
    logs = pc.binary_join_element_wise(_LOG_BEGIN, files, "")
    columns = {name: records[name] for name in records.schema.names if name != PARTITION}
    columns["file"] = pa.DictionaryArray.from_arrays(partitions.indices, files)
    columns["log"] = pa.DictionaryArray.from_arrays(partitions.indices, logs)
    columns["line"] = _without_ends(records["line"])
    return pa.RecordBatch.from_pydict(columns)


def _without_ends(lines: pa.Array) -> pa.Array:
    """Return lines without the line feed that ends them, and a carriage return before it."""
    values = lines.cast(pa.binary())
    has_end = pc.ends_with(values, b"\n")
    if pc.any(has_end).as_py():
        has_both = pc.ends_with(values, b"\r\n")
        values = pc.if_else(has_end, pc.binary_slice(values, 0, -1), values)
        values = pc.if_else(has_both, pc.binary_slice(values, 0, -1), values)
    return values.view(pa.string())  # not all of them are UTF-8, which a cast would refuse
