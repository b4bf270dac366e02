"""The ACLs of a set that matter: ACLs whose removal, alone, would change some decision.

The result is exact, and the computation is about as fast as sorting. The theory is in `kernel`: principals,
names, hosts and operations fall into classes. An ACL matters exactly if in some class that it matches

- it is the only ALLOW and no ACL denies, or
- it is the only DENY and some ACL allows, or clients have groups, whose ACLs may allow it, or
- with default-allow, it is the only ACL that names the resource, and does not allow everything to everyone.

The classes to check are: for a principal, the sites of its own ACLs, and the sites of `User:*` below them;
for everyone else, the sites of `User:*`; with default-allow, every site.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kustos.acl import CLUSTER_NAME, EVERY_PRINCIPAL, WILDCARD, AclBinding, PatternType, ResourceType
from kustos.analysis.by_host import host_pattern
from kustos.analysis.entry_books import ROOT, WHOLE, Book, Entry, entries_by_host
from kustos.analysis.kernel import ACLS_ALONE, Rules
from kustos.analysis.name_sets import Site
from kustos.authorizer.index import DENY_SHIFT, EVERY_ALLOW, binding_mask


@dataclass(frozen=True, slots=True)
class Necessity:
    """One flag for each ACL, in order.

    `matters`: some decision would change without the ACL. `effective`: for an ALLOW, a part of it is not
    denied; for a DENY, it denies something that no other DENY denies.
    """

    matters: Sequence[bool]
    effective: Sequence[bool]
    around: Callable[[int], list[Entry]]
    """Returns the entries, including the given one, that match all its names and its principal."""


def necessity(bindings: Sequence[AclBinding], rules: Rules = ACLS_ALONE) -> Necessity:
    """Return which of these ACLs, given without duplicates, matter under these rules."""
    weighing = _Weighing(bindings, rules)
    for resource_type in {binding.pattern.resource_type for binding in bindings}:
        weighing.weigh(resource_type)
    return Necessity(
        [bool(each) for each in weighing.matters],
        [bool(each) for each in weighing.effective],
        weighing.around,
    )


class _Weighing:
    """The flags during the search; a raised flag stays raised."""

    def __init__(self, bindings: Sequence[AclBinding], rules: Rules) -> None:
        self.matters = bytearray(len(bindings))
        self.effective = bytearray(len(bindings))
        self._bindings = bindings
        self._rules = rules
        self._coverage: dict[ResourceType, Book] = {}
        self._books: dict[ResourceType, dict[str, Book]] = {}
        self._total: set[int] = set()
        for number, binding in enumerate(bindings):
            self._enter(number, binding)

    def _enter(self, number: int, binding: AclBinding) -> None:
        resource_type, principal = binding.pattern.resource_type, binding.entry.principal
        mask, host = binding_mask(binding), host_pattern(binding.entry.host)
        allows, denies = mask & EVERY_ALLOW, mask >> DENY_SHIFT & EVERY_ALLOW
        entry = Entry(number, allows, denies, host.pieces, host.zoned)
        self._coverage.setdefault(resource_type, Book()).add(binding, entry)
        if (allows or denies) and not host.matches_nobody and ":" in principal:
            self._books.setdefault(resource_type, {}).setdefault(principal, Book()).add(binding, entry)
            if principal == EVERY_PRINCIPAL and allows == EVERY_ALLOW and host.pieces == WHOLE:
                self._total.add(number)

    def around(self, number: int) -> list[Entry]:
        """Return the entries that match all names of an ACL and its principal."""
        binding = self._bindings[number]
        books = self._books.get(binding.pattern.resource_type, {})
        name, is_literal = binding.pattern.name, binding.pattern.pattern_type is PatternType.LITERAL
        site = ROOT if is_literal and name == WILDCARD else Site(name, is_literal)
        principals = {binding.entry.principal, EVERY_PRINCIPAL}
        held = [books[principal] for principal in principals if principal in books]
        return [entry for book in held for entry in book.matching(site)]

    def weigh(self, resource_type: ResourceType) -> None:
        """Raise the flags of the ACLs on one resource type."""
        books = self._books.get(resource_type, {})
        every = books.get(EVERY_PRINCIPAL, Book())
        coverage = self._coverage[resource_type]
        is_open = self._rules.allow_everyone_if_no_acl_found
        everyones = sorted(every.sites())
        for site in _on(resource_type, coverage.sites() if is_open else everyones):
            if is_open and self._is_named_once(coverage, site):
                continue
            self._weigh_class(list(every.matching(site)))
        named = {principal: own for principal, own in books.items() if principal != EVERY_PRINCIPAL}
        for principal, own in named.items():
            self._weigh_principal(principal, own, every, coverage, _on(resource_type, own.sites()))
        # below a principal's own patterns, the patterns of `User:*` matter only in undecided classes
        undecided = [site for site in everyones if not self._is_decided(every.matching(site))]
        for principal, own in named.items():
            sites = undecided if self._is_decided(own.entries()) else everyones
            self._weigh_principal(principal, own, every, coverage, _on(resource_type, _below(own, sites)))

    def _weigh_principal(
        self, principal: str, own: Book, every: Book, coverage: Book, sites: Iterable[Site]
    ) -> None:
        is_super = principal in self._rules.super_users
        is_open = self._rules.allow_everyone_if_no_acl_found
        for site in sites:
            entries = [*own.matching(site), *every.matching(site)]
            if is_super or (is_open and len(_first_two(coverage, site)) < 2):
                self._note_effective(entries)
            else:
                self._weigh_class(entries)

    def _is_decided(self, entries: Iterable[Entry]) -> bool:
        return all(self.matters[entry.number] and self.effective[entry.number] for entry in entries)

    def _is_named_once(self, coverage: Book, site: Site) -> bool:
        """Return whether at most one ACL names the resource; this ACL matters unless it allows everything."""
        naming = _first_two(coverage, site)
        if len(naming) > 1:
            return False
        for entry in naming:
            self.effective[entry.number] = 1
            if entry.number not in self._total:
                self.matters[entry.number] = 1
        return True

    def _note_effective(self, entries: list[Entry]) -> None:
        for held, _, denied in entries_by_host(entries):
            self._note(held, denied)

    def _note(self, held: list[Entry], denied: int) -> None:
        once = twice = 0
        for entry in held:
            twice |= once & entry.denies
            once |= entry.denies
        for entry in held:
            if entry.allows & ~denied or entry.denies & ~twice:
                self.effective[entry.number] = 1

    def _weigh_class(self, entries: list[Entry]) -> None:
        if self._is_decided(entries):
            return
        for held, allowed, denied in entries_by_host(entries):
            once = twice = denied_once = denied_twice = 0
            for entry in held:
                twice |= once & entry.allows
                once |= entry.allows
                denied_twice |= denied_once & entry.denies
                denied_once |= entry.denies
            sole_allows = once & ~twice & ~denied
            sole_denies = denied_once & ~denied_twice
            if not self._rules.clients_have_groups:
                sole_denies &= allowed
            for entry in held:
                if entry.allows & sole_allows or entry.denies & sole_denies:
                    self.matters[entry.number] = 1
                if entry.allows & ~denied or entry.denies & ~denied_twice:
                    self.effective[entry.number] = 1


def _first_two(book: Book, site: Site) -> list[Entry]:
    found: list[Entry] = []
    for entry in book.matching(site):
        found.append(entry)
        if len(found) == 2:
            break
    return found


def _on(resource_type: ResourceType, sites: Iterable[Site]) -> list[Site]:
    """Return the sites that contain possible names of resources of the type."""
    if resource_type is ResourceType.CLUSTER:
        return [Site(CLUSTER_NAME, is_literal=True)]
    return sorted(sites)


def _below(own: Book, everyones: list[Site]) -> set[Site]:
    """Return the sites of `User:*` that lie under a principal's own patterns."""
    if own.wildcard:
        return set(everyones)
    found: set[Site] = set()
    covered: str | None = None
    for prefix in sorted(own.prefixes):
        if covered is not None and prefix.startswith(covered):
            continue
        covered = prefix
        at = bisect_left(everyones, Site(prefix, is_literal=False))
        while at < len(everyones) and everyones[at].name.startswith(prefix):
            found.add(everyones[at])
            at += 1
    return found
