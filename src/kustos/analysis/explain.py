"""The reason why one action is allowed or denied, and the smallest change of the ACLs that would allow it.

The decision and its rule are the authorizer's own. This module adds every matching ACL in the order in which
Kafka visits them, the overruled ACLs and the ACLs that overrule them, the ACLs that match the principal and
the resource but not this host or operation, and the missing ALLOW.

The smallest change is exact. To allow the action, every matching DENY must be removed, and no other ACL. So
the change removes the DENYs and adds one ALLOW, unless an ALLOW exists or the default then allows the action
(`allow.everyone.if.no.acl.found`, if no ACL names the resource).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kustos.acl import (
    EVERY_PRINCIPAL,
    WILDCARD,
    AccessControlEntry,
    AclBinding,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    host_matches,
)
from kustos.analysis.kernel import ACLS_ALONE, Rules
from kustos.analysis.regions import Probe
from kustos.authorizer import Decision, RuleKind, StandardAuthorizer
from kustos.authorizer.index import DECIDES, binding_mask, visit_order


@dataclass(frozen=True, slots=True)
class Overruled:
    """A matching ACL that the decision overrules; `by` has the DENYs, and is empty for a super user."""

    binding: AclBinding
    by: tuple[AclBinding, ...]


@dataclass(frozen=True, slots=True)
class NearMiss:
    """An ACL for the principal on the resource that differs in host, operation or both."""

    binding: AclBinding
    other_host: bool
    other_operation: bool


@dataclass(frozen=True, slots=True)
class SmallestChange:
    """The fewest edits that allow the action: remove these DENYs, add this ALLOW."""

    remove: tuple[AclBinding, ...]
    add: AclBinding | None

    @property
    def size(self) -> int:
        """The number of edits."""
        return len(self.remove) + (self.add is not None)

    def apply(self, bindings: Iterable[AclBinding]) -> list[AclBinding]:
        """Return the ACLs after the change."""
        kept = [binding for binding in dict.fromkeys(bindings) if binding not in self.remove]
        return kept if self.add is None else [*kept, self.add]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision and the effect of each ACL on it.

    `matching` is in Kafka's visiting order; a denial names its first DENY, an allowance its last ALLOW.
    `naming` counts the ACLs of any principal that name the resource. `change` is None for an allowed action.
    """

    probe: Probe
    decision: Decision
    matching: tuple[AclBinding, ...]
    overruled: tuple[Overruled, ...]
    near_misses: tuple[NearMiss, ...]
    naming: int
    change: SmallestChange | None


def explain(bindings: Iterable[AclBinding], probe: Probe, rules: Rules = ACLS_ALONE) -> Explanation:
    """Return the reason for the authorizer's decision on one question.

    `probe.host` is in Java's `getHostAddress()` form. Raises `InvalidActionError` for an unspecific operation
    or resource type (such as ANY) and for the principal `User:*`, `AclValueError` for a principal without a
    type.
    """
    naming = [binding for binding in dict.fromkeys(bindings) if names(binding.pattern, probe)]
    naming.sort(key=lambda binding: visit_order(binding, probe.name))
    decision = _decide(naming, probe, rules)
    mine = [binding for binding in naming if binding.entry.principal in {probe.principal, EVERY_PRINCIPAL}]
    matching: list[AclBinding] = []
    near_misses: list[NearMiss] = []
    for binding in mine:
        other_host = not host_matches(binding.entry.host, probe.host)
        other_operation = not binding_mask(binding) & DECIDES[probe.operation]
        if other_host or other_operation:
            near_misses.append(NearMiss(binding, other_host, other_operation))
        else:
            matching.append(binding)
    denying = tuple([binding for binding in matching if not is_allow(binding)])
    if decision.rule.kind is RuleKind.SUPER_USER:
        overruled = [Overruled(binding, ()) for binding in denying]
    else:
        overruled = [Overruled(binding, denying) for binding in matching if denying and is_allow(binding)]
    change = None if decision.allowed else _smallest_change(naming, matching, denying, probe, rules)
    return Explanation(
        probe, decision, tuple(matching), tuple(overruled), tuple(near_misses), len(naming), change
    )


def is_allow(binding: AclBinding) -> bool:
    """Return whether an ACL is an ALLOW; as in Kafka, any other ACL denies."""
    return binding.entry.permission_type is AclPermissionType.ALLOW


def names(pattern: ResourcePattern, probe: Probe) -> bool:
    """Return whether a pattern matches the requested resource."""
    if pattern.resource_type is not probe.resource_type:
        return False
    if pattern.pattern_type is not PatternType.LITERAL:
        return probe.name.startswith(pattern.name)
    return pattern.name == probe.name or (pattern.name == WILDCARD and probe.name[:1] != WILDCARD)


def _decide(naming: Iterable[AclBinding], probe: Probe, rules: Rules) -> Decision:
    authorizer = StandardAuthorizer.of(
        naming,
        super_users=rules.super_users,
        allow_everyone_if_no_acl_found=rules.allow_everyone_if_no_acl_found,
    )
    session = authorizer.session(KafkaPrincipal.parse(probe.principal), probe.host)
    return session.decide(probe.operation, probe.resource_type, probe.name)


def _smallest_change(
    naming: list[AclBinding],
    matching: list[AclBinding],
    denying: tuple[AclBinding, ...],
    probe: Probe,
    rules: Rules,
) -> SmallestChange:
    has_allow = len(matching) > len(denying)
    defaults_to_allow = rules.allow_everyone_if_no_acl_found and len(naming) == len(denying)
    return SmallestChange(denying, None if has_allow or defaults_to_allow else narrowest_allow(probe))


def narrowest_allow(probe: Probe) -> AclBinding:
    """Return the narrowest ALLOW that Kafka can express and that grants this action.

    No ACL has an empty name, so only `*` matches a resource with an empty name. For the resource `*` a
    prefix is narrower than the literal, which matches nearly every name.
    """
    pattern_type = PatternType.PREFIXED if probe.name == WILDCARD else PatternType.LITERAL
    is_host = bool(probe.host) and "/" not in probe.host
    return AclBinding(
        ResourcePattern(probe.resource_type, probe.name or WILDCARD, pattern_type),
        AccessControlEntry(
            probe.principal, probe.host if is_host else WILDCARD, probe.operation, AclPermissionType.ALLOW
        ),
    )
