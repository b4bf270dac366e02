"""Answers for everyone else, from which the answers for named principals are derived.

One walk computes the answer for all principals that no entry in a zone names. A named principal differs from
them only where one of its own entries applies: only this part is walked again, the rest is copied.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic

from kustos.acl import EVERY_PRINCIPAL, ResourceType
from kustos.analysis.kernel import AclSet, Key, Sides, Values, turns_of, walk, zone_on
from kustos.analysis.name_sets import EVERYWHERE, NameSet, Site, Zone
from kustos.analysis.regions import PrincipalSet

ROLE_ACLS_MAX: Final = 16
"""Principals with identical ACLs share one result up to this number of ACLs: roles are short and common."""

_NOTHING_MORE: Final[frozenset[Site]] = frozenset()


class Answers(Generic[Key]):
    """The names for which each key holds, for everyone else and for each principal, on one type in one zone.

    `extra` views follow the views of the sets. `key_of` converts the decisions of a class to a key, or to
    None if the class is irrelevant.
    """

    def __init__(
        self,
        sets: tuple[AclSet, ...],
        resource_type: ResourceType,
        zone: Zone,
        key_of: Callable[[Values], Key | None],
        extra: Sides = (),
    ) -> None:
        self._sets = sets
        self._type = resource_type
        self._zone = zone_on(resource_type, zone)
        self._key_of = key_of
        self._extra = extra
        self._by_role: dict[object, dict[Key, NameSet]] = {}
        self._everyone = self._sides(EVERY_PRINCIPAL)
        turns = turns_of(walk(self._everyone, self._zone), key_of)
        self._turns = {key: sorted(sites) for key, sites in turns.items()}

    def _sides(self, principal: str) -> Sides:
        return (*(acls.side(self._type, principal) for acls in self._sets), *self._extra)

    @property
    def named(self) -> set[str]:
        """The principals that could differ from everyone else in the zone."""
        if self._zone.is_empty:
            return set()
        return set[str]().union(*(acls.principals(self._type) for acls in self._sets))

    def of_everyone_else(self) -> dict[Key, NameSet]:
        """Return the names of each key for the principals that no entry names."""
        return {key: NameSet(tuple(sites)) for key, sites in self._turns.items()}

    def of(self, principal: str, changed: Iterable[Site] = _NOTHING_MORE) -> dict[Key, NameSet] | None:
        """Return the names of each key for a principal, None if they are the same as for everyone else.

        `changed`: sites outside the zone to visit for this principal only.
        """
        supers = [principal in acls.rules.super_users for acls in self._sets]
        if any(supers):
            # only a super user of one of the sets can differ beyond the zone
            zone = self._zone if all(supers) else zone_on(self._type, EVERYWHERE)
            return _name_sets(turns_of(walk(self._sides(principal), zone), self._key_of))
        zone = self._own_zone(principal, changed)
        if zone.is_empty:
            return None
        role = self._role(principal, zone)
        if role not in self._by_role:
            # there is only one cluster name, so nothing can be copied from everyone else
            around = None if self._type is ResourceType.CLUSTER else self._everyone
            turns = turns_of(walk(self._sides(principal), zone, around), self._key_of)
            for key, sites in self._turns.items():
                turns[key] = zone.cut_out_of(sites) + turns.get(key, [])
            self._by_role[role] = _name_sets(turns)
        return self._by_role[role]

    def _own_zone(self, principal: str, changed: Iterable[Site]) -> Zone:
        own = [acls.layer(self._type, principal).sites_within(self._zone) for acls in self._sets]
        return zone_on(self._type, Zone.of({*changed}.union(*own)))

    def _role(self, principal: str, zone: Zone) -> object:
        """Return a value that is equal for principals with the same few entries."""
        entries = [acls.of(self._type, principal) for acls in self._sets]
        if sum(len(some) for some in entries) > ROLE_ACLS_MAX:
            return principal
        rights = [
            frozenset(
                (acl.pattern, acl.entry.host, acl.entry.operation, acl.entry.permission_type) for acl in some
            )
            for some in entries
        ]
        return zone, tuple(rights)


def _name_sets(turns: dict[Key, list[Site]]) -> dict[Key, NameSet]:
    return {key: NameSet(tuple(sorted(sites))) for key, sites in turns.items() if sites}


class Crowd(Generic[Key]):
    """Principals grouped by the keys that hold for them.

    Keeps the first `keys_max` keys; `is_cut` if there were more.
    """

    def __init__(self, keys_max: int) -> None:
        self.keys_max = keys_max
        self._having: dict[Key, list[str]] = defaultdict(list)
        self._looked_at: list[str] = []
        self.is_cut = False

    def add(self, principal: str, keys: Iterable[Key]) -> None:
        """Add the keys of a principal; `User:*` means all principals that are not added separately."""
        self._looked_at.append(principal)
        for key in keys:
            if key in self._having or len(self._having) < self.keys_max:
                self._having[key].append(principal)
            else:
                self.is_cut = True

    def __len__(self) -> int:
        return len(self._having)

    def items(self) -> Iterator[tuple[Key, PrincipalSet]]:
        """Yield each key and its principals."""
        for key, having in self._having.items():
            if EVERY_PRINCIPAL in having:
                others = set(self._looked_at).difference(having)
                yield key, PrincipalSet(tuple(sorted(others)), is_everyone_but=True)
            else:
                yield key, PrincipalSet(tuple(sorted(having)))
