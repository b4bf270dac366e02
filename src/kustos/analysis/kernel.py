"""The meaning of a set of ACLs, and the exact walk over it.

Theory of operation.

1. A set of ACLs, with the two settings of `Rules`, means one function from (principal, host, operation,
   resource type, name) to allowed or denied: the function that `StandardAuthorizer` computes. Its domain
   is infinite, but it can distinguish only a finite number of classes in it.
2. Principals: every principal that an entry or `super.users` names, and all other principals, which are
   equivalent: only the entries of `User:*` apply to them. A super user is allowed everything. So a principal
   is two *layers* (`layers`): its own entries and the entries of `User:*`.
3. Names: a LITERAL pattern matches a point, a PREFIXED pattern matches all names that begin with it, and
   LITERAL `*` matches `*` and all names that do not begin with `*`. Sorted, the patterns of the layers are a
   forest: each prefix is a class (the names under it, without longer prefixes and points), and each literal
   is another class. A class is never empty, since a million characters can follow the prefix.
4. Hosts: one line of addresses, divided where the hosts of the class's entries begin and end (`by_host`).
5. Operations: bits, including implied operations, from `authorizer.index.cells`: every operation of a
   request, even if it does not apply to the type, because the authorizer answers for all operations.
6. In a class the decision is a function of the host alone: the allowed bits without the denied bits of
   all entries that match it. With default-allow, everything is allowed for resources that no entry of any
   principal names (a third layer with all patterns of the type marks the named resources).
7. CLUSTER has one name, `kafka-cluster`: no request can name another.
8. `walk` visits every class of a *zone* of names once, for several sets at a time, and keeps a stack of
   enclosing prefixes; the cost of a class is only its own rows. During the walk, `turns_of` collects the
   classes of one value into a set of names in canonical form.
9. A decision can differ between two sets only where a changed entry's pattern matches the name, or where
   the rules changed: `diff` walks only there. A principal can differ from everyone else only where one of
   its own entries applies: for the other names it copies the answer for everyone else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from kustos.acl import CLUSTER_NAME, EVERY_PRINCIPAL, WILDCARD, AclBinding, KafkaPrincipal, ResourceType
from kustos.analysis.by_host import ByHost, constant, summed
from kustos.analysis.layers import COVERED, Layer, Row
from kustos.analysis.name_sets import EVERY_NAME, Site, Zone
from kustos.authorizer.index import DENY_SHIFT, EVERY_ALLOW


class AnalysisError(ValueError):
    """The base of this package's errors; the text names the value and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """`super.users` (principals as text) and `allow.everyone.if.no.acl.found`.

    `clients_have_groups`: the ACLs of `Group:` principals may apply to a client in addition to its own, so a
    DENY may deny what another principal's ACL allows. The rules decide nothing more about one principal.

    Raises `AclValueError` for a super user without a type and `AnalysisError` for `User:*`.
    """

    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = False
    clients_have_groups: bool = False

    def __post_init__(self) -> None:
        for principal in self.super_users:
            KafkaPrincipal.parse(principal)
            if principal == EVERY_PRINCIPAL:
                raise AnalysisError(f"super user `{principal}` would be everybody, name each super user")


ACLS_ALONE: Final = Rules()
"""Kafka's defaults: no super users, and everything that no ACL allows is denied."""

RESOURCE_TYPES: Final = tuple(
    kind for kind in ResourceType if kind not in {ResourceType.UNKNOWN, ResourceType.ANY}
)
"""The resource types of questions."""

EVERYTHING: Final = constant(EVERY_ALLOW)
NOTHING: Final = constant(0)

_NO_LAYER: Final = Layer()

Key = TypeVar("Key")


def decided(mask: int) -> int:
    """Return the operations that a mask of allows and denies permits."""
    return mask & ~(mask >> DENY_SHIFT) & EVERY_ALLOW


