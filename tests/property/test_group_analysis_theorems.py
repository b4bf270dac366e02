"""Theorems about ACLs of groups: what lint and minimize call needless is so for clients with any groups."""

from collections.abc import Iterator
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.analysis import Probe, Rules, denial_changes, diff, minimize, with_groups
from kustos.analysis.lint import lint
from kustos.analysis.necessity import necessity
from testkit.acls.small_sets import ask, authorizer_of

OPERATIONS = [AclOperation.READ, AclOperation.DESCRIBE, AclOperation.ALL]
HOSTS = ["10.0.0.1", "192.168.0.9"]
NAMES = ["a", "ab", "b", "*"]
PRINCIPALS = ["User:alice", "User:bob", "User:nobody-names-me"]
GROUPS = ["ops", "dev"]
bindings = st.builds(
    AclBinding,
    st.builds(
        ResourcePattern,
        st.just(ResourceType.TOPIC),
        st.sampled_from(NAMES),
        st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    ),
    st.builds(
        AccessControlEntry,
        st.sampled_from(["User:alice", "User:bob", "User:*", "Group:ops", "Group:ops", "Group:dev"]),
        st.sampled_from(["*", "*", "10.0.0.0/8"]),
        st.sampled_from(OPERATIONS),
        st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
    ),
)
acl_sets = st.lists(bindings, max_size=9, unique=True)
rules = st.builds(Rules, allow_everyone_if_no_acl_found=st.booleans())


def decisions(acls: list[AclBinding], some_rules: Rules) -> Iterator[bool]:
    """Yield the decisions for every client of every set of groups, on every kind of name."""
    authorizer = authorizer_of(acls, some_rules)
    for principal in PRINCIPALS:
        for size in range(len(GROUPS) + 1):
            for groups in combinations(GROUPS, size):
                for host in HOSTS:
                    for operation in OPERATIONS:
                        for name in (*NAMES, "abc", "c", "*x"):
                            probe = Probe(principal, host, operation, ResourceType.TOPIC, name)
                            yield ask(authorizer, probe, groups)


@settings(deadline=None)
@given(acl_sets, rules)
def test_minimize_keeps_the_decisions_for_clients_with_groups(
    acls: list[AclBinding], some_rules: Rules
) -> None:
    found = minimize(acls, with_groups(some_rules, acls))
    assert list(decisions(list(found.bindings), some_rules)) == list(decisions(acls, some_rules))


@settings(deadline=None)
@given(acl_sets, rules)
def test_an_acl_that_does_not_matter_does_not_matter_to_clients_with_groups(
    acls: list[AclBinding], some_rules: Rules
) -> None:
    grouped = with_groups(some_rules, acls)
    whole = list(decisions(acls, some_rules))
    needless = {number for number, matters in enumerate(necessity(acls, grouped).matters) if not matters}
    needless |= {each.number for each in lint(acls, grouped) if each.code in {"KUS003", "KUS004", "KUS005"}}
    for number in needless:
        fewer = [acl for other, acl in enumerate(acls) if other != number]
        assert list(decisions(fewer, some_rules)) == whole


def test_only_acls_of_groups_keep_a_deny_that_denies_nothing_of_its_own() -> None:
    def acl(principal: str, permission: AclPermissionType) -> AclBinding:
        entry = AccessControlEntry(principal, "*", AclOperation.READ, permission)
        return AclBinding(ResourcePattern(ResourceType.TOPIC, "a"), entry)

    denied = acl("User:bob", AclPermissionType.DENY)
    for principal, kept in (("User:alice", 1), ("Group:ops", 2)):
        acls = [denied, acl(principal, AclPermissionType.ALLOW)]
        assert len(minimize(acls, with_groups(Rules(), acls)).bindings) == kept
        codes = {each.code for each in lint(acls, with_groups(Rules(), acls))}
        assert ("KUS005" in codes) is (kept == 1)


@settings(deadline=None)
@given(acl_sets, acl_sets, rules)
def test_sets_without_a_difference_decide_alike_for_clients_with_groups(
    acls: list[AclBinding], others: list[AclBinding], some_rules: Rules
) -> None:
    if diff(acls, others, some_rules).is_empty and denial_changes(acls, others).is_empty:
        assert list(decisions(acls, some_rules)) == list(decisions(others, some_rules))
    # sets that differ in one ACL are often equal
    for number in range(len(acls)):
        fewer = [acl for other, acl in enumerate(acls) if other != number]
        if diff(acls, fewer, some_rules).is_empty and denial_changes(acls, fewer).is_empty:
            assert list(decisions(acls, some_rules)) == list(decisions(fewer, some_rules))
