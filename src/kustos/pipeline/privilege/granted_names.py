"""How much a set of ACLs grants on known names: a number to compare two sets."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from kustos.acl import (
    EVERY_PRINCIPAL,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclBinding,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from kustos.authorizer.index import ALLOWS
from kustos.pipeline.privilege.values import ALL_BIT, CLOSURES, bits_of

Spans = list[tuple[int, int]]
"""Parts of a sorted list of names: from, and up to but not including."""

_LAST = chr(0x10FFFF)


def granted_on_known_names(
    bindings: Iterable[AclBinding],
    names: Mapping[ResourceType, Collection[str]],
    principals: Collection[str],
) -> int:
    """Return how many (principal, operation, known name) are allowed, from at least one host.

    Only operations that the type supports count. A DENY counts if it is for every host. ACLs for `User:*`
    count for each of the `principals`.
    """
    by_type: dict[ResourceType, dict[str, list[AclBinding]]] = defaultdict(lambda: defaultdict(list))
    for binding in bindings:
        by_type[binding.pattern.resource_type][binding.entry.principal].append(binding)
    return sum(
        _granted(by_type[resource_type], resource_type, sorted(set(known)), principals)
        for resource_type, known in names.items()
    )


def _granted(
    acls: Mapping[str, list[AclBinding]],
    resource_type: ResourceType,
    names: Sequence[str],
    principals: Collection[str],
) -> int:
    everyone = acls.get(EVERY_PRINCIPAL, [])
    operations = SUPPORTED_OPERATIONS[resource_type]
    total = 0
    for principal in principals:
        own = [*acls.get(principal, ()), *everyone]
        allows: dict[int, Spans] = defaultdict(list)
        denies: dict[int, Spans] = defaultdict(list)
        for binding in own:
            operation = binding.entry.operation
            is_allow = binding.entry.permission_type is AclPermissionType.ALLOW
            if operation not in ALLOWS or not (is_allow or binding.entry.host == WILDCARD):
                continue
            bit = ALLOWS[operation]
            implied = CLOSURES[bit] if is_allow or bit == ALL_BIT else bit
            spans = _spans(binding, names)
            for each in bits_of(implied):
                (allows if is_allow else denies)[each] += spans
        for operation in operations:
            total += _measure(allows[ALLOWS[operation]], denies[ALLOWS[operation]])
    return total


def _spans(binding: AclBinding, names: Sequence[str]) -> Spans:
    name = binding.pattern.name
    if binding.pattern.pattern_type is PatternType.PREFIXED:
        return [(bisect_left(names, name), bisect_left(names, name + _LAST))]
    if name == WILDCARD:
        # it does not match longer names that begin with an asterisk (Kafka 4.4.0)
        longer = bisect_left(names, WILDCARD + chr(0))
        return [(0, longer), (bisect_left(names, WILDCARD + _LAST), len(names))]
    found = bisect_left(names, name)
    return [(found, found + 1)] if names[found : found + 1] == [name] else []


def _measure(allowed: Spans, denied: Spans) -> int:
    """Return how many places are in some allowed span and in no denied one."""
    edges: list[tuple[int, int, int]] = []
    for spans, (allow, deny) in ((allowed, (1, 0)), (denied, (0, 1))):
        for start, end in spans:
            edges += [(start, allow, deny), (end, -allow, -deny)]
    edges.sort()
    total = depth = against = last = 0
    for place, allow, deny in edges:
        if depth > 0 and against == 0:
            total += place - last
        depth, against, last = depth + allow, against + deny, place
    return total
