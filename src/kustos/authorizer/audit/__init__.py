"""Audit events of decisions and changes: their tables of fields and their lines of text."""

from kustos.authorizer.audit.envelopes import AuditFormat, formatter, rfc3339
from kustos.authorizer.audit.events import (
    AUDITED_NAME_CHARACTERS_MAX,
    NO_OFFSET,
    Access,
    AuditLevel,
    audit_level,
    audit_line,
    audited_name,
    parts_of,
    visible,
)
from kustos.authorizer.audit.fields import (
    AUDIT_FIELDS,
    AUDIT_SCHEMA_VERSION,
    AuditField,
)
from kustos.authorizer.audit.lines import JsonLines, json_text
from kustos.authorizer.audit.security import (
    SECURITY_FIELDS,
    SECURITY_SCHEMA_VERSION,
    SECURITY_TEXT_MAX_CHARACTERS,
    cut,
)

__all__ = [
    "AUDITED_NAME_CHARACTERS_MAX",
    "AUDIT_FIELDS",
    "AUDIT_SCHEMA_VERSION",
    "NO_OFFSET",
    "SECURITY_FIELDS",
    "SECURITY_SCHEMA_VERSION",
    "SECURITY_TEXT_MAX_CHARACTERS",
    "Access",
    "AuditField",
    "AuditFormat",
    "AuditLevel",
    "JsonLines",
    "audit_level",
    "audit_line",
    "audited_name",
    "cut",
    "formatter",
    "json_text",
    "parts_of",
    "rfc3339",
    "visible",
]
