"""Converts between legacy ACLs and equivalent current bindings, or raises a typed error.

A text without effect in one format must not have an effect in the other: a host such as `10.0.0.0/8` was a
text that equals no client address, and is a range now.
"""

from collections.abc import Iterable

from kustos.acl import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclBinding,
    KafkaPrincipal,
    ResourceType,
)
from kustos.legacy.interface import Acls
from kustos.legacy.values import Acl, Resource, merged
from kustos.legacy.vocabulary import LegacyRefusalError


def bindings_of(resource: Resource, acls: Iterable[Acl]) -> frozenset[AclBinding]:
    """Return the bindings with the same meaning as these ACLs; raise `LegacyRefusalError`.

    Refuses an empty name, a cluster name other than Kafka's, a host with a `/`, and a principal that would be
    read back as another one.
    """
    if not resource.name:
        raise LegacyRefusalError(f"the {resource.resource_type.camel_case} of an ACL has an empty name")
    if resource.resource_type is ResourceType.CLUSTER and resource.name != CLUSTER_NAME:
        raise LegacyRefusalError(f"no request names cluster `{resource.name}`, its name is `{CLUSTER_NAME}`")
    return frozenset(AclBinding(resource.pattern, entry) for acl in acls for entry in _entries(resource, acl))


def _entries(resource: Resource, acl: Acl) -> Iterable[AccessControlEntry]:
    principal = str(acl.principal)
    if KafkaPrincipal.parse(principal) != acl.principal:
        raise LegacyRefusalError(f"principal `{principal}` of `{resource}` has a type with a colon in it")
    for host in acl.hosts:
        _check_host(host, str(resource))
        for operation in acl.operations:
            yield AccessControlEntry(principal, host, operation, acl.permission_type)


def _check_host(host: str, resource: str) -> None:
    if "/" in host:
        raise LegacyRefusalError(
            f"host `{host}` of `{resource}` is a range of addresses now, but matched no client "
            "before, name addresses or `*`"
        )


def all_bindings_of(acls: Acls) -> frozenset[AclBinding]:
    """Return the bindings of all resources; raise `LegacyRefusalError` as `bindings_of` does."""
    return frozenset(binding for resource, own in acls.items() for binding in bindings_of(resource, own))


def single_of(binding: AclBinding) -> tuple[Resource, Acl]:
    """Return the resource and the statement of a binding; raise `LegacyRefusalError`.

    Refuses unknown types and operations, a principal without a type, and a host with a `/`.
    """
    entry, pattern = binding.entry, binding.pattern
    _check_host(entry.host, f"{pattern.resource_type}:{pattern.pattern_type}:{pattern.name}")
    try:
        principal = KafkaPrincipal.parse(entry.principal)
        resource = Resource(pattern.resource_type, pattern.name, pattern.pattern_type)
        return resource, Acl.of(principal, entry.permission_type, entry.host, entry.operation)
    except ValueError as error:
        raise LegacyRefusalError(str(error)) from error


def acls_of_bindings(bindings: Iterable[AclBinding]) -> dict[Resource, frozenset[Acl]]:
    """Return the fewest KIP-11 ACLs with sets that equal the bindings; raise `LegacyRefusalError`."""
    found: dict[Resource, set[Acl]] = {}
    for binding in bindings:
        resource, acl = single_of(binding)
        found.setdefault(resource, set()).add(acl)
    return {resource: merged(acls) for resource, acls in found.items()}
