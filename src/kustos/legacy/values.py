"""Session, resource and ACL of the legacy interface.

KIP-11's ACL has sets: one principal, one permission, some operations, some hosts. Every release stored it as
single statements, one operation from one host; `Acl.singles` returns these. A set is equivalent to its
singles together.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Final, Self

from kustos.acl import (
    CLUSTER_NAME,
    EVERY_PRINCIPAL,
    WILDCARD,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.legacy.vocabulary import (
    OPERATION_NAMES,
    PERMISSION_NAMES,
    RESOURCE_TYPE_NAMES,
    LegacyFormatError,
    resource_type_of,
)

STATEMENTS_PER_ACL_MAX: Final = 10_000
"""The maximum number of operations times hosts of one ACL; Kafka has the same limit for the ACLs of one
change."""


@dataclass(frozen=True, slots=True)
class Session:
    """The principal and address (`getHostAddress()` form) of a request."""

    principal: KafkaPrincipal
    host: str


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource, or since Kafka 2.0 a prefix; pattern types of filters raise `LegacyFormatError`."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    def __post_init__(self) -> None:
        if self.resource_type not in RESOURCE_TYPE_NAMES:
            raise LegacyFormatError(f"resource type `{self.resource_type}` names no kind of resource")
        if not self.pattern_type.is_specific:
            raise LegacyFormatError(f"pattern type `{self.pattern_type}` is only for filters")
        if not self.name and self.pattern_type is PatternType.PREFIXED:
            raise LegacyFormatError("a prefix is empty, use the name `*` for all")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the resource written `Topic:LITERAL:orders` or `Topic:orders`; raise `LegacyFormatError`."""
        kind, colon, rest = text.partition(":")
        if not colon:
            raise LegacyFormatError(f"`{text}` is not a resource, write it as `Topic:LITERAL:name`")
        word, second, name = rest.partition(":")
        pattern_type = PatternType.__members__.get(word) if second else None
        if pattern_type is None:
            pattern_type, name = PatternType.LITERAL, rest
        return cls(resource_type_of(kind), name, pattern_type)

    @property
    def pattern(self) -> ResourcePattern:
        """The resource as a pattern of today's interface."""
        return ResourcePattern(self.resource_type, self.name, self.pattern_type)

    def __str__(self) -> str:
        return f"{RESOURCE_TYPE_NAMES[self.resource_type]}:{self.pattern_type}:{self.name}"


CLUSTER_RESOURCE: Final = Resource(ResourceType.CLUSTER, CLUSTER_NAME)
"""The only resource of its type."""


@dataclass(frozen=True, slots=True)
class Acl:
    """Principal P is allowed or denied operations O1, O2 from hosts H1, H2.

    The principal `User:*` means everyone, the host `*` any host, the operation ALL any operation. Sets are
    not empty; raises `LegacyFormatError` for an invalid statement.
    """

    principal: KafkaPrincipal
    permission_type: AclPermissionType
    hosts: frozenset[str]
    operations: frozenset[AclOperation]

    def __post_init__(self) -> None:
        if self.permission_type not in PERMISSION_NAMES:
            raise LegacyFormatError(f"permission type `{self.permission_type}` neither allows nor denies")
        if not self.hosts or "" in self.hosts:
            raise LegacyFormatError(f"an ACL of `{self.principal}` has no host, use `*` for all")
        for operation in self.operations:
            if operation not in OPERATION_NAMES:
                raise LegacyFormatError(f"operation `{operation}` names no operation, use ALL for any")
        if not self.operations:
            raise LegacyFormatError(f"an ACL of `{self.principal}` has no operation, use `All` for any")
        if len(self.hosts) * len(self.operations) > STATEMENTS_PER_ACL_MAX:
            raise LegacyFormatError(
                f"an ACL of `{self.principal}` makes more than {STATEMENTS_PER_ACL_MAX} statements, split it"
            )

    @classmethod
    def of(
        cls, principal: KafkaPrincipal, permission_type: AclPermissionType, host: str, operation: AclOperation
    ) -> Self:
        """Return the ACL of one operation from one host, the only form in releases."""
        return cls(principal, permission_type, frozenset((host,)), frozenset((operation,)))

    @property
    def is_single(self) -> bool:
        """Whether it is one statement."""
        return len(self.hosts) == len(self.operations) == 1

    def singles(self) -> frozenset[Self]:
        """Return its single statements."""
        if self.is_single:
            return frozenset((self,))
        return frozenset(
            self.of(self.principal, self.permission_type, host, operation)
            for host, operation in product(self.hosts, self.operations)
        )

    def matches(self, principal: KafkaPrincipal, host: str, operation: AclOperation) -> bool:
        """Return whether it matches this principal, host and exact operation; hosts compare as texts."""
        return (
            (self.principal == principal or str(self.principal) == EVERY_PRINCIPAL)
            and not self.hosts.isdisjoint((host, WILDCARD))
            and not self.operations.isdisjoint((operation, AclOperation.ALL))
        )

    def __str__(self) -> str:
        operations = ",".join(sorted(OPERATION_NAMES[operation] for operation in self.operations))
        return (
            f"{self.principal} has {PERMISSION_NAMES[self.permission_type]} permission for operations: "
            f"{operations} from hosts: {','.join(sorted(self.hosts))}"
        )


def singles_of(acls: Iterable[Acl]) -> frozenset[Acl]:
    """Return the single statements of some ACLs, each once."""
    return frozenset(single for acl in acls for single in acl.singles())


def merged(acls: Iterable[Acl]) -> frozenset[Acl]:
    """Return equivalent ACLs with sets, merging hosts with the same operations."""
    operations: dict[tuple[KafkaPrincipal, AclPermissionType, str], set[AclOperation]] = {}
    for acl in acls:
        for host in acl.hosts:
            operations.setdefault((acl.principal, acl.permission_type, host), set()).update(acl.operations)
    hosts: dict[tuple[KafkaPrincipal, AclPermissionType, frozenset[AclOperation]], set[str]] = {}
    for (principal, permission, host), allowed in operations.items():
        hosts.setdefault((principal, permission, frozenset(allowed)), set()).add(host)
    return frozenset(
        Acl(principal, permission, frozenset(where), what)
        for (principal, permission, what), where in hosts.items()
    )


def order_of(acl: Acl) -> tuple[str, str, list[str], list[str]]:
    """Return the sort key of ACLs in texts and lists, so that equal sets give equal texts."""
    operations = sorted(OPERATION_NAMES[operation] for operation in acl.operations)
    return str(acl.principal), PERMISSION_NAMES[acl.permission_type], operations, sorted(acl.hosts)
