"""What a principal can become: every right that gives rights, and nothing that does not."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import AclBinding, AclOperation, KafkaPrincipal, ResourceType
from kustos.analysis import Rules
from kustos.analysis.escalation import Escalation, Means, Token, blast_radius
from kustos.authorizer import StandardAuthorizer
from testkit.review_rows import acl

PEOPLE = ["User:a", "User:b", "User:c"]
RULES = Rules(super_users=frozenset({"User:root"}))
TOKENS = [Token("tok-1", "User:carol"), Token("tok-2", "Group:ops")]


def means(acls: list[AclBinding], principal: str = "User:a", **known: Any) -> list[tuple[str, str | None]]:
    radius = blast_radius(acls, principal, RULES, **known)
    steps = [step for identity in radius.identities for step in identity.path[-1:]]
    steps += radius.everything[-1:] if radius.everything else ()
    return [(step.means.value, step.to) for step in (*steps, *radius.conditional)]


def test_each_right_that_gives_rights_is_followed() -> None:
    cluster = "kafka-cluster"
    cases = {
        ("ALTER", "CLUSTER", cluster): [("ALTER_CLUSTER", None)],
        ("ALL", "CLUSTER", cluster): [("ALTER_CLUSTER", None), ("ALTER_CONFIGS", None)],
        ("CLUSTER_ACTION", "CLUSTER", cluster): [("CLUSTER_ACTION", None)],
        ("ALTER_CONFIGS", "CLUSTER", cluster): [("ALTER_CONFIGS", None)],
        ("DESCRIBE", "CLUSTER", cluster): [],
        ("ALTER", "TOPIC", "*"): [],
        ("CREATE_TOKENS", "USER", "User:b"): [("CREATE_TOKENS", "User:b")],
        ("DESCRIBE_TOKENS", "USER", "User:b"): [("DESCRIBE_TOKENS", "User:b")],
        ("DESCRIBE", "DELEGATION_TOKEN", "tok-1"): [("DESCRIBE_TOKEN", "User:carol")],
        ("DESCRIBE", "DELEGATION_TOKEN", "*"): [
            ("DESCRIBE_TOKEN", "User:carol"),
            ("DESCRIBE_TOKEN", "User:ops"),
        ],
        ("READ", "DELEGATION_TOKEN", "other"): [],
        ("CREATE_TOKENS", "USER", "User:a"): [],
    }
    for (operation, kind, name), expected in cases.items():
        found = means([acl("User:a", operation, kind, name)], known=["User:b"], tokens=TOKENS)
        assert found == expected, (operation, kind, name)


def test_a_way_over_others_is_told_step_by_step() -> None:
    acls = [
        acl("User:a", "CREATE_TOKENS", "USER", "User:b"),
        acl("User:b", "ALTER", "CLUSTER", "kafka-cluster", host="10.0.0.1"),
        acl("User:b", "READ", "TOPIC", "pay"),
    ]
    radius = blast_radius(acls, "User:a")
    assert [identity.principal for identity in radius.identities] == ["User:a", "User:b"]
    assert radius.everything is not None
    assert [(step.identity, step.to, step.hosts) for step in radius.everything] == [
        ("User:a", "User:b", "anywhere"),
        ("User:b", None, "10.0.0.1"),
    ]
    assert "can log in as them" in radius.everything[0].text()
    assert json.loads(json.dumps(radius.to_json()))["everything"][1]["means"] == "ALTER_CLUSTER"


def test_a_login_by_token_asks_for_no_more_tokens() -> None:
    acls = [
        acl("User:a", "CREATE_TOKENS", "USER", "User:b"),
        acl("User:b", "CREATE_TOKENS", "USER", "User:c"),
    ]
    assert means(acls, known=["User:c"]) == [("CREATE_TOKENS", "User:b")]
    assert means(acls, "User:c") == [] == means(acls, known=["User:c"], has_tokens=False)


def test_tokens_of_a_super_user_reach_everything_and_a_deny_shuts_the_way() -> None:
    grant = acl("User:a", "CREATE_TOKENS", "USER", "*")
    radius = blast_radius([grant], "User:a", RULES)
    assert radius.everything is not None
    assert [step.means for step in radius.everything] == [Means.CREATE_TOKENS, Means.SUPER_USER]
    shut = acl("User:a", "CREATE_TOKENS", "USER", "User:root", deny=True)
    assert blast_radius([grant, shut], "User:a", RULES).everything is None


rights = st.builds(
    acl,
    st.sampled_from([*PEOPLE, "User:*"]),
    st.sampled_from(["CREATE_TOKENS", "DESCRIBE_TOKENS", "ALTER", "ALL", "CLUSTER_ACTION", "READ"]),
    st.sampled_from(["USER", "USER", "CLUSTER"]),
    st.sampled_from(["User:a", "User:b", "User:c", "User:", "kafka-cluster", "*"]),
    prefixed=st.booleans(),
    deny=st.sampled_from([False, False, True]),
)


@settings(max_examples=200, deadline=None)
@given(acls=st.lists(rights, max_size=6, unique=True), is_open=st.booleans())
def test_reached_is_what_an_intruder_finds_by_asking_the_authorizer(
    acls: list[AclBinding], is_open: bool
) -> None:
    authorizer = StandardAuthorizer.of(acls, allow_everyone_if_no_acl_found=is_open)

    def may(who: str, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        return authorizer.session(KafkaPrincipal.parse(who), "10.0.0.1").decide(operation, kind, name).allowed

    becomes = ["User:a"] + [
        other
        for other in PEOPLE[1:]
        if may("User:a", AclOperation.CREATE_TOKENS, ResourceType.USER, other)
        or may("User:a", AclOperation.DESCRIBE_TOKENS, ResourceType.USER, other)
    ]
    governs = [
        who
        for who in becomes
        for operation in (AclOperation.ALTER, AclOperation.CLUSTER_ACTION)
        if may(who, operation, ResourceType.CLUSTER, "kafka-cluster")
    ]
    radius = Escalation(acls, Rules(allow_everyone_if_no_acl_found=is_open), known=PEOPLE).of("User:a")
    assert {identity.principal for identity in radius.identities} == set(becomes)
    assert (radius.everything is not None) is bool(governs)
    if governs and radius.everything is not None:
        assert len(radius.everything) == (1 if "User:a" in governs else 2)