class PrincipalView:
    """The view of one principal, or of everyone else, on one resource type in one set."""

    __slots__ = ("_decided", "_is_open", "is_super", "layers")

    def __init__(self, layers: tuple[Layer, ...], *, is_super: bool, is_open: bool) -> None:
        self.layers = layers
        self.is_super = is_super
        self._is_open = is_open
        self._decided: dict[frozenset[tuple[str, int]], ByHost] = {}

    def decide(self, row: Row) -> ByHost:
        """Return the allowed operations of a row by host."""
        if self.is_super or (self._is_open and not row.get(WILDCARD, 0) & COVERED):
            return EVERYTHING
        if len(row) == (WILDCARD in row):
            return constant(decided(row.get(WILDCARD, 0)))
        key = frozenset(row.items())
        found = self._decided.get(key)
        if found is None:
            found = self._decided[key] = summed(row, decided)
        return found

    def row_under(self, name: str) -> Row:
        """Return the combined row for all names that begin with this name."""
        row: Row = {}
        for layer in self.layers:
            for other in layer.above(name):
                _join(row, other)
        return row

    def around(self, site: Site) -> ByHost:
        """Return the decisions in the class around a site."""
        row: Row = {}
        for layer in self.layers:
            for other in layer.around(site):
                _join(row, other)
        return self.decide(row)

    def row_at(self, site: Site, enclosing: Row) -> Row:
        """Return the combined row of a class; `enclosing` is the row of its enclosing class."""
        owns = [own for layer in self.layers if (own := layer.own(site)) is not None]
        if not owns:
            return enclosing
        row = dict(enclosing)
        for own in owns:
            _join(row, own)
        return row


def _join(row: Row, other: Row) -> None:
    for host, mask in other.items():
        row[host] = row.get(host, 0) | mask


Sides = tuple[PrincipalView, ...]
Values = tuple[ByHost, ...]


class Class(NamedTuple):
    """One class of names: its site, its decisions (one per view), and the decisions of the enclosing class.

    `outer` is None at the edge of the zone if the surroundings are unknown.
    """

    site: Site
    values: Values
    outer: Values | None


def walk(sides: Sides, zone: Zone, surroundings: Sides | None = None) -> Iterator[Class]:
    """Yield every class of names in a zone, each prefix before the classes under it.

    `surroundings`: the views that decide outside the zone, if the caller needs them.
    """
    layers = {id(layer): layer for side in sides for layer in side.layers if not layer.is_empty}.values()
    has_wildcard = any(layer.wildcard for layer in layers)
    for prefix in zone.prefixes:
        root = Site(prefix, is_literal=False)
        sites = {root}
        for layer in layers:
            sites.update(layer.sites_under(prefix))
        if has_wildcard and WILDCARD.startswith(prefix):
            # from here on LITERAL `*` applies only to `*` itself
            sites |= {Site(WILDCARD, is_literal=False), Site(WILDCARD, is_literal=True)}
        yield from _walk_sorted(sides, sorted(sites), _around(surroundings, root))
    for name in zone.literals:
        site = Site(name, is_literal=True)
        rows = [side.row_at(site, side.row_under(name)) for side in sides]
        yield Class(site, _decide(sides, rows), _around(surroundings, site))


def _around(surroundings: Sides | None, site: Site) -> Values | None:
    if surroundings is None or site == EVERY_NAME.turns[0]:
        return None
    return tuple([side.around(site) for side in surroundings])


def _decide(sides: Sides, rows: list[Row]) -> Values:
    return tuple([side.decide(row) for side, row in zip(sides, rows, strict=True)])


def _walk_sorted(sides: Sides, sites: list[Site], surroundings: Values | None) -> Iterator[Class]:
    stack: list[tuple[str, list[Row], Values]] = []
    for site in sites:
        name, is_literal = site
        while stack and not name.startswith(stack[-1][0]):
            stack.pop()
        outer = stack[-1][2] if stack else surroundings
        if not stack or (name == WILDCARD and not is_literal):
            # the prefix `*` inherits nothing from LITERAL `*`, so start again
            rows = [side.row_under(name) for side in sides]
        else:
            rows = [side.row_at(site, row) for side, row in zip(sides, stack[-1][1], strict=True)]
        values = _decide(sides, rows)
        if not is_literal:
            stack.append((name, rows, values))
        yield Class(site, values, outer)


