"""Filters over bindings, with the matching rules of `ResourcePatternFilter` and Kafka's other filters."""

from collections.abc import Iterable
from dataclasses import dataclass

from kustos.acl.enums import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.acl.values import AccessControlEntry, AclBinding, ResourcePattern


@dataclass(frozen=True, slots=True)
class ResourcePatternFilter:
    """A filter over patterns; a null name and ANY match all, MATCH all patterns that apply to the name."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY

    @property
    def is_unknown(self) -> bool:
        """Whether a field has an unknown code."""
        return self.resource_type is ResourceType.UNKNOWN or self.pattern_type is PatternType.UNKNOWN

    @property
    def matches_at_most_one(self) -> bool:
        """Whether every field is specific, so that at most one pattern matches."""
        return (
            self.resource_type not in {ResourceType.UNKNOWN, ResourceType.ANY}
            and self.name is not None
            and self.pattern_type.is_specific
        )

    def matches(self, pattern: ResourcePattern) -> bool:
        """Return whether the filter matches this pattern."""
        if self.resource_type not in {ResourceType.ANY, pattern.resource_type}:
            return False
        if self.pattern_type not in {PatternType.ANY, PatternType.MATCH, pattern.pattern_type}:
            return False
        if self.name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern_type is PatternType.LITERAL:
            return pattern.name in {self.name, WILDCARD}
        return pattern.pattern_type is PatternType.PREFIXED and self.name.startswith(pattern.name)


@dataclass(frozen=True, slots=True)
class AccessControlEntryFilter:
    """A filter over entries: plain equality, no wildcards or address ranges; null and ANY match all."""

    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: AclPermissionType = AclPermissionType.ANY

    @property
    def is_unknown(self) -> bool:
        """Whether a field has an unknown code."""
        return self.operation is AclOperation.UNKNOWN or self.permission_type is AclPermissionType.UNKNOWN

    @property
    def matches_at_most_one(self) -> bool:
        """Whether every field is specific, so that at most one entry matches."""
        return (
            self.principal is not None
            and self.host is not None
            and self.operation not in {AclOperation.UNKNOWN, AclOperation.ANY}
            and self.permission_type not in {AclPermissionType.UNKNOWN, AclPermissionType.ANY}
        )

    def matches(self, entry: AccessControlEntry) -> bool:
        """Return whether the filter matches this entry."""
        return (
            self.principal in {None, entry.principal}
            and self.host in {None, entry.host}
            and self.operation in {AclOperation.ANY, entry.operation}
            and self.permission_type in {AclPermissionType.ANY, entry.permission_type}
        )


@dataclass(frozen=True, slots=True)
class AclBindingFilter:
    """Both halves of a filter over bindings."""

    pattern_filter: ResourcePatternFilter = ResourcePatternFilter()
    entry_filter: AccessControlEntryFilter = AccessControlEntryFilter()

    @property
    def is_unknown(self) -> bool:
        """Whether either half has an unknown code."""
        return self.pattern_filter.is_unknown or self.entry_filter.is_unknown

    @property
    def matches_at_most_one(self) -> bool:
        """Whether at most one ACL can match, since both halves are specific."""
        return self.pattern_filter.matches_at_most_one and self.entry_filter.matches_at_most_one

    def matches(self, binding: AclBinding) -> bool:
        """Return whether the filter matches this binding."""
        return self.pattern_filter.matches(binding.pattern) and self.entry_filter.matches(binding.entry)

    def among(self, bindings: Iterable[AclBinding]) -> list[AclBinding]:
        """Return the bindings for which `matches` is true, in their order.

        The texts of a filter exclude most bindings, so they are compared first.
        """
        principal, host, name = self.entry_filter.principal, self.entry_filter.host, self.pattern_filter.name
        if principal is not None:
            bindings = [each for each in bindings if each.entry.principal == principal]
        if name is not None and self.pattern_filter.pattern_type is not PatternType.MATCH:
            bindings = [each for each in bindings if each.pattern.name == name]
        if host is not None:
            bindings = [each for each in bindings if each.entry.host == host]
        if self == EVERY_BINDING:
            return list(bindings)
        return [each for each in bindings if self.matches(each)]


EVERY_BINDING = AclBindingFilter()
"""The filter that lists everything."""
