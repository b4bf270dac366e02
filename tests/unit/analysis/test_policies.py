"""Policies as people write them: what is read, and what every mistake is told."""

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
from kustos.analysis import PolicyError, Rules, Site, Statement, StatementKind, parse_policy, verify

TOPIC = ResourceType.TOPIC


def only(sentence: str, kind: str = "never") -> Statement:
    text = json.dumps({"version": 1, "statements": [{kind: sentence}]})
    (statement,) = parse_policy(text).statements
    return statement


def test_a_policy_in_yaml() -> None:
    text = """\
# who may write money
version: 1
statements:
  - id: payments-writers
    never: anyone but User:pay-* WRITE topics under payments.
    reason: money moves there
    super_users: true

  - always: >-
      User:app READ topics under orders.
      from 10.0.0.0/8
"""
    first, second = parse_policy(text, "policies/money.yaml").statements
    assert (first.statement_id, first.reason, first.line) == ("payments-writers", "money moves there", 4)
    assert (first.kind, first.counts_super_users) == (StatementKind.NEVER, True)
    assert "User:pay-1" not in first.principals
    assert "User:pa" in first.principals
    assert (second.statement_id, second.kind, second.line) == ("statement 2", StatementKind.ALWAYS, 9)
    assert second.sites == (Site("orders.", is_literal=False),)
    assert "10.1.2.3" in second.hosts
    assert "11.0.0.1" not in second.hosts
    assert second.sentence == "always: User:app READ topics under orders. from 10.0.0.0/8"


def test_principals_of_a_sentence() -> None:
    everyone = only("anyone READ topic t").principals
    assert only("everyone READ topic t").principals == only("User:* READ topic t").principals == everyone
    assert "Group:x" in everyone
    listed = only("User:CN=a,OU=b, User:b* and `User:c*` READ topic t").principals
    assert [who in listed for who in ("User:CN=a,OU=b", "User:bb", "User:c*", "User:cc")] == [1, 1, 1, 0]
    others = only('everyone except User:a*, "User:with blank" READ topic t').principals
    assert [who in others for who in ("User:a", "User:with blank", "User:c")] == [0, 0, 1]


def test_a_principal_that_nobody_names_is_found_if_there_is_one() -> None:
    assert only("User:a READ topic t").principals.unnamed({"User:a"}) is None
    assert only("User:a, User:b READ topic t").principals.unnamed({"User:a"}) == "User:b"
    assert only("Group:a* READ topic t").principals.unnamed({"Group:asomeone"}) == "Group:asomeone-2"
    others = only("anyone but User:s*, User:a, User:bc* READ topic t").principals
    assert others.unnamed({"User:a"}) == "User:a-2"


def test_operations_and_resources_of_a_sentence() -> None:
    statement = only("User:a READ, WRITE and alter-configs on topics a, under `b*` or `under`")
    assert statement.operations == (AclOperation.READ, AclOperation.WRITE, AclOperation.ALTER_CONFIGS)
    assert statement.sites == (
        Site("a", is_literal=True), Site("b*", is_literal=False), Site("under", is_literal=True)
    )  # fmt: skip
    whole = only("User:a ALL every transactional-id")
    assert whole.operations == (AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT)
    assert (whole.resource_type, whole.sites[0].name) == (ResourceType.TRANSACTIONAL_ID, "")
    assert only("User:a CREATE the cluster").sites == (Site("kafka-cluster", is_literal=True),)


def test_hosts_of_a_sentence() -> None:
    assert only("User:a READ topic t from anywhere").hosts.is_everywhere
    some = only("User:a READ topic t from 10.0.0.1, 192.168.0.0/16 or 0:0:0:0:0:0:0:1").hosts
    others = only("User:a READ topic t from anywhere but 10.0.0.1, 192.168.0.0/16 and 0:0:0:0:0:0:0:1").hosts
    for host, is_in in (
        ("10.0.0.1", True),
        ("192.168.3.4", True),
        ("0:0:0:0:0:0:0:1", True),
        ("10.0.0.2", False),
    ):
        assert (host in some) is is_in
        assert (host in others) is not is_in


