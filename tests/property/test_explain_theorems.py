"""Theorems about explanations: they agree with the specification, and their change is smallest."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclPermissionType,
    AclValueError,
    PatternType,
    ResourcePattern,
)
from kustos.analysis.explain import explain, is_allow
from kustos.analysis.kernel import Rules
from kustos.analysis.regions import Probe
from kustos.authorizer import AuthorizerError
from testkit.differential.specification import Spec, names
from tests.property.test_authorizer_theorems import (
    OPERATIONS,
    Question,
    acl_hosts,
    acl_sets,
    kinds,
    permissions,
    principals,
    questions,
)

probes = st.one_of(
    questions.map(lambda question: Probe(*question)),
    questions.map(lambda question: Probe(*question[:4], name="")),
    questions.map(lambda question: Probe("User:root", *question[1:])),
)
rules = st.builds(
    Rules,
    super_users=st.just(frozenset({"User:root"})),
    allow_everyone_if_no_acl_found=st.booleans(),
)


@st.composite
def sets_about(draw: st.DrawFn) -> tuple[list[AclBinding], Probe, Rules]:
    """Draw ACLs, many of which match the drawn question."""
    probe = draw(probes)
    name = probe.name
    named = [(name[:end], PatternType.PREFIXED) for end in range(1, len(name) + 1)]
    named += [(name, PatternType.LITERAL)] if name else []
    named += [] if name.startswith("*") else [("*", PatternType.LITERAL)]
    near = st.builds(
        AclBinding,
        st.builds(lambda kind, place: ResourcePattern(kind, *place), kinds, st.sampled_from(named)),
        st.builds(
            AccessControlEntry,
            principals,
            acl_hosts,
            st.sampled_from([operation for operation in OPERATIONS if operation >= probe.operation]),
            permissions,
        ),
    )
    acls = draw(acl_sets) + draw(st.lists(near, max_size=6))
    return list(dict.fromkeys(acls)), probe, draw(rules)


def spec_of(acls: list[AclBinding], rules: Rules) -> Spec:
    return Spec(acls, rules.super_users, rules.allow_everyone_if_no_acl_found)


def is_allowed(acls: list[AclBinding], probe: Probe, rules: Rules) -> bool:
    question = (probe.principal, probe.host, probe.operation, probe.resource_type, probe.name)
    return spec_of(acls, rules).authorize(*question)[0]


@given(sets_about())
def test_the_explanation_is_that_of_the_decision(world: tuple[list[AclBinding], Probe, Rules]) -> None:
    acls, probe, rules = world
    found = explain(acls, probe, rules)
    question = (probe.principal, probe.host, probe.operation, probe.resource_type, probe.name)
    rule = found.decision.rule
    expected = spec_of(acls, rules).authorize(*question)
    assert (found.decision.allowed, rule.binding or rule.kind.value) == expected
    denying = [acl for acl in found.matching if acl.entry.permission_type is AclPermissionType.DENY]
    if rule.binding is not None:
        assert rule.binding == (denying[0] if denying else found.matching[-1])
    assert (found.change is None) == found.decision.allowed


@given(sets_about())
def test_an_acl_matches_if_and_only_if_it_decides_alone(world: tuple[list[AclBinding], Probe, Rules]) -> None:
    acls, probe, rules = world
    found = explain(acls, probe, rules)
    question = (probe.principal, probe.host, probe.operation, probe.resource_type, probe.name)
    alone = {acl for acl in acls if Spec([acl]).authorize(*question)[1] == acl}
    assert set(found.matching) == alone
    near = {miss.binding for miss in found.near_misses}
    mine = {a for a in acls if a.entry.principal in (probe.principal, "User:*")}
    named = {a for a in mine if names(a, probe.name) and a.pattern.resource_type is probe.resource_type}
    assert near == named - alone
    assert all(miss.other_host or miss.other_operation for miss in found.near_misses)


@given(sets_about())
def test_the_smallest_change_allows(world: tuple[list[AclBinding], Probe, Rules]) -> None:
    acls, probe, rules = world
    found = explain(acls, probe, rules)
    if found.change is not None:
        assert found.change.size > 0
        assert set(found.change.remove) <= set(acls)
        assert found.change.add not in acls
        assert is_allowed(found.change.apply(acls), probe, rules)
        assert explain(found.change.apply(acls), probe, rules).change is None


@given(sets_about())
def test_no_smaller_change_allows(world: tuple[list[AclBinding], Probe, Rules]) -> None:
    acls, probe, rules = world
    change = explain(acls, probe, rules).change
    if change is None:
        return
    # one matching ALLOW helps as much as any added ACLs, a DENY never
    added = explain([], probe, Rules()).change
    assert added is not None
    assert added.add is not None
    named = [acl for acl in acls if names(acl, probe.name)]
    for size in range(change.size):
        for gone in combinations(named, size):
            assert not is_allowed([acl for acl in acls if acl not in gone], probe, rules)
        for gone in combinations(named, size - 1) if size else ():
            assert not is_allowed([*(acl for acl in acls if acl not in gone), added.add], probe, rules)


@given(sets_about())
def test_what_is_overruled_would_have_decided_otherwise(world: tuple[list[AclBinding], Probe, Rules]) -> None:
    acls, probe, rules = world
    found = explain(acls, probe, rules)
    for overruled in found.overruled:
        alone = explain([overruled.binding], probe, Rules())
        assert alone.decision.allowed is not found.decision.allowed
        for by in overruled.by:
            assert not explain([overruled.binding, by], probe, Rules()).decision.allowed
    opposed = [acl for acl in found.matching if is_allow(acl) is not found.decision.allowed]
    assert [overruled.binding for overruled in found.overruled] == opposed


@given(questions, st.sampled_from(["User:*", "nobody"]))
def test_a_question_without_meaning_is_refused(question: Question, principal: str) -> None:
    with pytest.raises((AuthorizerError, AclValueError)):
        explain([], Probe(principal, *question[1:]), Rules())
