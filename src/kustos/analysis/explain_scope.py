"""The exact reasons why a principal may or may not do something, over all hosts and all names of a pattern.

For one name, each part has one deciding rule: the matching ACLs are numbered in Kafka's visiting order and
summed along the line of hosts, and a part is the region in which the same ACL decides. For many names, a part
is the region with the same decision, and its rule is the rule for one question in it, the witness.

The smallest change is exact, as in `explain`: every DENY that overlaps the scope denies something in it, so
all these DENYs must be removed, and then at most one ALLOW is missing.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kustos.acl import (
    EVERY_PRINCIPAL,
    WILDCARD,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
)
from kustos.analysis.access import marking, names_of
from kustos.analysis.by_host import LINE_END, ByHost, canonical, combined, mapped, place_of, summed
from kustos.analysis.everyone import Answers
from kustos.analysis.explain import SmallestChange, is_allow, names
from kustos.analysis.groups import as_own
from kustos.analysis.host_sets import ANYWHERE, NOWHERE, HostSet
from kustos.analysis.kernel import ACLS_ALONE, NOTHING, RESOURCE_TYPES, AclSet, AnalysisError, Rules, Values
from kustos.analysis.name_sets import NameSet, Zone, site_of
from kustos.analysis.regions import Probe
from kustos.authorizer import Decision, StandardAuthorizer
from kustos.authorizer.index import ALLOWS, DECIDES, binding_mask, visit_order


@dataclass(frozen=True, slots=True)
class ExplainScope:
    """The question: may a principal do this on every name of a pattern, from a host (None: from all)?

    LITERAL `*` queries every name that an ACL on it matches. `groups` are the names of the client's groups.
    """

    principal: str
    operation: AclOperation
    pattern: ResourcePattern
    host: str | None = None
    groups: tuple[str, ...] = ()

    @property
    def client(self) -> KafkaPrincipal:
        """The principal with its groups; raises `AclValueError` for a principal without a type."""
        return replace(KafkaPrincipal.parse(self.principal), groups=self.groups)

    @property
    def names(self) -> NameSet:
        """The requested names."""
        return names_of(self.pattern)

    @property
    def is_one_name(self) -> bool:
        """Whether the scope has exactly one name."""
        return self.pattern.pattern_type is PatternType.LITERAL and self.pattern.name != WILDCARD

    @property
    def hosts(self) -> HostSet:
        """The requested hosts."""
        return ANYWHERE if self.host is None else hosts_of(self.host)


@dataclass(frozen=True, slots=True)
class Part:
    """Hosts and names with the same decision as the witness."""

    hosts: HostSet
    names: NameSet
    witness: Probe
    decision: Decision


@dataclass(frozen=True, slots=True)
class ScopeExplanation:
    """Disjoint parts that together are the whole scope, the allowed parts first.

    `matching`: the ACLs that apply, for one name in Kafka's visiting order. `overruled`: the matching ACLs
    that a DENY or super-user status overrules somewhere; None for a scope of many names. `unmatched`: ACLs
    for the principal on the resource, but for other operations or hosts. `naming` counts the ACLs of any
    principal that name something in the scope.
    """

    scope: ExplainScope
    parts: tuple[Part, ...]
    matching: tuple[AclBinding, ...]
    overruled: tuple[AclBinding, ...] | None
    unmatched: tuple[AclBinding, ...]
    naming: int
    change: SmallestChange | None

    @property
    def is_allowed(self) -> bool:
        """Whether the whole scope is allowed."""
        return all(part.decision.allowed for part in self.parts)

    @property
    def is_denied(self) -> bool:
        """Whether the whole scope is denied."""
        return not any(part.decision.allowed for part in self.parts)

    @property
    def allowed_hosts(self) -> HostSet:
        """The hosts from which something is allowed."""
        return union([part.hosts for part in self.parts if part.decision.allowed])


def hosts_of(text: str) -> HostSet:
    """Return the clients that the host of an entry matches; for one address, that client."""
    return HostSet(summed({text: 1}, lambda bits: bits))


def union(sets: Sequence[HostSet]) -> HostSet:
    """Return the hosts that are in any of these sets; merges by halves, so the cost of many sets is low."""
    if len(sets) > 1:
        half = len(sets) // 2
        one, other = union(sets[:half]), union(sets[half:])
        return HostSet(combined(one.member, other.member, lambda first, second: first | second))
    return sets[0] if sets else NOWHERE


def split(function: ByHost) -> list[HostSet]:
    """Return the hosts of each number of a function, in the order of the numbers, in one pass."""
    steps: dict[int, list[tuple[int, int]]] = defaultdict(lambda: [(0, 0)])
    zoned: dict[int, dict[str, int]] = defaultdict(dict)
    for start, end, value in function.pieces():
        steps[value] += [(start, 1), (end, 0)] if end < LINE_END else [(start, 1)]
    for text, value in function.zoned:
        place = place_of(text)
        if place is not None:
            zoned[function.on_line(place.number)][text] = 0
            zoned[value][text] = 1
    values = sorted(steps.keys() | zoned.keys())
    return [HostSet(canonical(steps[value], zoned[value])) for value in values]


def common(one: HostSet, other: HostSet) -> HostSet:
    """Return the hosts that are in both sets."""
    return HostSet(combined(one.member, other.member, lambda first, second: first & second))


def explain_scope(
    bindings: Iterable[AclBinding], scope: ExplainScope, rules: Rules = ACLS_ALONE
) -> ScopeExplanation:
    """Return the allowed and denied parts of a scope, with reasons.

    Raises `AnalysisError` for an unspecific operation or type (such as ANY) and for the principal `User:*`,
    `AclValueError` for a principal without a type.
    """
    _check(scope)
    naming = [binding for binding in dict.fromkeys(bindings) if matches_within(binding.pattern, scope)]
    if scope.is_one_name:
        naming.sort(key=lambda binding: visit_order(binding, scope.pattern.name))
    matching: list[AclBinding] = []
    unmatched: list[AclBinding] = []
    principals = {scope.principal, EVERY_PRINCIPAL, *scope.client.group_texts}
    for binding in naming:
        if binding.entry.principal in principals:
            is_met = binding_mask(binding) & DECIDES[scope.operation] and meets(binding, scope.hosts)
            (matching if is_met else unmatched).append(binding)
    parts = _parts(naming, matching, scope, rules)
    is_super = scope.principal in rules.super_users
    overruled = _overruled(matching, scope, is_super=is_super) if scope.is_one_name else None
    change = None
    if not all(part.decision.allowed for part in parts):
        change = _smallest_change(naming, matching, scope, rules)
    return ScopeExplanation(scope, parts, tuple(matching), overruled, tuple(unmatched), len(naming), change)


def _check(scope: ExplainScope) -> None:
    if str(scope.client) == EVERY_PRINCIPAL:
        raise AnalysisError(f"`{scope.principal}` means everybody, name one principal")
    if scope.operation not in ALLOWS:
        raise AnalysisError(f"cannot decide on operation `{scope.operation}`, name one")
    if scope.pattern.resource_type not in RESOURCE_TYPES:
        raise AnalysisError(f"cannot decide on resource type `{scope.pattern.resource_type}`, name one")


def meets(binding: AclBinding, hosts: HostSet) -> bool:
    """Return whether an ACL matches any of these hosts."""
    return not common(hosts_of(binding.entry.host), hosts).is_empty


def matches_within(pattern: ResourcePattern, scope: ExplainScope) -> bool:
    """Return whether a pattern matches any of the scope's names."""
    scope_pattern = scope.pattern
    if pattern.resource_type is not scope_pattern.resource_type:
        return False
    if scope.is_one_name:
        probe = Probe(scope.principal, "", scope.operation, scope_pattern.resource_type, scope_pattern.name)
        return names(pattern, probe)
    if scope_pattern.pattern_type is PatternType.LITERAL:
        return pattern.name[:1] != WILDCARD or pattern.name == WILDCARD
    if pattern.pattern_type is not PatternType.LITERAL:
        return pattern.name.startswith(scope_pattern.name) or scope_pattern.name.startswith(pattern.name)
    if pattern.name == WILDCARD:
        return scope_pattern.name[:1] != WILDCARD or scope_pattern.name == WILDCARD
    return pattern.name.startswith(scope_pattern.name)


