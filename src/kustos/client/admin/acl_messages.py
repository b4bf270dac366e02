"""ACL values as fields of DescribeAcls, CreateAcls and DeleteAcls (versions 1 to 3), and back."""

from typing import Any

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.wire import Message


def filter_fields(binding_filter: AclBindingFilter) -> dict[str, Any]:
    """Return a filter's fields, named as in DescribeAcls and DeleteAcls."""
    pattern, entry = binding_filter.pattern_filter, binding_filter.entry_filter
    return {
        "resource_type_filter": int(pattern.resource_type),
        "resource_name_filter": pattern.name,
        "pattern_type_filter": int(pattern.pattern_type),
        "principal_filter": entry.principal,
        "host_filter": entry.host,
        "operation": int(entry.operation),
        "permission_type": int(entry.permission_type),
    }


def creation_fields(binding: AclBinding) -> dict[str, Any]:
    """Return a binding's fields, named as in CreateAcls."""
    pattern, entry = binding.pattern, binding.entry
    return {
        "resource_type": int(pattern.resource_type),
        "resource_name": pattern.name,
        "resource_pattern_type": int(pattern.pattern_type),
        "principal": entry.principal,
        "host": entry.host,
        "operation": int(entry.operation),
        "permission_type": int(entry.permission_type),
    }


def described_bindings(answer: Message) -> list[AclBinding]:
    """Return the bindings of a DescribeAcls answer; unknown codes become UNKNOWN."""
    return [
        AclBinding(_pattern(resource), _entry(acl)) for resource in answer.resources for acl in resource.acls
    ]


def matching_binding(acl: Message) -> AclBinding:
    """Return the binding of one `DeleteAclsMatchingAcl`."""
    return AclBinding(_pattern(acl), _entry(acl))


def _pattern(struct: Message) -> ResourcePattern:
    return ResourcePattern(
        ResourceType.from_code(struct.resource_type),
        struct.resource_name,
        PatternType.from_code(struct.pattern_type),
    )


def _entry(struct: Message) -> AccessControlEntry:
    return AccessControlEntry(
        struct.principal,
        struct.host,
        AclOperation.from_code(struct.operation),
        AclPermissionType.from_code(struct.permission_type),
    )
