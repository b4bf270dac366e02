"""Decisions: the authorizer interface, StandardAuthorizer on a compiled index, reasons, audit events."""

from kustos.authorizer.audit_fields import AUDIT_FIELDS, AUDIT_SCHEMA_VERSION, AuditField
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

__all__ = [
    "AUDIT_FIELDS",
    "AUDIT_SCHEMA_VERSION",
    "Action",
    "AuditField",
    "AuthorizableRequestContext",
    "AuthorizationResult",
    "Authorizer",
    "AuthorizerError",
    "AuthorizerNotReadyError",
    "Decision",
    "InvalidActionError",
    "Rule",
    "RuleKind",
]
