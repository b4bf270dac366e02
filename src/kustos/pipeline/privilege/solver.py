"""Least privilege of one principal: from the record to ACLs with their reasons. No Spark, no IO."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kustos.acl import (
    EVERY_PRINCIPAL,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AccessControlEntry,
    AclBinding,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.acl.forms import FIELD_BYTES_MAX
from kustos.authorizer.index import ALLOWS
from kustos.pipeline.privilege.ceiling import PrincipalCeiling
from kustos.pipeline.privilege.options import DEFAULT_OPTIONS, PrivilegeOptions, cutter
from kustos.pipeline.privilege.placements import HostedPlacement, Index
from kustos.pipeline.privilege.probes import answer_probes
from kustos.pipeline.privilege.tree import Placement
from kustos.pipeline.privilege.type_plan import ImpliedDeny, TypePlan, can_be_named
from kustos.pipeline.privilege.values import (
    ALL_BIT,
    CLOSURES,
    OPERATIONS,
    Denial,
    PrincipalRecommendation,
    Problem,
    RecommendedAcl,
    Unserved,
    UnservedUse,
    Use,
    bits_of,
    closure,
)

EXAMPLES_MAX: Final = 3
"""Names that an ACL shows as examples of what it serves."""


@dataclass(slots=True)
class _Evidence:
    accesses: int = 0
    events: int = 0
    names: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    answers_probes: bool = False


def least_privilege(
    problem: Problem,
    options: PrivilegeOptions = DEFAULT_OPTIONS,
    *,
    ceiling: PrincipalCeiling | None = None,
) -> PrincipalRecommendation:
    """Return the cheapest ACLs that allow every use and no denial, and the uses that no ACL can serve.

    An access must not be both used and denied. Exact unless the same access was used from one host and denied
    from another; then close to it (see `type_plan`). DENYs are made only for a denied operation that a needed
    one on the same name from the same host implies. With a `ceiling`, today's limit, no question about a
    named resource is allowed that today's ACLs do not allow; uses beyond them are unserved.
    """
    unserved: list[UnservedUse] = []
    by_type: dict[ResourceType, list[Use]] = defaultdict(list)
    for use in problem.uses:
        reason = _impossible(problem.principal, use)
        if reason is None:
            by_type[use.resource_type].append(use)
        else:
            unserved.append(UnservedUse(use, reason))
    denials: dict[ResourceType, list[Denial]] = defaultdict(list)
    for denial in problem.denials:
        if denial.operation in ALLOWS:
            denials[denial.resource_type].append(denial)
    acls: list[RecommendedAcl] = []
    overruled: list[Denial] = []
    for resource_type, uses in by_type.items():
        reasons = {use: _unnameable(ceiling, use) for use in uses}
        plan = TypePlan(resource_type, options, problem.known, ceiling)
        _solve(plan, reasons, denials[resource_type])
        if plan.names_no_host:
            # no client has the host of such an ACL: uses without one get only ACLs for every host, or none
            reasons |= {use: Unserved.HOST for use in uses if not use.host}
            plan = TypePlan(resource_type, options, problem.known, ceiling)
            _solve(plan, reasons, denials[resource_type])
        reasoned = _Reasoning(problem, plan, reasons)
        acls += reasoned.acls()
        unserved += reasoned.unserved
        overruled += [
            Denial(host, OPERATIONS[bit], resource_type, None)
            for host, bit in plan.overruled
            # an operation that another one implies may be allowed by name without answering this question
            if any(plan.answers(acl, host, bit) for acl in plan.placements)
        ]
    acls.sort(key=_order)
    return PrincipalRecommendation(tuple(acls), tuple(unserved), tuple(overruled))


def _solve(plan: TypePlan, uses: Mapping[Use, Unserved | None], denials: list[Denial]) -> None:
    """Plan for the uses that an ACL may name."""
    nameable = [use for use, reason in uses.items() if reason is None]
    plan.read(nameable, denials)
    plan.solve()
    answer_probes(plan, nameable)


def _order(acl: RecommendedAcl) -> tuple[object, ...]:
    pattern, entry = acl.binding.pattern, acl.binding.entry
    return (
        pattern.resource_type,
        pattern.name,
        pattern.pattern_type,
        entry.permission_type,
        entry.operation,
        entry.host,
    )


def _impossible(principal: str, use: Use) -> Unserved | None:
    """Return why no ACL, whatever it names, can allow a use; None if some could."""
    if ":" not in principal:
        return Unserved.PRINCIPAL
    if principal == EVERY_PRINCIPAL:
        return Unserved.EVERYBODY
    if use.operation not in ALLOWS or use.resource_type not in SUPPORTED_OPERATIONS:
        return Unserved.OPERATION
    return Unserved.TOO_LONG if _is_too_long(principal) else None


def _unnameable(ceiling: PrincipalCeiling | None, use: Use) -> Unserved | None:
    """Return why no ACL may name a use, None if one may; an ACL on more names or hosts can still allow it."""
    if use.host == WILDCARD or "/" in use.host:
        return Unserved.HOST
    if _is_too_long(use.host) or _is_too_long(use.name or ""):
        return Unserved.TOO_LONG
    if use.name is None:
        return None
    if not can_be_named(use.resource_type, use.name):
        return _NO_NAMES.get(use.name, Unserved.CLUSTER_NAME)
    beyond = 0 if ceiling is None else ceiling.beyond(use.resource_type, use.name, False, use.host)
    return Unserved.TODAY if ALLOWS[use.operation] & beyond else None


_NO_NAMES: Final = {"": Unserved.EMPTY_NAME, WILDCARD: Unserved.WILDCARD_NAME}


def _is_too_long(text: str) -> bool:
    # a character has up to 4 bytes
    return len(text) > FIELD_BYTES_MAX // 4 and len(text.encode()) > FIELD_BYTES_MAX


class _Reasoning:
    """The evidence and the reason of each ACL on one type.

    `uses` say why no ACL may name a use, None if one may.
    """

    def __init__(self, problem: Problem, plan: TypePlan, uses: Mapping[Use, Unserved | None]) -> None:
        self._problem = problem
        self._plan = plan
        self._evidence = [_Evidence() for _ in plan.placements]
        self.unserved: list[UnservedUse] = []
        index = Index(plan.placements, plan.options)
        for use, reason in uses.items():
            if use.name is None:
                self._note_probe(use, reason or Unserved.PROBE)
                continue
            bit = ALLOWS[use.operation]
            is_refused = ImpliedDeny(use.host, use.name, bit) in plan.refusals
            able = [] if is_refused else list(index.serving(use.host, use.name, bit))
            for number in able:
                self._evidence[number].hosts.add(use.host)
            if not able:
                if reason is not None:  # else the plan is wrong, and the proof finds the use lost
                    self.unserved.append(UnservedUse(use, reason))
                continue
            evidence = self._evidence[able[0]]
            evidence.accesses += 1
            evidence.events += use.event_count
            evidence.names.add(use.name)

    def _note_probe(self, use: Use, reason: Unserved) -> None:
        """Count a question for any resource for the first ACL that answers it."""
        bit = ALLOWS[use.operation]
        pairs = zip(self._evidence, self._plan.placements, strict=True)
        able = [evidence for evidence, acl in pairs if self._plan.answers(acl, use.host, bit)]
        for evidence in able:
            evidence.hosts.add(use.host)
        if not able:
            self.unserved.append(UnservedUse(use, reason))
            return
        able[0].answers_probes = True
        able[0].accesses += 1
        able[0].events += use.event_count

    def acls(self) -> list[RecommendedAcl]:
        """Return the ACLs of the plan, each with its evidence."""
        used = self._used_below()
        allows = [
            self._allow(acl, evidence, used)
            for acl, evidence in zip(self._plan.placements, self._evidence, strict=True)
        ]
        return allows + [self._deny(refusal) for refusal in sorted(self._plan.refusals)]

    def _used_below(self) -> Counter[tuple[str, int]]:
        """Return on how many names each operation was used below each prefix that is granted."""
        plan = self._plan
        granted = {acl.placement.name for acl in plan.placements if acl.placement.is_prefix}
        is_every = any(not p.is_prefix and p.name == WILDCARD for p, _ in plan.placements)
        counts: Counter[tuple[str, int]] = Counter()
        if not granted and not is_every:
            return counts
        cuts = cutter(plan.options)
        masks: dict[str, int] = {}
        for names in plan.needs.values():
            for name, mask in names.items():
                masks[name] = masks.get(name, 0) | mask
        for name, mask in masks.items():
            bits = bits_of(closure(mask))
            below = [prefix for prefix in cuts(name) if prefix in granted]
            for beginning in [*below, WILDCARD] if is_every and name[:1] != WILDCARD else below:
                counts.update([(beginning, bit) for bit in bits])
        return counts

    def _allow(
        self, acl: HostedPlacement, evidence: _Evidence, used: Counter[tuple[str, int]]
    ) -> RecommendedAcl:
        placement = acl.placement
        known, wasted = self._known_and_wasted(placement, evidence, used)
        return RecommendedAcl(
            binding=self._binding(placement, acl.host, AclPermissionType.ALLOW),
            access_count=evidence.accesses,
            event_count=evidence.events,
            name_count=len(evidence.names),
            known_count=known,
            over_grant_count=wasted,
            host_count=len(evidence.hosts),
            examples=tuple(sorted(evidence.names)[:EXAMPLES_MAX]),
            reason=self._reason(placement, acl.host, evidence, known),
        )

    def _known_and_wasted(
        self, placement: Placement, evidence: _Evidence, used: Counter[tuple[str, int]]
    ) -> tuple[int, int]:
        plan = self._plan
        bits = [placement.bit]
        if placement.bit == ALL_BIT:
            bits = [ALLOWS[operation] for operation in SUPPORTED_OPERATIONS[plan.resource_type]]
        if not placement.is_prefix and placement.name != WILDCARD:
            mine = 0
            for names in plan.needs.values():
                mine |= closure(names.get(placement.name, 0))
            return 1, sum(not mine & bit for bit in bits)
        beginning = placement.name if placement.is_prefix else ""
        known = self._problem.known.get((plan.resource_type, beginning), 0)
        known = max(known, len(evidence.names), *(used[placement.name, bit] for bit in bits))
        return known, sum(known - used[placement.name, bit] for bit in bits)

    def _reason(self, placement: Placement, host: str, evidence: _Evidence, known: int) -> str:
        operation = OPERATIONS[placement.bit].name
        if not evidence.names and evidence.answers_probes:
            kind = self._plan.resource_type.name
            text = f"{operation} was requested for any {kind}: the ACL is on a name that the principal uses"
        elif placement.is_prefix:
            text = f"used on {len(evidence.names)} names that begin so, of {known} known"
        elif placement.name == WILDCARD:
            text = f"used on {len(evidence.names)} of all {known} known names"
        elif placement.bit == ALL_BIT:
            text = f"{evidence.accesses} accesses to the name, with nearly all operations"
        else:
            text = f"used {evidence.events} times"
        if host != WILDCARD and host not in self._plan.terms.values():
            text += "; only from this address, since the same was denied from another"
        return text

    def _deny(self, refusal: ImpliedDeny) -> RecommendedAcl:
        placement = Placement(refusal.name, False, refusal.bit, 1)
        needed = self._plan.needs[refusal.host][refusal.name]
        cause = next(OPERATIONS[bit] for bit in bits_of(needed) if CLOSURES[bit] & refusal.bit)
        return RecommendedAcl(
            binding=self._binding(placement, refusal.host, AclPermissionType.DENY),
            access_count=1,
            event_count=0,
            name_count=1,
            known_count=1,
            over_grant_count=0,
            host_count=1,
            examples=(refusal.name,),
            reason=f"was denied, while {cause.name}, which would imply it, is needed",
        )

    def _binding(self, placement: Placement, host: str, permission: AclPermissionType) -> AclBinding:
        pattern_type = PatternType.PREFIXED if placement.is_prefix else PatternType.LITERAL
        return AclBinding(
            ResourcePattern(self._plan.resource_type, placement.name, pattern_type),
            AccessControlEntry(self._problem.principal, host, OPERATIONS[placement.bit], permission),
        )
