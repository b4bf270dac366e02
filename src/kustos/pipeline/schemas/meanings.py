"""What each column of the tables means: texts for the reference page, and comments in Delta's logs."""

from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import DataType, DateType, StructType, TimestampType

from kustos.authorizer.audit import AUDIT_FIELDS, SECURITY_FIELDS

_COMMON: Final[Mapping[str, str]] = {
    "access": "ACCESS for a use, LISTING for a name that only filtered a list, PROBE for a denial "
    "that refused nothing",
    "acl": "the ACL that the finding is about; null for other findings",
    "anomaly_id": "id of the anomaly, the same in each run and on each day",
    "as_of": "moment for which the review was made",
    "cluster": "name or id of the cluster; empty if nothing names it",
    "covered_since": "first day from which on the record has no long gaps; null if it has some up to its end",
    "day": "day of the event in UTC; the partition",
    "decision": "ALLOWED, DENIED, or ERROR, which allows nothing",
    "discrepancy_id": "id of the discrepancy, the same in each run",
    "dormant_days": "days since the last recorded use, or since the grant if there was none; null if neither "
    "is known",
    "event_count": "recorded decisions; an event that sums up several counts as these",
    "evidence": "figures behind the finding, as a JSON object",
    "file": "path of the file below the audit folder, or topic and partition",
    "finding_id": "id of the finding, the same in each run and on each day",
    "first_time": "time of the first event",
    "granted_by": "ACLs that allow it; empty if only super users or a default do",
    "granted_since": "time at which the oldest of these ACLs was created; null if it is not known",
    "host": "address of the client",
    "is_dormant": "whether there was no use in the window; null while the record or the grant is too young",
    "is_safe_to_remove": "for an ACL, whether a replay without it changes no recorded decision; null "
    "if the record or the ACL is too young to tell",
    "kind": "kind of the finding, such as UNUSED_ACL or NEW_ACCESS",
    "last_time": "time of the last event",
    "last_used": "time of the last recorded use; null if there was none",
    "line": "the line, without its line feed",
    "operation": "operation of the ACL or the request: READ, WRITE, ...",
    "pattern_type": "LITERAL or PREFIXED",
    "principal": "principal, as `Type:name`",
    "reason": "why, as a sentence",
    "recorded_days": "days of the window for which the record has events",
    "reference_count": "items of requests that these decisions concern",
    "resource_name": "name of the resource or pattern; null for any resource of the type",
    "resource_type": "TOPIC, GROUP, CLUSTER, ...",
    "rule": "rule that decided: `kind`, and the ACL if it was one",
    "sample_event_id": "smallest event id among the events; a re-run chooses the same",
    "score": "how unusual or grave the finding is, from 0 to 1",
    "severity": "HIGH, MEDIUM or LOW",
    "suppressed_by": "reason of the rule that suppresses the finding; null if none does",
    "team": "team that answers for the principal; null if the configuration names none",
    "use_count": "recorded uses that it allows",
}
"""Meanings of columns that mean the same in each table which `OF_TABLES` does not list with another one."""

_SOURCE: Final = {
    "time": "time of the event",
    "source_format": "format of the line, such as kustos or kafka",
    "source_file": "file that the event was read from",
    "conflicting_file": "file with another event of the same id and other content; null if there is none",
}

_RECORDED: Final = {
    "recorded_decision": "decision that the event has",
    "recorded_rule": "rule that the event has",
}

_FINDING: Final = {
    "day": "day on which it was seen; null for a finding that is not about a day",
}

