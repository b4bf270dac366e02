"""The legacy interface: allow or deny one operation on one resource (KIP-11, `kafka.security.auth`).

An implementation must not block, like one of the current interface; `AuthorizerWrapper` adapts it. Every
method may raise: callers treat an exception as a denial.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import overload

from kustos.acl import AclOperation, KafkaPrincipal
from kustos.legacy.values import Acl, Resource, Session

Acls = Mapping[Resource, frozenset[Acl]]
"""ACLs by resource; no set is empty."""


class LegacyAuthorizer(ABC):
    """Makes decisions, and stores ACLs by resource."""

    @abstractmethod
    def configure(self, configs: Mapping[str, object]) -> None:
        """Receive the node's settings, before any other call; raise `AuthorizerError` to prevent the
        start."""

    @abstractmethod
    def authorize(self, session: Session, operation: AclOperation, resource: Resource) -> bool:
        """Return whether the session may do this to the resource, which is always LITERAL."""

    @abstractmethod
    def add_acls(self, acls: Iterable[Acl], resource: Resource) -> None:
        """Add these to the ACLs of the resource."""

    @overload
    def remove_acls(self, acls: Iterable[Acl], resource: Resource, /) -> bool: ...

    @overload
    def remove_acls(self, resource: Resource, /) -> bool: ...

    @abstractmethod
    def remove_acls(self, acls: Iterable[Acl] | Resource, resource: Resource | None = None, /) -> bool:
        """Remove these, or all ACLs of the resource; return whether any existed."""

    @overload
    def get_acls(self, /) -> Acls: ...

    @overload
    def get_acls(self, key: Resource, /) -> frozenset[Acl]: ...

    @overload
    def get_acls(self, key: KafkaPrincipal, /) -> Acls: ...

    @abstractmethod
    def get_acls(self, key: Resource | KafkaPrincipal | None = None, /) -> Acls | frozenset[Acl]:
        """Return the ACLs of a resource, or by resource the ACLs of a principal or all ACLs."""

    def close(self) -> None:  # noqa: B027 - most have nothing to release
        """Release all resources; no call follows."""
