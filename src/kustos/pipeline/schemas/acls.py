"""ACLs, SCRAM credentials and delegation tokens as rows: as they are, were (valid from, to), and could be."""

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

ACL_SCHEMA: Final = StructType(
    [
        StructField("resource_type", StringType()),
        StructField("resource_name", StringType()),
        StructField("pattern_type", StringType()),
        StructField("principal", StringType()),
        StructField("host", StringType()),
        StructField("operation", StringType()),
        StructField("permission_type", StringType()),
    ]
)
"""An ACL: Kafka's names for the enums, texts as they stand in its records."""

_VALIDITY: Final = [
    StructField("valid_from_offset", LongType()),
    StructField("valid_from_time", TimestampType()),
    StructField("valid_to_offset", LongType()),
    StructField("valid_to_time", TimestampType()),
    StructField("is_in_first_snapshot", BooleanType()),
]
"""Valid from its record up to, not including, the record that ended it; null `valid_to_*`: still valid.

An item of the oldest snapshot began at an unknown time before it: `valid_from_*` are then those of the
snapshot, and `is_in_first_snapshot` is true. Times are those of the record batches; if a clock went back, the
latest time before is kept, so that times rise with offsets, and at any time the rows with `valid_from_time`
<= it < `valid_to_time` were in force. A row that ends where it begins was never in force.
"""

ACL_HISTORY_SCHEMA: Final = StructType([StructField("acl_id", StringType()), *ACL_SCHEMA.fields, *_VALIDITY])
"""Table `acl_history`: an ACL's life is one row; an ACL that was created again has two, with two ids."""

SCRAM_CREDENTIAL_HISTORY_SCHEMA: Final = StructType(
    [
        StructField("user", StringType()),
        StructField("mechanism", StringType()),
        StructField("iterations", IntegerType()),
        *_VALIDITY,
    ]
)
"""Table `scram_credential_history`: a row for each time a credential was set, without salts and keys."""

DELEGATION_TOKEN_HISTORY_SCHEMA: Final = StructType(
    [
        StructField("token_id", StringType()),
        StructField("owner", StringType()),
        StructField("requester", StringType()),
        StructField("renewers", ArrayType(StringType())),
        StructField("issue_time", TimestampType()),
        StructField("max_time", TimestampType()),
        StructField("expiry_time", TimestampType()),
        *_VALIDITY,
    ]
)
"""Table `delegation_token_history`: a row for each renewal, without the HMAC."""

METADATA_RANGE_SCHEMA: Final = StructType(
    [
        StructField("from_offset", LongType()),
        StructField("from_time", TimestampType()),
        StructField("to_offset", LongType()),
        StructField("to_time", TimestampType()),
        StructField("is_whole", BooleanType()),
        StructField("is_in_transaction", BooleanType()),
        StructField("change_count", LongType()),
    ]
)
"""Table `metadata_range`, one row: the first and last offset, both included, with a known state.

`is_whole`: nothing was ever before it. `is_in_transaction`: the last records were not committed yet, and are
left out. Before `from_*` nothing is known; `to_*` is the end of the log when it was read."""

RECOMMENDATIONS_SCHEMA: Final = StructType(
    [
        StructField("outcome", StringType()),
        *ACL_SCHEMA.fields,
        StructField("access_count", LongType()),
        StructField("event_count", LongType()),
        StructField("name_count", LongType()),
        StructField("known_count", LongType()),
        StructField("over_grant_count", LongType()),
        StructField("host_count", LongType()),
        StructField("examples", ArrayType(StringType())),
        StructField("reason", StringType()),
    ]
)
"""`outcome` RECOMMENDED is an ACL: it serves `access_count` distinct accesses, `event_count` events, to
`name_count` names (each access counts for one ACL), matches `known_count` known names, of which
`over_grant_count` were never used with its operation. UNSERVED is access that no ACL can allow, OVERRULED a
denied question for any resource of a type that cannot stay denied: both have the question in the columns of
the ACL, without `pattern_type` and `permission_type`. `reason` is for people."""
