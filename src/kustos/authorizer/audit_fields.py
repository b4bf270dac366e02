"""The one table of audit fields, schema version 1.

The JSON schema, Spark's StructType, the docs page and the event writer are all made from it, so they
cannot disagree.
"""

from dataclasses import dataclass
from typing import Final, Literal

AUDIT_SCHEMA_VERSION: Final = 1

FieldKind = Literal["string", "int", "long", "boolean", "timestamp_ms"]


@dataclass(frozen=True, slots=True)
class AuditField:
    """A field of the audit event: a dotted name nests (`rule.kind`)."""

    name: str
    kind: FieldKind
    nullable: bool
    meaning: str
    came_later: bool = False
    """Whether lines of this version exist that were written before the field was: it is null in them."""


AUDIT_FIELDS: Final[tuple[AuditField, ...]] = (
    AuditField("schema_version", "int", False, "version of this table"),
    AuditField("event_id", "string", False, "unique id of the event (UUID text)"),
    AuditField("time_ms", "timestamp_ms", False, "when it was decided, milliseconds since the epoch"),
    AuditField("node_id", "int", False, "the kustos node that decided"),
    AuditField("listener_name", "string", False, "listener that the client came in by"),
    AuditField("security_protocol", "string", False, "PLAINTEXT, SASL_PLAINTEXT, SSL or SASL_SSL"),
    AuditField("principal_type", "string", False, "type of the principal, usually `User`"),
    AuditField("principal_name", "string", False, "name of the principal"),
    AuditField("token_authenticated", "boolean", False, "whether it logged in with a delegation token"),
    AuditField("host", "string", False, "client address as Java's getHostAddress() writes it"),
    AuditField("api_key", "int", False, "number of the API asked for"),
    AuditField("api_name", "string", False, "name of the API, as Kafka spells it"),
    AuditField("api_version", "int", False, "version of the request"),
    AuditField("client_id", "string", True, "client.id that the client claimed"),
    AuditField("correlation_id", "int", False, "the client's number for the request"),
    AuditField(
        "forwarded_by", "string", True, "principal that handed the request in for the other, by an Envelope"
    ),
    AuditField("resource_type", "string", False, "TOPIC, GROUP, CLUSTER, ..."),
    AuditField("resource_name", "string", True, "name asked about; null asks for any of the type"),
    AuditField("operation", "string", False, "READ, WRITE, ..."),
    AuditField("decision", "string", False, "ALLOWED, DENIED or ERROR (which denies)"),
    AuditField(
        "rule.kind",
        "string",
        False,
        "SuperUser, DefaultAllow, DefaultDeny, MatchingAcl, CustomAuthorizer or Error",
    ),
    AuditField("rule.resource_type", "string", True, "of the deciding ACL"),
    AuditField("rule.resource_name", "string", True, "of the deciding ACL"),
    AuditField("rule.pattern_type", "string", True, "of the deciding ACL: LITERAL or PREFIXED"),
    AuditField("rule.principal", "string", True, "of the deciding ACL"),
    AuditField("rule.host", "string", True, "of the deciding ACL"),
    AuditField("rule.operation", "string", True, "of the deciding ACL"),
    AuditField("rule.permission_type", "string", True, "of the deciding ACL: ALLOW or DENY"),
    AuditField("reference_count", "int", False, "items of the request that hung on the decision"),
    AuditField("log_if_allowed", "boolean", False, "Kafka's flag: an ALLOWED is worth a DEBUG line"),
    AuditField("log_if_denied", "boolean", False, "Kafka's flag: a DENIED is worth an INFO line"),
    AuditField("access", "string", False, "ACCESS for a use, LISTING for a filter over many names"),
    AuditField("acl_offset", "long", False, "metadata log offset whose ACLs decided, -1 if none"),
    AuditField(
        "change_offset",
        "long",
        True,
        "metadata log offset of the first record that an allowed CreateAcls or DeleteAcls wrote, null "
        "where it wrote none or it is not known",
        came_later=True,
    ),
)
