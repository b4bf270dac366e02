"""Result tables: decisions of other ACLs, the access review, findings, anomalies, discrepancies."""

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kustos.pipeline.schemas.acls import ACL_SCHEMA
from kustos.pipeline.schemas.events import RULE_SCHEMA

QUESTION_COLUMNS: Final = ("principal", "host", "operation", "resource_type", "resource_name")
"""The inputs of a decision besides the ACLs."""

DECISIONS_SCHEMA: Final = StructType(
    [
        StructField("principal", StringType()),
        StructField("host", StringType()),
        StructField("operation", StringType()),
        StructField("resource_type", StringType()),
        StructField("resource_name", StringType()),
        StructField("access", StringType()),
        StructField("recorded_decision", StringType()),
        StructField("recorded_rule", RULE_SCHEMA),
        StructField("decision", StringType()),
        StructField("rule", StringType()),
        StructField("event_count", LongType()),
        StructField("reference_count", LongType()),
        StructField("first_time", TimestampType()),
        StructField("last_time", TimestampType()),
        StructField("sample_event_id", StringType()),
    ]
)
"""The recorded decision (`recorded_*`) beside that of other ACLs (`decision`, and `rule` as the text of
the audit line). An ERROR allows nothing, like DENIED."""

JUDGED_SCHEMA: Final = StructType(
    [
        *DECISIONS_SCHEMA.fields,
        StructField("judged_by", StringType()),
        StructField("verdict", StringType()),
        StructField("is_same_rule", BooleanType()),
        StructField("first_acl_offset", LongType()),
        StructField("last_acl_offset", LongType()),
    ]
)
"""Table `judged`: the recorded decision beside that of the ACLs then in force. `judged_by`: OFFSET if the
event has the offset of the ACLs (`*_acl_offset`), else TIME. `verdict`: AGREES, DIFFERS, UNCERTAIN (too many
open questions at once), OUT_OF_RANGE (outside of the history), NOT_JUDGED (no ACL decided). `is_same_rule`
compares the rules if both sides name one; an ERROR allows nothing, like DENIED."""

ACCESS_REVIEW_SCHEMA: Final = StructType(
    [
        StructField("as_of", TimestampType()),
        StructField("team", StringType()),
        StructField("principal", StringType()),
        StructField("operation", StringType()),
        StructField("resource_type", StringType()),
        StructField("resource_name", StringType()),
        StructField("pattern_type", StringType()),
        StructField("hosts", ArrayType(StringType())),
        StructField("basis", StringType()),
        StructField("granted_by", ArrayType(ACL_SCHEMA)),
        StructField("granted_since", TimestampType()),
        StructField("last_used", TimestampType()),
        StructField("use_count", LongType()),
        StructField("denied_count", LongType()),
        StructField("dormant_days", IntegerType()),
        StructField("is_dormant", BooleanType()),
        StructField("recorded_days", IntegerType()),
        StructField("covered_since", DateType()),
    ]
)
"""Table `access_review`: a row for each principal, operation and resource (a name that was used, or the
pattern of an unused grant); a super user has a row of its own. `basis` is what allows it at `as_of`:
MatchingAcl, SuperUser, DefaultAllow, or `Denied` if nothing allows it any more or DENYs cover the whole
grant. `granted_by` is empty if only super users or a default allow it.
`dormant_days` since the last recorded use, or since the grant if there was none; null if neither is known.
`is_dormant` is null where it is too early to say: the record does not cover the window, or the grant is
younger. `recorded_days` of the window have a record, and from `covered_since` on it is without long gaps
(`queries.record`)."""

ENTITLEMENTS_SCHEMA: Final = StructType(
    [
        StructField("as_of", TimestampType()),
        StructField("team", StringType()),
        StructField("principal", StringType()),
        StructField("operation", StringType()),
        StructField("resource_type", StringType()),
        StructField("resource_name", StringType()),
        StructField("pattern_type", StringType()),
        StructField("host", StringType()),
        StructField("breadth", StringType()),
        StructField("basis", StringType()),
        StructField("is_implied", BooleanType()),
        StructField("effect", StringType()),
        StructField("denied_by", ArrayType(ACL_SCHEMA)),
        StructField("deny_count", IntegerType()),
        StructField("granted_by", ArrayType(ACL_SCHEMA)),
        StructField("granted_since", TimestampType()),
        StructField("principal_count", LongType()),
        StructField("name_count", LongType()),
        StructField("use_count", LongType()),
        StructField("used_by_count", LongType()),
        StructField("used_name_count", LongType()),
        StructField("last_used", TimestampType()),
        StructField("dormant_days", IntegerType()),
        StructField("is_dormant", BooleanType()),
        StructField("recorded_days", IntegerType()),
        StructField("covered_since", DateType()),
    ]
)
"""Table `entitlements`: a row for each ALLOW and operation that it allows.

`is_implied`: the ACL names another operation, from which this one follows. `granted_by` is the ACL; empty for
a super user, who may do `ALL` on `ANY`, `*` (`basis` SuperUser), and for the default that allows what no ACL
names (DefaultAllow). `breadth`: EVERYONE (`User:*`), WILDCARD (every name), PREFIXED or NAMED. `effect`:
WHOLE, PARTLY_DENIED, or VOID if DENYs leave nothing; `denied_by` are the first of `deny_count` DENYs.
`principal_count` and `name_count`: known principals and names that it is for; names are null beyond ACLs, and
one that was only denied is not known. `use_count` counts recorded
uses that it allows, by `used_by_count` principals on `used_name_count` names; a use that several ACLs allow
counts for each. `access_review` has the last four columns, too."""


