"""Theorems about necessity: an ACL matters exactly if some decision changes without it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.analysis import ACLS_ALONE, Probe, Rules, diff
from kustos.analysis.necessity import necessity
from testkit.acls.small_sets import TYPES, acl_sets, ask, authorizer_of, probes, rules


@given(acl_sets, rules)
def test_an_acl_matters_if_and_only_if_a_decision_changes_without_it(
    acls: list[AclBinding], rules: Rules
) -> None:
    found = necessity(acls, rules)
    for number, acl in enumerate(acls):
        without = [other for other in acls if other != acl]
        assert found.matters[number] is not diff(acls, without, rules).is_empty, acl


@given(acl_sets, rules, st.lists(probes, max_size=30))
def test_removing_what_does_not_matter_changes_no_answer(
    acls: list[AclBinding], rules: Rules, probes: list[Probe]
) -> None:
    before = authorizer_of(acls, rules)
    for acl, matters in zip(acls, necessity(acls, rules).matters, strict=True):
        if not matters:
            after = authorizer_of([other for other in acls if other != acl], rules)
            assert [ask(before, probe) for probe in probes] == [ask(after, probe) for probe in probes]


ALL_TO_EVERYONE = AclBinding(
    ResourcePattern(ResourceType.TOPIC, "", PatternType.PREFIXED),
    AccessControlEntry("User:*", "*", AclOperation.ALL, AclPermissionType.ALLOW),
)


@given(acl_sets)
def test_a_deny_speaks_if_and_only_if_no_other_deny_says_all_of_it(acls: list[AclBinding]) -> None:
    effective = necessity(acls, ACLS_ALONE).effective
    denies = [acl for acl in acls if acl.entry.permission_type is AclPermissionType.DENY]
    everything = [
        replace(ALL_TO_EVERYONE, pattern=replace(ALL_TO_EVERYONE.pattern, resource_type=kind))
        for kind in (*TYPES, ResourceType.CLUSTER)
    ]
    for acl, does in zip(acls, effective, strict=True):
        if acl in denies:
            others = [other for other in denies if other != acl]
            assert does is not diff([*everything, *denies], [*everything, *others]).is_empty


@given(acl_sets)
def test_an_allow_speaks_if_and_only_if_the_denies_leave_something_of_it(acls: list[AclBinding]) -> None:
    denies = [acl for acl in acls if acl.entry.permission_type is AclPermissionType.DENY]
    for acl, effective in zip(acls, necessity(acls, ACLS_ALONE).effective, strict=True):
        if acl not in denies:
            assert effective is not diff([*denies, acl], denies).is_empty


# topics have no asterisk in their names; WRITE on any topic is the one question by type that Kafka asks
writers = st.builds(
    AclBinding,
    st.builds(
        ResourcePattern,
        st.just(ResourceType.TOPIC),
        st.text("ab", min_size=1, max_size=3) | st.just("*"),
        st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    ),
    st.builds(
        AccessControlEntry,
        st.sampled_from(["User:alice", "User:*"]),
        st.sampled_from(["*", "*", "10.0.0.1"]),
        st.sampled_from([AclOperation.WRITE, AclOperation.ALL]),
        st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY]),
    ),
)


@given(st.lists(writers, max_size=6, unique=True), st.sampled_from(["10.0.0.1", "10.0.0.2"]))
def test_what_does_not_matter_does_not_matter_by_type(acls: list[AclBinding], host: str) -> None:
    def may_write_anything(some: list[AclBinding]) -> bool:
        session = authorizer_of(some, ACLS_ALONE).session(KafkaPrincipal.parse("User:alice"), host)
        return session.decide_by_resource_type(AclOperation.WRITE, ResourceType.TOPIC).allowed

    for acl, matters in zip(acls, necessity(acls).matters, strict=True):
        if not matters:
            assert may_write_anything([other for other in acls if other != acl]) is may_write_anything(acls)
