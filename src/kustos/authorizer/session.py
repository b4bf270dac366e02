"""Decisions for one principal, with its groups, on one host: the hot path of the gateway.

For each name, a session caches the cell with all entries for it: every operation is then one test of the
cell's bits. The cache is valid for one version of the index. Every question compares versions first, so an
answer always includes the last applied change.
"""

from bisect import bisect_right
from typing import Final, Protocol, cast

from kustos.acl import EVERY_PRINCIPAL, AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer.index.by_type import PROBED_NAME, decide_by_type
from kustos.authorizer.index.cells import ALLOWS, DECIDES, DENIES, EVERY_ALLOW, HOSTED, NOTHING, Cell
from kustos.authorizer.index.index import AclIndex, PrincipalNode
from kustos.authorizer.index.prefixes import PrefixCell
from kustos.authorizer.index.views import Find, find_in_all, find_or_everything
from kustos.authorizer.spi.values import (
    AuthorizationResult,
    AuthorizerNotReadyError,
    Decision,
    InvalidActionError,
    Rule,
    RuleKind,
)

SUPER_USER: Final = Decision(AuthorizationResult.ALLOWED, Rule(RuleKind.SUPER_USER))
DEFAULT_ALLOW: Final = Decision(AuthorizationResult.ALLOWED, Rule(RuleKind.DEFAULT_ALLOW))
DEFAULT_DENY: Final = Decision(AuthorizationResult.DENIED, Rule(RuleKind.DEFAULT_DENY))

EVERYTHING: Final = Cell(EVERY_ALLOW, DEFAULT_ALLOW)
"""The cell of a name without ACLs under default-allow."""

SESSION_NAMES_MAX: Final = 4096
"""The number of cached names per session and type, mostly less than 1 MB: more than most principals use."""

KEPT_NAME_CHARACTERS_MAX: Final = 255
"""Longer names are not cached, so that they cannot fill the memory (topics have at most 249 characters)."""

_RESOURCE_TYPES: Final = frozenset(ResourceType) - {ResourceType.UNKNOWN, ResourceType.ANY}


Prefixes = tuple[list[str], list[PrefixCell | None]]
"""The return type of `PrefixTable.linked`."""

NO_PREFIXES: Final[Prefixes] = ([], [])

View = tuple[dict[str, Cell], Find | None, Prefixes]
"""The cached cells of names, and two ways to find missing cells: a search of the prefixes if there are any,
else the function, which is None without entries."""


class DecidingAuthorizer(Protocol):
    """The state of an authorizer that its sessions read."""

    super_users: frozenset[str]
    allow_everyone_if_no_acl_found: bool
    version: int
    """Increases with every change."""
    searches: int
    """The number of searches for names that were not cached, since the start."""
    index: AclIndex

    @property
    def is_ready(self) -> bool:
        """Whether principals that are not super users get answers."""


