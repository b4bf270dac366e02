"""Decisions: the authorizer interface, StandardAuthorizer on a compiled index, reasons, audit events."""

from kustos.authorizer.audit import (
    Access,
    AuditEvent,
    AuditFormatError,
    AuditLevel,
    AuditRule,
    audit_json_schema,
    audit_level,
    audit_line,
)
from kustos.authorizer.audit_fields import AUDIT_FIELDS, AUDIT_SCHEMA_VERSION, AuditField
from kustos.authorizer.errors import (
    AclFaultError,
    DuplicateAclError,
    DuplicateAclIdError,
    InvalidAclError,
    UnknownAclIdError,
)
from kustos.authorizer.session import AuthorizerSession
from kustos.authorizer.spi import (
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    Authorizer,
    AuthorizerError,
    AuthorizerNotReadyError,
    Decision,
    InvalidActionError,
    Rule,
    RuleKind,
)
from kustos.authorizer.standard import StandardAuthorizer, parse_super_users

__all__ = [
    "AUDIT_FIELDS",
    "AUDIT_SCHEMA_VERSION",
    "Access",
    "AclFaultError",
    "Action",
    "AuditEvent",
    "AuditField",
    "AuditFormatError",
    "AuditLevel",
    "AuditRule",
    "AuthorizableRequestContext",
    "AuthorizationResult",
    "Authorizer",
    "AuthorizerError",
    "AuthorizerNotReadyError",
    "AuthorizerSession",
    "Decision",
    "DuplicateAclError",
    "DuplicateAclIdError",
    "InvalidAclError",
    "InvalidActionError",
    "Rule",
    "RuleKind",
    "StandardAuthorizer",
    "UnknownAclIdError",
    "audit_json_schema",
    "audit_level",
    "audit_line",
    "parse_super_users",
]
