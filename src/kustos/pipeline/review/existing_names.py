"""Names of resources, users and principals that exist."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from kustos.acl import ResourceType


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """Names that exist; None means unknown, and then no name counts as missing.

    `scram_users` are names without a type. `principals` (`Type:name`) are others that exist, with any login:
    a certificate, a token, Kerberos.
    """

    topics: frozenset[str] | None = None
    groups: frozenset[str] | None = None
    transactional_ids: frozenset[str] | None = None
    scram_users: frozenset[str] | None = None
    principals: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        *,
        topics: Iterable[str] | None = None,
        groups: Iterable[str] | None = None,
        transactional_ids: Iterable[str] | None = None,
        scram_users: Iterable[str] | None = None,
        principals: Iterable[str] = (),
    ) -> Self:
        """Return it from any iterables of names."""
        return cls(
            topics=None if topics is None else frozenset(topics),
            groups=None if groups is None else frozenset(groups),
            transactional_ids=None if transactional_ids is None else frozenset(transactional_ids),
            scram_users=None if scram_users is None else frozenset(scram_users),
            principals=frozenset(principals),
        )

    def listing(self) -> dict[ResourceType, frozenset[str]]:
        """Return the names of the types that are known, as `lint` takes them."""
        known = {
            ResourceType.TOPIC: self.topics,
            ResourceType.GROUP: self.groups,
            ResourceType.TRANSACTIONAL_ID: self.transactional_ids,
        }
        return {kind: names for kind, names in known.items() if names is not None}

    def known_principals(self) -> frozenset[str]:
        """Return the principals that are known to exist."""
        return self.principals | {f"User:{name}" for name in self.scram_users or ()}

    def lacks_user(self, principal: str) -> bool:
        """Return whether users are known and a principal is neither one of them nor known otherwise."""
        kind, _, name = principal.partition(":")
        if self.scram_users is None or kind != "User" or principal == "User:*":
            return False
        return name not in self.scram_users and principal not in self.principals


NOTHING_KNOWN = Existing()
"""Without lists an ACL is orphaned by time alone."""
