"""Which lines are copies of one another: the same result for any split of the input into runs.

Theory of operation. An event with an id of its own is the same event wherever the id occurs with the same
content on the same day, of one cluster: events of two clusters are never copies. A line without one (Kafka's
text, and every quarantined line) is identified by its log and its text: the n-th equal line of a log is the
same line in each copy of the log. So a log that grew, was renamed, moved or compressed gives no line twice,
real repetitions within a millisecond count, and equal lines of two brokers are two events. Lines of a topic
have a position instead.

Lines that share a key are compared in a bucket (`outcomes`); of all others nothing is asked (`of_runs`).
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, DateType, StringType, StructField, StructType

from kustos.pipeline.columns.codes import coded_fields
from kustos.pipeline.lines.generated_ids import EVENT_ID_BEGIN, line_digest
from kustos.pipeline.lines.line_columns import PARSED_SCHEMA, PLAIN
from kustos.pipeline.tables.deduplication.outcomes import SUSPECTS, content_digests

IDENTIFIED_SCHEMA: Final = StructType(
    [
        *PARSED_SCHEMA.fields,
        StructField("day", DateType()),
        StructField("brings_id", BooleanType()),
        StructField("line_key", StringType()),
        StructField("is_counted", BooleanType()),
    ]
)
"""A parsed line with `day`, its date in UTC. `brings_id`: its text has an event id. `line_key`: the key of a
line without one, else null. `is_counted`: equal lines of its file are numbered."""

IDENTIFIED: Final = pa.schema(coded_fields(list(to_arrow_schema(IDENTIFIED_SCHEMA, timezone="UTC")), PLAIN))
"""The same with codes in place of texts, but for those of PLAIN."""

MILLISECONDS_OF_A_DAY: Final = 86_400_000


def identified(parsed: pa.RecordBatch) -> pa.RecordBatch:
    """Return lines (PARSED_SCHEMA) with their keys, as IDENTIFIED_SCHEMA.

    The key is an event's own id, for any other line a digest of log and text.
    """
    event_ids, positions = parsed["event_id"], parsed["position"]
    brings_id = event_ids.is_valid()
    keys: pa.Array = pa.nulls(parsed.num_rows, pa.string())
    if event_ids.null_count:
        others = pc.invert(brings_id)
        digests = line_digests(parsed.filter(others))
        keys = pc.replace_with_mask(keys, others, pc.binary_join_element_wise(EVENT_ID_BEGIN, digests, ""))
    columns = [
        parsed["time"].cast(pa.date32()),
        brings_id,
        keys,
        pc.and_not(positions.is_null(), brings_id),
    ]
    return pa.RecordBatch.from_arrays([*parsed.columns, *columns], schema=IDENTIFIED)


def suspects(lines: pa.RecordBatch, file: int, secret: str, first_row: int = 0) -> pa.RecordBatch:
    """Return identified lines as `outcomes` takes them, without digests of their texts."""
    brings_id = lines["brings_id"]
    count = lines.num_rows
    content = pa.nulls(count, pa.uint64())
    if pc.any(brings_id).as_py():
        content = pc.replace_with_mask(content, brings_id, content_digests(lines.filter(brings_id), secret))
    columns = {
        "file": pa.repeat(pa.scalar(file, pa.int32()), count),
        "row": pa.array(np.arange(first_row, first_row + count)),
        "key": pc.coalesce(lines["event_id"], lines["line_key"]),
        "content": content,
        "line_digest": pa.nulls(count, pa.string()),
    }
    fields = zip(SUSPECTS.names, SUSPECTS.types, strict=True)
    return pa.RecordBatch.from_arrays(
        [columns[name] if name in columns else lines[name].cast(kind) for name, kind in fields],
        schema=SUSPECTS,
    )


def line_digests(lines: pa.RecordBatch | pa.Table) -> pa.Array:
    """Return the digest of each line by its columns `log`, `position` and `line`."""
    # codes become objects of Python at four times the time that texts take
    columns = (lines["log"].cast(pa.string()), lines["position"], lines["line"].cast(pa.binary()))
    found = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array([line_digest(*each) for each in found], pa.string())
