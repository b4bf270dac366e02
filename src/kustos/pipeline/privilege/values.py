"""The input and output of least privilege: plain values, without Spark."""

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
"""The operations that an ALLOW of one operation allows, as bits (KIP-504; ALL is everything)."""

OPERATIONS: Final[dict[int, AclOperation]] = {bit: operation for operation, bit in ALLOWS.items()}


_MASKS: Final = 1 << 14
"""The number of sets of operations: the caches never hold more."""


class Use(NamedTuple):
    """An access that must stay allowed; `name` None means any resource of the type."""

    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str | None
    event_count: int = 1


class Denial(NamedTuple):
    """An access that must stay denied."""

    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str | None


KnownNames = Mapping[tuple[ResourceType, str], int]
"""Counts of known names by type and prefix; the empty prefix counts all. A missing key means 0."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The record of one principal, each access once, and the counts of known names."""

    principal: str
    uses: tuple[Use, ...]
    denials: tuple[Denial, ...] = ()
    known: KnownNames = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendedAcl:
    """An ACL and its reason.

    It serves `access_count` distinct accesses (`event_count` events) to `name_count` names. Each access is
    counted for one ACL only: the one with the longest name that allows it. Of the `known_count` known names
    that it matches, `over_grant_count` were never used. `host_count` hosts used something that it allows.
    `examples` are names it serves.
    """

    binding: AclBinding
    access_count: int
    event_count: int
    name_count: int
    known_count: int
    over_grant_count: int
    host_count: int
    examples: tuple[str, ...]
    reason: str


@unique
class Unserved(Enum):
    """Why an access that should stay allowed has no ACL."""

    PRINCIPAL = "a principal is written as `Type:name`"
    EVERYBODY = "an ACL for `User:*` would stand for every principal"
    EMPTY_NAME = "no ACL but a wildcard can stand for the empty name"
    WILDCARD_NAME = "an ACL on the literal name `*` would stand for every name"
    CLUSTER_NAME = "an ACL on the cluster can only name `kafka-cluster`"
    OPERATION = "no ACL can name this operation or this type of resource"
    PROBE = "every name that could answer the question for any resource was denied, or is none of today's"
    TOO_LONG = "the principal, name or host is longer than an ACL's texts can be"
    HOST = "the host is not an address, so an ACL for it would stand for other hosts"
    TODAY = "today's ACLs do not allow it"
    TOO_MUCH = "more accesses than can be looked at together"


class UnservedUse(NamedTuple):
    """An access without an ACL, with the reason."""

    use: Use
    reason: Unserved


@dataclass(frozen=True, slots=True)
class PrincipalRecommendation:
    """The ACLs of one principal, and the accesses that they do not serve.

    `overruled` are denied questions for any resource of a type that cannot stay denied, since a named
    resource of that type must be allowed.
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
    """Return the operations that ALLOWs of these operations allow."""
    found = 0
    for bit in bits_of(mask):
        found |= CLOSURES[bit]
    return found


def answering(mask: int) -> int:
    """Return the operations whose question for any resource of a type ALLOWs of these operations answer."""
    return EVERY_ALLOW if mask & ALL_BIT else mask  # without implied ones (KIP-679)


@lru_cache(maxsize=_MASKS)
def reduced(mask: int) -> int:
    """Return the operations without those that another of them implies."""
    implied = 0
    for bit in bits_of(mask):
        implied |= CLOSURES[bit] & ~bit
    return mask & ~implied
