"""What each ALLOW entitles to, operation by operation, and what DENYs take away from it.

An ALLOW entitles to each operation that its mask in the authorizer's index holds and that Kafka checks on the
type: `ALL` to all of them, `READ` to `DESCRIBE` too (KIP-11). DENYs imply nothing. A DENY that meets an
entitlement takes a part of it: some principals of `User:*`, some names, some hosts.

It is void exactly if it allows nothing to anyone. DENYs by name, however many, leave the other names of a
pattern and the other principals of `User:*`. So only DENYs that hold all its names and principals make it
void: one, or several whose hosts together cover its own.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from typing import Final

from kustos.acl import (
    CLUSTER_NAME,
    EVERY_PRINCIPAL,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    hosts_meet,
)
from kustos.analysis.host_sets import hosts_are_covered
from kustos.analysis.kernel import ACLS_ALONE, Rules
from kustos.authorizer.index import ALLOWS, DENIES, binding_mask

DENIES_NAMED_MAX: Final = 20
"""DENYs that one entitlement names, the first in order; `deny_count` counts all."""


@unique
class Effect(StrEnum):
    """How much of an entitlement DENYs leave."""

    WHOLE = "WHOLE"
    PARTLY_DENIED = "PARTLY_DENIED"
    VOID = "VOID"


@unique
class Breadth(StrEnum):
    """How broad an entitlement is: for everyone, or on every name, on a prefix, or on one name."""

    EVERYONE = "EVERYONE"
    WILDCARD = "WILDCARD"
    PREFIXED = "PREFIXED"
    NAMED = "NAMED"


@dataclass(frozen=True, slots=True)
class Entitlement:
    """One operation that an ALLOW, by its position, allows; `denied_by` are positions of DENYs."""

    number: int
    operation: AclOperation
    effect: Effect
    denied_by: tuple[int, ...] = ()
    deny_count: int = 0


def breadth_of(binding: AclBinding) -> Breadth:
    """Return how broad an ACL is."""
    if binding.entry.principal == EVERY_PRINCIPAL:
        return Breadth.EVERYONE
    if binding.pattern.pattern_type is not PatternType.LITERAL:
        return Breadth.PREFIXED
    return Breadth.WILDCARD if binding.pattern.name == WILDCARD else Breadth.NAMED


def operations_of_grant(binding: AclBinding) -> tuple[AclOperation, ...]:
    """Return the operations that an ALLOW allows, in Kafka's order; its own even if the type has none."""
    mask = binding_mask(binding)
    supported = SUPPORTED_OPERATIONS.get(binding.pattern.resource_type, ())
    found = {each for each in supported if mask & ALLOWS[each]}
    if binding.entry.operation in ALLOWS and not found:
        found.add(binding.entry.operation)
    return tuple(sorted(found))


def entitlements(bindings: Sequence[AclBinding], rules: Rules = ACLS_ALONE) -> Iterator[Entitlement]:
    """Yield what each ALLOW of the distinct `bindings` entitles to; DENYs do not bind super users."""
    denying = Denying(bindings, rules)
    for number, binding in enumerate(bindings):
        if binding.entry.permission_type is not AclPermissionType.ALLOW:
            continue
        meeting = denying.meeting(binding)
        for operation in operations_of_grant(binding):
            yield replace(denying.of_operation(binding, operation, meeting), number=number)


