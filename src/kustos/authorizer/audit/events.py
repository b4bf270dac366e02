"""Audit events of decisions, as values and as lines of text.

Two forms: kustos' own JSON (one object per line; fields, order and schema from `AUDIT_FIELDS`) and the line
that Kafka's `kafka.authorizer.logger` prints. Sinks elsewhere decide where the lines go.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from hashlib import sha256
from typing import Any, Final, Self

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer.audit.fields import AUDIT_FIELDS, AUDIT_SCHEMA_VERSION, AuditField
from kustos.authorizer.spi.values import (
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    AuthorizerError,
    Decision,
    Rule,
    RuleKind,
)

NO_OFFSET: Final = -1
"""`acl_offset` of a decision without a metadata log."""

UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters, U+0085 (next line) among them
    "\u2028\u2029"  # line and paragraph separators
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that turn the direction of what is shown
    "\u200b-\u200d\u2060\ufeff"  # of no width
    "\ud800-\udfff]"  # halves of characters, which UTF-8 cannot have
)
"""Characters that end a line for some reader, or display as another text: a client chooses the names in its
requests, and must not control what a reader of the audit log sees."""

AUDITED_NAME_CHARACTERS_MAX: Final = 1024
"""Longest resource name logged: a topic has at most 249 characters, but a group or transactional id may have
32,767, and many of those would flood the log."""


class AuditFormatError(AuthorizerError, ValueError):
    """A line that is not an audit event of this version; the text names the field."""


@unique
class Access(Enum):
    """Whether the question was for an access, or a filter over a listing."""

    ACCESS = "ACCESS"
    LISTING = "LISTING"


@unique
class AuditLevel(Enum):
    """Level of a decision in Kafka's audit log."""

    INFO = "INFO"
    DEBUG = "DEBUG"
    TRACE = "TRACE"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRule:
    """The rule of a decision: its kind, and the fields of the deciding ACL, if any."""

    kind: str
    resource_type: str | None = None
    resource_name: str | None = None
    pattern_type: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: str | None = None
    permission_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One decision, as it is read; the fields are those of `AUDIT_FIELDS`, `rule.*` nested."""

    schema_version: int = AUDIT_SCHEMA_VERSION
    event_id: str
    time_ms: int
    node_id: int
    cluster_id: str | None = None
    listener_name: str
    security_protocol: str
    principal_type: str
    principal_name: str
    token_authenticated: bool
    host: str
    api_key: int
    api_name: str
    api_version: int
    client_id: str | None
    correlation_id: int
    forwarded_by: str | None = None
    resource_type: str
    resource_name: str | None
    operation: str
    decision: str
    rule: AuditRule
    reference_count: int
    log_if_allowed: bool
    log_if_denied: bool
    access: str
    acl_offset: int
    change_offset: int | None = None
    latency_us: int | None = None
    distinct_names: int | None = None
    decision_count: int | None = None
    shadow_decision: str | None = None
    shadow_rule: str | None = None
    candidate_decision: str | None = None
    candidate_rule: str | None = None
    candidate_id: str | None = None

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Return the event of a line; raise `AuditFormatError` for anything but an event of this version.

        A field added later is None in a line without it.
        """
        try:
            tree = json.loads(line)
        except ValueError as error:
            raise AuditFormatError("audit line is not JSON") from error
        if not isinstance(tree, dict) or tree.get("schema_version") != AUDIT_SCHEMA_VERSION:
            raise AuditFormatError(f"audit line has no `schema_version` {AUDIT_SCHEMA_VERSION}")
        rule = tree.get("rule")
        flat = {name: value for name, value in tree.items() if name != "rule"}
        if isinstance(rule, dict):
            flat |= {f"rule.{name}": value for name, value in rule.items()}
        for field in AUDIT_FIELDS:
            if field.came_later:
                flat.setdefault(field.name, None)
            if field.name not in flat or not _fits(field, flat[field.name]):
                raise AuditFormatError(f"audit field `{field.name}` is not a {field.kind}")
        values = {field.name: flat[field.name] for field in AUDIT_FIELDS}
        of_rule = {name.removeprefix("rule."): value for name, value in values.items() if "." in name}
        rest = {name: value for name, value in values.items() if "." not in name}
        return cls(rule=AuditRule(**of_rule), **rest)


