"""The legacy interface: a yes or no for one operation on one resource (KIP-11, `kafka.security.auth`).

An implementation answers from memory, as one of today's interface does; `AuthorizerWrapper` puts it
behind that. Every method may raise: whoever asks takes an exception for a no.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import overload

from kustos.acl import AclOperation, KafkaPrincipal
from kustos.authorizer.legacy.values import Acl, Resource, Session

Acls = Mapping[Resource, frozenset[Acl]]
"""Every resource that has ACLs, with them; no set is empty."""


class LegacyAuthorizer(ABC):
    """Decides, and keeps ACLs by resource."""

    @abstractmethod
    def configure(self, configs: Mapping[str, object]) -> None:
        """Take the node's settings, before anything is asked; raise `AuthorizerError` to refuse a start."""

    @abstractmethod
    def authorize(self, session: Session, operation: AclOperation, resource: Resource) -> bool:
        """Return whether the session may do this to the resource, which is always LITERAL."""

    @abstractmethod
    def add_acls(self, acls: Iterable[Acl], resource: Resource) -> None:
        """Put these in force beside those that the resource has."""

    @overload
    def remove_acls(self, acls: Iterable[Acl], resource: Resource, /) -> bool: ...

    @overload
    def remove_acls(self, resource: Resource, /) -> bool: ...

    @abstractmethod
    def remove_acls(self, acls: Iterable[Acl] | Resource, resource: Resource | None = None, /) -> bool:
        """Take these, or all that the resource has, out of force; return whether there was any of them."""

    @overload
    def get_acls(self, /) -> Acls: ...

    @overload
    def get_acls(self, of: Resource, /) -> frozenset[Acl]: ...

    @overload
    def get_acls(self, of: KafkaPrincipal, /) -> Acls: ...

    @abstractmethod
    def get_acls(self, of: Resource | KafkaPrincipal | None = None, /) -> Acls | frozenset[Acl]:
        """Return the ACLs of a resource, those that name a principal by resource, or all by resource."""

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of everything; nothing is asked afterwards."""
