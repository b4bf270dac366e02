"""The limit of today's ACLs: what a recommended ACL may grant without granting more than today.

A planned ACL is a region: names (one, a prefix, or `*`), hosts (an address, a range or `*`) and operations.
It is within today's set if one ALLOW of today contains all of it and no DENY of today overlaps it. That is
exact except for regions that only several ALLOWs together cover, which count as beyond.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from kustos.acl import (
    EVERY_PRINCIPAL,
    WILDCARD,
    AclBinding,
    AclPermissionType,
    PatternType,
    ResourceType,
    host_holds,
    hosts_meet,
)
from kustos.authorizer.index import ALLOWS, EVERY_ALLOW
from kustos.pipeline.privilege.values import ALL_BIT, CLOSURES


class _Grant(NamedTuple):
    host: str
    is_allow: bool
    bits: int


class _Patterns:
    """Entries of one type by their patterns."""

    def __init__(self) -> None:
        self.literal: Final[dict[str, list[_Grant]]] = defaultdict(list)
        self.prefixed: Final[dict[str, list[_Grant]]] = defaultdict(list)
        self._lengths: Final[set[int]] = set()

    def add(self, binding: AclBinding) -> None:
        pattern, entry = binding.pattern, binding.entry
        bit = ALLOWS.get(entry.operation)
        if bit is None:
            return
        is_allow = entry.permission_type is AclPermissionType.ALLOW
        implied = CLOSURES[bit] if is_allow or bit == ALL_BIT else bit
        by_name = self.prefixed if pattern.pattern_type is PatternType.PREFIXED else self.literal
        by_name[pattern.name].append(_Grant(entry.host, is_allow, implied))
        if by_name is self.prefixed:
            self._lengths.add(len(pattern.name))

    def beyond(self, name: str, is_prefix: bool, host: str) -> int:
        """Return the operations that are not allowed on all of these names from all of these hosts."""
        allowed = denied = 0
        for grant in self._holding(name, is_prefix):
            if grant.is_allow and host_holds(grant.host, host):
                allowed |= grant.bits
        for grant in self._touching(name, is_prefix):
            if not grant.is_allow and hosts_meet(grant.host, host):
                denied |= grant.bits
        return EVERY_ALLOW & ~(allowed & ~denied)

    def _holding(self, name: str, is_prefix: bool) -> Iterable[_Grant]:
        """Yield entries that match all of these names."""
        if not is_prefix:
            yield from self.literal.get(name, ())
        if is_prefix or name != WILDCARD:
            yield from self._of_beginnings(name)
        # it does not match longer names that begin with an asterisk (Kafka 4.4.0)
        if name[:1] != WILDCARD:
            yield from self.literal.get(WILDCARD, ())

    def _touching(self, name: str, is_prefix: bool) -> Iterable[_Grant]:
        """Yield entries that match any of these names."""
        if not is_prefix and name != WILDCARD:
            yield from self._holding(name, is_prefix)
            return
        below = "" if name == WILDCARD and not is_prefix else name
        for patterns in (self.literal, self.prefixed):
            for pattern, grants in patterns.items():
                is_above = patterns is self.prefixed and below.startswith(pattern)
                if pattern.startswith(below) or is_above or pattern == WILDCARD:
                    yield from grants

    def _of_beginnings(self, name: str) -> Iterable[_Grant]:
        # prefixes have few lengths, and names have many characters
        for length in self._lengths:
            if 0 < length <= len(name):
                yield from self.prefixed.get(name[:length], ())


class _Names:
    """The patterns of all ACLs on one type: where none matches, the default may allow."""

    def __init__(self) -> None:
        self.literal: Final[set[str]] = set()
        self.prefixed: Final[set[str]] = set()
        self._sorted: list[str] | None = None

    def touch(self, name: str, is_prefix: bool) -> bool:
        """Return whether any ACL matches any of these names."""
        if WILDCARD in self.literal and (name[:1] != WILDCARD or (name == WILDCARD and not is_prefix)):
            return True
        if not is_prefix and name == WILDCARD:
            return bool(self.literal or self.prefixed)
        if any(name[:end] in self.prefixed for end in range(1, len(name) + 1)):
            return True
        if not is_prefix:
            return name in self.literal
        if self._sorted is None:
            self._sorted = sorted(self.literal | self.prefixed)
        place = bisect_left(self._sorted, name)
        return place < len(self._sorted) and self._sorted[place].startswith(name)


class PrincipalCeiling:
    """The most that one principal may be granted."""

    def __init__(self, ceiling: "Ceiling", principal: str) -> None:
        self._ceiling: Final = ceiling
        self._is_free: Final = principal in ceiling.super_users
        self._patterns: Final[dict[ResourceType, _Patterns]] = defaultdict(_Patterns)
        self._cached: Final[dict[tuple[ResourceType, str, bool, str], int]] = {}
        for owner in {principal, EVERY_PRINCIPAL}:
            for binding in ceiling.of(owner):
                self._patterns[binding.pattern.resource_type].add(binding)

    def beyond(self, resource_type: ResourceType, name: str, is_prefix: bool, host: str) -> int:
        """Return the operations, as bits, that an ALLOW there would grant beyond today's set.

        The literal name `*` means every name, as in an ACL; `host` may be a range or `*`.
        """
        if self._is_free:
            return 0
        key = (resource_type, name, is_prefix, host)
        found = self._cached.get(key)
        if found is None:
            if self._ceiling.is_open(resource_type, name, is_prefix):
                found = 0
            else:
                patterns = self._patterns.get(resource_type)
                found = EVERY_ALLOW if patterns is None else patterns.beyond(name, is_prefix, host)
            self._cached[key] = found
        return found


class Ceiling:
    """Today's ACLs, by principal, with the settings that decide beside them."""

    def __init__(
        self,
        bindings: Iterable[AclBinding],
        super_users: Collection[str] = (),
        *,
        allow_everyone_if_no_acl_found: bool = False,
    ) -> None:
        self.super_users: Final = frozenset(super_users)
        self._is_default_open: Final = allow_everyone_if_no_acl_found
        self._by_principal: Final[dict[str, list[AclBinding]]] = defaultdict(list)
        self._names: Final[dict[ResourceType, _Names]] = defaultdict(_Names)
        for binding in bindings:
            self._by_principal[binding.entry.principal].append(binding)
            names = self._names[binding.pattern.resource_type]
            is_prefix = binding.pattern.pattern_type is PatternType.PREFIXED
            (names.prefixed if is_prefix else names.literal).add(binding.pattern.name)

    def of(self, principal: str) -> Collection[AclBinding]:
        """Return the ACLs for exactly this principal."""
        return self._by_principal.get(principal, ())

    def of_principal(self, principal: str) -> PrincipalCeiling:
        """Return the most that this principal may be granted."""
        return PrincipalCeiling(self, principal)

    def is_open(self, resource_type: ResourceType, name: str, is_prefix: bool) -> bool:
        """Return whether no ACL matches any of these names, so that the default allows everybody."""
        if not self._is_default_open:
            return False
        names = self._names.get(resource_type)
        return names is None or not names.touch(name, is_prefix)