def parts_of(event: Mapping[str, Any]) -> tuple[AuthorizableRequestContext, Action, Decision]:
    """Return the parts of Kafka's line for a decision, given as the object of its JSON line."""
    principal = KafkaPrincipal(event["principal_type"], event["principal_name"])
    action = Action(
        ResourceType[event["resource_type"]],
        # it was truncated before it was logged, and must not be once more
        TruncatedName(event["resource_name"] or ""),
        AclOperation[event["operation"]],
        event["reference_count"],
        event["log_if_allowed"],
        event["log_if_denied"],
    )
    decision = Decision(AuthorizationResult(event["decision"]), _rule_of(event["rule"]))
    return AuthorizableRequestContext(principal, event["host"]), action, decision


def _rule_of(rule: Mapping[str, Any]) -> Rule:
    kind = RuleKind(rule["kind"])
    if rule["resource_type"] is None:
        return Rule(kind)
    pattern = ResourcePattern(
        ResourceType[rule["resource_type"]], rule["resource_name"], PatternType[rule["pattern_type"]]
    )
    entry = AccessControlEntry(
        rule["principal"],
        rule["host"],
        AclOperation[rule["operation"]],
        AclPermissionType[rule["permission_type"]],
    )
    return Rule(kind, AclBinding(pattern, entry))


def visible(text: str) -> str:
    """Return a text with the characters in `UNSEEN` as the escapes of JSON, such as `\\u2028`."""
    if text.isascii() and text.isprintable():
        return text
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_PYTHON_TYPES: Final[dict[str, type]] = {
    "string": str,
    "int": int,
    "long": int,
    "timestamp_ms": int,
    "boolean": bool,
}

_JSON_TYPES: Final[dict[str, dict[str, object]]] = {
    "string": {"type": "string"},
    "int": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "long": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "timestamp_ms": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "boolean": {"type": "boolean"},
}


def _fits(field: AuditField, value: object) -> bool:
    if value is None:
        return field.nullable
    if type(value) is not _PYTHON_TYPES[field.kind]:
        return False
    if field.kind == "int":
        return isinstance(value, int) and -(2**31) <= value < 2**31
    return not isinstance(value, int) or -(2**63) <= value < 2**63


class TruncatedName(str):
    """A name that was truncated for the log."""

    __slots__ = ()


def audited_name(name: str) -> str:
    """Return a name as logged: a too long one is truncated and identified by a digest, once."""
    if len(name) <= AUDITED_NAME_CHARACTERS_MAX or isinstance(name, TruncatedName):
        return name
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()
    return TruncatedName(
        f"{name[:AUDITED_NAME_CHARACTERS_MAX]}... ({len(name)} characters, SHA-256 {digest})"
    )


def audit_json_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a decision's event, generated from `AUDIT_FIELDS`."""
    return schema_of(AUDIT_FIELDS, AUDIT_SCHEMA_VERSION, "audit event")


def schema_of(fields: Sequence[AuditField], version: int, title: str) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of lines with these fields."""

    def object_schema() -> dict[str, Any]:
        return {"type": "object", "additionalProperties": False, "required": [], "properties": {}}

    schema = object_schema()
    for field in fields:
        outer, dot, leaf = field.name.partition(".")
        parent = schema
        if dot:
            if outer not in schema["properties"]:
                schema["properties"][outer] = object_schema()
                schema["required"].append(outer)
            parent = schema["properties"][outer]
        described = dict(_JSON_TYPES[field.kind], description=field.meaning)
        if field.nullable:
            described["type"] = [described["type"], "null"]
        if field.name == "schema_version":
            described["const"] = version
        parent["properties"][leaf if dot else outer] = described
        if not field.came_later:
            parent["required"].append(leaf if dot else outer)
    title = f"kustos {title}, version {version}"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def audit_level(action: Action, decision: Decision) -> AuditLevel:
    """Return the level of a decision in Kafka's log: above TRACE if it was used or refused.

    What a listener in mode `shadow` did not refuse has the level of the denial that it would be.
    """
    if decision.allowed and decision.rule.kind is not RuleKind.SHADOW_MODE:
        return AuditLevel.DEBUG if action.log_if_allowed else AuditLevel.TRACE
    return AuditLevel.INFO if action.log_if_denied else AuditLevel.TRACE


def audit_line(
    context: AuthorizableRequestContext, action: Action, decision: Decision, *, api_name: str
) -> str:
    """Return the line that Kafka's `kafka.authorizer.logger` prints for a decision, byte for byte.

    Only names longer than `AUDITED_NAME_CHARACTERS_MAX` are truncated.
    """
    return (
        f"Principal = {context.principal} is {'Allowed' if decision.allowed else 'Denied'}"
        f" operation = {action.operation} from host = {context.host}"
        f" on resource = {action.resource_type.camel_case}:LITERAL:{audited_name(action.resource_name)}"
        f" for request = {api_name} with resourceRefCount = {action.reference_count}"
        f" based on rule {decision.rule}"
    )
