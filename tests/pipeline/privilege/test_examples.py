"""Least privilege on records small enough to see what is right."""

import math
from collections import Counter
from typing import Any

import pytest

from kustos.acl import AclOperation, ResourceType
from kustos.pipeline.privilege import (
    Denial,
    PrivilegeOptionError,
    PrivilegeOptions,
    Problem,
    Unserved,
    Use,
    least_privilege,
)
from kustos.pipeline.privilege.search import CANDIDATES_MAX, cheapest_cover

READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
HOST = "10.0.0.1"


def uses(names: list[str], operation: AclOperation = READ, kind: ResourceType = TOPIC) -> tuple[Use, ...]:
    return tuple(Use(HOST, operation, kind, name, 5) for name in names)


def acls(problem: Problem, **options: Any) -> list[str]:
    """Return the ACLs as `operation type:name`, a prefix with `...`, a DENY with `!`."""
    found = []
    for acl in least_privilege(problem, PrivilegeOptions(**options)).acls:
        pattern, entry = acl.binding.pattern, acl.binding.entry
        dots = "..." if pattern.pattern_type.name == "PREFIXED" else ""
        sign = "!" if entry.permission_type.name == "DENY" else ""
        found.append(f"{sign}{entry.operation.name} {pattern.resource_type.name}:{pattern.name}{dots}")
    return found


def known(*names: str) -> Counter[tuple[ResourceType, str]]:
    return Counter((TOPIC, name[:end]) for name in names for end in range(len(name) + 1))


PAY = [f"pay.{letter}" for letter in "abc"]
LITERAL = [f"READ TOPIC:{name}" for name in PAY]


@pytest.mark.parametrize(
    ("vain", "weight", "expected"),
    [
        (0, 0.0, ["READ TOPIC:pay...."]),
        (9, 0.0, ["READ TOPIC:pay...."]),
        (0, 1.0, ["READ TOPIC:pay...."]),
        (1, 1.0, LITERAL),  # 1 for itself, 1 for that name, 1 for names to come: no cheaper than three
        (9, 0.1, ["READ TOPIC:pay...."]),
        (0, math.inf, LITERAL),
    ],
)
def test_the_weight_decides_between_a_prefix_and_its_names(
    vain: int, weight: float, expected: list[str]
) -> None:
    names = known(*PAY, *[f"pay.other{number}" for number in range(vain)])
    assert acls(Problem("User:a", uses(PAY), (), names), over_grant_weight=weight) == expected


def test_describe_rides_on_what_implies_it() -> None:
    problem = Problem("User:a", uses(PAY) + uses(PAY, DESCRIBE) + uses(["x"], DESCRIBE) + uses(["x"], WRITE))
    assert acls(problem) == ["READ TOPIC:pay....", "WRITE TOPIC:x"]


def test_the_wildcard_is_earned_by_nearly_all_names() -> None:
    names = [f"n{number}" for number in range(50)]
    problem = Problem("User:a", uses(names), (), known(*names))
    assert acls(problem) == ["READ TOPIC:*"]
    assert len(acls(problem, wildcard_share=None)) == 50
    more = known(*names, *[f"m{number}" for number in range(10)])
    assert len(acls(Problem("User:a", uses(names), (), more))) == 50


def test_all_is_earned_by_nearly_all_operations() -> None:
    operations = ("READ", "WRITE", "CREATE", "DELETE", "ALTER", "ALTER_CONFIGS")
    problem = Problem("User:a", tuple(Use(HOST, AclOperation[name], TOPIC, "t") for name in operations))
    assert acls(problem) == ["ALL TOPIC:t"]
    assert len(acls(problem, all_operations_min=None)) == 6


def test_a_denied_operation_that_a_needed_one_implies_is_denied() -> None:
    problem = Problem("User:a", uses(["t"]), (Denial(HOST, DESCRIBE, TOPIC, "t"),))
    assert sorted(acls(problem)) == ["!DESCRIBE TOPIC:t", "READ TOPIC:t"]


def test_a_question_for_any_resource_is_answered_on_a_used_name() -> None:
    question = (Use(HOST, WRITE, TOPIC, None),)
    assert acls(Problem("User:a", uses(["t"]) + question)) == ["READ TOPIC:t", "WRITE TOPIC:t"]
    assert acls(Problem("User:a", uses(["t"], WRITE) + question)) == ["WRITE TOPIC:t"]
    # who uses no name of the type gets one that hardly exists, the one that Kafka itself asks about
    assert acls(Problem("User:a", question)) == ["WRITE TOPIC:hardcode"]


def test_a_question_for_any_resource_is_answered_on_a_name_that_another_host_was_denied() -> None:
    question = (Use("10.0.0.2", DESCRIBE, TOPIC, None),)
    problem = Problem("User:a", uses(["t"]) + question, (Denial(HOST, DESCRIBE, TOPIC, "t"),))
    assert sorted(acls(problem)) == ["!DESCRIBE TOPIC:t", "DESCRIBE TOPIC:t", "READ TOPIC:t"]
    assert not least_privilege(problem, PrivilegeOptions()).unserved


