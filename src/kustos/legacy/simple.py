"""`SimpleAclAuthorizer`: the decisions of Kafka's first authorizer, as of its last release (2.8).

1. a super user may do everything
2. the ACLs of the resource, of `*` and of every prefix of its name are considered together
3. if there are none, `allow.everyone.if.no.acl.found` decides, which is off by default
4. any Deny that matches principal, host and operation denies
5. else any matching Allow allows; Read, Write, Delete, Alter imply Describe, AlterConfigs DescribeConfigs
6. else the request is denied

The draft in KIP-11 differs; `kustos.legacy.rules=kip-11` selects it: only the resource's own ACLs count, no
operation implies another, and a resource without ACLs is open. Hosts are compared as texts, never as ranges.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, overload

from kustos.acl import (
    EVERY_PRINCIPAL,
    WILDCARD,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
)
from kustos.authorizer import InvalidActionError
from kustos.legacy.interface import Acls, LegacyAuthorizer
from kustos.legacy.store import AclStore, FileAclStore, Statements
from kustos.legacy.values import Acl, Resource, Session, singles_of
from kustos.legacy.vocabulary import OPERATION_NAMES, LegacySettingsError, UnsupportedChangeError

SUPER_USERS_KEY: Final = "super.users"
ALLOW_EVERYONE_KEY: Final = "allow.everyone.if.no.acl.found"
FILE_KEY: Final = "kustos.legacy.acl.file"
"""The file that replaces ZooKeeper, in the form of `kustos.legacy.tree`."""
RULES_KEY: Final = "kustos.legacy.rules"

_AUDIT: Final = logging.getLogger("kafka.authorizer.logger")


@dataclass(frozen=True, slots=True)
class LegacyRules:
    """The differences between the draft and the releases.

    `implied_by`: the other operations whose Allow allows this one. `matches_patterns`: whether `*` and
    prefixes count. `open_without_acls`: the default for resources without ACLs.
    """

    implied_by: Mapping[AclOperation, tuple[AclOperation, ...]]
    matches_patterns: bool
    open_without_acls: bool


RELEASED: Final = LegacyRules(
    implied_by={
        AclOperation.DESCRIBE: (
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.DELETE,
            AclOperation.ALTER,
        ),
        AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
    },
    matches_patterns=True,
    open_without_acls=False,
)
KIP_11: Final = LegacyRules(implied_by={}, matches_patterns=False, open_without_acls=True)

RULES: Final = {"released": RELEASED, "kip-11": KIP_11}


def audit_line(session: Session, operation: AclOperation, resource: Resource, *, allowed: bool) -> str:
    """Return the log line of this authorizer, byte for byte as Kafka's class wrote it."""
    return (
        f"Principal = {session.principal} is {'Allowed' if allowed else 'Denied'}"
        f" Operation = {OPERATION_NAMES[operation]} from host = {session.host} on resource = {resource}"
    )