def _reported(identifier: str) -> list[StructField]:
    """Return the columns that findings, anomalies and discrepancies share."""
    return [
        StructField(identifier, StringType()),
        StructField("kind", StringType()),
        StructField("severity", StringType()),
        StructField("score", DoubleType()),
        StructField("principal", StringType()),
        StructField("resource_type", StringType()),
        StructField("resource_name", StringType()),
        StructField("day", DateType()),
        StructField("first_time", TimestampType()),
        StructField("last_time", TimestampType()),
        StructField("event_count", LongType()),
        StructField("reason", StringType()),
        StructField("evidence", StringType()),
    ]


FINDINGS_SCHEMA: Final = StructType(
    [
        *_reported("finding_id"),
        StructField("acl", ACL_SCHEMA),
        StructField("is_safe_to_remove", BooleanType()),
    ]
)
"""Table `findings`: unused, redundant, shadowed and orphaned ACLs, and broken rules.

`finding_id` is the same for the same finding in every run. `severity` is HIGH, MEDIUM or LOW, `score` from 0
to 1. `reason` is a sentence for people; `evidence` is a JSON object for programs. `is_safe_to_remove`: for an
ACL, whether a replay of all recorded access without it flips nothing; null where that would flip nothing, but
the record or the ACL is too young for it to mean anything."""

DISCREPANCIES_SCHEMA: Final = StructType(_reported("discrepancy_id"))
"""Table `discrepancies`: recorded decisions that differ from those of the ACLs then in force."""

FOUND_ANOMALIES_SCHEMA: Final = StructType(_reported("anomaly_id"))
"""The anomalies of one search."""

ANOMALIES_SCHEMA: Final = StructType(
    [*FOUND_ANOMALIES_SCHEMA.fields, StructField("suppressed_by", StringType())]
)
"""Table `anomalies`: a row for each anomaly and day on which it was seen, in whichever run. `anomaly_id` is
the same on each day. `suppressed_by`: the reason of the rule that suppresses it."""

ANOMALY_STATES_SCHEMA: Final = StructType(
    [
        StructField("anomaly_id", StringType()),
        StructField("state", StringType()),
        StructField("kind", StringType()),
        StructField("severity", StringType()),
        StructField("score", DoubleType()),
        StructField("principal", StringType()),
        StructField("resource_type", StringType()),
        StructField("resource_name", StringType()),
        StructField("first_time", TimestampType()),
        StructField("last_time", TimestampType()),
        StructField("first_day", DateType()),
        StructField("last_day", DateType()),
        StructField("day_count", LongType()),
        StructField("event_count", LongType()),
        StructField("reason", StringType()),
        StructField("evidence", StringType()),
        StructField("suppressed_days", LongType()),
        StructField("suppressed_by", StringType()),
        StructField("recorded_at", TimestampType()),
        StructField("acknowledged_by", StringType()),
        StructField("acknowledged_at", TimestampType()),
        StructField("acknowledged_reason", StringType()),
        StructField("acknowledged_day", DateType()),
        StructField("unseen_days", LongType()),
        StructField("recorded_days", LongType()),
        StructField("is_over", BooleanType()),
    ]
)
"""Table `anomaly_states`: a row for each anomaly, over all runs. `state` is OPEN,
ACKNOWLEDGED, SUPPRESSED or RESOLVED. Severity, score, reason and evidence are those of the last day.
`suppressed_days`: on how many of its days a rule suppressed it. `recorded_at`: the first run that found it.
`acknowledged_day`: its last day at the time of the acknowledgement. It was not seen on the `unseen_days`
after its last one up to the last judged day, of which `recorded_days` have a record; `is_over`: these are a
week and the record covers it, null where it is too early to say."""
