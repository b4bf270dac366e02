"""How many decisions an event stands for. The rule in two forms, for Spark and for Arrow.

Beyond a principal's budget the gateway sums up equal decisions. Their event has their number in
`decision_count`; every other event, also one of an older version or of Kafka's own logger, is one decision.
"""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as sql

DECISION_COUNT: Final = "decision_count"


def decision_count() -> Column:
    """Return the number of decisions of a row of `audit_events`."""
    return sql.coalesce(sql.col(DECISION_COUNT).cast("long"), sql.lit(1).cast("long"))


def decision_counts(chunk: Mapping[str, Any]) -> pa.Array:
    """Return the same for columns of `audit_events`, as int64."""
    return pc.fill_null(chunk[DECISION_COUNT].cast(pa.int64()), 1)
