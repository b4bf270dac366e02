"""Kafka's own audit text as columns of a DataFrame; what it looks like says `kafka_grammar`."""

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StringType, StructField, StructType

from kustos.acl import AclOperation, ResourceType
from kustos.pipeline.schemas import EVENT_SCHEMA, relaxed
from kustos.pipeline.stages.kafka_columns import read_lines
from kustos.pipeline.stages.kafka_grammar import Told, spellings

_EVENT: Final = relaxed(EVENT_SCHEMA)
TOLD_SCHEMA: Final = StructType(
    [*(_EVENT[name] for name in Told._fields), StructField("reason", StringType())]
)


def told(text: Column, time_zone: str) -> Column:
    """Return what each line of text tells, of TOLD_SCHEMA: fields of the event, or `reason` if it is none.

    All are null for a null. `time_zone` (an IANA name) is that of the brokers whose lines say none. The lines
    are read in Arrow batches by the workers' Python, which must have kustos; in one place, so that no filter
    on what a line tells has it read twice.
    """

    def read(texts: pa.Array) -> pa.Array:
        return read_lines(texts, time_zone)

    make: Any = arrow_udf
    column: Column = make(read, TOLD_SCHEMA).asNondeterministic()(text)
    return column


def enum_name(column: Column, kinds: Iterable[ResourceType | AclOperation]) -> Column:
    """Return the name of a resource type or operation, also of one written as `DescribeConfigs`.

    One that we do not know gets its name by the same rule.
    """
    names = [sql.lit(word) for pair in spellings(kinds).items() for word in pair]
    by_rule = sql.upper(sql.regexp_replace(column, "(?<=[a-z])(?=[A-Z])", "_"))
    return sql.coalesce(sql.try_element_at(sql.create_map(*names), column), by_rule)
