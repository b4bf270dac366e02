"""The published schema of every table, as constants; `events` comes from the table of audit fields."""

from kustos.pipeline.schemas.acls import (
    ACL_HISTORY_SCHEMA,
    ACL_SCHEMA,
    DELEGATION_TOKEN_HISTORY_SCHEMA,
    METADATA_REACH_SCHEMA,
    SCRAM_CREDENTIAL_HISTORY_SCHEMA,
)
from kustos.pipeline.schemas.answers import (
    ACCESS_REVIEW_SCHEMA,
    DECISIONS_SCHEMA,
    FINDINGS_SCHEMA,
    JUDGED_SCHEMA,
    QUESTION_COLUMNS,
)
from kustos.pipeline.schemas.events import (
    ACCESS_COUNTS_SCHEMA,
    ANY_EVENT_SCHEMA,
    AUDIT_EVENTS_SCHEMA,
    EVENT_SCHEMA,
    LINES_SCHEMA,
    QUARANTINE_SCHEMA,
    REQUIRED_FIELDS,
    REQUIRED_SECURITY_FIELDS,
    SECURITY_EVENTS_SCHEMA,
    SECURITY_SCHEMA,
    event_struct,
    relaxed,
)
from kustos.pipeline.schemas.privilege import RECOMMENDATIONS_SCHEMA
from kustos.pipeline.schemas.replay import (
    FLIPS_BY_KIND_SCHEMA,
    FLIPS_BY_PRINCIPAL_SCHEMA,
    FLIPS_BY_RESOURCE_SCHEMA,
    FLIPS_SCHEMA,
)
from kustos.pipeline.schemas.rollup import AUDIT_ROLLUP_SCHEMA, ROLLUP_GRAIN, RULE_SCHEMA

__all__ = [
    "ACCESS_COUNTS_SCHEMA",
    "ACCESS_REVIEW_SCHEMA",
    "ACL_HISTORY_SCHEMA",
    "ACL_SCHEMA",
    "ANY_EVENT_SCHEMA",
    "AUDIT_EVENTS_SCHEMA",
    "AUDIT_ROLLUP_SCHEMA",
    "DECISIONS_SCHEMA",
    "DELEGATION_TOKEN_HISTORY_SCHEMA",
    "EVENT_SCHEMA",
    "FINDINGS_SCHEMA",
    "FLIPS_BY_KIND_SCHEMA",
    "FLIPS_BY_PRINCIPAL_SCHEMA",
    "FLIPS_BY_RESOURCE_SCHEMA",
    "FLIPS_SCHEMA",
    "JUDGED_SCHEMA",
    "LINES_SCHEMA",
    "METADATA_REACH_SCHEMA",
    "QUARANTINE_SCHEMA",
    "QUESTION_COLUMNS",
    "RECOMMENDATIONS_SCHEMA",
    "REQUIRED_FIELDS",
    "REQUIRED_SECURITY_FIELDS",
    "ROLLUP_GRAIN",
    "RULE_SCHEMA",
    "SCRAM_CREDENTIAL_HISTORY_SCHEMA",
    "SECURITY_EVENTS_SCHEMA",
    "SECURITY_SCHEMA",
    "event_struct",
    "relaxed",
]
