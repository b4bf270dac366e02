"""Values of access control: operations, resources, patterns, entries, bindings, filters, principals.

All values are immutable, and have Kafka's names and codes. All packages of kustos use them.
"""

from kustos.acl.enums import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from kustos.acl.filters import (
    EVERY_BINDING,
    AccessControlEntryFilter,
    AclBindingFilter,
    ResourcePatternFilter,
)
from kustos.acl.hosts import HostRange, host_holds, host_matches, hosts_meet, java_int, java_ipv6
from kustos.acl.values import (
    ANONYMOUS,
    EVERY_PRINCIPAL,
    AccessControlEntry,
    AclBinding,
    AclValueError,
    KafkaPrincipal,
    ResourcePattern,
    SharedParts,
)

__all__ = [
    "ANONYMOUS",
    "CLUSTER_NAME",
    "EVERY_BINDING",
    "EVERY_PRINCIPAL",
    "SUPPORTED_OPERATIONS",
    "WILDCARD",
    "AccessControlEntry",
    "AccessControlEntryFilter",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "AclValueError",
    "HostRange",
    "KafkaPrincipal",
    "PatternType",
    "ResourcePattern",
    "ResourcePatternFilter",
    "ResourceType",
    "SharedParts",
    "host_holds",
    "host_matches",
    "hosts_meet",
    "java_int",
    "java_ipv6",
]
