"""The tables of audit fields: of decisions, and of events on identities and settings.

The JSON schemas, Spark's StructTypes, the docs page and the writers of lines (`lines`) are all generated from
them, so they cannot disagree. `schema_version` names the table of a line: a reader that knows only
decisions takes a security event for a line of another version, never for a decision.
"""

from dataclasses import dataclass
from typing import Final, Literal

AUDIT_SCHEMA_VERSION: Final = 1
"""Schema version of decisions."""

SECURITY_SCHEMA_VERSION: Final = 2
"""Schema version of security events, the second kind of line in the same files."""

SECURITY_TEXT_MAX_CHARACTERS: Final = 255
"""Longest text kept in a security event: a claimed name may have half a megabyte."""

FieldKind = Literal["string", "int", "long", "boolean", "timestamp_ms"]

Scope = Literal["event", "request", "decision"]
"""Which events share a value: none, those of one request, or those that the authorizer decided alike."""


@dataclass(frozen=True, slots=True)
class AuditField:
    """A field of the audit event: a dotted name nests (`rule.kind`)."""

    name: str
    kind: FieldKind
    nullable: bool
    meaning: str
    source: str
    """An expression for its value, over the names that `lines` documents."""
    scope: Scope = "event"
    is_plain: bool = False
    """Whether its text needs no escapes: an id of ours, or the name of an enum's member."""
    came_later: bool = False
    """Whether the field was added within this version: it is null in earlier lines."""


AUDIT_FIELDS: Final[tuple[AuditField, ...]] = (
    AuditField("schema_version", "int", False, "version of this table", "AUDIT_SCHEMA_VERSION"),
    AuditField("event_id", "string", False, "unique id of the event (UUID text)", "event_id", is_plain=True),
    AuditField(
        "time_ms",
        "timestamp_ms",
        False,
        "when it was decided, milliseconds since the epoch",
        "time_ms",
        "request",
    ),
    AuditField("node_id", "int", False, "the kustos node that decided", "node_id", "request"),
    AuditField(
        "listener_name",
        "string",
        False,
        "listener that the client came in by",
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
        "whether it logged in with a delegation token",
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
        "the client's number for the request",
        "context.correlation_id",
        "request",
    ),
    AuditField(
        "forwarded_by",
        "string",
        True,
        "principal that forwarded the request in an Envelope",
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
        "name of the resource; null for any resource of the type",
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
        "SuperUser, DefaultAllow, DefaultDeny, MatchingAcl, CustomAuthorizer or Error",
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
        "items of the request that hung on the decision",
        "action.reference_count",
    ),
    AuditField(
        "log_if_allowed",
        "boolean",
        False,
        "Kafka's flag: an ALLOWED is worth a DEBUG line",
        "action.log_if_allowed",
    ),
    AuditField(
        "log_if_denied",
        "boolean",
        False,
        "Kafka's flag: a DENIED is worth an INFO line. If it is false, `access` is ACCESS and there is a "
        "`resource_name`, a DENIED is a probe: it refuses nothing, as another question decides",
        "action.log_if_denied",
    ),
    AuditField(
        "access",
        "string",
        False,
        "ACCESS for a use, LISTING for a filter over many names",
        "(Access.LISTING if item.listing else Access.ACCESS).value",
        is_plain=True,
    ),
    AuditField(
        "acl_offset",
        "long",
        False,
        "metadata log offset whose ACLs decided, -1 if none",
        "acl_offset",
        "request",
    ),
    AuditField(
        "change_offset",
        "long",
        True,
        "metadata log offset of the first record that an allowed CreateAcls or DeleteAcls wrote, null "
        "where it wrote none or it is not known",
        "change_offset",
        "request",
        came_later=True,
    ),
    AuditField(
        "distinct_names",
        "int",
        True,
        "number of names in this event, if too many were denied to write one each (1000: or more); "
        "`resource_name` is one of them; null in an event about one name",
        "item.distinct_names",
        came_later=True,
    ),
)

SECURITY_FIELDS: Final[tuple[AuditField, ...]] = (
    AuditField("schema_version", "int", False, "version of this table", "SECURITY_SCHEMA_VERSION"),
    AuditField("event_id", "string", False, "unique id of the event (UUID text)", "event_id"),
    AuditField(
        "event_type",
        "string",
        False,
        "LOGIN, REAUTHENTICATION, SESSION_EXPIRY, USER_CHANGE, TOKEN_CHANGE or SETTING_CHANGE",
        "event.event_type.value",
    ),
    AuditField(
        "time_ms",
        "timestamp_ms",
        False,
        "when it happened, milliseconds since the epoch; of several attempts the last of them",
        "event.time_ms",
    ),
    AuditField("node_id", "int", False, "the kustos node where it happened", "node_id"),
    AuditField(
        "listener_name",
        "string",
        False,
        "listener that the client came in by; empty for none",
        "event.listener_name",
    ),
    AuditField(
        "security_protocol", "string", False, "SASL_PLAINTEXT, SASL_SSL, ...", "event.security_protocol"
    ),
    AuditField(
        "principal_type",
        "string",
        True,
        "type of the principal that logged in or requested the change; null if not proven",
        "event.principal and event.principal.principal_type",
    ),
    AuditField(
        "principal_name", "string", True, "name of who did", "event.principal and event.principal.name"
    ),
    AuditField(
        "token_authenticated",
        "boolean",
        False,
        "whether it logged in with a delegation token",
        "event.principal is not None and event.principal.token_authenticated",
    ),
    AuditField(
        "host",
        "string",
        True,
        "client address as Java's getHostAddress() writes it; null where no client came, and for failures"
        " from more addresses than kustos distinguishes",
        "event.host",
    ),
    AuditField(
        "mechanism",
        "string",
        True,
        "SASL mechanism of the login, or of the user's credential",
        "event.mechanism",
    ),
    AuditField(
        "result",
        "string",
        False,
        "SUCCESS, FAILURE, or UNKNOWN for a change that was under way",
        "event.result.value",
    ),
    AuditField("failure", "string", True, "why it failed, in words", "event.failure"),
    AuditField(
        "claimed_name",
        "string",
        True,
        "name or token id that a login gave, proven or not; null for none, and for more names of an "
        "address than kustos distinguishes",
        "event.claimed_name",
    ),
    AuditField(
        "attempt_count", "long", False, "number of equal attempts in this event", "event.attempt_count"
    ),
    AuditField("first_time_ms", "timestamp_ms", False, "when the first of them was", "event.first_time_ms"),
    AuditField(
        "change",
        "string",
        True,
        "UPSERT, DELETE, CREATE, RENEW, EXPIRE, ALTER; RELOAD of the file",
        "event.change",
    ),
    AuditField(
        "subject",
        "string",
        True,
        "the user, the token's id, or the resource that settings are of",
        "event.subject",
    ),
    AuditField(
        "detail", "string", True, "the keys of settings, never values; the owner of a token", "event.detail"
    ),
)
"""Texts are truncated after 255 characters."""
