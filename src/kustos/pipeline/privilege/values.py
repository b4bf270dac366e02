"""What least privilege is computed from, and what comes out: plain values, without Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from functools import lru_cache
from typing import Final, NamedTuple

from kustos.acl import AclBinding, AclOperation, ResourceType
from kustos.authorizer.index import ALLOWS, EVERY_ALLOW, IMPLIED_OPERATIONS

ALL_BIT: Final = ALLOWS[AclOperation.ALL]

CLOSURES: Final[dict[int, int]] = {
    bit: EVERY_ALLOW
    if operation is AclOperation.ALL
    else bit | (ALLOWS[IMPLIED_OPERATIONS[operation]] if operation in IMPLIED_OPERATIONS else 0)
    for operation, bit in ALLOWS.items()
}
"""What an ALLOW of one operation allows, as bits (KIP-504's implications; ALL is everything)."""

OPERATIONS: Final[dict[int, AclOperation]] = {bit: operation for operation, bit in ALLOWS.items()}


_MASKS: Final = 1 << 14
"""Every set of operations there is: no more are ever kept."""


class Use(NamedTuple):
    """An access that has to stay allowed; `name` None asks for any resource of the type."""

    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str | None
    event_count: int = 1


class Denial(NamedTuple):
    """An access that has to stay denied."""

    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str | None


KnownNames = Mapping[tuple[ResourceType, str], int]
"""How many known names of a type begin so; the empty beginning counts them all. What is missing is 0."""


@dataclass(frozen=True, slots=True)
class Problem:
    """All that was recorded of one principal, each access once, and what is known of names."""

    principal: str
    uses: tuple[Use, ...]
    denials: tuple[Denial, ...] = ()
    known: KnownNames = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendedAcl:
    """An ACL and why it is there.

    It serves `access_count` distinct accesses (`event_count` events) to `name_count` names. Each access is
    counted for one ACL only: the one with the longest name that allows it. `over_grant_count` known names
    may be used by it that were not, of `known_count` that it stands for. `examples` are names it serves.
    """

    binding: AclBinding
    access_count: int
    event_count: int
    name_count: int
    known_count: int
    over_grant_count: int
    examples: tuple[str, ...]
    reason: str


@unique
class Unserved(Enum):
    """Why an access that should stay allowed is not."""

    PRINCIPAL = "a principal is written as `Type:name`"
    EVERYBODY = "an ACL for `User:*` would stand for every principal"
    EMPTY_NAME = "no ACL but a wildcard can stand for the empty name"
    WILDCARD_NAME = "an ACL on the literal name `*` would stand for every name"
    CLUSTER_NAME = "an ACL on the cluster can only name `kafka-cluster`"
    OPERATION = "no ACL can name this operation or this type of resource"
    PROBE = "every name that could answer the question for any resource was denied, or is none of today's"
    NAME_TOO_LONG = "the name or the host is longer than an ACL's texts can be"
    TODAY = "today's ACLs do not allow it"
    TOO_MUCH = "more accesses than can be looked at together"


class UnservedUse(NamedTuple):
    """An access without an ACL, with the reason."""

    use: Use
    reason: Unserved


@dataclass(frozen=True, slots=True)
class PrincipalRecommendation:
    """The ACLs of one principal, and what they do not serve.

    `overruled` are denied questions for any resource of a type that cannot stay denied, since a named
    resource of that type has to be allowed.
    """

    acls: tuple[RecommendedAcl, ...]
    unserved: tuple[UnservedUse, ...]
    overruled: tuple[Denial, ...]


@lru_cache(maxsize=_MASKS)
def bits_of(mask: int) -> tuple[int, ...]:
    """Return the single bits of a mask, lowest first."""
    return tuple([bit for bit in CLOSURES if bit & mask])


@lru_cache(maxsize=_MASKS)
def closure(mask: int) -> int:
    """Return all that ALLOWs of these operations allow."""
    found = 0
    for bit in bits_of(mask):
        found |= CLOSURES[bit]
    return found


@lru_cache(maxsize=_MASKS)
def reduced(mask: int) -> int:
    """Return the operations without those that another of them implies."""
    implied = 0
    for bit in bits_of(mask):
        implied |= CLOSURES[bit] & ~bit
    return mask & ~implied