WRONG_SENTENCES = [
    ("", "", "text"),
    ("User:a READ", "end of the sentence", "kind of resource"),
    ("alice READ topic t", "alice", "User:name"),
    ("User:a*b READ topic t", "User:a*b", "at the end"),
    ("U*:a READ topic t", "U*:a", "User:name"),
    ("`User:*` READ topic t", "User:*", "everyone"),
    ("anyone but User:* READ topic t", "User:*", "leaves no principal"),
    ("from READ topic t", "from", "a principal"),
    ("User:a SING topic t", "SING", "not an operation"),
    ("User:a ANY topic t", "ANY", "not an operation"),
    ("User:a `READ` topic t", "READ", "not an operation"),
    ("User:a CREATE_TOKENS topic t", "CREATE_TOKENS", "does not apply to TOPIC"),
    ("User:a READ tables t", "tables", "kind of resource"),
    ("User:a READ topics", "end of the sentence", "a name"),
    ("User:a READ topics *", "*", "every topic"),
    ("User:a READ topics `*`", "*", "every topic"),
    ("User:a READ topics pay-*", "pay-*", "under"),
    ("User:a READ topics under ``", "under", "every topic"),
    ("User:a READ topics under from 10.0.0.1", "from", "a name"),
    ("User:a READ topic t u", "u", "should end"),
    ("User:a READ topic t from *", "*", "anywhere"),
    ("User:a READ topic t from ::1", "::1", "`0:0:0:0:0:0:0:1`"),
    ("User:a READ topic t from localhost", "localhost", "no client has this address"),
    ("User:a READ topic t from 0.0.0.0/32", "0.0.0.0/32", "no client has this address"),
    ("User:a READ topic `t", "`t", "quotation"),
]


@pytest.mark.parametrize(("sentence", "value", "rule"), WRONG_SENTENCES)
def test_what_a_wrong_sentence_is_told(sentence: str, value: str, rule: str) -> None:
    text = f"version: 1\nstatements:\n  - id: x\n    never: {json.dumps(sentence)}\n"
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "p.yaml")
    error = caught.value
    assert (error.file, error.line, error.value) == ("p.yaml", 4, value)
    assert rule in error.rule
    assert str(error) == f"p.yaml:4: `{value}`: {error.rule}"


GOOD = "never: User:a READ topic t"
WRONG_FILES = [
    ("", 1, "end of the file"),
    ("- a\n", 1, "a list"),
    ("version: 2\n", 1, "2"),
    ("statements: []\n", 1, "version"),
    ("version: 1\n", 1, "statements"),
    ("version: 1\nstatements: []\n", 2, "a list"),
    ("version: 1\nstatements: x\n", 2, "x"),
    ("version: 1\nstatements:\n  - x\n", 3, "x"),
    ("version: 1\nrules: x\n", 2, "rules"),
    ("version: 1\nversion: 1\n", 2, "version"),
    (f"version: 1\nstatements:\n  - {GOOD}\n    always: x\n", 3, "never, always"),
    ("version: 1\nstatements:\n  - id: x\n", 3, "never, always"),
    (f"version: 1\nstatements:\n  - {GOOD}\n    because: x\n", 4, "because"),
    (f"version: 1\nstatements:\n  - {GOOD}\n    id: [x]\n", 4, "a list"),
    (f"version: 1\nstatements:\n  - {GOOD}\n    super_users: maybe\n", 4, "maybe"),
    ("version: 1\nstatements:\n  - always: User:a READ topic t\n    super_users: true\n", 4, "super_users"),
    (f"version: 1\nstatements:\n  - {GOOD}\n    id: x\n  - {GOOD}\n    id: x\n", 5, "x"),
    ("version: 1\nstatements:\n  - [x\n", 4, None),
    ("version: 1\n\tx\n", 2, None),
    ("a: \x00\n", 1, None),
    ("[" * 10_000, 1, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "value"), WRONG_FILES)
def test_what_a_wrong_file_is_told(text: str, line: int, value: str | None) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text)
    assert (caught.value.file, caught.value.line) == ("policy", line)
    assert value in {None, caught.value.value}


def test_a_file_gone_wrong_is_not_read_to_the_end() -> None:
    with pytest.raises(PolicyError, match="at most"):
        parse_policy("#" * 5_000_000)


def test_a_broken_statement_names_the_acl_responsible() -> None:
    policy = parse_policy(
        "version: 1\nstatements:\n  - never: anyone but User:pay-* WRITE topics under payments."
    )
    acl = AclBinding(
        ResourcePattern(TOPIC, "pay", PatternType.PREFIXED),
        AccessControlEntry("User:*", "10.0.0.0/8", AclOperation.ALL, AclPermissionType.ALLOW),
    )
    (verdict,) = verify([acl], policy, Rules(super_users=frozenset({"User:root"})))
    (example,) = verdict.counter_examples
    assert example.decision.rule.binding == acl
    assert example.text().startswith(
        "User:someone from 10.0.0.1: WRITE on topic `payments.x` is allowed, by Matching"
    )
    assert json.loads(json.dumps(verdict.to_json()))["holds"] is False


def test_super_users_break_only_what_counts_them() -> None:
    rules = Rules(super_users=frozenset({"User:root"}))
    sentence = "never: everyone WRITE every topic"
    for flag, holds in (("", True), ("\n    super_users: true", False)):
        (verdict,) = verify([], parse_policy(f"version: 1\nstatements:\n  - {sentence}{flag}"), rules)
        assert verdict.holds is holds
