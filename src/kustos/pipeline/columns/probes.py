"""Probes: denials that refuse nothing. The rule in two forms, for Spark and for Arrow.

Some requests first check a permission on the cluster, with Kafka's `logIfDenied` false, and if it is denied
another check decides: each start of an idempotent producer without IDEMPOTENT_WRITE is such a denial. A check
without a name, for any resource of the type, is the last one: its denial refuses. A denial without
`log_if_denied` (lines of Kafka's own logger, older tables) counts as a refusal, too.
"""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as sql

from kustos.pipeline.columns.codes import Coded

ACCESS: Final = "ACCESS"
"""A use, allowed or refused."""
LISTING: Final = "LISTING"
"""A name that only filtered a list."""
PROBE: Final = "PROBE"
"""A denial after which another check decided."""


def way_of_access() -> Column:
    """Return `access` of a row of `audit_events`, PROBE for a probe: what is `access` in the roll-up."""
    is_probe = (
        (sql.col("access") == ACCESS)
        & (sql.col("decision") == "DENIED")
        & ~sql.col("log_if_denied")
        & sql.col("resource_name").isNotNull()
    )
    return sql.when(is_probe, PROBE).otherwise(sql.col("access"))


def ways_of_access(chunk: Mapping[str, Any]) -> Coded:
    """Return the same for columns of `audit_events`: texts as codes, `log_if_denied` as Arrow has it."""
    access: Coded = chunk["access"]
    is_logged = pc.fill_null(chunk["log_if_denied"].cast(pa.bool_()), True)
    is_probe = (
        access.is_text(ACCESS)
        & chunk["decision"].is_text("DENIED")
        & ~is_logged.to_numpy(zero_copy_only=False)
        & ~chunk["resource_name"].is_null()
    )
    return access.with_text(is_probe, PROBE)


def is_flip_of_use() -> Column:
    """Return whether a flip is of a use: a probe is if it would be allowed, as then no other check follows.

    A probe that would be denied leaves the decision to the next check, which is a row of its own.
    """
    is_let_in = (sql.col("access") == PROBE) & (sql.col("kind") == "GAINED")
    return sql.coalesce((sql.col("access") == ACCESS) | is_let_in, sql.lit(False))
