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
from kustos.authorizer.metrics import AuthorizerMetrics
from kustos.authorizer.plugin import ACL_COUNT_UNKNOWN, AclCreations, AclDeletions, Authorizer
from kustos.authorizer.session import AuthorizerSession
from kustos.authorizer.spi import (
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    AuthorizerError,
    AuthorizerNotReadyError,
    Decision,
    InvalidActionError,
    Rule,
    RuleKind,
)
from kustos.authorizer.spi_values import (
    SUCCESS,
    AclBindingDeleteResult,
    AclCreateResult,
    AclDeleteResult,
    AuthorizerServerInfo,
    ClusterResource,
    Endpoint,
    KafkaApiError,
)
from kustos.authorizer.standard import StandardAuthorizer, parse_super_users
from kustos.authorizer.standard_plugin import AclMutator, StandardAuthorizerPlugin

__all__ = [
    "ACL_COUNT_UNKNOWN",
    "AUDIT_FIELDS",
    "AUDIT_SCHEMA_VERSION",
    "SUCCESS",
    "Access",
    "AclBindingDeleteResult",
    "AclCreateResult",
    "AclCreations",
    "AclDeleteResult",
    "AclDeletions",
    "AclFaultError",
    "AclMutator",
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
    "AuthorizerMetrics",
    "AuthorizerNotReadyError",
    "AuthorizerServerInfo",
    "AuthorizerSession",
    "ClusterResource",
    "Decision",
    "DuplicateAclError",
    "DuplicateAclIdError",
    "Endpoint",
    "InvalidAclError",
    "InvalidActionError",
    "KafkaApiError",
    "Rule",
    "RuleKind",
    "StandardAuthorizer",
    "StandardAuthorizerPlugin",
    "UnknownAclIdError",
    "audit_json_schema",
    "audit_level",
    "audit_line",
    "parse_super_users",
]
