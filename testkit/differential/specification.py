"""The specification of Kafka 4.4.0's StandardAuthorizer: slow, short and obvious.

For names that begin below `*`, where Kafka's scan may fail, it says what the scan was meant to find.
Of oddly written address ranges it has no opinion of its own: they are held against Kafka alone.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address, ip_network

from kustos.acl import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourceType,
    host_matches,
)
from testkit.differential.worlds import principal_of

PLAIN_NUMBER = r"(0|[1-9][0-9]{0,2})"
PLAIN_RANGE = re.compile(
    rf"({PLAIN_NUMBER}(\.{PLAIN_NUMBER}){{3}}|[0-9a-f]{{0,4}}(:[0-9a-f]{{0,4}})+)/{PLAIN_NUMBER}"
)

KEPT_MAX = 65_536
"""Texts read once: the specification is asked as often as kustos and Kafka are."""

IMPLYING = {
    AclOperation.DESCRIBE: [AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER],
    AclOperation.DESCRIBE_CONFIGS: [AclOperation.ALTER_CONFIGS],
}


@dataclass
class Spec:
    """A set of ACLs, the super users and the default, and the decisions that follow."""

    acls: Collection[AclBinding]
    super_users: frozenset[str] = frozenset()
    default_allow: bool = False

    def authorize(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> tuple[bool, str | AclBinding]:
        # 1. super users may do everything
        if str(principal_of(principal)) in self.super_users:
            return True, "SuperUser"
        # 2. an ACL names the resource by its type and its name, whoever the ACL is for
        named = [a for a in self.acls if a.pattern.resource_type is resource_type and names(a, name)]
        named.sort(key=lambda acl: visiting_order(acl, name))
        # 3. of these those match that speak of this principal, host and operation
        matching = [a for a in named if speaks_of(a, principal, host) and covers(a, operation)]
        denying = [a for a in matching if a.entry.permission_type is AclPermissionType.DENY]
        if matching:  # 4. a DENY denies (the first is named), 5. else an ALLOW allows (the last is named)
            return (False, denying[0]) if denying else (True, matching[-1])
        # 6. else the default holds, but default-allow only for resources that no ACL names
        if self.default_allow and not named:
            return True, "DefaultAllow"
        return False, "DefaultDeny"

    def listed(self, asked: AclBindingFilter) -> list[AclBinding]:
        patterns, entries = asked.pattern_filter, asked.entry_filter
        # one column a field, null and ANY are open; MATCH asks what governs the name
        return [
            acl
            for acl in self.acls
            if patterns.resource_type in (acl.pattern.resource_type, ResourceType.ANY)
            and patterns.pattern_type in (acl.pattern.pattern_type, PatternType.ANY, PatternType.MATCH)
            and (
                patterns.name in (acl.pattern.name, None)
                if patterns.pattern_type is not PatternType.MATCH
                else patterns.name is None or governs(acl, patterns.name)
            )
            and entries.principal in (acl.entry.principal, None)
            and entries.host in (acl.entry.host, None)
            and entries.operation in (acl.entry.operation, AclOperation.ANY)
            and entries.permission_type in (acl.entry.permission_type, AclPermissionType.ANY)
        ]

    def by_resource_type(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        # 7. whoever may touch the probed name passes: super users, default-allow, a matching ACL
        if self.authorize(principal, host, operation, resource_type, "hardcode")[0]:
            return True
        # 8. only ACLs for the very operation or ALL count: nothing is implied
        typed = [a for a in self.acls if a.pattern.resource_type is resource_type]
        exact = [a for a in typed if a.entry.operation in (operation, AclOperation.ALL)]
        relevant = [a for a in exact if speaks_of(a, principal, host)]
        denied = {key(a) for a in relevant if a.entry.permission_type is AclPermissionType.DENY}
        allowed = {key(a) for a in relevant if a.entry.permission_type is AclPermissionType.ALLOW}
        # 9. a DENY on `*` denies, then an ALLOW on `*` allows
        wildcard = (PatternType.LITERAL, "*")
        if wildcard in denied | allowed:
            return wildcard not in denied
        # 10. else one ALLOW must be left that no DENY of its literal or of a prefix of it dominates
        return any(
            (kind is PatternType.PREFIXED or (kind, name) not in denied)
            and not any((PatternType.PREFIXED, name[:n]) in denied for n in range(1, len(name) + 1))
            for kind, name in allowed
        )


def key(acl: AclBinding) -> tuple[PatternType, str]:
    return acl.pattern.pattern_type, acl.pattern.name


def names(acl: AclBinding, name: str) -> bool:
    if acl.pattern.pattern_type is PatternType.PREFIXED:
        return name.startswith(acl.pattern.name)
    # Kafka's `*` does not stand for longer names that begin with an asterisk
    return acl.pattern.name == name or (acl.pattern.name == "*" and not name.startswith("*"))


def governs(acl: AclBinding, name: str) -> bool:
    # unlike for a decision, a literal `*` is listed for every name
    if acl.pattern.pattern_type is PatternType.PREFIXED:
        return name.startswith(acl.pattern.name)
    return acl.pattern.name in (name, "*")


holder_of = lru_cache(KEPT_MAX)(KafkaPrincipal.parse)


def speaks_of(acl: AclBinding, principal: str, host: str) -> bool:
    # an ACL's principal has its type before the first colon
    return (
        acl.entry.principal == "User:*" or holder_of(acl.entry.principal) == principal_of(principal)
    ) and host_in(acl.entry.host, host)


@lru_cache(KEPT_MAX)
def host_in(pattern: str, host: str) -> bool:
    if pattern in ("*", host) or "/" not in pattern:
        return pattern in ("*", host)
    if not PLAIN_RANGE.fullmatch(pattern) or "%" in host:
        return host_matches(pattern, host)
    address, _, bits = pattern.partition("/")
    try:
        return host != "0.0.0.0" and ip_address(host) in ip_network((address, int(bits)), strict=False)
    except ValueError:
        return False


def covers(acl: AclBinding, operation: AclOperation) -> bool:
    implying = IMPLYING.get(operation, []) if acl.entry.permission_type is AclPermissionType.ALLOW else []
    return acl.entry.operation in (operation, AclOperation.ALL, *implying)


def visiting_order(acl: AclBinding, name: str) -> tuple[object, ...]:
    pattern, entry = acl.pattern, acl.entry
    section = key(acl) == (PatternType.LITERAL, "*") and name != "*", -len(pattern.name), pattern.pattern_type
    return *section, entry.operation, entry.principal, entry.host, entry.permission_type
