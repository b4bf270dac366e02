"""Audit events: what was decided, for whom and why, as values and as lines of text.

Two forms: kustos' own JSON (one object a line, its fields, order and schema from `AUDIT_FIELDS`) and the
line that Kafka's `kafka.authorizer.logger` prints. Where they go is for sinks elsewhere.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, unique
from operator import attrgetter
from typing import Any, Final, Self
from uuid import UUID

from kustos.authorizer.audit_fields import AUDIT_FIELDS, AUDIT_SCHEMA_VERSION, AuditField
from kustos.authorizer.spi import Action, AuthorizableRequestContext, AuthorizerError, Decision

NO_OFFSET: Final = -1
"""`acl_offset` of a decision that no metadata log stands behind."""

ERROR: Final = "ERROR"
"""The decision of an authorizer that could not say; it denies."""


class AuditFormatError(AuthorizerError, ValueError):
    """A line that is no audit event of this version; the text says which field."""


@unique
class Access(Enum):
    """Whether the question was for a use, or a filter over many names that someone lists."""

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
    """Why: the rule's kind, and the deciding ACL's fields if there is one."""

    kind: str
    resource_type: str | None = None
    resource_name: str | None = None
    pattern_type: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: str | None = None
    permission_type: str | None = None

    @classmethod
    def of(cls, decision: Decision | None) -> Self:
        """Return the rule of a decision; None stands for an error."""
        if decision is None:
            return cls(kind="Error")
        binding = decision.rule.binding
        if binding is None:
            return cls(kind=decision.rule.kind.value)
        return cls(
            kind=decision.rule.kind.value,
            resource_type=binding.pattern.resource_type.name,
            resource_name=binding.pattern.name,
            pattern_type=binding.pattern.pattern_type.name,
            principal=binding.entry.principal,
            host=binding.entry.host,
            operation=binding.entry.operation.name,
            permission_type=binding.entry.permission_type.name,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One decision; the fields are those of `AUDIT_FIELDS`, `rule.*` nested."""

    schema_version: int = AUDIT_SCHEMA_VERSION
    event_id: str
    time_ms: int
    node_id: int
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

    @classmethod
    def of(
        cls,
        context: AuthorizableRequestContext,
        action: Action,
        decision: Decision | None,
        *,
        event_id: UUID,
        time_ms: int,
        node_id: int,
        api_name: str,
        acl_offset: int = NO_OFFSET,
        change_offset: int | None = None,
        access: Access = Access.ACCESS,
        any_resource: bool = False,
    ) -> Self:
        """Return the event of a decision; `decision` None says that the authorizer could not tell.

        `any_resource` marks a question about any resource of the type, whatever name the action has.
        """
        return cls(
            event_id=str(event_id),
            time_ms=time_ms,
            node_id=node_id,
            listener_name=context.listener_name,
            security_protocol=context.security_protocol,
            principal_type=context.principal.principal_type,
            principal_name=context.principal.name,
            token_authenticated=context.principal.token_authenticated,
            host=context.host,
            api_key=context.request_type,
            api_name=api_name,
            api_version=context.request_version,
            client_id=context.client_id,
            correlation_id=context.correlation_id,
            forwarded_by=None if context.forwarded_by is None else str(context.forwarded_by),
            resource_type=action.resource_type.name,
            resource_name=None if any_resource else action.resource_name,
            operation=action.operation.name,
            decision=ERROR if decision is None else decision.result.value,
            rule=AuditRule.of(decision),
            reference_count=action.reference_count,
            log_if_allowed=action.log_if_allowed,
            log_if_denied=action.log_if_denied,
            access=access.value,
            acl_offset=acl_offset,
            change_offset=change_offset,
        )

    def to_json(self) -> str:
        """Return the event as one line of JSON, fields in the table's order, rule as a nested object."""
        tree: dict[str, Any] = {}
        for field, read in _READERS:
            parent, leaf = _place(tree, field.name)
            parent[leaf] = read(self)
        return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Return the event of a line; raise `AuditFormatError` for anything but an event of this version.

        A field that came later is None in a line without it.
        """
        try:
            tree = json.loads(line)
        except ValueError as error:
            raise AuditFormatError("audit line is no JSON") from error
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


_READERS: Final[tuple[tuple[AuditField, Callable[[AuditEvent], object]], ...]] = tuple(
    (field, attrgetter(field.name)) for field in AUDIT_FIELDS
)

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


def _place(tree: dict[str, Any], name: str) -> tuple[dict[str, Any], str]:
    """Return the object in a tree that holds a dotted name, made where it is missing, and the last part."""
    outer, dot, leaf = name.partition(".")
    return (tree.setdefault(outer, {}), leaf) if dot else (tree, name)


def audit_json_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of an event, made from `AUDIT_FIELDS`."""

    def object_schema() -> dict[str, Any]:
        return {"type": "object", "additionalProperties": False, "required": [], "properties": {}}

    schema = object_schema()
    for field in AUDIT_FIELDS:
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
            described["const"] = AUDIT_SCHEMA_VERSION
        parent["properties"][leaf if dot else outer] = described
        if not field.came_later:
            parent["required"].append(leaf if dot else outer)
    title = f"kustos audit event, version {AUDIT_SCHEMA_VERSION}"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def audit_level(action: Action, decision: Decision) -> AuditLevel:
    """Return at which level Kafka logs a decision: what was used or refused is worth more than TRACE."""
    if decision.allowed:
        return AuditLevel.DEBUG if action.log_if_allowed else AuditLevel.TRACE
    return AuditLevel.INFO if action.log_if_denied else AuditLevel.TRACE


def audit_line(
    context: AuthorizableRequestContext, action: Action, decision: Decision, *, api_name: str
) -> str:
    """Return the line that Kafka's `kafka.authorizer.logger` prints for a decision, byte for byte."""
    return (
        f"Principal = {context.principal} is {'Allowed' if decision.allowed else 'Denied'}"
        f" operation = {action.operation} from host = {context.host}"
        f" on resource = {action.resource_type.camel_case}:LITERAL:{action.resource_name}"
        f" for request = {api_name} with resourceRefCount = {action.reference_count}"
        f" based on rule {decision.rule}"
    )
