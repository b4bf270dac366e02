"""Table `recommendations`: least privilege, an ACL a row, with its evidence."""

from typing import Final

from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from kustos.pipeline.schemas.acls import ACL_SCHEMA

RECOMMENDATIONS_SCHEMA: Final = StructType(
    [
        StructField("outcome", StringType()),
        *ACL_SCHEMA.fields,
        StructField("access_count", LongType()),
        StructField("event_count", LongType()),
        StructField("name_count", LongType()),
        StructField("known_count", LongType()),
        StructField("over_grant_count", LongType()),
        StructField("examples", ArrayType(StringType())),
        StructField("reason", StringType()),
    ]
)
"""`outcome` RECOMMENDED is an ACL: it serves `access_count` distinct accesses, `event_count` events, to
`name_count` names (each access counts for one ACL), matches `known_count` known names, of which
`over_grant_count` were never used with its operation. UNSERVED is access that no ACL can allow, OVERRULED a
denied question for any resource of a type that cannot stay denied: both have the question in the columns of
the ACL, without `pattern_type` and `permission_type`. `reason` is for people."""
