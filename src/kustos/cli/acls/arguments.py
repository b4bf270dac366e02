"""From `kafka-acls` arguments to ACL values; pure, and the same ACLs that Kafka's tool creates.

Two commands that Kafka's tool accepts are refused because they remove more than they name: `remove` with
a host or an operation but no principal. Kafka ignores both and removes every ACL of the resource.
Source: `AclCommand` of Kafka 4.3.1; convenience bundles from KIP-11, KIP-98 and KIP-290.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from kustos.acl import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.cli.failures import usage_error

Entries = dict[ResourcePatternFilter, set[AccessControlEntry]]

_CLUSTER: Final = ResourcePatternFilter(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
_TOPIC_PRODUCER: Final = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
_TRANSACTION_PRODUCER: Final = (AclOperation.WRITE, AclOperation.DESCRIBE)
_TOPIC_CONSUMER: Final = (AclOperation.READ, AclOperation.DESCRIBE)
_GROUP_CONSUMER: Final = (AclOperation.READ,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceArguments:
    """The named resources, and the pattern type of their names."""

    topics: Sequence[str] = ()
    groups: Sequence[str] = ()
    cluster: bool = False
    transactional_ids: Sequence[str] = ()
    delegation_tokens: Sequence[str] = ()
    user_principals: Sequence[str] = ()
    pattern_type: PatternType = PatternType.LITERAL

    def filters(self, *, with_cluster: bool = False) -> list[ResourcePatternFilter]:
        """Return one filter per distinct resource, in order; a cluster has no prefix or match."""
        named = (
            (ResourceType.TOPIC, self.topics),
            (ResourceType.GROUP, self.groups),
            (ResourceType.TRANSACTIONAL_ID, self.transactional_ids),
            (ResourceType.DELEGATION_TOKEN, self.delegation_tokens),
            (ResourceType.USER, self.user_principals),
        )
        found = [
            ResourcePatternFilter(resource_type, name.strip(), self.pattern_type)
            for resource_type, names in named
            for name in names
        ]
        if not all(each.name for each in found):
            # MATCH would take the ACLs on `*`
            raise usage_error("the name of a resource is empty, name one or leave the option out")
        if (self.cluster or with_cluster) and self.pattern_type is PatternType.LITERAL:
            found.append(_CLUSTER)
        return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryArguments:
    """Who may or may not do what from where."""

    allow_principals: Sequence[str] = ()
    deny_principals: Sequence[str] = ()
    allow_hosts: Sequence[str] = ()
    deny_hosts: Sequence[str] = ()
    operations: Sequence[str] = ()
    producer: bool = False
    consumer: bool = False
    idempotent: bool = False

    def entries(self, operations: Sequence[AclOperation]) -> set[AccessControlEntry]:
        """Return principals x hosts x operations, allowed and denied."""
        sides = (
            (AclPermissionType.ALLOW, self.allow_principals, self.allow_hosts),
            (AclPermissionType.DENY, self.deny_principals, self.deny_hosts),
        )
        return {
            AccessControlEntry(
                str(KafkaPrincipal.parse(principal.strip())), host.strip(), operation, permission
            )
            for permission, principals, hosts in sides
            for principal, host, operation in product(principals, hosts or (WILDCARD,), operations)
        }


def bindings_to_add(resources: ResourceArguments, entries: EntryArguments) -> list[AclBinding]:
    """Return the ACLs that `add` creates, sorted; raise a usage error where Kafka's tool does."""
    if not resources.pattern_type.is_specific:
        raise usage_error(
            f"`--resource-pattern-type {resources.pattern_type.name.lower()}` is for list and remove, "
            "add takes `literal` or `prefixed`"
        )
    by_resource = _entries_by_resource(resources, entries)
    if not any(by_resource.values()):
        raise usage_error("the principal is missing, give `--allow-principal` or `--deny-principal`")
    return sorted_bindings(
        AclBinding(ResourcePattern(key.resource_type, key.name or "", key.pattern_type), entry)
        for key, values in by_resource.items()
        for entry in values
    )


def filters_to_remove(resources: ResourceArguments, entries: EntryArguments) -> list[AclBindingFilter]:
    """Return the filters that `remove` sends: exact entries, or every entry of a resource without any."""
    if not (entries.allow_principals or entries.deny_principals) and entries.operations:
        raise usage_error(
            "`--operation` without a principal would remove every ACL of the resource, "
            "give `--allow-principal` or `--deny-principal`, or leave `--operation` out"
        )
    by_resource = _entries_by_resource(resources, entries)
    filters: list[AclBindingFilter] = []
    for key, values in by_resource.items():
        if not values:
            filters.append(AclBindingFilter(key, AccessControlEntryFilter()))
        filters += [
            AclBindingFilter(
                key, AccessControlEntryFilter(e.principal, e.host, e.operation, e.permission_type)
            )
            for e in sorted(values, key=_entry_order)
        ]
    return filters


