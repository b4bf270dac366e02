"""Theorems about `who_can` and `what_can`: they return exactly what an authorizer allows."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import AclBinding, AclOperation, PatternType, ResourcePattern, ResourceType
from kustos.analysis import AllowedAccess, Probe, Rules, what_can, who_can
from testkit.acls.small_sets import (
    FEW,
    acl_sets,
    ask,
    authorizer_of,
    every_probe,
    names,
    probes,
    rules,
    subjects,
)

asked_names = st.builds(
    ResourcePattern,
    st.just(ResourceType.TOPIC),
    names | st.just(""),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
)
operations = st.sampled_from(FEW)


def stands_for(pattern: ResourcePattern, name: str) -> bool:
    if pattern.pattern_type is PatternType.PREFIXED:
        return name.startswith(pattern.name)
    return pattern.name == name or (pattern.name == "*" and not name.startswith("*"))


def asking(pattern: ResourcePattern, acls: list[AclBinding]) -> list[AclBinding]:
    """Return the ACLs, and one more that adds names near the requested ones to the probes."""
    entries = [acl.entry for acl in acls[:1]]
    return [*acls, *(AclBinding(pattern, entry) for entry in entries)]


@settings(max_examples=60, deadline=None)
@given(acl_sets, rules, operations, asked_names)
def test_who_can_agrees_with_exhaustive_probing(
    acls: list[AclBinding], some_rules: Rules, operation: AclOperation, pattern: ResourcePattern
) -> None:
    access = who_can(acls, operation, pattern, some_rules)
    authorizer = authorizer_of(acls, some_rules)
    allowed_everywhere: dict[tuple[str, str], bool] = {}
    allowed_somewhere: dict[tuple[str, str], bool] = {}
    for probe in every_probe(asking(pattern, acls), some_rules):
        if probe.operation is not operation or probe.resource_type is not ResourceType.TOPIC:
            continue
        granting = [grant for grant in access.grants if probe in grant.region]
        if not stands_for(pattern, probe.name):
            assert not granting
            continue
        allowed = ask(authorizer, probe)
        assert len(granting) == allowed, probe
        who = probe.principal, probe.host
        allowed_everywhere[who] = allowed_everywhere.get(who, True) and allowed
        allowed_somewhere[who] = allowed_somewhere.get(who, False) or allowed
    for (principal, host), everywhere in allowed_everywhere.items():
        said = {
            grant.is_every_name
            for grant in access.grants
            if principal in grant.region.principals and host in grant.region.hosts
        }
        assert said == ({everywhere} if allowed_somewhere[principal, host] else set())


@settings(deadline=None)
@given(acl_sets, rules, operations, asked_names)
def test_every_grant_has_a_witness_that_is_allowed(
    acls: list[AclBinding], some_rules: Rules, operation: AclOperation, pattern: ResourcePattern
) -> None:
    authorizer = authorizer_of(acls, some_rules)
    for grant in who_can(acls, operation, pattern, some_rules).grants:
        witness = grant.region.witness()
        assert ask(authorizer, witness)
        assert witness in grant.region


@settings(max_examples=60, deadline=None)
@given(
    acl_sets,
    rules,
    st.sampled_from([*subjects, "User:nobody-names-me"]),
    st.sampled_from([(), (), ("*",), ("*", "other")]),
)
def test_what_can_agrees_with_exhaustive_probing(
    acls: list[AclBinding], some_rules: Rules, principal: str, groups: tuple[str, ...]
) -> None:
    regions = what_can(acls, principal, some_rules, groups=groups)
    authorizer = authorizer_of(acls, some_rules)
    for probe in every_probe(acls, Rules(super_users=frozenset({principal}))):
        if probe.principal == principal:
            assert sum(probe in region for region in regions) == ask(authorizer, probe, groups), probe


@settings(deadline=None)
@given(acl_sets, rules, probes)
def test_what_everyone_else_can_is_what_an_unnamed_principal_can(
    acls: list[AclBinding], some_rules: Rules, probe: Probe
) -> None:
    unnamed = Probe("User:nobody-names-me", probe.host, probe.operation, probe.resource_type, probe.name)
    regions = what_can(acls, "User:*", some_rules)
    assert any(unnamed in region for region in regions) is ask(authorizer_of(acls, some_rules), unnamed)


@settings(deadline=None)
@given(acl_sets, rules, operations, asked_names, st.integers(0, 2))
def test_a_cut_answer_says_so_and_is_not_wrong(
    acls: list[AclBinding],
    some_rules: Rules,
    operation: AclOperation,
    pattern: ResourcePattern,
    regions_max: int,
) -> None:
    whole: AllowedAccess = who_can(acls, operation, pattern, some_rules)
    cut = who_can(acls, operation, pattern, some_rules, regions_max=regions_max)
    assert set(cut.grants) <= set(whole.grants)
    assert cut.is_cut is (len(cut.grants) < len(whole.grants))
