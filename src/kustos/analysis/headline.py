"""The summary of a difference, in a few consequences of the changed ACLs.

Each region of the difference belongs to exactly one consequence, or to the rest of its direction. A
consequence is either one region whose decisions all change, or the new decision of similar ACLs in their
scope, with the number of other ACLs that contradict it there. Every consequence is true for every question
in its region, in the sense of its `Claim`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from heapq import nsmallest
from typing import Any, Final

from kustos.acl import EVERY_PRINCIPAL, AclBinding, AclOperation, AclPermissionType, ResourceType
from kustos.acl.forms import texts_of
from kustos.analysis.difference import Difference
from kustos.analysis.importance import by_importance, order_of
from kustos.analysis.kernel import ACLS_ALONE, Rules
from kustos.analysis.regions import Change, Direction, Region, operations_of
from kustos.analysis.scopes import ChangedAcl, ChangedScope, RegionIndex, changed_acls, scopes_of
from kustos.authorizer.index import EVERY_ALLOW

CONSEQUENCES_MAX: Final = 3
"""Consequences shown per direction: few enough to read quickly, together with their ACLs."""

SCOPES_MAX: Final = 64
"""The most important scopes per direction, each compared with every region."""


@unique
class Claim(Enum):
    """The sense in which a consequence is true for the questions in its region.

    CHANGED: the decision of each question changes. ALLOWED, DENIED: each question now has this decision,
    except where other ACLs apply. NOT_DENIED: now no ACL except those others denies the questions.
    """

    CHANGED = "CHANGED"
    ALLOWED = "ALLOWED"
    DENIED = "DENIED"
    NOT_DENIED = "NOT_DENIED"


@dataclass(frozen=True, slots=True)
class Consequence:
    """One sentence of the headline.

    `others` counts the ACLs that contradict the consequence in part of its region. `acls` counts the ACLs
    whose change made it true, and `example` is one of them; with default-allow there may be no such ACL.
    """

    direction: Direction
    claim: Claim
    region: Region
    changes: tuple[Change, ...]
    others: int
    acls: int
    example: ChangedAcl | None

    @property
    def principals(self) -> int | None:
        """How many principals gain or lose; None if everyone does whom nothing names."""
        return _count_of_principals(self.changes)

    def to_json(self) -> dict[str, Any]:
        """Return the claim and its region as one object, without the summarized regions."""
        example = None
        if self.example is not None:
            change = "ADDED" if self.example.is_added else "REMOVED"
            example = {"change": change, **texts_of(self.example.binding)}
        return {
            "direction": self.direction.value,
            "claim": self.claim.value,
            **self.region.to_json(),
            "other_acls": self.others,
            "changed_acls": self.acls,
            "example": example,
            "regions": len(self.changes),
        }


@dataclass(frozen=True, slots=True)
class Rest:
    """Counts of the changes in one direction that are not in the consequences."""

    changes: tuple[Change, ...]

    @property
    def principals(self) -> int | None:
        """How many principals gain or lose; None if everyone does whom nothing names."""
        return _count_of_principals(self.changes)

    @property
    def operations(self) -> tuple[AclOperation, ...]:
        """Every operation that some principals gain or lose."""
        found = {operation for change in self.changes for operation in change.region.operations}
        return tuple([operation for operation in operations_of(EVERY_ALLOW) if operation in found])

    @property
    def resource_types(self) -> tuple[ResourceType, ...]:
        """The affected resource types."""
        return tuple(sorted({change.region.resource_type for change in self.changes}))

    def to_json(self) -> dict[str, Any]:
        """Return the counts as an object; `principals` is null if everyone is affected."""
        return {
            "regions": len(self.changes),
            "principals": self.principals,
            "operations": [operation.name for operation in self.operations],
            "resource_types": [resource_type.name for resource_type in self.resource_types],
        }


@dataclass(frozen=True, slots=True)
class Headline:
    """The most important consequences of the gains and of the losses, and the rest of each direction."""

    gained: tuple[Consequence, ...]
    gained_rest: Rest
    lost: tuple[Consequence, ...]
    lost_rest: Rest

    def to_json(self) -> dict[str, Any]:
        """Return `gained` and `lost`, each with `consequences` and the `rest`."""
        sides = (("gained", self.gained, self.gained_rest), ("lost", self.lost, self.lost_rest))
        return {
            name: {"consequences": [each.to_json() for each in consequences], "rest": rest.to_json()}
            for name, consequences, rest in sides
        }


def headline_of(
    difference: Difference,
    old: Iterable[AclBinding],
    new: Iterable[AclBinding],
    rules: Rules = ACLS_ALONE,
    *,
    consequences_max: int = CONSEQUENCES_MAX,
) -> Headline:
    """Return the headline of a difference of these sets; `rules` are the rules of the new set."""
    new_acls = frozenset(new)
    changed = sorted(changed_acls(frozenset(old), new_acls), key=_acl_order)
    builder = _Consequences(changed, new_acls, rules, consequences_max)
    gained, gained_rest = builder.of(difference.changes, Direction.GAINED)
    lost, lost_rest = builder.of(difference.changes, Direction.LOST)
    return Headline(gained, gained_rest, lost, lost_rest)


def _acl_order(acl: ChangedAcl) -> tuple[object, ...]:
    pattern, entry = acl.binding.pattern, acl.binding.entry
    written = (pattern.resource_type, pattern.name, pattern.pattern_type, entry.principal, entry.host)
    return acl.is_added, *written, entry.operation, entry.permission_type


class _Consequences:
    """The changed ACLs and their context, for the consequences of both directions."""

    def __init__(
        self, changed: list[ChangedAcl], new_acls: frozenset[AclBinding], rules: Rules, consequences_max: int
    ) -> None:
        self._changed = changed
        self._rules = rules
        self._consequences_max = consequences_max
        self._by_principal: dict[str, list[ChangedAcl]] = defaultdict(list)
        for acl in changed:
            self._by_principal[acl.binding.entry.principal].append(acl)
        self._new_by_permission: dict[bool, list[AclBinding]] = {True: [], False: []}
        for binding in new_acls:
            if binding.entry.principal not in rules.super_users:
                allows = binding.entry.permission_type is AclPermissionType.ALLOW
                self._new_by_permission[allows].append(binding)

    def of(self, changes: Sequence[Change], direction: Direction) -> tuple[tuple[Consequence, ...], Rest]:
        """Return the most important consequences of a direction, and the rest."""
        mine = by_importance(change for change in changes if change.direction is direction)
        left = [(change, RegionIndex(change.region)) for change in mine]
        candidates: list[tuple[Region, ChangedScope | RegionIndex, tuple[Change, ...]]] = []
        for region, scope in self._scopes(direction) if mine else ():
            within = [pair for pair in left if pair[1].is_within(scope)]
            if _is_simpler(scope, within):
                taken = {id(change) for change, _ in within}
                left = [pair for pair in left if id(pair[0]) not in taken]
                candidates.append((region, scope, tuple([change for change, _ in within])))
        candidates += [(change.region, index, (change,)) for change, index in left[: self._consequences_max]]
        chosen = nsmallest(self._consequences_max, candidates, key=lambda each: order_of(each[0]))
        taken = {id(change) for *_, changes_taken in chosen for change in changes_taken}
        rest = Rest(tuple([change for change in mine if id(change) not in taken]))
        return tuple([self._consequence(direction, *each) for each in chosen]), rest

    def _scopes(self, direction: Direction) -> list[tuple[Region, ChangedScope]]:
        """Return the most important scopes of a direction that support a claim."""
        is_open = self._rules.allow_everyone_if_no_acl_found
        changed = [acl for acl in self._changed if acl.direction is direction]
        found = [
            (scope.region(self._rules.super_users), scope)
            for scope in scopes_of(changed, self._rules.super_users)
            # once an ALLOW is removed, the default may allow more than the ALLOW did
            if not (is_open and scope.allows and not scope.is_added)
        ]
        return nsmallest(SCOPES_MAX, found, key=lambda pair: order_of(pair[0]))

    def _consequence(
        self,
        direction: Direction,
        region: Region,
        source: ChangedScope | RegionIndex,
        changes: tuple[Change, ...],
    ) -> Consequence:
        if isinstance(source, ChangedScope):
            claim, others = self._claim(source)
            return Consequence(
                direction, claim, region, changes, others, len(source.acls), min(source.acls, key=_acl_order)
            )
        named = region.principals.names if not region.principals.is_everyone_but else ()
        acls = [
            acl
            for principal in dict.fromkeys((*named, EVERY_PRINCIPAL))
            for acl in self._by_principal.get(principal, ())
            if acl.direction is direction and source.meets(acl.binding)
        ]
        return Consequence(direction, Claim.CHANGED, region, changes, 0, len(acls), acls[0] if acls else None)

    def _claim(self, scope: ChangedScope) -> tuple[Claim, int]:
        """Return the claim that now holds in a scope, and the number of ACLs that contradict it there."""
        if scope.is_added and not scope.allows:
            return Claim.DENIED, 0
        others = self._new_by_permission[scope.direction is Direction.LOST]
        count = sum(scope.meets(binding) for binding in others)
        if scope.is_added:
            return Claim.ALLOWED, count
        return Claim.DENIED if scope.allows else Claim.NOT_DENIED, count


def _is_simpler(scope: ChangedScope, within: Sequence[tuple[Change, RegionIndex]]) -> bool:
    """Return whether a scope is easier to understand than the regions in it.

    A region of "everyone except some" does not show whether the others may do it too, so a scope replaces it.
    """
    apart = any(index.principals and change.region.principals.is_everyone_but for change, index in within)
    return len(within) > 1 or (scope.is_of_everyone and apart)


def _count_of_principals(changes: Iterable[Change]) -> int | None:
    names: set[str] = set()
    for change in changes:
        if change.region.principals.is_everyone_but:
            return None
        names.update(change.region.principals.names)
    return len(names)