def turns_of(classes: Iterable[Class], key_of: Callable[[Values], Key | None]) -> dict[Key, list[Site]]:
    """Return, for each key except None, the sites where the names with that key begin or end."""
    keys: dict[Values | None, Key | None] = {None: None}
    turns: dict[Key, list[Site]] = {}
    for site, values, outer in classes:
        if values is outer:
            continue
        for some in (values, outer):
            if some is not None and some not in keys:
                keys[some] = key_of(some)
        key, outer_key = keys[values], keys[outer]
        if key != outer_key:
            for changed in (key, outer_key):
                if changed is not None:
                    turns.setdefault(changed, []).append(site)
    return turns


class AclSet:
    """A set of ACLs with its rules, grouped for look-ups; duplicates count once.

    Raises `AnalysisError` for an ACL whose principal has no type.
    """

    def __init__(self, bindings: Iterable[AclBinding], rules: Rules = ACLS_ALONE) -> None:
        self.bindings = frozenset(bindings)
        self.rules = rules
        self._grouped: dict[ResourceType, dict[str, list[AclBinding]]] | None = None
        self._layers: dict[tuple[ResourceType, str], Layer] = {}
        self._coverage: dict[ResourceType, Layer] = {}

    def _by_type(self) -> Mapping[ResourceType, Mapping[str, list[AclBinding]]]:
        if self._grouped is None:
            grouped: dict[ResourceType, dict[str, list[AclBinding]]] = {}
            for binding in self.bindings:
                principal = binding.entry.principal
                by_principal = grouped.setdefault(binding.pattern.resource_type, {})
                if principal not in by_principal:
                    if ":" not in principal:
                        raise AnalysisError(
                            f"principal `{principal}` of an ACL has no type, write it as `User:name`"
                        )
                    by_principal[principal] = []
                by_principal[principal].append(binding)
            self._grouped = grouped
        return self._grouped

    def principals(self, resource_type: ResourceType) -> set[str]:
        """Return the principals that ACLs on a type or `super.users` name, without `User:*`."""
        named = self._by_type().get(resource_type, {})
        return (named.keys() | self.rules.super_users) - {EVERY_PRINCIPAL}

    def of(self, resource_type: ResourceType, principal: str) -> list[AclBinding]:
        """Return the ACLs of a principal, or of `User:*`, on a type."""
        return self._by_type().get(resource_type, {}).get(principal, [])

    def layer(self, resource_type: ResourceType, principal: str) -> Layer:
        """Return the layer of a principal, or of `User:*`."""
        key = resource_type, principal
        if key not in self._layers:
            bindings = self.of(resource_type, principal)
            self._layers[key] = Layer.of(bindings) if bindings else _NO_LAYER
        return self._layers[key]

    def coverage(self, resource_type: ResourceType) -> Layer:
        """Return the layer that marks the resources of a type that any ACL names."""
        if resource_type not in self._coverage:
            named = self._by_type().get(resource_type, {})
            self._coverage[resource_type] = Layer.covering(acl for acls in named.values() for acl in acls)
        return self._coverage[resource_type]

    def side(self, resource_type: ResourceType, principal: str) -> PrincipalView:
        """Return a principal's view; `User:*` returns the view of all principals that are not named."""
        if principal in self.rules.super_users:
            return PrincipalView((), is_super=True, is_open=False)
        layers = [self.layer(resource_type, EVERY_PRINCIPAL)]
        if principal != EVERY_PRINCIPAL:
            layers.append(self.layer(resource_type, principal))
        is_open = self.rules.allow_everyone_if_no_acl_found
        if is_open:
            layers.append(self.coverage(resource_type))
        return PrincipalView(tuple(layers), is_super=False, is_open=is_open)


def zone_on(resource_type: ResourceType, zone: Zone) -> Zone:
    """Return the part of a zone where resources of the type can exist."""
    if resource_type is not ResourceType.CLUSTER:
        return zone
    has_cluster = CLUSTER_NAME in zone.literals or any(
        CLUSTER_NAME.startswith(prefix) for prefix in zone.prefixes
    )
    return Zone((), (CLUSTER_NAME,) if has_cluster else ())
