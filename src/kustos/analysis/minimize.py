"""A smaller set of ACLs with the same meaning.

The algorithm has two steps and a proof. The first step removes every ACL without effect: ALLOWs whose effect
other ALLOWs already have, then DENYs that deny nothing; narrow ACLs first, so that broad ones remain. The
second step groups related ACLs in small windows; for each window, `windows` finds the fewest ACLs that could
replace it. Finally `diff` compares the result with the input.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Any, Final

from kustos.acl import EVERY_PRINCIPAL, WILDCARD, AclBinding, AclOperation, AclPermissionType, ResourceType
from kustos.analysis.difference import difference_of
from kustos.analysis.kernel import (
    ACLS_ALONE,
    RESOURCE_TYPES,
    AclSet,
    AnalysisError,
    PrincipalView,
    Rules,
    walk,
    zone_on,
)
from kustos.analysis.layers import Layer
from kustos.analysis.name_sets import EVERY_NAME, Site, Zone, site_of
from kustos.analysis.necessity import necessity
from kustos.analysis.windows import View, replacement
from kustos.authorizer.index import HOSTED, binding_mask

WINDOW_ACLS_MAX: Final = 12
"""ACLs of one window: the cost of the search grows steeply with this number."""

WINDOW_VIEWS_MAX: Final = 16
"""Principals that one window affects."""


@dataclass(frozen=True, slots=True)
class Minimized:
    """The smaller set, the ACLs removed from the given set, and the added ACLs."""

    bindings: tuple[AclBinding, ...]
    removed: tuple[AclBinding, ...]
    added: tuple[AclBinding, ...]


def minimize(bindings: Iterable[AclBinding], rules: Rules = ACLS_ALONE) -> Minimized:
    """Return a set of ACLs that is not larger and means exactly the same under the same rules.

    Remaining ACLs keep their order, new ACLs follow. With `allow.everyone.if.no.acl.found`, ACLs are only
    removed, and each named resource keeps an ACL that names it. If clients have groups, no ACLs are added,
    and a DENY is removed only if another DENY has its effect. Questions by resource type, for which Kafka
    implies nothing, are not part of the meaning. Raises `AnalysisError`.
    """
    originals = list(dict.fromkeys(bindings))
    original = AclSet(originals, rules)
    editors = [_Editor(original, resource_type) for resource_type in RESOURCE_TYPES]
    found = dict.fromkeys(originals)
    # DENYs second: some deny only what removed ALLOWs allowed
    for permission_is_allow in (True, False):
        matters = necessity(list(found), rules).matters
        needless = {acl for acl, is_missed in zip(found, matters, strict=True) if not is_missed}
        for editor in editors:
            editor.take_out(needless, permission_is_allow=permission_is_allow)
        found = dict.fromkeys(acl for editor in editors for acl in editor.bindings())
    if not (rules.allow_everyone_if_no_acl_found or rules.clients_have_groups):
        for editor in editors:
            editor.rewrite_all()
        found = dict.fromkeys(acl for editor in editors for acl in editor.bindings())
    kept = [binding for binding in originals if binding in found]
    added = tuple(sorted(found.keys() - original.bindings, key=AclBinding.audit_text))
    if not difference_of(original, AclSet([*kept, *added], rules), regions_max=1).is_empty:
        raise AnalysisError(
            "the smaller set does not mean the same, which is a bug of kustos; keep your ACLs"
        )
    removed = tuple([binding for binding in originals if binding not in found])
    return Minimized((*kept, *added), removed, added)


def _breadth(binding: AclBinding) -> tuple[Any, ...]:
    """Return a sort key: narrow ACLs before broad ones, ACLs of a principal before ACLs of everyone."""
    site, entry = site_of(binding.pattern), binding.entry
    is_wildcard = site.is_literal and site.name == WILDCARD
    return (
        entry.permission_type is not AclPermissionType.ALLOW,
        entry.principal == EVERY_PRINCIPAL,
        is_wildcard,
        not site.is_literal,
        -len(site.name),
        entry.host == WILDCARD,
        "/" in entry.host,
        entry.operation is AclOperation.ALL,
        entry.operation is not AclOperation.DESCRIBE,
        binding.audit_text(),
    )


class _Editor:
    """The ACLs on one resource type during editing, with their original meaning."""

    def __init__(self, original: AclSet, resource_type: ResourceType) -> None:
        self._original = original
        self._type = resource_type
        self._now: dict[str, dict[Site, list[AclBinding]]] = defaultdict(lambda: defaultdict(list))
        self._named: dict[Site, int] = defaultdict(int)
        everything = [acl for acl in original.bindings if acl.pattern.resource_type is resource_type]
        by_principal: dict[str, list[AclBinding]] = defaultdict(list)
        for binding in everything:
            self._now[binding.entry.principal][site_of(binding.pattern)].append(binding)
            self._named[site_of(binding.pattern)] += 1
            by_principal[binding.entry.principal].append(binding)
        self._layers = {principal: Layer.of(acls) for principal, acls in by_principal.items()}
        self._seen: dict[str, tuple[PrincipalView, PrincipalView]] = {}
        self._every = self._layers.setdefault(EVERY_PRINCIPAL, Layer())

    def bindings(self, principal: str | None = None) -> Iterator[AclBinding]:
        """Yield the current ACLs of one principal or of all principals."""
        for sites in list(self._now.values()) if principal is None else [self._now[principal]]:
            for there in sites.values():
                yield from there

    def take_out(self, needless: Set[AclBinding], *, permission_is_allow: bool) -> None:
        """Remove the ALLOWs, or else the DENYs, among `needless` that do not change the meaning."""
        is_allow = AclPermissionType.ALLOW
        for binding in sorted(self.bindings(), key=_breadth):
            if binding in needless and (binding.entry.permission_type is is_allow) is permission_is_allow:
                self._take_out(binding)

    def _take_out(self, binding: AclBinding) -> None:
        principal, site = binding.entry.principal, site_of(binding.pattern)
        if not self._remains_named(site):
            return
        there = self._now[principal][site]
        there.remove(binding)
        self._layers[principal].put(site, there)
        is_allow = binding.entry.permission_type is AclPermissionType.ALLOW
        decides_alone = is_allow or not self._original.rules.clients_have_groups
        if self._is_implied_above(binding) or (decides_alone and self._means_the_same(principal, site)):
            self._named[site] -= 1
        else:
            there.append(binding)
            self._layers[principal].put(site, there)

    def _remains_named(self, site: Site) -> bool:
        """Return whether other ACLs still name a pattern's names after a removal, or names do not matter."""
        if not self._original.rules.allow_everyone_if_no_acl_found or self._named[site] > 1:
            return True
        name = site.name
        longest = len(name) if site.is_literal else len(name) - 1
        if site == _WILDCARD_SITE:
            longest = 0
        elif self._named.get(_WILDCARD_SITE) and name and name[:1] != WILDCARD:
            return True
        return any(self._named.get(Site(name[:length], is_literal=False)) for length in range(longest + 1))

    def _is_implied_above(self, binding: AclBinding) -> bool:
        """Return whether other ACLs imply a removed ACL on all its names; this is a quick check."""
        site = site_of(binding.pattern)
        if site == EVERY_NAME.turns[0]:
            # LITERAL `*` does not match all of these names
            return False
        _, now = self._sides(binding.entry.principal)
        is_wildcard = site == _WILDCARD_SITE
        row = now.row_under("") if is_wildcard else now.row_at(site, now.row_under(site.name))
        implied = row.get(WILDCARD, 0) | row.get(binding.entry.host, 0)
        return not binding_mask(binding) & ~HOSTED & ~implied

    def _means_the_same(self, principal: str, site: Site) -> bool:
        zone = zone_on(self._type, Zone.of([site]))
        if principal != EVERY_PRINCIPAL:
            return self._is_same_for(principal, zone)
        if not self._is_same_for(EVERY_PRINCIPAL, zone):
            return False
        for other in self._layers:
            own = Zone.of(self._original.layer(self._type, other).sites_within(zone))
            if other != EVERY_PRINCIPAL and not self._is_same_for(other, zone_on(self._type, own)):
                return False
        return True

    def _is_same_for(self, principal: str, zone: Zone) -> bool:
        was, now = self._sides(principal)
        if was.is_super:
            return True
        for prefix in zone.prefixes:
            # most ACLs matter directly under their own pattern: no need to walk the classes below
            if was.decide(was.row_under(prefix)) != now.decide(now.row_under(prefix)):
                return False
        return all(before == after for _, (before, after), _ in walk((was, now), zone))

    def _sides(self, principal: str) -> tuple[PrincipalView, PrincipalView]:
        """Return a principal's original view of the type, and the current one."""
        if principal not in self._seen:
            rules = self._original.rules
            layers = [self._every] if principal == EVERY_PRINCIPAL else [self._every, self._layers[principal]]
            if rules.allow_everyone_if_no_acl_found:
                layers.append(self._original.coverage(self._type))
            is_open = rules.allow_everyone_if_no_acl_found
            now = PrincipalView(tuple(layers), is_super=False, is_open=is_open)
            self._seen[principal] = self._original.side(self._type, principal), now
        return self._seen[principal]

    def rewrite_all(self) -> None:
        """Replace several ACLs with fewer, in windows of decreasing size."""
        if self._rewrite(list(self.bindings())):
            return
        for component in _components(self.bindings()):
            self._rewrite(component)
        for principal in [name for name in self._now if name != EVERY_PRINCIPAL]:
            for component in _components(self.bindings(principal)):
                if not self._rewrite(component):
                    for there in [list(there) for there in self._now[principal].values()]:
                        self._rewrite([binding for binding in component if binding in there])

    def _rewrite(self, window: list[AclBinding]) -> bool:
        """Rewrite a window; return whether it was small enough for the search."""
        if len(window) < 2:
            return True
        if len(window) > WINDOW_ACLS_MAX:
            return False
        window = sorted(window, key=_breadth)
        views = self._views(window)
        if len(views) > WINDOW_VIEWS_MAX:
            return False
        self._swap(window, [])
        found = replacement(window, views)
        self._swap([], window if found is None else found)
        return found is not None

    def _views(self, window: list[AclBinding]) -> list[View]:
        """Return the views of a window for all principals that its ACLs can affect."""
        concerned = {binding.entry.principal for binding in window}
        if EVERY_PRINCIPAL in concerned:
            zone = zone_on(self._type, Zone.of(site_of(binding.pattern) for binding in window))
            for principal, layer in self._layers.items():
                before = self._original.layer(self._type, principal)
                if any(True for acls in (layer, before) for _ in acls.sites_within(zone)):
                    concerned.add(principal)
        views: list[View] = []
        for principal in sorted(concerned):
            was, now = self._sides(principal)
            if not was.is_super:
                views.append(View(principal, was, now.layers))
        return views

    def _swap(self, out: list[AclBinding], into: list[AclBinding]) -> None:
        for binding in out:
            self._now[binding.entry.principal][site_of(binding.pattern)].remove(binding)
        for binding in into:
            self._now[binding.entry.principal][site_of(binding.pattern)].append(binding)
        for principal, site in {(acl.entry.principal, site_of(acl.pattern)) for acl in (*out, *into)}:
            self._layers[principal].put(site, self._now[principal][site])


_WILDCARD_SITE: Final = Site(WILDCARD, is_literal=True)


def _components(bindings: Iterable[AclBinding]) -> Iterator[list[AclBinding]]:
    """Yield the ACLs in groups whose patterns share no name."""
    parts: list[list[AclBinding]] = []
    root: Site | None = None
    for binding in sorted(bindings, key=lambda acl: site_of(acl.pattern)):
        site = site_of(binding.pattern)
        if site == _WILDCARD_SITE:
            # LITERAL `*` shares names with nearly all patterns
            parts = [[acl for part in parts for acl in part]] if parts else [[]]
            root = EVERY_NAME.turns[0]
        elif root is None or not root.covers(site.name):
            root = site
            parts.append([])
        parts[-1].append(binding)
    yield from parts
