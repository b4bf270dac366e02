"""Least privilege of one principal: from the record to ACLs with their reasons. No Spark, no IO."""

from collections import Counter, defaultdict
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
        reason = _impossible(problem.principal, use) or _beyond(ceiling, use)
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
        plan = TypePlan(resource_type, options, problem.known, ceiling)
        plan.read(uses, denials[resource_type])
        plan.solve()
        answer_probes(plan, uses)
        reasoned = _Reasoning(problem, plan, uses)
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
    if ":" not in principal:
        return Unserved.PRINCIPAL
    if principal == EVERY_PRINCIPAL:
        return Unserved.EVERYBODY
    if use.operation not in ALLOWS or use.resource_type not in SUPPORTED_OPERATIONS:
        return Unserved.OPERATION
    longest = max(len(text) for text in (principal, use.host, use.name or ""))
    if longest > FIELD_BYTES_MAX // 4 and any(
        len(text.encode()) > FIELD_BYTES_MAX for text in (principal, use.host, use.name or "")
    ):
        return Unserved.NAME_TOO_LONG
    return None


def _beyond(ceiling: PrincipalCeiling | None, use: Use) -> Unserved | None:
    if ceiling is None or use.name is None or not can_be_named(use.resource_type, use.name):
        return None
    beyond = ceiling.beyond(use.resource_type, use.name, False, use.host)
    return Unserved.TODAY if ALLOWS[use.operation] & beyond else None


class _Reasoning:
    """The evidence and the reason of each ACL on one type."""

    def __init__(self, problem: Problem, plan: TypePlan, uses: list[Use]) -> None:
        self._problem = problem
        self._plan = plan
        self._evidence = [_Evidence() for _ in plan.placements]
        self.unserved: list[UnservedUse] = []
        index = Index(plan.placements, plan.options)
        for use in uses:
            if use.name is None:
                self._note_probe(use)
                continue
            number = next(index.serving(use.host, use.name, ALLOWS[use.operation]), None)
            if number is None:
                self.unserved.append(UnservedUse(use, _why_not(use)))
                continue
            evidence = self._evidence[number]
            evidence.accesses += 1
            evidence.events += use.event_count
            evidence.names.add(use.name)

    def _note_probe(self, use: Use) -> None:
        """Count a question for any resource for the first ACL that answers it."""
        bit = ALLOWS[use.operation]
        for evidence, acl in zip(self._evidence, self._plan.placements, strict=True):
            if self._plan.answers(acl, use.host, bit):
                evidence.answers_probes = True
                evidence.accesses += 1
                evidence.events += use.event_count
                return
        self.unserved.append(UnservedUse(use, Unserved.PROBE))

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
            examples=(refusal.name,),
            reason=f"was denied, while {cause.name}, which would imply it, is needed",
        )

    def _binding(self, placement: Placement, host: str, permission: AclPermissionType) -> AclBinding:
        pattern_type = PatternType.PREFIXED if placement.is_prefix else PatternType.LITERAL
        return AclBinding(
            ResourcePattern(self._plan.resource_type, placement.name, pattern_type),
            AccessControlEntry(self._problem.principal, host, OPERATIONS[placement.bit], permission),
        )


def _why_not(use: Use) -> Unserved:
    if use.name == "":
        return Unserved.EMPTY_NAME
    return Unserved.WILDCARD_NAME if use.name == WILDCARD else Unserved.CLUSTER_NAME