def _parts(
    naming: list[AclBinding], matching: list[AclBinding], scope: ExplainScope, rules: Rules
) -> tuple[Part, ...]:
    authorizer = StandardAuthorizer.of(
        naming,
        super_users=rules.super_users,
        allow_everyone_if_no_acl_found=rules.allow_everyone_if_no_acl_found,
    )
    if scope.is_one_name:
        pieces = _by_rule(matching, scope, is_super=scope.principal in rules.super_users)
    else:
        pieces = _by_decision(naming, scope, rules)
    parts = []
    for hosts, some in pieces:
        part_hosts = common(hosts, scope.hosts)
        if part_hosts.is_empty:
            continue
        kind = scope.pattern.resource_type
        probe = Probe(scope.principal, part_hosts.witness(), scope.operation, kind, some.witness())
        decision = authorizer.session(scope.client, probe.host).decide(probe.operation, kind, probe.name)
        parts.append(Part(part_hosts, some, probe, decision))
    return tuple(
        sorted(parts, key=lambda part: (not part.decision.allowed, part.names.turns, part.hosts.order))
    )


def _by_rule(
    matching: list[AclBinding], scope: ExplainScope, *, is_super: bool
) -> list[tuple[HostSet, NameSet]]:
    """Return the hosts grouped by the deciding ACL, each group with the one name."""
    denying = sum(1 << number for number, binding in enumerate(matching) if not is_allow(binding))
    row: dict[str, int] = {}
    for number, binding in enumerate(matching):
        row[binding.entry.host] = row.get(binding.entry.host, 0) | 1 << number

    def deciding(bits: int) -> int:
        # the first visited DENY denies; without a DENY the last ALLOW allows
        denies = bits & denying
        return (denies & -denies).bit_length() if denies else bits.bit_length()

    function = summed({} if is_super else row, deciding)
    return [(hosts, scope.names) for hosts in split(function)]


