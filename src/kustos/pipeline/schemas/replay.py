"""Tables of a what-if replay: decisions that other ACLs change, row by row and summed."""

from typing import Final

from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

_COUNTS_AND_TIMES: Final = [
    StructField("event_count", LongType()),
    StructField("reference_count", LongType()),
    StructField("recorded_allowed_count", LongType()),
    StructField("first_time", TimestampType()),
    StructField("last_time", TimestampType()),
    StructField("sample_event_id", StringType()),
]

FLIPS_SCHEMA: Final = StructType(
    [
        StructField("kind", StringType()),
        StructField("principal", StringType()),
        StructField("host", StringType()),
        StructField("operation", StringType()),
        StructField("resource_type", StringType()),
        StructField("resource_name", StringType()),
        StructField("access", StringType()),
        StructField("from_decision", StringType()),
        StructField("from_rule", StringType()),
        StructField("to_decision", StringType()),
        StructField("to_rule", StringType()),
        *_COUNTS_AND_TIMES,
    ]
)
"""Table `replay_flips`: a row for each recorded access that the candidate ACLs decide differently.

`kind` is LOST (allowed before, not now), GAINED, or RULE_CHANGED (the same decision by another rule).
`from_*` is the baseline: the recorded decision, or that of the ACLs to compare with. Of the `event_count`
events `recorded_allowed_count` were allowed when they happened."""

_SUMS: Final = [
    StructField("lost_count", LongType()),
    StructField("gained_count", LongType()),
    StructField("rule_changed_count", LongType()),
    StructField("lost_listing_count", LongType()),
    StructField("gained_listing_count", LongType()),
    StructField("first_time", TimestampType()),
    StructField("last_time", TimestampType()),
    StructField("sample_event_id", StringType()),
]

FLIPS_BY_PRINCIPAL_SCHEMA: Final = StructType(
    [
        StructField("principal", StringType()),
        StructField("resource_count", LongType()),
        *_SUMS,
    ]
)
"""Table `replay_by_principal`. Counts are of events that were a use (ACCESS), and of probes that would be
allowed, since then no other decision follows; `*_listing_count` of names that only filtered a list: such a
flip breaks nobody, it shows fewer or more names. The sample is a lost event if there is one, else a gained
one; `resource_count` counts resources with a flip of any kind."""

FLIPS_BY_RESOURCE_SCHEMA: Final = StructType(
    [
        StructField("resource_type", StringType()),
        StructField("resource_name", StringType()),
        StructField("principal_count", LongType()),
        *_SUMS,
    ]
)
"""Table `replay_by_resource`: as `replay_by_principal`, the other way round."""

FLIPS_BY_KIND_SCHEMA: Final = StructType(
    [
        StructField("kind", StringType()),
        StructField("access", StringType()),
        StructField("flip_count", LongType()),
        StructField("principal_count", LongType()),
        StructField("resource_count", LongType()),
        *_COUNTS_AND_TIMES,
    ]
)
"""Table `replay_by_kind`: at most nine rows, one for each kind and way of access that occurred."""
