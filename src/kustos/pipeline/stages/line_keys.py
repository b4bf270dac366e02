"""The key of each line, in columns: an event's own id, for any other line a digest of log and text."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, DateType, StringType, StructField, StructType

from kustos.pipeline.stages.generated_ids import EVENT_ID_BEGIN, line_digest
from kustos.pipeline.stages.line_columns import PARSED_SCHEMA

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

IDENTIFIED: Final = to_arrow_schema(IDENTIFIED_SCHEMA, timezone="UTC")


def identified(parsed: pa.RecordBatch) -> pa.RecordBatch:
    """Return lines (PARSED_SCHEMA) with their keys, as IDENTIFIED_SCHEMA."""
    event_ids, positions = parsed["event_id"], parsed["position"]
    brings_id = event_ids.is_valid()
    keys: pa.Array = pa.nulls(parsed.num_rows, pa.string())
    if event_ids.null_count:
        others = pc.invert(brings_id)
        unnamed = parsed.filter(others)
        generated = (
            EVENT_ID_BEGIN + line_digest(*each)
            for each in zip(
                unnamed["log"].to_pylist(),
                unnamed["position"].to_pylist(),
                unnamed["line"].cast(pa.binary()).to_pylist(),
                strict=True,
            )
        )
        keys = pc.replace_with_mask(keys, others, pa.array(generated, pa.string()))
    columns = [
        parsed["time"].cast(pa.date32()),
        brings_id,
        keys,
        pc.and_not(positions.is_null(), brings_id),
    ]
    return pa.RecordBatch.from_arrays([*parsed.columns, *columns], schema=IDENTIFIED)