def filters_to_list(resources: ResourceArguments) -> list[AclBindingFilter]:
    """Return the filters that `list` sends: one for everything if no resource is named."""
    return [AclBindingFilter(key) for key in resources.filters()] or [AclBindingFilter()]


def parse_operation(text: str) -> AclOperation:
    """Return the operation written as in Kafka's tool (`DescribeConfigs`) or config (`DESCRIBE_CONFIGS`)."""
    if operation := AclOperation.from_text(text):
        return operation
    names = ", ".join(o.name for o in AclOperation if o > AclOperation.ANY)
    raise usage_error(f"`{text}` is not an operation, use one of {names}")


def sorted_bindings(bindings: Iterable[AclBinding]) -> list[AclBinding]:
    """Return bindings sorted by resource, then by entry: the order of every printed list."""
    return sorted(set(bindings), key=_binding_order)


def _entries_by_resource(resources: ResourceArguments, entries: EntryArguments) -> Entries:
    _check(resources, entries)
    filters = resources.filters(with_cluster=entries.idempotent)
    if not filters:
        raise usage_error(
            "name at least one resource: `--topic`, `--group`, `--cluster`, `--transactional-id`, "
            "`--delegation-token` or `--user-principal`"
        )
    if entries.producer or entries.consumer:
        by_resource = _bundles(filters, entries)
    else:
        operations = [parse_operation(text) for text in entries.operations] or [AclOperation.ALL]
        by_resource = {key: entries.entries(operations) for key in filters}
    for key, values in by_resource.items():
        _check_operations(key, values)
    return by_resource


def _bundles(filters: Sequence[ResourcePatternFilter], entries: EntryArguments) -> Entries:
    by_resource: Entries = {}

    def put(resource_type: ResourceType, operations: Sequence[AclOperation]) -> None:
        for key in filters:
            if key.resource_type is resource_type:
                by_resource.setdefault(key, set()).update(entries.entries(operations))

    if entries.producer:
        put(ResourceType.TOPIC, _TOPIC_PRODUCER)
        put(ResourceType.TRANSACTIONAL_ID, _TRANSACTION_PRODUCER)
        if entries.idempotent:
            by_resource[_CLUSTER] = entries.entries((AclOperation.IDEMPOTENT_WRITE,))
    if entries.consumer:
        put(ResourceType.TOPIC, _TOPIC_CONSUMER)
        put(ResourceType.GROUP, _GROUP_CONSUMER)
    return by_resource


def _check(resources: ResourceArguments, entries: EntryArguments) -> None:
    bundle = "`--producer` and `--consumer`"
    rules = (
        (
            (entries.producer or entries.consumer)
            and (entries.operations or entries.deny_principals or entries.deny_hosts),
            f"{bundle} say the operations and only allow, leave out `--operation`, `--deny-principal` "
            "and `--deny-host`",
        ),
        (entries.producer and not resources.topics, "with `--producer` give a `--topic`"),
        (entries.idempotent and not entries.producer, "`--idempotent` is only for `--producer`"),
        (
            entries.consumer and not (resources.topics and resources.groups),
            "with `--consumer` give a `--topic` and a `--group`",
        ),
        (
            entries.consumer and not entries.producer and (resources.cluster or resources.transactional_ids),
            "with `--consumer` leave out `--cluster` and `--transactional-id`",
        ),
        (entries.allow_hosts and not entries.allow_principals, "`--allow-host` needs an `--allow-principal`"),
        (entries.deny_hosts and not entries.deny_principals, "`--deny-host` needs a `--deny-principal`"),
    )
    for is_broken, message in rules:
        if is_broken:
            raise usage_error(message)


def _check_operations(key: ResourcePatternFilter, entries: set[AccessControlEntry]) -> None:
    valid = {*SUPPORTED_OPERATIONS[key.resource_type], AclOperation.ALL}
    wrong = sorted(entry.operation for entry in entries if entry.operation not in valid)
    if wrong:
        raise usage_error(
            f"operation `{wrong[0].name}` does not apply to a {key.resource_type.name}, "
            f"use one of {', '.join(sorted(o.name for o in valid))}"
        )


def _entry_order(entry: AccessControlEntry) -> tuple[str, str, int, int]:
    return entry.principal, entry.host, entry.operation, entry.permission_type


def _binding_order(binding: AclBinding) -> tuple[int, str, int, str, str, int, int]:
    pattern = binding.pattern
    return pattern.resource_type, pattern.name, pattern.pattern_type, *_entry_order(binding.entry)
