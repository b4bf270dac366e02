"""What exists beside the ACLs: names of resources, users and principals that are known."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from kustos.acl import ResourceType


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """Names that exist; None says that they are not known, so that nothing is missed in them.

    `scram_users` are names without a type. `principals` (`Type:name`) are others who are known to exist, by
    whatever they log in: a certificate, a token, Kerberos.
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
        """Return the same of any lists of names."""
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

    def lacks_user(self, principal: str) -> bool:
        """Return whether users are known and a principal is none of them, nor known otherwise."""
        kind, _, name = principal.partition(":")
        if self.scram_users is None or kind != "User" or principal == "User:*":
            return False
        return name not in self.scram_users and principal not in self.principals


NOTHING_KNOWN = Existing()
"""No list was given: nothing is orphaned but by time."""