class SimpleAclAuthorizer(LegacyAuthorizer):
    """Decides with the ACLs in its store; used by one event loop.

    Without a store `configure` opens the file that `kustos.legacy.acl.file` names. ACLs are stored and
    returned as single statements, regardless of their grouping.
    """

    def __init__(self, store: AclStore | None = None, rules: LegacyRules = RELEASED) -> None:
        self._store = store
        self._rules = rules
        self._super_users: frozenset[KafkaPrincipal] = frozenset()
        self._allows_everyone = rules.open_without_acls
        self._acls: Statements = {}
        self._prefix_lengths: tuple[int, ...] = ()
        if store is not None:
            self._keep(store.load())

    @property
    def allows_everyone_if_no_acl_found(self) -> bool:
        """Whether a resource without ACLs is open to all."""
        return self._allows_everyone

    def configure(self, configs: Mapping[str, object]) -> None:
        """Apply the settings and load the ACLs; raise `LegacySettingsError` naming the wrong key."""
        rules = RULES.get(str(configs[RULES_KEY])) if RULES_KEY in configs else self._rules
        if rules is None:
            raise LegacySettingsError(f"`{RULES_KEY}` is `{configs[RULES_KEY]}`, use {' or '.join(RULES)}")
        super_users = _super_users(str(configs.get(SUPER_USERS_KEY, "")))
        everyone = str(configs.get(ALLOW_EVERYONE_KEY, rules.open_without_acls)).lower()
        if everyone not in {"true", "false"}:
            raise LegacySettingsError(f"`{ALLOW_EVERYONE_KEY}` is `{everyone}`, use `true` or `false`")
        store = self._store
        if store is None:
            path = str(configs.get(FILE_KEY, "")).strip()
            if not path:
                raise LegacySettingsError(f"`{FILE_KEY}` is not set, name the file that keeps the ACLs")
            store = FileAclStore(Path(path))
        self._keep(store.load())
        self._store = store
        self._rules = rules
        self._super_users = super_users
        self._allows_everyone = everyone == "true"

    def is_super_user(self, principal: KafkaPrincipal) -> bool:
        """Return whether a principal may do everything."""
        return principal in self._super_users

    def authorize(self, session: Session, operation: AclOperation, resource: Resource) -> bool:
        """Return whether it is allowed; raise `InvalidActionError` for a prefix or the principal `User:*`."""
        if resource.pattern_type is not PatternType.LITERAL:
            raise InvalidActionError(f"cannot decide on `{resource}`, name a literal resource")
        if str(session.principal) == EVERY_PRINCIPAL:
            raise InvalidActionError(
                f"principal `{session.principal}` means everybody and is not a single client"
            )
        allowed = self.is_super_user(session.principal) or self._acls_allow(session, operation, resource)
        level = logging.DEBUG if allowed else logging.INFO
        if _AUDIT.isEnabledFor(level):
            _AUDIT.log(level, "%s", audit_line(session, operation, resource, allowed=allowed))
        return allowed

    def _acls_allow(self, session: Session, operation: AclOperation, resource: Resource) -> bool:
        acls = self._matching(resource)
        if not acls:
            return self._allows_everyone
        if _any(acls, AclPermissionType.DENY, session, operation):
            return False
        granting = (operation, *self._rules.implied_by.get(operation, ()))
        return any(_any(acls, AclPermissionType.ALLOW, session, granted) for granted in granting)

    def _matching(self, resource: Resource) -> list[Acl]:
        found = list(self._acls.get(resource, ()))
        if self._rules.matches_patterns:
            kind, name = resource.resource_type, resource.name
            if name != WILDCARD:
                found += self._acls.get(Resource(kind, WILDCARD), ())
            for length in self._prefix_lengths:
                if length <= len(name):
                    found += self._acls.get(Resource(kind, name[:length], PatternType.PREFIXED), ())
        return found

    def add_acls(self, acls: Iterable[Acl], resource: Resource) -> None:
        """Add these; raise `UnsupportedChangeError` for an empty name, or an error of the store."""
        if not resource.name:
            raise UnsupportedChangeError("the resource to add ACLs to has no name")
        added = singles_of(acls)
        self._update(lambda kept: kept | {resource: kept.get(resource, frozenset()) | added})

    @overload
    def remove_acls(self, acls: Iterable[Acl], resource: Resource, /) -> bool: ...

    @overload
    def remove_acls(self, resource: Resource, /) -> bool: ...

    def remove_acls(self, acls: Iterable[Acl] | Resource, resource: Resource | None = None, /) -> bool:
        """Remove these statements, or all of the resource; return whether any existed."""
        place = acls if isinstance(acls, Resource) else resource
        if place is None:
            raise TypeError("name the resource of the ACLs")
        removed = None if isinstance(acls, Resource) else singles_of(acls)
        gone: frozenset[Acl] = frozenset()

        def change(kept: Statements) -> Statements:
            nonlocal gone
            before = kept.get(place, frozenset())
            gone = before if removed is None else before & removed
            return kept | {place: before - gone}

        self._update(change)
        return bool(gone)

    @overload
    def get_acls(self, /) -> Acls: ...

    @overload
    def get_acls(self, key: Resource, /) -> frozenset[Acl]: ...

    @overload
    def get_acls(self, key: KafkaPrincipal, /) -> Acls: ...

    def get_acls(self, key: Resource | KafkaPrincipal | None = None, /) -> Acls | frozenset[Acl]:
        """Return single statements: of a resource, of a principal by resource, or all by resource."""
        if isinstance(key, Resource):
            return self._acls.get(key, frozenset())
        if key is None:
            return dict(self._acls)
        chosen = (
            (resource, frozenset(acl for acl in acls if acl.principal == key))
            for resource, acls in self._acls.items()
        )
        return {resource: acls for resource, acls in chosen if acls}

    def _update(self, change: Callable[[Statements], Statements]) -> None:
        if self._store is None:
            raise LegacySettingsError("the authorizer keeps no ACLs before it is configured")
        self._keep(self._store.update(change))

    def _keep(self, acls: Statements) -> None:
        self._acls = acls
        prefixed = {len(resource.name) for resource in acls if resource.pattern_type is PatternType.PREFIXED}
        self._prefix_lengths = tuple(sorted(prefixed))


def _any(acls: list[Acl], permission: AclPermissionType, session: Session, operation: AclOperation) -> bool:
    return any(
        acl.permission_type is permission and acl.matches(session.principal, session.host, operation)
        for acl in acls
    )


def _super_users(text: str) -> frozenset[KafkaPrincipal]:
    """Return the principals of a list separated by semicolons, parsed like Kafka's class: it ignores empty
    ones only at the end."""
    listed = text.rstrip(";").split(";") if text.rstrip(";") else []
    try:
        found = frozenset(KafkaPrincipal.parse(part.strip()) for part in listed)
    except ValueError as error:
        raise LegacySettingsError(f"`{SUPER_USERS_KEY}`: {error}") from error
    if KafkaPrincipal.parse(EVERY_PRINCIPAL) in found:
        raise LegacySettingsError(f"`{SUPER_USERS_KEY}` names `{EVERY_PRINCIPAL}`, name each super user")
    return found