class Denying:
    """The DENYs of a set by principal, type and name: which of them meet an ALLOW."""

    def __init__(self, bindings: Sequence[AclBinding], rules: Rules = ACLS_ALONE) -> None:
        self._bindings: Final = bindings
        self._super_users: Final = rules.super_users
        self._numbers: dict[tuple[str, ResourceType], dict[ResourcePattern, list[int]]] = {}
        for number, binding in enumerate(bindings):
            entry = binding.entry
            if entry.permission_type is AclPermissionType.ALLOW or entry.principal in rules.super_users:
                continue
            held = self._numbers.setdefault((entry.principal, binding.pattern.resource_type), {})
            held.setdefault(binding.pattern, []).append(number)
        self._sorted: dict[tuple[str, ResourceType], list[tuple[str, ResourcePattern]]] = {
            key: sorted(((pattern.name, pattern) for pattern in held), key=lambda pair: pair[0])
            for key, held in self._numbers.items()
        }

    def meeting(self, binding: AclBinding) -> list[int]:
        """Return the DENYs that take something from the ALLOW, whatever their operations, in order."""
        principal, kind = binding.entry.principal, binding.pattern.resource_type
        if principal in self._super_users:
            return []
        if principal == EVERY_PRINCIPAL:
            keys: Iterable[tuple[str, ResourceType]] = [key for key in self._numbers if key[1] is kind]
        else:
            keys = [(principal, kind), (EVERY_PRINCIPAL, kind)]
        return sorted(
            number
            for key in keys
            if key in self._numbers
            for pattern in self._patterns_meeting(key, binding.pattern)
            for number in self._numbers[key][pattern]
            if hosts_meet(self._bindings[number].entry.host, binding.entry.host)
        )

    def _patterns_meeting(
        self, key: tuple[str, ResourceType], pattern: ResourcePattern
    ) -> Iterator[ResourcePattern]:
        held, kind, name = self._numbers[key], key[1], pattern.name
        is_literal = pattern.pattern_type is PatternType.LITERAL
        if is_literal and name == WILDCARD:
            yield from (each for each in held if patterns_meet(each, pattern))
            return
        shorter = [ResourcePattern(kind, name[:end], PatternType.PREFIXED) for end in range(1, len(name))]
        shorter.append(ResourcePattern(kind, WILDCARD, PatternType.LITERAL))
        if is_literal:
            around = [*shorter, ResourcePattern(kind, name, PatternType.PREFIXED), pattern]
            yield from (each for each in around if each in held and patterns_meet(each, pattern))
            return
        yield from (each for each in shorter if each in held and patterns_meet(each, pattern))
        ordered = self._sorted[key]
        start = bisect_left(ordered, name, key=lambda pair: pair[0])
        for other, each in ordered[start:]:
            if not other.startswith(name):
                break
            if each not in shorter:
                yield each

    def of_operation(
        self, binding: AclBinding, operation: AclOperation, meeting: Iterable[int]
    ) -> Entitlement:
        """Return what the DENYs that meet an ALLOW leave of one operation; its `number` is 0."""
        denied = DENIES[operation]
        found = [number for number in meeting if binding_mask(self._bindings[number]) & denied]
        effect = Effect.PARTLY_DENIED if found else Effect.WHOLE
        holding = {self._bindings[number].entry.host for number in found if self._holds(number, binding)}
        if holding and hosts_are_covered(binding.entry.host, holding):
            effect = Effect.VOID
        return Entitlement(0, operation, effect, tuple(found[:DENIES_NAMED_MAX]), len(found))

    def _holds(self, number: int, allow: AclBinding) -> bool:
        """Return whether a DENY is for all principals and names of an ALLOW, whatever their hosts."""
        deny = self._bindings[number]
        return deny.entry.principal in (EVERY_PRINCIPAL, allow.entry.principal) and pattern_holds(
            _possible(deny.pattern), _possible(allow.pattern)
        )


def _possible(pattern: ResourcePattern) -> ResourcePattern:
    """Return a pattern of the same resources: of clusters there is one, whatever pattern matches it."""
    if pattern.resource_type is ResourceType.CLUSTER:
        one = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
        return one if pattern_holds(pattern, one) else pattern
    return pattern


def pattern_holds(outer: ResourcePattern, inner: ResourcePattern) -> bool:
    """Return whether a pattern matches every name that another of its type matches.

    LITERAL `*` matches each name that does not begin with `*`, and `*` itself, as the index does.
    """
    if inner == outer:
        return True
    if outer.pattern_type is not PatternType.LITERAL:
        is_every_name = inner.pattern_type is PatternType.LITERAL and inner.name == WILDCARD
        return inner.name.startswith(outer.name) and not is_every_name
    return outer.name == WILDCARD and not inner.name.startswith(WILDCARD)


def patterns_meet(one: ResourcePattern, other: ResourcePattern) -> bool:
    """Return whether two patterns of a type match some name together."""
    if pattern_holds(one, other) or pattern_holds(other, one):
        return True
    # LITERAL `*` and the prefix `*` share the name `*`
    return one.name == other.name == WILDCARD


def name_is_matched(pattern: ResourcePattern, name: str) -> bool:
    """Return whether a pattern matches a name."""
    return pattern_holds(pattern, ResourcePattern(pattern.resource_type, name, PatternType.LITERAL))