class AuthorizerSession:
    """Decides for one principal, with its groups, on one host, always with the newest index.

    Created by `StandardAuthorizer.session`. Not thread-safe: one event loop decides and applies changes.
    """

    __slots__ = (
        "_authorizer",
        "_default",
        "_find",
        "_groups",
        "_is_super_user",
        "_known",
        "_names",
        "_prefixes",
        "_principal_text",
        "_type",
        "_version",
        "_views",
        "host",
        "principal",
    )

    def __init__(self, authorizer: DecidingAuthorizer, principal: KafkaPrincipal, host: str) -> None:
        if str(principal) == EVERY_PRINCIPAL:
            raise InvalidActionError(f"principal `{principal}` means everybody and is not a single client")
        self.principal = principal
        self.host = host
        # the principal of an ACL is split at its first colon, so a type that contains a colon never matches
        self._principal_text = "" if ":" in principal.principal_type else str(principal)
        self._groups = principal.group_texts if principal.groups else ()
        self._authorizer = authorizer
        self._version = -1
        self._is_super_user = False
        self._default = DEFAULT_DENY
        self._views: dict[ResourceType, View] = {}
        # the view of the most recent resource type
        self._type: ResourceType | None = None
        self._known: dict[str, Cell] = {}
        self._find: Find | None = None
        self._names, self._prefixes = NO_PREFIXES

    @property
    def version(self) -> int:
        """The version of the ACLs in force; it increases with every change."""
        return self._authorizer.version

    def decide(self, operation: AclOperation, resource_type: ResourceType, name: str) -> Decision:
        """Return the decision on one named resource.

        Raises `AuthorizerNotReadyError` before the ACLs are loaded (super users pass) and
        `InvalidActionError` for the operation or type ANY or UNKNOWN.
        """
        if resource_type is not self._type or self._version != self._authorizer.version:
            self._turn_to(resource_type)
        decides = DECIDES.get(operation)
        if decides is None:
            raise InvalidActionError(f"cannot decide on operation `{operation}`, name one")
        known = self._known
        cell = known.get(name)
        if cell is None:
            names = self._names
            if names:
                # `longest`, inlined: a call would take longer than the search
                prefix = self._prefixes[bisect_right(names, name)]
                while prefix is not None and not name.startswith(prefix.name):
                    prefix = prefix.parent
                cell = prefix or NOTHING
            elif self._find is None:
                return self._default
            else:
                cell = self._find(name)
            self._authorizer.searches += 1
            if len(known) >= SESSION_NAMES_MAX:
                known.clear()
            if len(name) <= KEPT_NAME_CHARACTERS_MAX:
                known[name] = cell
        if cell.mask & decides:
            return cell.sole or self._choose(cell, operation)
        return self._default

    def _choose(self, cell: Cell, operation: AclOperation) -> Decision:
        denied, allowed = DENIES[operation], ALLOWS[operation]
        if cell.mask & HOSTED:
            # a cell of the index itself, for every host
            cell = cell.at(self.host)
            if not cell.mask & (denied | allowed):
                return self._default
        return cell.decide(denied if cell.mask & denied else allowed)

    def decide_by_resource_type(self, operation: AclOperation, resource_type: ResourceType) -> Decision:
        """Return whether at least one resource of the type allows it, with an ACL as the reason.

        Raises what `decide` raises.
        """
        decision = self.decide(operation, resource_type, PROBED_NAME)
        if decision.allowed:
            return decision
        nodes = self._nodes(resource_type)
        return decide_by_type(nodes, operation, self.host, self._groups) or DEFAULT_DENY

    def _turn_to(self, resource_type: ResourceType) -> None:
        """Make the view of a resource type the current one: consecutive questions usually have the same
        type."""
        if resource_type not in _RESOURCE_TYPES:
            raise InvalidActionError(f"cannot decide on resource type `{resource_type}`, name one")
        if self._version != self._authorizer.version:
            self._refresh()
        view = self._views.get(resource_type)
        if view is None:
            view = self._views[resource_type] = self._view(resource_type)
        self._known, self._find, (self._names, self._prefixes) = view
        self._type = resource_type

    def _view(self, resource_type: ResourceType) -> View:
        nodes = [node for node in self._nodes(resource_type) if node is not None]
        if not self._is_super_user and self._authorizer.allow_everyone_if_no_acl_found:
            find = find_in_all(nodes, self.host)
            return (
                {},
                find_or_everything(find, self._authorizer.index, resource_type, EVERYTHING),
                NO_PREFIXES,
            )
        if len(nodes) == 1 and nodes[0].wildcard is None:
            [only] = nodes
            if not only.prefixes.by_name:
                # the index itself is as fast as a cache; sessions only read it
                return cast("dict[str, Cell]", only.literals), None, NO_PREFIXES
            if not only.literals:
                return {}, None, only.prefixes.linked()
        return {}, find_in_all(nodes, self.host), NO_PREFIXES

    def _nodes(self, resource_type: ResourceType) -> tuple[PrincipalNode | None, ...]:
        """Return the nodes of the principal, of `User:*` and of the groups, in this order."""
        if self._is_super_user:
            return ()
        index = self._authorizer.index
        own, every = index.nodes(self._principal_text).get(resource_type), index.every.get(resource_type)
        if not self._groups:
            return own, every
        return own, every, *[index.nodes(group).get(resource_type) for group in self._groups]

    def _refresh(self) -> None:
        """Clear caches that a change may have affected; while the authorizer is not ready, the next question
        refreshes again."""
        authorizer = self._authorizer
        self._version = -1
        self._views.clear()
        self._is_super_user = str(self.principal) in authorizer.super_users
        if not self._is_super_user and not authorizer.is_ready:
            raise AuthorizerNotReadyError("the ACLs are not loaded yet, ask again when they are")
        # a super user has no nodes (see _nodes), so this default answers every question
        self._default = SUPER_USER if self._is_super_user else DEFAULT_DENY
        self._version = authorizer.version
