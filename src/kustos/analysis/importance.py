"""The order of regions by importance: regions with the most principals, names, hosts and operations first.

Each of the four properties has a class from 0 to 3, and the importance is the sum of the classes: everyone on
everything from anywhere with every operation is 12, one principal that may DESCRIBE one topic from one
address is 0. Regions with the same sum are ordered by principals, names, hosts and operations in this order,
then by the number that they name.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kustos.acl import AclOperation, ResourceType
from kustos.analysis.host_sets import HostSet
from kustos.analysis.name_sets import NameSet, Site
from kustos.analysis.regions import Change, Direction, PrincipalSet, Region
from kustos.authorizer.index import EVERY_ALLOW

MANY_PRINCIPALS_MIN: Final = 10
"""The number of principals from which a region has a higher class: a team instead of a few services."""

_GOVERNS: Final = frozenset(
    {
        AclOperation.ALTER,
        AclOperation.ALTER_CONFIGS,
        AclOperation.CLUSTER_ACTION,
        AclOperation.CREATE_TOKENS,
        AclOperation.DELETE,
    }
)
"""Operations that change the rights of others, act for others, or destroy data."""

_DESCRIBES: Final = frozenset(
    {AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.DESCRIBE_TOKENS}
)
"""Operations that show the existence of a resource, but not its content."""


def by_importance(changes: Iterable[Change]) -> list[Change]:
    """Return the changes, the most important first; equally important ones keep their order."""
    return sorted(changes, key=lambda change: order_of(change.region))


@dataclass(frozen=True, slots=True)
class ShownChanges:
    """The changes to show, gains before losses, and those omitted in each direction."""

    changes: tuple[Change, ...]
    gained_left: tuple[Change, ...]
    lost_left: tuple[Change, ...]


def most_important(changes: Iterable[Change], shown_max: int) -> ShownChanges:
    """Return the most important changes, at most `shown_max`.

    Each direction gets half of this number, plus the unused part of the other half.
    """
    ordered = by_importance(changes)
    gained = tuple([change for change in ordered if change.direction is Direction.GAINED])
    lost = tuple([change for change in ordered if change.direction is Direction.LOST])
    half = (shown_max + 1) // 2
    gained_shown = min(len(gained), max(half, shown_max - len(lost)))
    lost_shown = min(len(lost), shown_max - gained_shown)
    return ShownChanges(
        gained[:gained_shown] + lost[:lost_shown],
        gained_left=gained[gained_shown:],
        lost_left=lost[lost_shown:],
    )


def order_of(region: Region) -> tuple[int, ...]:
    """Return a sort key that puts the most important regions first."""
    classes = (
        _class_of_principals(region.principals),
        _class_of_names(region.resource_type, region.names),
        _class_of_hosts(region.hosts),
        _class_of_operations(region.operations),
    )
    named = len(region.principals.names)
    return (
        -sum(classes),
        *(-each for each in classes),
        named if region.principals.is_everyone_but else -named,
        -len(region.operations),
    )


def _class_of_principals(principals: PrincipalSet) -> int:
    if principals.is_everyone_but:
        return 3
    return 2 if len(principals.names) >= MANY_PRINCIPALS_MIN else int(len(principals.names) > 1)


def _class_of_names(resource_type: ResourceType, names: NameSet) -> int:
    if resource_type is ResourceType.CLUSTER or Site("", is_literal=False) in names.turns[:1]:
        return 3
    if any(not site.is_literal for site in names.turns):
        return 2
    return int(len(names.turns) > 1)


def _class_of_hosts(hosts: HostSet) -> int:
    if hosts.is_everywhere:
        return 3
    if hosts.member.steps[-1][1]:
        return 2
    return int(any(value and end - start > 1 for start, end, value in hosts.member.pieces()))


def _class_of_operations(operations: tuple[AclOperation, ...]) -> int:
    if len(operations) == EVERY_ALLOW.bit_count():
        return 3
    if _GOVERNS.intersection(operations):
        return 2
    return int(not _DESCRIBES.issuperset(operations))
