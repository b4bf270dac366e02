"""Legacy ACLs from the options of `kustos legacy`, and as output.

Commas separate the values of an option, or the option repeats. As in Kafka 0.9, `--producer` and `--consumer`
take neither operations nor principals to deny. Source: `AclCommand` of Kafka 0.9.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kustos.acl import (
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    ResourceType,
)
from kustos.cli.failures import usage_error
from kustos.cli.output import Column, Columns, OutputFormat, counted, print_rows
from kustos.legacy import (
    CLUSTER_RESOURCE,
    OPERATION_NAMES,
    PERMISSION_NAMES,
    Acl,
    Acls,
    Resource,
    kip_11_principal_of,
    merged,
    operation_of,
    order_of,
    singles_of,
    write_tree,
)

_PRODUCER: Final = frozenset((AclOperation.WRITE, AclOperation.DESCRIBE))
_CONSUMER: Final = frozenset((AclOperation.READ, AclOperation.DESCRIBE))
_CONSUMER_GROUP: Final = frozenset((AclOperation.READ,))
_CREATION: Final = frozenset((AclOperation.CREATE,))
_ALL: Final = frozenset((AclOperation.ALL,))


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyArguments:
    """The options of the command line."""

    topics: Sequence[str] = ()
    groups: Sequence[str] = ()
    cluster: bool = False
    allow_principals: Sequence[str] = ()
    allow_hosts: Sequence[str] = ()
    deny_principals: Sequence[str] = ()
    deny_hosts: Sequence[str] = ()
    operations: Sequence[str] = ()
    producer: bool = False
    consumer: bool = False

    @property
    def names_principals(self) -> bool:
        """Whether there are principals."""
        return bool(self.allow_principals or self.deny_principals)

    def resources(self) -> list[Resource]:
        """Return the resources without duplicates."""
        named = [Resource(ResourceType.TOPIC, name.strip()) for name in self.topics]
        named += [Resource(ResourceType.GROUP, name.strip()) for name in self.groups]
        for resource in named:
            if not resource.name:
                raise usage_error(f"a name of `--{resource.resource_type.name.lower()}` is empty")
        return list(dict.fromkeys([*named, *([CLUSTER_RESOURCE] if self.cluster else [])]))

    def acls(self) -> dict[Resource, frozenset[Acl]]:
        """Return ACLs by resource, none if no principal is named; raise a usage error or `AclValueError`."""
        self._check()
        bundled: dict[Resource, frozenset[AclOperation]] = {}
        for resource, operations in self._operations():
            bundled[resource] = bundled.get(resource, frozenset()) | operations
        return {resource: self._acls(resource, operations) for resource, operations in bundled.items()}

    def check_only_resources(self, action: str) -> None:
        """Raise a usage error if there are options that only grant and revoke take."""
        if self.names_principals or self.allow_hosts or self.deny_hosts or self.operations:
            raise usage_error(f"`{action}` takes no principals, hosts or operations: it shows all of them")
        if self.producer or self.consumer:
            raise usage_error(f"`--producer` and `--consumer` do not apply to `{action}`, remove them")

    def _check(self) -> None:
        if not self.resources():
            raise usage_error("name the resources: use `--topic`, `--group` or `--cluster`")
        for hosts, principals, side in (
            (self.allow_hosts, self.allow_principals, "hosts"),
            (self.deny_hosts, self.deny_principals, "hosts to deny"),
        ):
            if hosts and not principals:
                raise usage_error(f"{side} without principals: name the principals too")
        if not (self.producer or self.consumer):
            return
        if self.operations or self.deny_principals:
            raise usage_error("`--producer` and `--consumer` take neither operations nor principals to deny")
        if not self.topics:
            raise usage_error("`--producer` and `--consumer` need `--topic`")
        if self.consumer and not self.groups:
            raise usage_error("`--consumer` needs `--group`")
        if self.cluster and not self.producer:
            raise usage_error("`--consumer` needs no right on the cluster, remove `--cluster`")

    def _operations(self) -> Iterator[tuple[Resource, frozenset[AclOperation]]]:
        if not (self.producer or self.consumer):
            named = frozenset(operation_of(text) for text in _listed(self.operations)) or _ALL
            for resource in self.resources():
                yield resource, named
            return
        for resource in self.resources():
            if resource.resource_type is ResourceType.TOPIC and self.producer:
                yield resource, _PRODUCER
            if resource.resource_type is ResourceType.TOPIC and self.consumer:
                yield resource, _CONSUMER
            if resource.resource_type is ResourceType.GROUP and self.consumer:
                yield resource, _CONSUMER_GROUP
        if self.producer:
            yield CLUSTER_RESOURCE, _CREATION

    def _acls(self, resource: Resource, operations: frozenset[AclOperation]) -> frozenset[Acl]:
        supported = SUPPORTED_OPERATIONS[resource.resource_type]
        for operation in operations - _ALL:
            if operation not in supported:
                means = ", ".join(each.name for each in supported)
                raise usage_error(f"`{operation}` does not apply to `{resource}`, use {means}")
        sides = (
            (AclPermissionType.ALLOW, self.allow_principals, self.allow_hosts),
            (AclPermissionType.DENY, self.deny_principals, self.deny_hosts),
        )
        return frozenset(
            Acl(principal, permission, frozenset(_listed(hosts)) or frozenset((WILDCARD,)), operations)
            for permission, principals, hosts in sides
            for principal in _principals(principals)
        )


def _listed(values: Iterable[str]) -> list[str]:
    found = [part.strip() for value in values for part in value.split(",")]
    if "" in found:
        raise usage_error("a list has an empty value between commas")
    return found


def _principals(values: Iterable[str]) -> list[KafkaPrincipal]:
    return [kip_11_principal_of(text) for text in _listed(values)]


def of_resources(acls: Acls, resources: Sequence[Resource]) -> Acls:
    """Return the ACLs of these resources, or all if `resources` is empty."""
    return {resource: own for resource, own in acls.items() if not resources or resource in resources}


_Statement = tuple[Resource, Acl]

STATEMENTS: Final[Columns[_Statement]] = Columns(
    (
        Column("resource", lambda row: str(row[0]), groups=True),
        Column("principal", lambda row: str(row[1].principal)),
        Column("permission", lambda row: PERMISSION_NAMES[row[1].permission_type]),
        Column("operations", lambda row: tuple(sorted(OPERATION_NAMES[each] for each in row[1].operations))),
        Column("hosts", lambda row: tuple(sorted(row[1].hosts))),
    ),
    lambda row: (str(row[1].principal),),
    "the principals, as `--allowprincipals` takes them",
)


def print_acls(acls: Acls, output: OutputFormat, *, empty: str) -> None:
    """Print ACLs by resource in a fixed order: KIP-11's sets as rows, or a document in the file's form."""
    rows = [
        (resource, acl)
        for resource, own in sorted(acls.items(), key=lambda item: str(item[0]))
        for acl in sorted(merged(own), key=order_of)
    ]
    count = sum(len(singles_of(own)) for own in acls.values())
    print_rows(
        STATEMENTS,
        rows,
        output,
        document=lambda: json.loads(write_tree(acls)),
        tail=(counted(count, "statement") if rows else empty,),
    )
