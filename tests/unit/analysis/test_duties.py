"""Duties: a file is read whole or refused; breaches by grant are exact."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kustos.acl import AclBinding, AclOperation, KafkaPrincipal, ResourceType
from kustos.analysis import PolicyError
from kustos.analysis.duties import Duty, DutySide, breaches, parse_duties
from kustos.authorizer import StandardAuthorizer
from kustos.pipeline.deciding import AclsInForce
from testkit.acls.small_sets import names_near
from testkit.duties import DUTIES
from testkit.review_rows import (
    PRINCIPALS,
    acl,
    acl_worlds,
)

HOSTS = ["10.0.0.1", "10.0.0.9", "192.168.0.9"]


def test_a_file_of_duties_is_read() -> None:
    first, second = DUTIES
    assert (first.duty_id, first.reason, first.counts_super_users) == (
        "four-eyes", "payers must not approve payments", False,
    )  # fmt: skip
    assert first.text() == "principals that may WRITE topics under pay. must not READ or ALTER topic orders"
    assert "User:carol" in first.exempt
    assert "User:bob" not in first.exempt
    assert (second.duty_id, second.counts_super_users) == ("duty 2", True)
    assert first.who_can.matches(AclOperation.WRITE, ResourceType.TOPIC, "pay.in")
    assert not first.who_can.matches(AclOperation.WRITE, ResourceType.GROUP, "pay.in")


ONE = "version: 1\nduties:\n  - "
TWO = f"{ONE}who_can: READ topic a\n    must_not: READ topic b\n    "
SAME = "{id: a, who_can: READ topic a, must_not: READ topic b}"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "mapping"),
        ("version: 2\nduties: [a]", 1, "version is 1"),
        ("version: 1\nduties: []", 2, "list of duties"),
        ("version: 1", 1, "is missing"),
        (f"{ONE}who_can: READ topic a", 3, "is missing"),
        (f"{ONE}who_can: READ topic a\n    must_not: FLY topic a", 4, "not an operation"),
        (f"{ONE}who_can: READ topic a from 10.0.0.1\n    must_not: READ topic b", 3, "neither principals"),
        (f"{ONE}who_can: but User:a READ topic a\n    must_not: READ topic b", 3, "neither principals"),
        (f"{TWO}but: everybody", 5, "principal"),
        (f"{TWO}why: x", 5, "nothing is called so"),
        (f"{ONE}who_can: READ topic a\n    who_can: READ topic b", 4, "is there twice"),
        (f"{TWO}super_users: yes", 5, "`true` or `false`"),
        ("version: 1\nduties: {", 2, "not YAML"),
        (f"{ONE}{SAME}\n  - {SAME}", 4, "another duty"),
    ],
)
def test_what_is_no_file_of_duties_is_refused_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(PolicyError, match=said) as refused:
        parse_duties(text)
    assert refused.value.line == line


def let_off(principal: str, duty: Duty) -> bool:
    return principal in duty.exempt or (principal == "User:root" and not duty.counts_super_users)


NAMES_OF_SIDES = ("pay.x", "orders", "ox", "hardcode", "p", "z", "*odd")
"""Names of what the duties speak of, beside those that ACLs tell apart."""


def may(authorizer: StandardAuthorizer, principal: str, side: DutySide, names: set[str]) -> bool:
    """Ask for everything that the side speaks of and these ACLs can tell apart."""
    return any(
        authorizer.session(KafkaPrincipal.parse(principal), host)
        .decide(operation, side.resource_type, name)
        .allowed
        for host in HOSTS
        for operation in side.operations
        for name in names
        if any(site.covers(name) for site in side.sites)
    )


BELOW_A_DENIED_NAME = [
    acl("User:alice", "READ", "TOPIC", "*"),
    acl("User:carol", "READ", "TOPIC", "pay.in", prefixed=True),
    acl("User:carol", "READ", "TOPIC", "pay.in", deny=True),
]


@settings(max_examples=60, deadline=None)
@given(acls=acl_worlds, is_open=st.booleans())
@example(acls=BELOW_A_DENIED_NAME, is_open=True)
def test_breaches_by_grant_are_those_that_asking_finds(acls: list[AclBinding], is_open: bool) -> None:
    held = AclsInForce.of("t", acls, super_users="User:root", allow_everyone_if_no_acl_found=is_open)
    authorizer = held.authorizer()
    names = {*names_near(acls), *NAMES_OF_SIDES}
    expected = set()
    for duty in DUTIES:
        for principal in [*PRINCIPALS, "User:nobody-names"]:
            is_let_off = principal in duty.exempt or (
                principal == "User:root" and not duty.counts_super_users
            )
            if (
                not is_let_off
                and may(authorizer, principal, duty.who_can, names)
                and may(authorizer, principal, duty.must_not, names)
            ):
                expected.add((duty.duty_id, principal))
    found = set()
    named = {one.entry.principal for one in acls} | {"User:root"}
    for breach in breaches(held.bindings, DUTIES, held.rules):
        if breach.principal == "User:*":
            others = {*PRINCIPALS, "User:nobody-names"} - named - set(breach.without)
            found |= {(breach.duty.duty_id, one) for one in others if one not in breach.duty.exempt}
            assert breach.who_can.principals.is_everyone_but
        else:
            found.add((breach.duty.duty_id, breach.principal))
    assert found == expected


def test_a_duty_that_exempts_everyone_finds_nothing() -> None:
    everyone = parse_duties(
        "version: 1\nduties: [{who_can: READ topic a, must_not: READ topic a, but: everyone}]"
    )
    assert isinstance(everyone[0], Duty)
    assert list(breaches([acl("User:a", "READ", "TOPIC", "a")], everyone)) == []
