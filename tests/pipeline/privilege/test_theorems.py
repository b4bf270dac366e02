"""What holds for every record: nothing needed is lost, nothing denied given, hardly an ACL too many."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kustos import StandardAuthorizer
from kustos.acl import AclPermissionType, KafkaPrincipal
from kustos.pipeline.privilege import (
    HostChoice,
    PrincipalRecommendation,
    PrivilegeOptions,
    Problem,
    Unserved,
    least_privilege,
)
from tests.pipeline.privilege.exact import World
from tests.pipeline.privilege.worlds import odd_problems, problems

OPTIONS = st.builds(
    PrivilegeOptions,
    over_grant_weight=st.sampled_from([0.0, 0.1, 0.25, 1.0, math.inf]),
    prefix_members_min=st.integers(2, 3),
    prefix_length_min=st.integers(1, 5),
    wildcard_share=st.sampled_from([None, 0.5]),
    wildcard_members_min=st.just(5),
    all_operations_min=st.sampled_from([None, 3, 5]),
    hosts=st.sampled_from([HostChoice.ANY, HostChoice.EXACT]),
)
MANY = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
COMPARED = 200
ROUNDING = 1e-6
EQUAL_SHARE_MIN = 0.9
COST_MAX = 1.05
NO_ACL_CAN = {Unserved.EMPTY_NAME, Unserved.WILDCARD_NAME}


def decides(problem: Problem, answer: PrincipalRecommendation) -> tuple[set[object], set[object]]:
    """Return the uses that are not allowed and the denials that are, as StandardAuthorizer decides."""
    authorizer = StandardAuthorizer.of([acl.binding for acl in answer.acls])
    principal = KafkaPrincipal.parse(problem.principal)

    def allowed(asked: tuple[object, ...]) -> bool:
        host, operation, resource_type, name = asked[:4]
        session = authorizer.session(principal, host)  # type: ignore[arg-type]
        if name is None:
            return session.decide_by_resource_type(operation, resource_type).allowed  # type: ignore[arg-type]
        return session.decide(operation, resource_type, name).allowed  # type: ignore[arg-type]

    lost = {use for use in problem.uses if not allowed(use)}
    given = {denial for denial in problem.denials if allowed(denial)}
    return lost, given  # type: ignore[return-value]


@MANY
@given(problem=problems(hosts=3), options=OPTIONS)
def test_every_use_stays_allowed_and_every_denial_denied(problem: Problem, options: PrivilegeOptions) -> None:
    answer = least_privilege(problem, options)
    lost, opened = decides(problem, answer)
    excused = {unserved.use for unserved in answer.unserved}
    assert lost == excused
    assert opened == set(answer.overruled)
    for unserved in answer.unserved:
        assert unserved.reason in NO_ACL_CAN or (
            unserved.reason is Unserved.PROBE and unserved.use.name is None
        )


@settings(MANY, max_examples=400)
@given(problem=odd_problems(), options=OPTIONS, hosts=st.sampled_from(HostChoice))
def test_of_odd_values_too_an_access_is_unserved_or_overruled_exactly_if_the_authorizer_says_so(
    problem: Problem, options: PrivilegeOptions, hosts: HostChoice
) -> None:
    answer = least_privilege(problem, replace(options, hosts=hosts))
    lost, opened = decides(problem, answer)
    assert lost == {unserved.use for unserved in answer.unserved}
    assert opened == set(answer.overruled)
    assert not any(acl.binding.entry.host == "" for acl in answer.acls), "no client has this host"


@MANY
@given(problem=problems(hosts=3), options=OPTIONS)
def test_no_acl_can_be_taken_away(problem: Problem, options: PrivilegeOptions) -> None:
    answer = least_privilege(problem, options)
    lost, opened = decides(problem, answer)
    for acl in answer.acls:
        rest = tuple(other for other in answer.acls if other is not acl)
        lost_then, opened_then = decides(problem, PrincipalRecommendation(rest, (), ()))
        assert lost_then - lost or opened_then - opened, acl


def ratios(seen: Counter[float]) -> str:
    return ", ".join(f"{ratio:.2f}: {count}" for ratio, count in sorted(seen.items()))


def costs_by_an_exact_solver(hosts: int, capsys: pytest.CaptureFixture[str]) -> list[tuple[float, float]]:
    """Draw problems; return for each the optimum that HiGHS finds and the cost of our answer."""
    costs: list[tuple[float, float]] = []

    @settings(MANY, max_examples=COMPARED)
    @given(problem=problems(hosts=hosts, probes=hosts > 1), options=OPTIONS)
    def compare(problem: Problem, options: PrivilegeOptions) -> None:
        world = World(problem, options)
        best, found = world.least_cost(), world.cost_of(least_privilege(problem, options).acls)
        assert found >= best - ROUNDING
        costs.append((best, found))

    compare()
    seen = Counter(round(found / best, 2) if best else 1.0 for best, found in costs)
    with capsys.disabled():
        print(f"\ncost by HiGHS' optimum, {hosts} hosts: {ratios(seen)}")
    return costs


def test_with_one_host_the_cost_is_that_of_an_exact_solver(capsys: pytest.CaptureFixture[str]) -> None:
    for best, found in costs_by_an_exact_solver(1, capsys):
        assert found <= best + ROUNDING


def test_with_hosts_in_conflict_the_cost_is_nearly_that_of_an_exact_solver(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No bound holds for each record (1.5 times the optimum was seen once in 1,500), so all are summed up."""
    costs = costs_by_an_exact_solver(3, capsys)
    equal = [found <= best + ROUNDING for best, found in costs]
    assert sum(equal) >= EQUAL_SHARE_MIN * len(equal)
    assert sum(found for _, found in costs) <= COST_MAX * sum(best for best, _ in costs)


@MANY
@given(problem=problems(hosts=2), options=OPTIONS)
def test_a_deny_is_written_only_against_what_is_implied(problem: Problem, options: PrivilegeOptions) -> None:
    denied = {(d.host, d.operation, d.name) for d in problem.denials}
    for acl in least_privilege(problem, options).acls:
        entry = acl.binding.entry
        if entry.permission_type is AclPermissionType.DENY:
            assert (entry.host, entry.operation, acl.binding.pattern.name) in denied


@MANY
@given(problem=problems(hosts=1), options=OPTIONS)
def test_evidence_adds_up_to_all_that_was_served(problem: Problem, options: PrivilegeOptions) -> None:
    answer = least_privilege(problem, options)
    allows = [acl for acl in answer.acls if acl.binding.entry.permission_type is AclPermissionType.ALLOW]
    assert sum(acl.access_count for acl in allows) == len(problem.uses) - len(answer.unserved)
    assert sum(acl.event_count for acl in allows) == 2 * (len(problem.uses) - len(answer.unserved))


@MANY
@given(problem=problems(hosts=2))
def test_an_infinite_weight_grants_no_name_in_vain(problem: Problem) -> None:
    for acl in least_privilege(problem, PrivilegeOptions(over_grant_weight=math.inf)).acls:
        assert acl.binding.pattern.pattern_type.name == "LITERAL"
        assert acl.binding.pattern.name != "*"
