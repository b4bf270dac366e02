"""The event of a decision as a value, read strictly from its line."""

import json
from dataclasses import dataclass
from typing import Final, Self

from kustos.authorizer import AUDIT_FIELDS, AUDIT_SCHEMA_VERSION, AuditField

_PYTHON_TYPES: Final[dict[str, type]] = {
    "string": str,
    "int": int,
    "long": int,
    "timestamp_ms": int,
    "boolean": bool,
}


class AuditFormatError(ValueError):
    """A line that is not an audit event of this version; the text names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRule:
    """The rule of a decision: its kind, and the fields of the ACL that decided, if there is one."""

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
    """One decision, as read from a line; the fields of `AUDIT_FIELDS`, with `rule.*` nested."""

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


def _fits(field: AuditField, value: object) -> bool:
    if value is None:
        return field.nullable
    if type(value) is not _PYTHON_TYPES[field.kind]:
        return False
    if field.kind == "int":
        return isinstance(value, int) and -(2**31) <= value < 2**31
    return not isinstance(value, int) or -(2**63) <= value < 2**63
