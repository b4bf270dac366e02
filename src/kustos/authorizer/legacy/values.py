"""Session, resource and ACL as the legacy interface has them.

KIP-11's ACL speaks of sets: one principal, one permission, some operations, some hosts. Every release
kept it as single statements, one operation from one host, and `Acl.singles` gives those. A set means
exactly what its singles mean together.
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
from kustos.authorizer.legacy.errors import LegacyFormatError
from kustos.authorizer.legacy.vocabulary import (
    OPERATION_NAMES,
    PERMISSION_NAMES,
    RESOURCE_TYPE_NAMES,
    resource_type_of,
)

STATEMENTS_PER_ACL_MAX: Final = 10_000
"""Operations times hosts of one ACL; Kafka takes no more ACLs in one change either."""


@dataclass(frozen=True, slots=True)
class Session:
    """Who asks, and from which address (`getHostAddress()` form)."""

    principal: KafkaPrincipal
    host: str


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource, or since Kafka 2.0 all that a prefix begins; types of filters raise `LegacyFormatError`."""

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
            raise LegacyFormatError(f"`{text}` is no resource, write it as `Topic:LITERAL:name`")
        word, second, name = rest.partition(":")
        pattern_type = PatternType.__members__.get(word) if second else None
        if pattern_type is None:
            pattern_type, name = PatternType.LITERAL, rest
        return cls(resource_type_of(kind), name, pattern_type)

    @property
    def pattern(self) -> ResourcePattern:
        """The same as a pattern of today's interface."""
        return ResourcePattern(self.resource_type, self.name, self.pattern_type)

    def __str__(self) -> str:
        return f"{RESOURCE_TYPE_NAMES[self.resource_type]}:{self.pattern_type}:{self.name}"


CLUSTER_RESOURCE: Final = Resource(ResourceType.CLUSTER, CLUSTER_NAME)
"""The only resource of its type."""


@dataclass(frozen=True, slots=True)
class Acl:
    """Principal P is allowed or denied operations O1, O2 from hosts H1, H2.

    The principal `User:*` is everybody, the host `*` everywhere, the operation ALL any. Sets are not
    empty; raises `LegacyFormatError` for what could never be a statement.
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
        """Return the ACL of one operation from one host, which is all that releases know."""
        return cls(principal, permission_type, frozenset((host,)), frozenset((operation,)))

    @property
    def is_single(self) -> bool:
        """Whether it is one statement."""
        return len(self.hosts) == len(self.operations) == 1

    def singles(self) -> frozenset[Self]:
        """Return the statements that it stands for."""
        if self.is_single:
            return frozenset((self,))
        return frozenset(
            self.of(self.principal, self.permission_type, host, operation)
            for host, operation in product(self.hosts, self.operations)
        )

    def speaks_of(self, principal: KafkaPrincipal, host: str, operation: AclOperation) -> bool:
        """Return whether it is about this principal doing exactly this from there; hosts compare as texts."""
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
    """Return the statements that some ACLs stand for, each once."""
    return frozenset(single for acl in acls for single in acl.singles())


def merged(acls: Iterable[Acl]) -> frozenset[Acl]:
    """Return as few ACLs with sets as hosts of the same operations allow; they mean exactly the same."""
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
    """Return the key by which ACLs are written and listed, so that the same set gives the same text."""
    operations = sorted(OPERATION_NAMES[operation] for operation in acl.operations)
    return str(acl.principal), PERMISSION_NAMES[acl.permission_type], operations, sorted(acl.hosts)
