"""Theorems about explanations over hosts and names: each part agrees with `StandardAuthorizer`."""

from dataclasses import replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import CLUSTER_NAME, AclBinding, PatternType, ResourcePattern, ResourceType
from kustos.analysis import Probe, Rules
from kustos.analysis.explain import explain
from kustos.analysis.explain_scope import ExplainScope, explain_scope
from testkit.acls.small_sets import (
    CLIENTS,
    FEW,
    acl_sets,
    ask,
    authorizer_of,
    hosts_near,
    names,
    names_near,
    rules,
    subjects,
)

patterns = st.builds(
    ResourcePattern,
    st.just(ResourceType.TOPIC),
    names,
    st.sampled_from([PatternType.LITERAL, PatternType.LITERAL, PatternType.PREFIXED]),
) | st.just(ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
scopes = st.builds(
    ExplainScope,
    st.sampled_from(subjects),
    st.sampled_from(FEW),
    patterns,
    st.none() | st.sampled_from(CLIENTS),
    st.sampled_from([(), (), ("*",), ("*", "other")]),
)


def questions(acls: list[AclBinding], scope: ExplainScope) -> list[Probe]:
    """Return a question of every class that these ACLs distinguish in the scope, and unrelated clients."""
    kind = scope.pattern.resource_type
    near = [scope.pattern.name] if scope.is_one_name else [*names_near(acls), f"{scope.pattern.name}~"]
    hosts = sorted({*hosts_near(acls), *CLIENTS}) if scope.host is None else [scope.host]
    return [
        Probe(scope.principal, host, scope.operation, kind, name)
        for host in hosts
        for name in near
        if name in scope.names
    ]


@given(acl_sets, scopes, rules)
def test_every_part_is_decided_as_the_authorizer_decides(
    acls: list[AclBinding], scope: ExplainScope, rules: Rules
) -> None:
    authorizer = authorizer_of(acls, rules)
    found = explain_scope(acls, scope, rules)
    for probe in questions(acls, scope):
        [part] = [each for each in found.parts if probe.host in each.hosts and probe.name in each.names]
        assert ask(authorizer, probe, scope.groups) is part.decision.allowed, probe
    for part in found.parts:
        assert part.witness.host in part.hosts
        assert part.witness.name in part.names
        assert ask(authorizer, part.witness, scope.groups) is part.decision.allowed


@given(acl_sets, scopes.filter(lambda scope: scope.is_one_name), rules, st.sampled_from(CLIENTS))
def test_of_one_name_and_host_it_is_the_explanation_of_that_question(
    acls: list[AclBinding], scope: ExplainScope, rules: Rules, host: str
) -> None:
    asked = replace(scope, host=host, groups=())
    kind, name = scope.pattern.resource_type, scope.pattern.name
    alone = explain(acls, Probe(scope.principal, host, scope.operation, kind, name), rules)
    found = explain_scope(acls, asked, rules)
    [part] = found.parts
    assert part.decision == alone.decision
    assert (found.matching, found.naming, found.change) == (alone.matching, alone.naming, alone.change)
    assert found.overruled == tuple(each.binding for each in alone.overruled)
    assert found.unmatched == tuple(miss.binding for miss in alone.near_misses)


@given(acl_sets, scopes.filter(lambda scope: scope.is_one_name), rules)
def test_of_one_name_a_part_has_the_rule_of_each_of_its_hosts(
    acls: list[AclBinding], scope: ExplainScope, rules: Rules
) -> None:
    found = explain_scope(acls, scope, rules)
    for probe in questions(acls, scope):
        [part] = [each for each in found.parts if probe.host in each.hosts]
        alone = explain_scope(acls, replace(scope, host=probe.host), rules)
        [only] = alone.parts
        assert only.decision.rule == part.decision.rule


@given(acl_sets, scopes, rules)
def test_the_change_allows_the_whole_scope_and_no_smaller_one_does(
    acls: list[AclBinding], scope: ExplainScope, rules: Rules
) -> None:
    found = explain_scope(acls, scope, rules)
    assert (found.change is None) is found.is_allowed
    if found.change is None:
        return
    assert set(found.change.remove) <= set(acls)
    assert found.change.add not in acls
    changed = found.change.apply(acls)
    authorizer = authorizer_of(changed, rules)
    assert all(ask(authorizer, probe, scope.groups) for probe in questions(acls, scope))
    assert explain_scope(changed, scope, rules).is_allowed
    added = explain_scope([], scope, Rules()).change
    assert added is not None
    assert added.add is not None
    for size in range(found.change.size):
        for gone in combinations(acls, size):
            assert not explain_scope([acl for acl in acls if acl not in gone], scope, rules).is_allowed
        for gone in combinations(acls, size - 1) if size else ():
            kept = [*(acl for acl in acls if acl not in gone), added.add]
            assert not explain_scope(kept, scope, rules).is_allowed


@given(acl_sets, scopes, rules)
def test_an_acl_that_does_not_match_changes_nothing_but_the_default(
    acls: list[AclBinding], scope: ExplainScope, rules: Rules
) -> None:
    closed = Rules(super_users=rules.super_users)
    found = explain_scope(acls, scope, closed)
    without = explain_scope(found.matching, scope, closed)
    allowed = [(part.hosts, part.names) for part in found.parts if part.decision.allowed]
    assert allowed == [(part.hosts, part.names) for part in without.parts if part.decision.allowed]
