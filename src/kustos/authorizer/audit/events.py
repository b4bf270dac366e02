"""Audit events of decisions as lines of text.

There are two forms: kustos' own JSON (one object per line; fields, order and schema from `AUDIT_FIELDS`) and
the line of Kafka's `kafka.authorizer.logger`.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum, unique
from hashlib import sha256
from typing import Any, Final

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
    Decision,
    Rule,
    RuleKind,
)

NO_OFFSET: Final = -1
"""The `acl_offset` of a decision that does not come from a metadata log."""

UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters, U+0085 (next line) among them
    "\u2028\u2029"  # line and paragraph separators
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that change the direction of text
    "\u200b-\u200d\u2060\ufeff"  # characters without width
    "\ud800-\udfff]"  # surrogates, which UTF-8 cannot encode
)
"""Characters that end a line for some reader, or are displayed as another text. A client chooses the names in
its requests, and must not control how the audit log is displayed."""

AUDITED_NAME_CHARACTERS_MAX: Final = 1024
"""The longest resource name in the log. A topic has at most 249 characters, but a group or transactional id
may have 32,767, and many such names would flood the log."""


@unique
class Access(Enum):
    """The purpose of a check: a use of the resource, or a filter of a list."""

    ACCESS = "ACCESS"
    LISTING = "LISTING"


@unique
class AuditLevel(Enum):
    """The level of a decision in Kafka's audit log."""

    INFO = "INFO"
    DEBUG = "DEBUG"
    TRACE = "TRACE"


def parts_of(event: Mapping[str, Any]) -> tuple[AuthorizableRequestContext, Action, Decision]:
    """Return the parts of Kafka's line for a decision, given as the object of its JSON line."""
    principal = KafkaPrincipal(event["principal_type"], event["principal_name"])
    action = Action(
        ResourceType[event["resource_type"]],
        # the name was truncated before it was logged, and must not be truncated again
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


_JSON_TYPES: Final[dict[str, dict[str, object]]] = {
    "string": {"type": "string"},
    "int": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "long": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "timestamp_ms": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "boolean": {"type": "boolean"},
}


class TruncatedName(str):
    """A name that was truncated for the log."""

    __slots__ = ()


def audited_name(name: str) -> str:
    """Return a name as logged: a name that is too long is truncated once, with its digest."""
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
    """Return the level of a decision in Kafka's log: above TRACE if the action's flag for the result is set.

    A decision that a listener in mode `shadow` did not enforce has the level of the denial.
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
