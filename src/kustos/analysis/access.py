"""The exact sets of principals that can perform an operation, and of actions of a principal, with hosts."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from kustos.acl import (
    CLUSTER_NAME,
    EVERY_PRINCIPAL,
    WILDCARD,
    AclBinding,
    AclOperation,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.analysis.by_host import ByHost, combined, constant, mapped
from kustos.analysis.everyone import Answers, Crowd
from kustos.analysis.groups import as_own
from kustos.analysis.host_sets import HostSet, by_bits
from kustos.analysis.kernel import (
    ACLS_ALONE,
    NOTHING,
    RESOURCE_TYPES,
    AclSet,
    AnalysisError,
    PrincipalView,
    Rules,
    Values,
)
from kustos.analysis.layers import Layer
from kustos.analysis.name_sets import EVERYWHERE, WILDCARD_NAMES, NameSet, Site, Zone, site_of
from kustos.analysis.regions import REGIONS_MAX, PrincipalSet, Region, operations_of
from kustos.authorizer.index import ALLOWS, EVERY_ALLOW

Piece = tuple[bool, HostSet, NameSet]
"""Whether the piece has every requested name; hosts; names."""


@dataclass(frozen=True, slots=True)
class Grant:
    """An allowed region; `is_every_name` if it has every requested name."""

    region: Region
    is_every_name: bool

    def text(self) -> str:
        """Return the region in words, after `every name: ` or `some names: `."""
        return f"{'every name' if self.is_every_name else 'some names'}: {self.region.text()}"

    def to_json(self) -> dict[str, Any]:
        """Return the region as an object, with `every_name`."""
        return {"every_name": self.is_every_name, **self.region.to_json()}


@dataclass(frozen=True, slots=True)
class AllowedAccess:
    """The allowed part of the query as disjoint grants; `is_cut` if some grants are missing."""

    grants: tuple[Grant, ...]
    is_cut: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return `cut` and the `grants`."""
        return {"cut": self.is_cut, "grants": [grant.to_json() for grant in self.grants]}


def names_of(pattern: ResourcePattern) -> NameSet:
    """Return the names that a pattern matches on its type."""
    site = site_of(pattern)
    names = WILDCARD_NAMES if site == Site(WILDCARD, is_literal=True) else NameSet((site,))
    if pattern.resource_type is ResourceType.CLUSTER and CLUSTER_NAME in names:
        return NameSet((Site(CLUSTER_NAME, is_literal=True),))
    return names


def marking(pattern: ResourcePattern) -> PrincipalView:
    """Return a view that allows everything on the names of a pattern, and nothing else."""
    return PrincipalView((Layer.marking(site_of(pattern)),), is_super=False, is_open=False)


def bit_of(operation: AclOperation) -> int:
    """Return the bit of an operation; raise `AnalysisError` for ANY and UNKNOWN."""
    if operation not in ALLOWS:
        raise AnalysisError(f"cannot decide on operation `{operation}`, name one")
    return ALLOWS[operation]


def who_can(
    bindings: Iterable[AclBinding],
    operation: AclOperation,
    pattern: ResourcePattern,
    rules: Rules = ACLS_ALONE,
    *,
    regions_max: int = REGIONS_MAX,
) -> AllowedAccess:
    """Return exactly the principals, hosts and names of a pattern for which an operation is allowed.

    LITERAL queries one name (`*`: every name that `*` matches), PREFIXED all names with the prefix (the empty
    prefix: all names). Grants for every name of the pattern come first, separate from grants for some of
    the names. Returns at most `regions_max` grants. Raises `AnalysisError`.
    """
    bit = bit_of(operation)
    if pattern.pattern_type is PatternType.UNKNOWN:
        raise AnalysisError(f"cannot decide on pattern type `{pattern.pattern_type}`, name one")
    if pattern.resource_type not in RESOURCE_TYPES:
        raise AnalysisError(f"cannot decide on resource type `{pattern.resource_type}`, name one")

    def key_of(values: Values) -> ByHost | None:
        return None if values[1] == NOTHING else mapped(values[0], lambda bits: int(bits & bit != 0))

    acls = AclSet(bindings, rules)
    zone = Zone.of([site_of(pattern)])
    answers = Answers((acls,), pattern.resource_type, zone, key_of, (marking(pattern),))
    whole = names_of(pattern)
    crowd: Crowd[Piece] = Crowd(regions_max)
    crowd.add(EVERY_PRINCIPAL, _pieces(answers.of_everyone_else(), whole))
    for principal in sorted(answers.named):
        found = answers.of(principal)
        if found is not None:
            crowd.add(principal, _pieces(found, whole))
    grants = [
        (
            (not is_every, not principals.is_everyone_but, principals.names, names.turns, hosts.order),
            Grant(Region(principals, hosts, (operation,), pattern.resource_type, names), is_every),
        )
        for (is_every, hosts, names), principals in crowd.items()
    ]
    return AllowedAccess(
        tuple([grant for _, grant in sorted(grants, key=lambda pair: pair[0])]), crowd.is_cut
    )


def _pieces(found: dict[ByHost, NameSet], whole: NameSet) -> list[Piece]:
    """Return the hosts that have every name, then the names of the other hosts."""
    if not found:
        return []
    everywhere = constant(1)
    for allowed in found:
        everywhere = combined(everywhere, allowed, lambda one, other: one & other)
    pieces = [(True, HostSet(everywhere), whole)]
    for allowed, names in found.items():
        pieces.append((False, HostSet(combined(allowed, everywhere, lambda one, every: one & ~every)), names))
    return [piece for piece in pieces if not piece[1].is_empty]


def what_can(
    bindings: Iterable[AclBinding],
    principal: str,
    rules: Rules = ACLS_ALONE,
    *,
    groups: tuple[str, ...] = (),
    regions_max: int = REGIONS_MAX,
) -> tuple[Region, ...]:
    """Return exactly the operations, names and hosts that are allowed for a principal (`Type:name`).

    `groups` are the names of the client's groups. `User:*`, which has none, queries the principals that
    neither an ACL nor `super.users` names. Raises `AclValueError` for a principal without a type, and
    `AnalysisError` if there are more than `regions_max` regions: the result is never partial. Names with the
    same rights share a region, so the number of regions is small.
    """
    client = replace(KafkaPrincipal.parse(principal), groups=groups)
    if groups:
        bindings = as_own(bindings, principal, client.group_texts)
    acls = AclSet(bindings, rules)
    regions: list[Region] = []
    for resource_type in RESOURCE_TYPES:
        requesters = PrincipalSet((principal,))
        if principal == EVERY_PRINCIPAL:
            requesters = PrincipalSet(tuple(sorted(acls.principals(resource_type))), is_everyone_but=True)
        answers = Answers((acls,), resource_type, EVERYWHERE, _allowed)
        found = answers.of_everyone_else() if principal == EVERY_PRINCIPAL else answers.of(principal)
        if found is None:
            found = answers.of_everyone_else()
        pieces = [
            (
                names.turns,
                bits,
                hosts.order,
                Region(requesters, hosts, operations_of(bits), resource_type, names),
            )
            for allowed, names in found.items()
            for bits, hosts in by_bits(allowed, EVERY_ALLOW)
        ]
        regions += [region for *_, region in sorted(pieces, key=lambda piece: piece[:3])]
    if len(regions) > regions_max:
        raise AnalysisError(f"`{principal}` has {len(regions)} regions of rights, ask for no fewer than that")
    return tuple(regions)


def _allowed(values: Values) -> ByHost | None:
    return None if values[0] == NOTHING else values[0]