OF_TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "audit_events": {
        field.name.partition(".")[0]: field.meaning for field in AUDIT_FIELDS if "." not in field.name
    }
    | _SOURCE,
    "security_events": {field.name: field.meaning for field in SECURITY_FIELDS} | _SOURCE,
    "audit_rollup": {
        "hours": "bit h is set if there was an event in hour h of UTC",
    },
    "quarantine": {
        "reason": "why the line is not an event",
        "line": "first characters of the line",
        "line_length": "length of the whole line in characters",
        "line_id": "id of the line: equal for copies, different for equal lines of one file",
        "cluster": "cluster that the input declares; empty if it declares none",
    },
    "audit_raw": {
        "log": "log of the line, the same for all of its copies: the beginning of the file, or the partition",
        "position": "offset of the record; null for a file",
        "fault": "reason for which the line is quarantined unread; null for others",
        "layout": "log4j's pattern of the line; null for Kafka's own layout and for JSON",
        "cluster": "cluster that the input declares; null leaves it to the event, empty text names none",
    },
    "replay_flips": {
        "kind": "LOST (allowed before, not now), GAINED, or RULE_CHANGED (the same decision by another rule)",
        "from_decision": "recorded decision, or that of the baseline ACLs",
        "from_rule": "rule of that decision",
        "to_decision": "decision of the candidate ACLs",
        "to_rule": "rule of that decision",
        "recorded_allowed_count": "how many of the events were allowed when they happened",
    },
    "access_review": {
        "resource_name": "name that was used, or the pattern of a grant without use",
        "hosts": "hosts of the ACLs that allow it",
        "basis": "what allows it at `as_of`: MatchingAcl, SuperUser, DefaultAllow, or Denied",
        "use_count": "recorded uses",
        "denied_count": "recorded denials",
    },
    "entitlements": {
        "resource_name": "name or prefix of the pattern, `*` for every name",
        "host": "host of the ACL",
        "breadth": "EVERYONE (`User:*`), WILDCARD (every name), PREFIXED or NAMED",
        "basis": "MatchingAcl, SuperUser, or DefaultAllow for what no ACL names",
        "is_implied": "whether the ACL names another operation from which this one follows",
        "effect": "WHOLE, PARTLY_DENIED, or VOID if DENYs leave nothing",
        "denied_by": "the first of the DENYs that apply",
        "deny_count": "how many DENYs apply",
        "principal_count": "known principals that it is for",
        "name_count": "known names that it is for; null beyond ACLs",
        "used_by_count": "principals that used it",
        "used_name_count": "names on which it was used",
    },
    "findings": _FINDING,
    "discrepancies": _FINDING,
    "anomalies": {"day": "day on which the anomaly was seen"},
    "anomaly_states": {
        "state": "OPEN, ACKNOWLEDGED, SUPPRESSED or RESOLVED",
        "first_day": "first day on which it was seen",
        "last_day": "last day on which it was seen; severity, score, reason and evidence are of this day",
        "day_count": "days on which it was seen",
        "suppressed_days": "days on which a rule suppressed it",
        "recorded_at": "time of the first run that found it",
        "acknowledged_by": "who acknowledged it; null without an acknowledgement",
        "acknowledged_at": "time of the acknowledgement",
        "acknowledged_reason": "reason of the acknowledgement",
        "acknowledged_day": "last day of the anomaly at the time of the acknowledgement",
        "unseen_days": "days after its last one, up to the last judged day",
        "recorded_days": "unseen days for which the record has events",
        "is_over": "whether these are a week that the record covers; null where it is too early to say",
    },
    "judged": _RECORDED
    | {
        "decision": "decision of the ACLs then in force",
        "rule": "rule of that decision, as a text",
        "judged_by": "OFFSET if the event has the offset of its ACLs, else TIME",
        "verdict": "AGREES, DIFFERS, UNCERTAIN, OUT_OF_REACH (of the history) or NOT_JUDGED (no ACL decided)",
        "is_same_rule": "whether both rules are the same; null unless both sides name one",
        "first_acl_offset": "lowest offset of the ACLs among the events",
        "last_acl_offset": "highest offset of the ACLs among the events",
    },
    "runs": {
        "number": "number of the commit, from 1 up",
        "run_id": "id of the run; for a batch of a stream, its name and `@NUMBER`",
        "kind": "`run` for one that read input, `upkeep` for a change of the tables",
        "summary": "counts of the run, and the contents of each table after it, as JSON",
        "newest_time_ms": "time of the newest event so far",
        "stale_days": "days whose roll-up lacks events",
        "closed_before": "day before which events come too late; null while no retention has dropped any",
        "versions": "version of each table after the run, as JSON",
    },
    "inputs": {
        "path": "path of the file",
        "size_bytes": "size of what was read",
        "modified_ns": "time of its last change",
        "inode": "inode as a text; 0 within an archive",
        "log": "log that the file is a copy of",
        "number": "number of the run that read it",
        "beginning": "checksums of the beginning of the file, by which it is known again",
        "source": "source that the input names; null without one",
        "cluster": "cluster that was declared for the log; empty without one",
    },
}
"""Meanings of columns in one table."""

RULE_FIELDS: Final = {
    name: field.meaning
    for field in AUDIT_FIELDS
    for struct, _, name in [field.name.partition(".")]
    if struct == "rule" and name
}
"""Meanings of the fields of a rule; those of an ACL are among them."""


def meaning_of(table: str, column: str) -> str:
    """Return what a column of a table means; raise `KeyError` for one without a meaning."""
    return OF_TABLES.get(table, {}).get(column) or _COMMON[column]


def unit_of(column: str, kind: DataType) -> str:
    """Return the unit of a column, by its type and the end of its name; empty for texts and the like."""
    if isinstance(kind, TimestampType):
        return "UTC"
    if isinstance(kind, DateType):
        return "day, UTC"
    if isinstance(kind, StructType):
        return ""
    return next((unit for end, unit in _UNITS.items() if column.endswith(end)), "")


_UNITS: Final = {
    "time_ms": "ms since 1970-01-01",
    "_ns": "ns since 1970-01-01",
    "_us": "microseconds",
    "_bytes": "bytes",
    "_count": "number",
    "_days": "days",
    "line_length": "characters",
}