def _by_decision(
    naming: list[AclBinding], scope: ExplainScope, rules: Rules
) -> list[tuple[HostSet, NameSet]]:
    """Return the hosts and names grouped by the decision."""
    bit = ALLOWS[scope.operation]

    def key_of(values: Values) -> ByHost | None:
        return None if values[1] == NOTHING else mapped(values[0], lambda bits: int(bits & bit != 0))

    zone = Zone.of([site_of(scope.pattern)])
    side = marking(scope.pattern)
    acls = AclSet(as_own(naming, scope.principal, scope.client.group_texts), rules)
    answers = Answers((acls,), scope.pattern.resource_type, zone, key_of, (side,))
    found = answers.of(scope.principal)
    if found is None:
        found = answers.of_everyone_else()
    return [
        (HostSet(hosts), some)
        for allowed, some in found.items()
        for hosts in (allowed, mapped(allowed, lambda bits: 1 - bits))
    ]


def _overruled(matching: list[AclBinding], scope: ExplainScope, *, is_super: bool) -> tuple[AclBinding, ...]:
    denying = [binding for binding in matching if not is_allow(binding)]
    if is_super:
        return tuple(denying)
    row = {binding.entry.host: 1 for binding in denying}
    denied = common(HostSet(summed(row, lambda bits: bits)), scope.hosts)
    return tuple([binding for binding in matching if is_allow(binding) and meets(binding, denied)])


def _smallest_change(
    naming: list[AclBinding], matching: list[AclBinding], scope: ExplainScope, rules: Rules
) -> SmallestChange:
    denying = [binding for binding in matching if not is_allow(binding)]
    left = [binding for binding in naming if binding not in denying]
    allowing = [binding for binding in matching if is_allow(binding)]
    is_enough = all(part.decision.allowed for part in _parts(left, allowing, scope, rules))
    return SmallestChange(tuple(denying), None if is_enough else _widest_allow(scope))


def _widest_allow(scope: ExplainScope) -> AclBinding:
    """Return the narrowest ALLOW that Kafka can express and that grants the whole scope."""
    pattern = scope.pattern
    # no ACL has an empty name: only `*` matches a resource with an empty name
    name = pattern.name or WILDCARD
    kind = pattern.pattern_type if pattern.name else PatternType.LITERAL
    host = WILDCARD if scope.host is None else scope.host
    return AclBinding(
        ResourcePattern(pattern.resource_type, name, kind),
        AccessControlEntry(scope.principal, host, scope.operation, AclPermissionType.ALLOW),
    )
