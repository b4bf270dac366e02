"""Answers of the analysis package as people read them, and the corners of the theory one by one."""

import json

import pytest

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.analysis import ACLS_ALONE, AnalysisError, Rules, diff, minimize, what_can, who_can
from kustos.analysis.by_host import place_of

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
OPEN = Rules(allow_everyone_if_no_acl_found=True)


def acl(
    line: str, permission: AclPermissionType = ALLOW, host: str = "*", kind: ResourceType = ResourceType.TOPIC
) -> AclBinding:
    """Make an ACL of `principal operation name`, a name that ends in `...` being a prefix."""
    principal, operation, name = line.split(" ")
    pattern_type = PREFIXED if name.endswith("...") else LITERAL
    return AclBinding(
        ResourcePattern(kind, name.removesuffix("..."), pattern_type),
        AccessControlEntry(principal, host, AclOperation[operation], permission),
    )


def told(old: list[AclBinding], new: list[AclBinding], rules: Rules = ACLS_ALONE) -> list[str]:
    difference = diff(old, new, rules)
    assert json.loads(json.dumps(difference.to_json()))["same"] is difference.is_empty
    return [change.text() for change in difference.changes]


CHANGES: list[tuple[list[AclBinding], list[AclBinding], list[str]]] = [
    (
        [],
        [acl("User:alice READ pay-..."), acl("User:alice READ pay-secret", DENY)],
        ["gained: User:alice, from anywhere, READ and DESCRIBE on topics that begin with `pay-`"
         " except `pay-secret`",
         "gained: User:alice, from anywhere, DESCRIBE on topic `pay-secret`"],
    ),
    (
        [acl("User:* WRITE a..."), acl("User:bob WRITE a...", DENY)],
        [acl("User:bob WRITE a...", DENY)],
        ["lost: everyone except User:bob, from anywhere, WRITE and DESCRIBE on topics that begin with `a`",
         "lost: User:bob, from anywhere, DESCRIBE on topics that begin with `a`"],
    ),
    (
        [acl("User:alice CREATE *")],
        [acl("User:alice CREATE *", host="10.0.0.0/8")],
        ["lost: User:alice, from anywhere except 10.0.0.0/8, CREATE on topics of every name that `*`"
         " stands for"],
    ),
    (
        [acl("User:alice CREATE *"), acl("User:alice CREATE t", DENY)],
        [],
        ["lost: User:alice, from anywhere, CREATE on topics of every name that `*` stands for except `t`"],
    ),
    (
        [acl("User:alice CREATE t")],
        [acl("User:alice CREATE t", host="0.0.0.0/0"), acl("User:alice CREATE t", host="::/0")],
        ["lost: User:alice, from 0.0.0.0, CREATE on topic `t`"],
    ),
    (
        [acl("User:a ALL b..."), acl("User:a ALL a..."), acl("User:a ALL c")],
        [],
        ["lost: User:a, from anywhere, every operation on topics that begin with `a` or `b` and topic `c`"],
    ),
    (
        [acl("User:a CREATE kafka-cluster", kind=ResourceType.CLUSTER)],
        [acl("User:a CREATE other", kind=ResourceType.CLUSTER)],
        ["lost: User:a, from anywhere, CREATE on the cluster"],
    ),
    (
        [acl("User:a CREATE x", host="::1"), acl("User:a CREATE x", host="localhost")],
        [acl("User:a CREATE x", host="10.0.0.0/33"), acl("User:a ALL x", DENY, host="010.1.1.1")],
        [],
    ),
    (
        [acl("User:a CREATE a..."), acl("User:a CREATE a\U0010ffffb")],
        [acl("User:a CREATE a\U0010ffffb")],
        ["lost: User:a, from anywhere, CREATE on topics that begin with `a` except `a\U0010ffffb`"],
    ),
    ([acl("User:a DESCRIBE x"), acl("User:a READ x")], [acl("User:a READ x")], []),
    ([acl("User:a ALL x", DENY)], [], []),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_in_words(old: list[AclBinding], new: list[AclBinding], expected: list[str]) -> None:
    assert told(old, new) == expected


def test_an_acl_of_anybody_takes_the_default_from_everybody() -> None:
    assert told([], [acl("User:alice READ x", host="::1")], OPEN) == [
        "lost: everyone, from anywhere, every operation on topic `x`"
    ]
    assert (
        told([acl("User:alice READ x")], [acl("User:alice READ x"), acl("User:bob READ x", DENY)], OPEN) == []
    )


def test_rules_change_what_acls_mean() -> None:
    promoted = diff([], [], Rules(), Rules(super_users=frozenset({"User:root"})))
    assert {change.region.resource_type for change in promoted.changes} == set(list(ResourceType)[2:])
    assert promoted.changes[0].text() == (
        "gained: User:root, from anywhere, every operation on topics of every name"
    )
    opened = diff([], [], Rules(super_users=frozenset({"User:root"})), OPEN)
    assert opened.changes[0].text() == (
        "gained: everyone except User:root, from anywhere, every operation on topics of every name"
    )


def test_a_witness_lies_beside_what_is_left_out() -> None:
    without = [acl(f"User:* READ a{character}...", DENY) for character in "xyzabc"]
    (change,) = diff([], [acl("User:* READ a..."), *without, acl("User:* DESCRIBE a...", DENY)]).changes
    witness = change.region.witness()
    assert (witness.principal, witness.host, witness.name) == ("User:someone", "10.0.0.1", "ad")


def test_who_can_tells_every_name_from_some() -> None:
    acls = [
        acl("User:* READ pay-..."),
        acl("User:bob READ pay-x", DENY),
        acl("User:eve READ pay-x", host="10.0.0.1"),
    ]
    access = who_can(acls, AclOperation.READ, ResourcePattern(ResourceType.TOPIC, "pay-", PREFIXED))
    assert [grant.text() for grant in access.grants] == [
        "every name: everyone except User:bob, from anywhere, READ on topics that begin with `pay-`",
        "some names: User:bob, from anywhere, READ on topics that begin with `pay-` except `pay-x`",
    ]
    assert json.dumps(access.to_json())


def test_who_can_on_a_star_is_about_the_names_it_stands_for() -> None:
    access = who_can([acl("User:a READ *")], AclOperation.READ, ResourcePattern(ResourceType.TOPIC, "*"))
    assert [grant.is_every_name for grant in access.grants] == [True]
    everything = ResourcePattern(ResourceType.TOPIC, "", PREFIXED)
    access = who_can([acl("User:a READ *")], AclOperation.READ, everything)
    assert [grant.is_every_name for grant in access.grants] == [False]


def test_what_everyone_else_can() -> None:
    acls = [acl("User:* READ t"), acl("User:bob WRITE u")]
    assert [region.text() for region in what_can(acls, "User:*")] == [
        "everyone except User:bob, from anywhere, READ and DESCRIBE on topic `t`"
    ]


def test_rights_are_told_whole_or_not_at_all() -> None:
    acls = [acl("User:a READ t"), acl("User:a WRITE u")]
    assert len(what_can(acls, "User:a", regions_max=2)) == 2
    with pytest.raises(AnalysisError, match="2 regions"):
        what_can(acls, "User:a", regions_max=1)


@pytest.mark.parametrize("operation", [AclOperation.ANY, AclOperation.UNKNOWN])
def test_no_answer_about_no_operation(operation: AclOperation) -> None:
    with pytest.raises(AnalysisError, match=f"`{operation}`"):
        who_can([], operation, ResourcePattern(ResourceType.TOPIC, "t"))


@pytest.mark.parametrize(
    "pattern",
    [
        ResourcePattern(ResourceType.UNKNOWN, "t"),
        ResourcePattern(ResourceType.TOPIC, "t", PatternType.UNKNOWN),
    ],
)
def test_no_answer_about_no_pattern(pattern: ResourcePattern) -> None:
    with pytest.raises(AnalysisError, match="`UNKNOWN`"):
        who_can([], AclOperation.READ, pattern)


def test_an_acl_without_a_principal_type_is_refused_by_name() -> None:
    for ask in (lambda acls: diff(acls, []), minimize, lambda acls: what_can(acls, "User:a")):
        with pytest.raises(AnalysisError, match="`alice`"):
            ask([acl("alice READ t")])


@pytest.mark.parametrize("principal", ["User:*"])
def test_a_super_user_is_somebody(principal: str) -> None:
    with pytest.raises(AnalysisError, match="everybody"):
        Rules(super_users=frozenset({principal}))


@pytest.mark.parametrize(
    "text",
    ["", "10.0.0", "10.0.0.256", "010.0.0.1", "::1", "0:0:0:0:0:0:0:01", "0:0:0:0:0:ffff:a00:1",
     "A:0:0:0:0:0:0:0", "fe80:0:0:0:0:0:0:1%", "10.0.0.1%eth0", "10.0.0.0/8", "fe80:0:0:0:0:0:0:1%a/b",
     "localhost", "*"],
)  # fmt: skip
def test_no_client_has_a_host_that_java_does_not_print(text: str) -> None:
    assert place_of(text) is None


HOST_TEXTS = [
    (["10.1.2.3"], "10.1.2.3"),
    (["10.0.0.0/9", "10.128.0.0/9"], "10.0.0.0/8"),
    (["10.0.0.1", "10.0.0.2"], "10.0.0.1-10.0.0.2"),
    (["0.0.0.0/8"], "0.0.0.0/8"),
    (["0.0.0.0/8", "0.0.0.0"], "0.0.0.0-0.255.255.255"),
    (["0.0.0.0/0", "0.0.0.0"], "every IPv4 address"),
    (["0.0.0.0/0", "0.0.0.0", "::/0"], "anywhere"),
    (["0.0.0.0/0", "::/0"], "anywhere except 0.0.0.0"),
    (["::/0"], "every IPv6 address"),
    (["0:0:0:0:0:0:0:5"], "0:0:0:0:0:0:0:5"),
    (["fe80::/64"], "fe80:0:0:0:0:0:0:0/64"),
    (["::5/128"], "0:0:0:0:0:0:0:5/128"),
    (["fe80:0:0:0:0:0:0:1%eth0", "10.0.0.0/8"], "10.0.0.0/8 or fe80:0:0:0:0:0:0:1%eth0"),
    # the other half of it are IPv4 addresses, which are in no IPv6 range
    (["::fffe:0:0/95"], "0:0:0:0:0:fffe:0:0/96"),
    (["::fffe:0:0/96"], "0:0:0:0:0:fffe:0:0/96"),
    (["::1:0:0:0/96"], "0:0:0:0:1:0:0:0/96"),
]


@pytest.mark.parametrize(("hosts", "text"), HOST_TEXTS)
def test_hosts_in_words(hosts: list[str], text: str) -> None:
    acls = [acl("User:a CREATE t", host=host) for host in hosts]
    (region,) = what_can(acls, "User:a")
    assert region.hosts.text() == text
    assert region.witness() in region
    without = what_can(
        [acl("User:a CREATE t"), *(acl("User:a CREATE t", DENY, host) for host in hosts)], "User:a"
    )
    assert [other.witness().host in region.hosts for other in without] == [False] * (text != "anywhere")


def test_minimize_says_what_it_took_out_and_what_it_wrote() -> None:
    halves = [acl("User:a READ t", host="10.0.0.0/9"), acl("User:a READ t", host="10.128.0.0/9")]
    found = minimize([*halves, acl("User:a DESCRIBE t", host="10.0.0.0/9"), acl("User:b READ t", DENY)])
    assert found.added == found.bindings == (acl("User:a READ t", host="10.0.0.0/8"),)
    assert len(found.removed) == 4


def test_minimize_gives_nobody_what_another_has() -> None:
    acls = [
        acl("User:* READ a", host="10.0.0.0/9"),
        acl("User:alice READ a...", host="10.0.0.0/9"),
        acl("User:alice WRITE a"),
        acl("User:alice READ *", DENY),
    ]
    assert set(minimize(acls).bindings) == set(acls)


def test_minimize_leaves_one_of_two_denials_that_only_one_principal_feels() -> None:
    allow, deny_all = acl("User:bob CREATE a..."), acl("User:* ALL ab", DENY)
    assert set(minimize([allow, acl("User:* CREATE ab", DENY), deny_all]).bindings) == {allow, deny_all}


def test_minimize_leaves_a_principal_denied_what_everyone_has() -> None:
    # more than one window holds, so that a principal is looked at with everyone's ACLs left as they are
    many = [acl(f"User:svc-{number} WRITE a") for number in range(20)]
    own = [acl("User:alice READ a", DENY), acl("User:alice WRITE a"), acl("User:alice CREATE a")]
    everyones = acl("User:* READ a...")
    assert set(minimize([*many, *own, everyones]).bindings) == {*many, *own, everyones}


def test_minimize_keeps_one_of_two_ways_to_write_a_host() -> None:
    same = [acl("User:a READ t", host="10.0.0.1"), acl("User:a READ t", host="10.0.0.1/32")]
    other = acl("User:a READ t", host="192.168.0.1")
    assert minimize([*same, other]).bindings == (same[1], other)


def test_minimize_keeps_names_named_where_the_default_allows() -> None:
    acls = [acl("User:a READ t", DENY), acl("User:a READ t..."), acl("User:a READ u", DENY)]
    assert minimize([acl("User:a READ u", DENY)], OPEN).bindings == (acl("User:a READ u", DENY),)
    assert minimize(acls[2:], Rules()).bindings == ()
    assert set(minimize([*acls, acl("User:a READ tx", DENY), acl("User:a DESCRIBE t...")], OPEN).removed) == {
        acl("User:a DESCRIBE t...")
    }


def test_on_the_one_cluster_a_prefix_that_adds_nothing_changes_nothing() -> None:
    cluster = ResourceType.CLUSTER
    kept = acl("User:alice READ kafka-cluster", kind=cluster)
    assert diff([acl("User:alice READ k...", kind=cluster), kept], [kept], OPEN).is_empty
