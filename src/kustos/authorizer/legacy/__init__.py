"""The legacy interface of KIP-11, for migration; its vocabulary stays in this package."""

from kustos.authorizer.legacy.conversion import acls_of_bindings, all_bindings_of, bindings_of, single_of
from kustos.authorizer.legacy.documents import (
    acls_of_entry,
    document_of,
    entries_of,
    kip_11_document_of,
    parse_json,
    read_acls,
    write_acls,
)
from kustos.authorizer.legacy.errors import (
    LegacyFormatError,
    LegacyRefusalError,
    LegacySettingsError,
    UnsupportedChangeError,
)
from kustos.authorizer.legacy.interface import Acls, LegacyAuthorizer
from kustos.authorizer.legacy.simple import (
    ALLOW_EVERYONE_KEY,
    FILE_KEY,
    KIP_11,
    RELEASED,
    RULES_KEY,
    SUPER_USERS_KEY,
    LegacyRules,
    SimpleAclAuthorizer,
    audit_line,
)
from kustos.authorizer.legacy.store import AclStore, FileAclStore, MemoryAclStore, Statements
from kustos.authorizer.legacy.tree import path_of, read_tree, resource_of, statements, write_tree
from kustos.authorizer.legacy.values import (
    CLUSTER_RESOURCE,
    Acl,
    Resource,
    Session,
    merged,
    order_of,
    singles_of,
)
from kustos.authorizer.legacy.vocabulary import (
    DR_WHO,
    OPERATION_NAMES,
    PERMISSION_NAMES,
    kip_11_principal_of,
    operation_of,
    permission_type_of,
)
from kustos.authorizer.legacy.wrapper import AuthorizerWrapper

__all__ = [
    "ALLOW_EVERYONE_KEY",
    "CLUSTER_RESOURCE",
    "DR_WHO",
    "FILE_KEY",
    "KIP_11",
    "OPERATION_NAMES",
    "PERMISSION_NAMES",
    "RELEASED",
    "RULES_KEY",
    "SUPER_USERS_KEY",
    "Acl",
    "AclStore",
    "Acls",
    "AuthorizerWrapper",
    "FileAclStore",
    "LegacyAuthorizer",
    "LegacyFormatError",
    "LegacyRefusalError",
    "LegacyRules",
    "LegacySettingsError",
    "MemoryAclStore",
    "Resource",
    "Session",
    "SimpleAclAuthorizer",
    "Statements",
    "UnsupportedChangeError",
    "acls_of_bindings",
    "acls_of_entry",
    "all_bindings_of",
    "audit_line",
    "bindings_of",
    "document_of",
    "entries_of",
    "kip_11_document_of",
    "kip_11_principal_of",
    "merged",
    "operation_of",
    "order_of",
    "parse_json",
    "path_of",
    "permission_type_of",
    "read_acls",
    "read_tree",
    "resource_of",
    "single_of",
    "singles_of",
    "statements",
    "write_acls",
    "write_tree",
]
