"""The table of the fields of decisions.

The JSON schemas, Spark's StructTypes, the docs page and the writers of lines (`lines`) are all generated from
this table and from the table of security events (`security`), so they agree. `schema_version` identifies the
table of a line: a reader that knows only decisions treats a security event as a line of another version,
never as a decision.
"""

from dataclasses import dataclass
from typing import Final, Literal

AUDIT_SCHEMA_VERSION: Final = 1
"""Schema version of decisions."""

FieldKind = Literal["string", "int", "long", "boolean", "timestamp_ms"]

Scope = Literal["event", "request", "decision", "shadow"]
"""The events that share a value: none (`event`), the events of one request, or the events with the same
decision of the authorizer. The fields of scope `shadow` come last, and are written only if a shadow decision
differs."""


@dataclass(frozen=True, slots=True)
class AuditField:
    """A field of the audit event: a dotted name nests (`rule.kind`)."""

    name: str
    kind: FieldKind
    nullable: bool
    meaning: str
    source: str
    """An expression for the value; `lines` documents its names."""
    scope: Scope = "event"
    is_plain: bool = False
    """Whether the text never needs escapes: an id created by kustos, or the name of an enum member."""
    came_later: bool = False
    """Whether the field was added within this version: it is null in earlier lines."""


AUDIT_FIELDS: Final[tuple[AuditField, ...]] = (
    AuditField("schema_version", "int", False, "version of this table", "AUDIT_SCHEMA_VERSION"),
    AuditField("event_id", "string", False, "unique id of the event (UUID text)", "event_id", is_plain=True),
    AuditField(
        "time_ms",
        "timestamp_ms",
        False,
        "time of the decision, milliseconds since the epoch",
        "time_ms",
        "request",
    ),
    AuditField("node_id", "int", False, "the kustos node that decided", "node_id", "request"),
    AuditField(
        "cluster_id",
        "string",
        True,
        "id of the cluster whose ACLs decided, as `meta.properties` of the node has it",
        "cluster_id",
        "request",
        came_later=True,
    ),
    AuditField(
        "listener_name",
        "string",
        False,
        "name of the listener that the client used",
        "context.listener_name",
        "request",
    ),
    AuditField(
        "security_protocol",
        "string",
        False,
        "PLAINTEXT, SASL_PLAINTEXT, SSL or SASL_SSL",
        "context.security_protocol",
        "request",
    ),
    AuditField(
        "principal_type",
        "string",
        False,
        "type of the principal, usually `User`",
        "context.principal.principal_type",
        "request",
    ),
    AuditField(
        "principal_name", "string", False, "name of the principal", "context.principal.name", "request"
    ),
    AuditField(
        "token_authenticated",
        "boolean",
        False,
        "whether the principal logged in with a delegation token",
        "context.principal.token_authenticated",
        "request",
    ),
    AuditField(
        "host",
        "string",
        False,
        "client address as Java's getHostAddress() writes it",
        "context.host",
        "request",
    ),
    AuditField(
        "api_key", "int", False, "number of the requested API", "int(context.request_type)", "request"
    ),
    AuditField(
        "api_name",
        "string",
        False,
        "name of the API, as Kafka spells it",
        "api_name",
        "request",
    ),
    AuditField("api_version", "int", False, "version of the request", "context.request_version", "request"),
    AuditField(
        "client_id", "string", True, "client.id that the client claimed", "context.client_id", "request"
    ),
    AuditField(
        "correlation_id",
        "int",
        False,
        "number that the client gave the request",
        "context.correlation_id",
        "request",
    ),
    AuditField(
        "forwarded_by",
        "string",
        True,
        "principal that forwarded the request in an Envelope; null for a request of the client itself",
        "context.forwarded_by and str(context.forwarded_by)",
        "request",
    ),
    AuditField(
        "resource_type",
        "string",
        False,
        "TOPIC, GROUP, CLUSTER, ...",
        "action.resource_type.name",
        is_plain=True,
    ),
    AuditField(
        "resource_name",
        "string",
        True,
        "name of the resource; null if the check is for any resource of the type",
        "None if item.name is None else audited_name(action.resource_name)",
    ),
    AuditField("operation", "string", False, "READ, WRITE, ...", "action.operation.name", is_plain=True),
    AuditField(
        "decision",
        "string",
        False,
        "ALLOWED, DENIED or ERROR (which denies)",
        "decision.result.value",
        "decision",
    ),
    AuditField(
        "rule.kind",
        "string",
        False,
        "SuperUser, DefaultAllow, DefaultDeny, MatchingAcl, CustomAuthorizer or Error; ShadowMode: the ACLs "
        "deny, and the listener does not enforce them; AuthorizationOff: no authorizer decided",
        "decision.rule.kind.value",
        "decision",
    ),
    AuditField(
        "rule.resource_type",
        "string",
        True,
        "of the deciding ACL",
        "binding and binding.pattern.resource_type.name",
        "decision",
    ),
    AuditField(
        "rule.resource_name",
        "string",
        True,
        "of the deciding ACL",
        "binding and binding.pattern.name",
        "decision",
    ),
    AuditField(
        "rule.pattern_type",
        "string",
        True,
        "of the deciding ACL: LITERAL or PREFIXED",
        "binding and binding.pattern.pattern_type.name",
        "decision",
    ),
    AuditField(
        "rule.principal",
        "string",
        True,
        "of the deciding ACL",
        "binding and binding.entry.principal",
        "decision",
    ),
    AuditField(
        "rule.host", "string", True, "of the deciding ACL", "binding and binding.entry.host", "decision"
    ),
    AuditField(
        "rule.operation",
        "string",
        True,
        "of the deciding ACL",
        "binding and binding.entry.operation.name",
        "decision",
    ),
    AuditField(
        "rule.permission_type",
        "string",
        True,
        "of the deciding ACL: ALLOW or DENY",
        "binding and binding.entry.permission_type.name",
        "decision",
    ),
    AuditField(
        "reference_count",
        "int",
        False,
        "number of items in the request that the decision applies to",
        "action.reference_count",
    ),
    AuditField(
        "log_if_allowed",
        "boolean",
        False,
        "Kafka's flag: Kafka logs an ALLOWED at DEBUG",
        "action.log_if_allowed",
    ),
    AuditField(
        "log_if_denied",
        "boolean",
        False,
        "Kafka's flag: Kafka logs a DENIED at INFO. If it is false, `access` is ACCESS and there is a "
        "`resource_name`, a DENIED is a probe: it refuses nothing, because a later check decides",
        "action.log_if_denied",
    ),
    AuditField(
        "access",
        "string",
        False,
        "ACCESS for a use of the resource, LISTING for a check that filters a list of names",
        "(Access.LISTING if item.listing else Access.ACCESS).value",
        is_plain=True,
    ),
    AuditField(
        "acl_offset",
        "long",
        False,
        "metadata log offset of the ACLs that decided, -1 if the decision used none",
        "acl_offset",
        "request",
    ),
    AuditField(
        "change_offset",
        "long",
        True,
        "metadata log offset of the first record that an allowed CreateAcls or DeleteAcls wrote; null if it "
        "wrote none, or if the offset is unknown",
        "change_offset",
        "request",
        came_later=True,
    ),
    AuditField(
        "latency_us",
        "long",
        True,
        "microseconds from the moment the request was read to its decisions, with the time that it waited "
        "for upstream or for other requests; null in summary events",
        "latency_us",
        "request",
        came_later=True,
    ),
    AuditField(
        "distinct_names",
        "int",
        True,
        "number of distinct names that a summary event stands for (1000: 1000 or more); `resource_name` is "
        "one of them, but null in a summary of ALLOWED with several names; null in the event of a single "
        "decision",
        "item.distinct_names",
        came_later=True,
    ),
    AuditField(
        "decision_count",
        "int",
        True,
        "number of decisions that a summary event stands for, whose references `reference_count` sums up; "
        "null in the event of a single decision",
        "item.decision_count",
        came_later=True,
    ),
    AuditField(
        "shadow_decision",
        "string",
        True,
        "on a listener in mode `shadow`: DENIED if the ACLs would have denied what passed, ERROR if they "
        "gave no answer",
        "shadow and shadow.result",
        "shadow",
        came_later=True,
    ),
    AuditField(
        "shadow_rule",
        "string",
        True,
        "the rule of that decision, as text",
        "shadow and shadow.rule",
        "shadow",
        came_later=True,
    ),
    AuditField(
        "candidate_decision",
        "string",
        True,
        "ALLOWED or DENIED if the candidate ACLs decide otherwise than the ACLs, ERROR if they give no "
        "answer",
        "candidate and candidate.result",
        "shadow",
        came_later=True,
    ),
    AuditField(
        "candidate_rule",
        "string",
        True,
        "the rule of that decision, as text",
        "candidate and candidate.rule",
        "shadow",
        came_later=True,
    ),
    AuditField(
        "candidate_id",
        "string",
        True,
        "which candidate: a digest of its ACLs",
        "candidate and candidate.acls_id",
        "shadow",
        came_later=True,
    ),
)
