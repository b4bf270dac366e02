"""`StandardAuthorizer`: the decisions of Kafka 4.4.0, with a compiled index.

Rules, in order (source: `StandardAuthorizerData` of Kafka 4.4.0, KIP-801, KIP-1235; the reference
authorizer in the tests states them as plainly as possible):

1. a super user may do everything, even before the ACLs are loaded
2. until the ACLs are loaded, no other principal gets an answer
3. an ACL matches by principal (itself or `User:*`), host, resource and operation; the ACLs of a client's
   groups match too, which Kafka does not offer
4. any matching DENY denies
5. else any matching ALLOW allows, including the operations that it implies
6. else `allow.everyone.if.no.acl.found` decides, unless an ACL of any principal names the resource
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, Self
from uuid import UUID

from kustos.acl import (
    EVERY_BINDING,
    EVERY_PRINCIPAL,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclValueError,
    KafkaPrincipal,
    ResourceType,
)
from kustos.authorizer.index.index import (
    SHARD_BITS,
    AclIndex,
    all_bindings,
    bindings_by_id,
    no_bindings,
)
from kustos.authorizer.session import AuthorizerSession
from kustos.authorizer.spi.values import (
    AclFaultError,
    Action,
    AuthorizableRequestContext,
    Decision,
    DuplicateAclIdError,
    UnknownAclIdError,
)
from kustos.runtime import garbage_collection_paused

PIECE_ACLS: Final = 1024
"""ACLs examined before the reader can yield: less than a millisecond."""


class AclListing(Iterable[AclBinding]):
    """The ACLs that matched when this object was created, in no fixed order.

    Creation takes constant time, and any thread may read it, because the given collections never change.
    `size` is the number of ACLs to examine.
    """

    __slots__ = ("_collections", "_filter", "size")

    def __init__(
        self, collections: Iterable[Collection[AclBinding]], binding_filter: AclBindingFilter
    ) -> None:
        self._collections = tuple(collections)
        self._filter = binding_filter
        self.size = sum(map(len, self._collections))

    def __iter__(self) -> Iterator[AclBinding]:
        return chain.from_iterable(self.pieces())

    def pieces(self) -> Iterator[list[AclBinding]]:
        """Yield the matches: one list, possibly empty, for each `PIECE_ACLS` examined ACLs."""
        for collection in self._collections:
            rest = iter(collection)
            while looked_at := list(islice(rest, PIECE_ACLS)):
                yield self._filter.among(looked_at)


KEPT_SESSIONS_MAX: Final = 1024
"""The number of cached sessions for callers of `authorize`, which have none; the oldest is evicted first."""


def parse_super_users(text: str) -> frozenset[str]:
    """Return the principals of a `super.users` value: `Type:name`, semicolon-separated, blanks skipped.

    Raises `AclValueError` for a principal without a colon, and for `User:*`, which in Kafka would be a user
    with that name.
    """
    principals = frozenset(part.strip() for part in text.split(";") if part.strip())
    _check_super_users(principals)
    return principals


def _check_super_users(principals: frozenset[str]) -> None:
    for principal in principals:
        KafkaPrincipal.parse(principal)
        if principal == EVERY_PRINCIPAL:
            raise AclValueError(f"super user `{principal}` would be everybody, name each super user")


class StandardAuthorizer:
    """Decides as Kafka's authorizer of the same name does; implements `Authorizer`.

    Changes are applied one by one in log order, or all at once by `load_snapshot`. `version` increases with
    every change. The class is not thread-safe: one event loop decides and applies changes.
    """

    def __init__(
        self,
        *,
        super_users: frozenset[str] = frozenset(),
        allow_everyone_if_no_acl_found: bool = False,
    ) -> None:
        _check_super_users(super_users)
        self.super_users = super_users
        self.allow_everyone_if_no_acl_found = allow_everyone_if_no_acl_found
        self._is_loaded = self._is_closed = False
        self.version = 0
        self.searches = 0
        """The number of searches by sessions for names that were not cached, since the start."""
        self.index = AclIndex(counts_coverage=allow_everyone_if_no_acl_found)
        # ids as integers: a UUID takes twice the memory and hashes in Python
        self._bindings = no_bindings()
        # shards that a listing may still read are copied before a change
        self._lent: set[int] = set()
        self._sessions: dict[tuple[str, str, tuple[str, ...], str], AuthorizerSession] = {}

    @classmethod
    def of(
        cls,
        bindings: Iterable[AclBinding],
        *,
        super_users: frozenset[str] = frozenset(),
        allow_everyone_if_no_acl_found: bool = False,
    ) -> Self:
        """Return a loaded authorizer with these ACLs, with ids from 0.

        Raises what `load_snapshot` raises.
        """
        authorizer = cls(
            super_users=super_users, allow_everyone_if_no_acl_found=allow_everyone_if_no_acl_found
        )
        authorizer.load_snapshot((UUID(int=number), binding) for number, binding in enumerate(bindings))
        authorizer.complete_initial_load()
        return authorizer

    def reconfigure(self, *, super_users: frozenset[str], allow_everyone_if_no_acl_found: bool) -> None:
        """Replace the super users and the default atomically; the ACLs stay."""
        _check_super_users(super_users)
        if allow_everyone_if_no_acl_found and not self.index.counts_coverage:
            self.index = self._compile(all_bindings(self._bindings), counts_coverage=True)
        self.super_users = super_users
        self.allow_everyone_if_no_acl_found = allow_everyone_if_no_acl_found
        self.version += 1

    def load_snapshot(self, acls: Iterable[tuple[UUID, AclBinding]]) -> None:
        """Replace all ACLs at once; after an `AclFaultError`, the old ones stay in force."""
        with garbage_collection_paused():
            bindings = bindings_by_id(acls)
            counts_coverage = self.allow_everyone_if_no_acl_found
            self.index = self._compile(all_bindings(bindings), counts_coverage=counts_coverage)
        self._lent = set()
        self._bindings = bindings
        self.version += 1

    def _compile(self, bindings: Iterable[AclBinding], *, counts_coverage: bool) -> AclIndex:
        index = AclIndex(counts_coverage=counts_coverage)
        index.load(bindings, self.version + 1)
        return index

    def add_acl(self, acl_id: UUID, binding: AclBinding) -> None:
        """Add an ACL; after an `AclFaultError`, nothing has changed."""
        number = acl_id.int
        bindings = self._own_shard(number)
        count = len(bindings)
        bindings.setdefault(number, binding)
        if len(bindings) == count:
            raise DuplicateAclIdError(f"an ACL with id `{acl_id}` is there already")
        try:
            self.index.add(binding, self.version + 1)
        except AclFaultError:
            del bindings[number]
            raise
        self.version += 1

    def remove_acl(self, acl_id: UUID) -> AclBinding:
        """Remove the ACL with this id and return it; raise `UnknownAclIdError`."""
        number = acl_id.int
        binding = self._own_shard(number).pop(number, None)
        if binding is None:
            raise UnknownAclIdError(f"no ACL has the id `{acl_id}`")
        self.version += 1
        self.index.remove(binding, self.version)
        return binding

    def _own_shard(self, number: int) -> dict[int, AclBinding]:
        """Return the shard of an id, ready to be changed."""
        position = number & SHARD_BITS
        if position in self._lent:
            self._lent.discard(position)
            self._bindings[position] = self._bindings[position].copy()
        return self._bindings[position]

    @property
    def is_ready(self) -> bool:
        """Whether principals that are not super users get answers."""
        return self._is_loaded and not self._is_closed

    def complete_initial_load(self) -> None:
        """Declare the ACLs loaded; from now on all principals get answers, unless `close` was called."""
        self._is_loaded = True
        self.version += 1

    def suspend(self) -> None:
        """Answer only super users until `complete_initial_load`: the ACLs differ from the log."""
        self._is_loaded = False
        self.version += 1

    def close(self) -> None:
        """Answer only super users for good, whatever another thread still loads."""
        self._is_closed = True
        self.version += 1

    @property
    def acl_count(self) -> int:
        """The number of ACLs in force."""
        return sum(map(len, self._bindings))

    def acls(self, binding_filter: AclBindingFilter = EVERY_BINDING) -> AclListing:
        """Return the ACLs that currently match a filter, in no fixed order."""
        candidates = self.index.candidates(binding_filter, PIECE_ACLS)
        if candidates is not None:
            return AclListing([candidates], binding_filter)
        self._lent = set(range(len(self._bindings)))
        return AclListing([shard.values() for shard in self._bindings], binding_filter)

    def session(self, principal: KafkaPrincipal, host: str) -> AuthorizerSession:
        """Return a session for one principal on one host (`getHostAddress()` form).

        Raises `InvalidActionError` for a principal that is literally `User:*`.
        """
        return AuthorizerSession(self, principal, host)

    def authorize(self, context: AuthorizableRequestContext, actions: Sequence[Action]) -> list[Decision]:
        """Return one decision per action, in order, all with one version of the index."""
        session = self._kept_session(context)
        return [
            session.decide(action.operation, action.resource_type, action.resource_name) for action in actions
        ]

    def authorize_by_resource_type(
        self, context: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Return whether the principal may do it on at least one resource of the type."""
        return self._kept_session(context).decide_by_resource_type(operation, resource_type)

    def _kept_session(self, context: AuthorizableRequestContext) -> AuthorizerSession:
        principal = context.principal
        key = (principal.principal_type, principal.name, principal.groups, context.host)
        session = self._sessions.get(key)
        if session is None:
            session = self.session(principal, context.host)
            if len(self._sessions) >= KEPT_SESSIONS_MAX:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[key] = session
        return session