def test_a_question_that_only_an_implied_operation_would_answer_stays_denied() -> None:
    denied = Denial(HOST, DESCRIBE, TOPIC, None)
    described = uses(["x"], DESCRIBE)
    # READ allows DESCRIBE of the name, but does not answer DESCRIBE for any resource
    assert least_privilege(Problem("User:a", uses(["x"]) + described, (denied,))).overruled == ()
    assert least_privilege(Problem("User:a", described, (denied,))).overruled == (denied,)


def test_a_question_for_any_resource_is_not_answered_on_a_name_that_would_answer_a_denied_one() -> None:
    """Kafka authorizes the name `hardcode` first, where READ implies DESCRIBE (`KUSTOS_SEED=203`)."""
    asked, other = Use(HOST, READ, TOPIC, None), "10.0.0.2"
    elsewhere = Problem("User:a", (asked,), (Denial(other, DESCRIBE, TOPIC, None),))
    answer = least_privilege(elsewhere)
    assert [(acl.binding.pattern.name, acl.binding.entry.host) for acl in answer.acls] == [("hardcode", HOST)]
    here = least_privilege(Problem("User:a", (asked,), (Denial(HOST, DESCRIBE, TOPIC, None),)))
    assert (here.acls, [each.use for each in here.unserved]) == ((), [asked])


def test_a_denied_question_is_overruled_where_the_name_that_kafka_asks_about_is_used() -> None:
    denied = Denial(HOST, DESCRIBE, TOPIC, None)
    assert least_privilege(Problem("User:a", uses(["hardcode"]), (denied,))).overruled == (denied,)
    refused = Denial(HOST, DESCRIBE, TOPIC, "hardcode")
    assert least_privilege(Problem("User:a", uses(["hardcode"]), (denied, refused))).overruled == ()


def test_a_wildcard_that_would_answer_a_denied_question_is_not_granted() -> None:
    options = {"wildcard_share": 0.5, "wildcard_members_min": 5, "over_grant_weight": 0}
    names = [f"t{number}" for number in range(9)]
    denied = Denial(HOST, DESCRIBE, TOPIC, None)
    assert acls(Problem("User:a", uses(names)), **options) == ["READ TOPIC:*"]
    assert len(acls(Problem("User:a", uses(names), (denied,)), **options)) == len(names)


@pytest.mark.parametrize(
    ("principal", "use", "reason"),
    [
        ("User:*", Use(HOST, READ, TOPIC, "t"), Unserved.EVERYBODY),
        ("nobody", Use(HOST, READ, TOPIC, "t"), Unserved.PRINCIPAL),
        ("User:a", Use(HOST, READ, GROUP, ""), Unserved.EMPTY_NAME),
        ("User:a", Use(HOST, READ, GROUP, "*"), Unserved.WILDCARD_NAME),
        ("User:a", Use(HOST, WRITE, ResourceType.CLUSTER, "other"), Unserved.CLUSTER_NAME),
        ("User:a", Use(HOST, AclOperation.UNKNOWN, TOPIC, "t"), Unserved.OPERATION),
        ("User:a", Use(HOST, READ, GROUP, "ü" * 20_000), Unserved.TOO_LONG),
    ],
)
def test_what_no_acl_can_grant_is_told(principal: str, use: Use, reason: Unserved) -> None:
    answer = least_privilege(Problem(principal, (use,), ()))
    assert answer.acls == ()
    assert [(told.use, told.reason) for told in answer.unserved] == [(use, reason)]


def test_a_name_of_many_separators_has_few_beginnings() -> None:
    names = ["." * 240 + letter for letter in "abc"]
    # the eighth separator is the last that is looked at
    assert acls(Problem("User:a", uses(names), ()), over_grant_weight=0.0) == [
        "READ TOPIC:" + "." * 8 + "..."
    ]


def test_a_cover_is_searched_within_its_limits() -> None:
    assert cheapest_cover([(1.0, 0b01), (1.0, 0b10), (1.5, 0b11)], 2.0) == [2]
    assert cheapest_cover([(1.0, 0b01), (1.0, 0b10)], 2.0) is None
    many = [(1.0, 0b1 << bit % 90 | 1 << (bit * 7 + 1) % 90) for bit in range(CANDIDATES_MAX * 3)]
    assert cheapest_cover(many, 10.0) is None


@pytest.mark.parametrize(
    "bad",
    [
        {"over_grant_weight": -1.0},
        {"over_grant_weight": math.nan},
        {"future_name_count": math.inf},
        {"separators": ".."},
        {"prefix_length_min": 0},
        {"prefix_members_min": 1},
        {"wildcard_share": 0.0},
        {"wildcard_members_min": 1},
        {"all_operations_min": 1},
        {"hosts_max": 0},
        {"range_hosts_min": 1},
        {"range_bits_min_ipv4": 33},
        {"range_bits_min_ipv6": -1},
    ],
)
def test_an_option_out_of_range_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(PrivilegeOptionError, match=f"`{next(iter(bad))}` is out of range"):
        PrivilegeOptions(**bad)
