"""Never more than today: each question that the recommended set allows, today's allows too."""

from collections.abc import Sequence
from itertools import product

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kustos import StandardAuthorizer
from kustos.acl import (
    SUPPORTED_OPERATIONS,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer.index.cells import ALLOWS
from kustos.pipeline.privilege import (
    Denial,
    HostChoice,
    PrivilegeOptions,
    Problem,
    Unserved,
    Use,
    least_privilege,
)
from kustos.pipeline.privilege.ceiling import Ceiling
from tests.pipeline.privilege.test_theorems import NO_ACL_CAN, OPTIONS, decides
from tests.pipeline.privilege.worlds import HOSTS, NAMES, SEGMENTS, odd_problems, problems

MANY = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ELSEWHERE = "192.168.0.1"
RANGES = ("10.0.0.0/30", "10.0.0.0/8", "2001:db8::/32")
PRINCIPAL = "User:app"
Question = tuple[str, AclOperation, str]


@st.composite
def todays(draw: st.DrawFn, resource_type: ResourceType) -> list[AclBinding]:
    """Draw ACLs of which most allow something to the principal or to everybody."""
    is_cluster = resource_type is ResourceType.CLUSTER
    names = st.sampled_from(("kafka-cluster", "*") if is_cluster else (*NAMES, "*", "*", "hardcode"))
    beginnings = st.sampled_from((*filter(None, SEGMENTS), "p", "*pay", "l"))
    literal = st.builds(
        ResourcePattern, st.just(resource_type), names.filter(bool), st.just(PatternType.LITERAL)
    )
    prefixed = st.builds(ResourcePattern, st.just(resource_type), beginnings, st.just(PatternType.PREFIXED))
    entry = st.builds(
        AccessControlEntry,
        st.sampled_from((PRINCIPAL, PRINCIPAL, "User:*", "User:other")),
        st.sampled_from(("*", "*", *HOSTS, *RANGES)),
        st.sampled_from((*SUPPORTED_OPERATIONS[resource_type], AclOperation.ALL)),
        st.sampled_from((AclPermissionType.ALLOW,) * 5 + (AclPermissionType.DENY,)),
    )
    pattern = literal if is_cluster else st.one_of(literal, prefixed, prefixed)
    return draw(st.lists(st.builds(AclBinding, pattern, entry), max_size=10, unique=True))


def literals_of(problem: Problem) -> st.SearchStrategy[list[AclBinding]]:
    """Draw nothing, or ACLs for the very names that were used, which tempt to take a prefix."""
    found = [
        AclBinding(
            ResourcePattern(use.resource_type, use.name, PatternType.LITERAL),
            AccessControlEntry(PRINCIPAL, "*", use.operation, AclPermissionType.ALLOW),
        )
        for use in problem.uses
        if use.name
    ]
    return st.sampled_from(([], list(dict.fromkeys(found))))


def type_of(problem: Problem) -> ResourceType:
    asked: list[Use | Denial] = [*problem.uses, *problem.denials]
    return asked[0].resource_type


def answers(authorizer: StandardAuthorizer, resource_type: ResourceType) -> dict[Question, bool]:
    """Ask everything there is to ask of one type, from hosts and about names that nobody recorded too."""
    principal = KafkaPrincipal.parse(PRINCIPAL)
    names = ("kafka-cluster",) if resource_type is ResourceType.CLUSTER else (
        *filter(None, NAMES), *(f"{segment}unseen" for segment in SEGMENTS), "hardcode", "*", "**", "*payx",
    )  # fmt: skip
    found = {}
    for host in (*HOSTS, ELSEWHERE):
        session = authorizer.session(principal, host)
        for operation, name in product(ALLOWS, names):
            found[host, operation, name] = session.decide(operation, resource_type, name).allowed
    return found


@MANY
@given(
    data=st.data(),
    problem=problems(hosts=3),
    options=OPTIONS,
    default=st.booleans(),
    root=st.sampled_from((False,) * 5 + (True,)),
)
def test_every_question_that_the_recommended_set_allows_is_allowed_today(
    data: st.DataObject, problem: Problem, options: PrivilegeOptions, default: bool, root: bool
) -> None:
    resource_type = type_of(problem)
    acls = list(dict.fromkeys(data.draw(todays(resource_type)) + data.draw(literals_of(problem))))
    super_users = frozenset({PRINCIPAL} if root else ())
    ceiling = Ceiling(acls, super_users, allow_everyone_if_no_acl_found=default)
    answer = least_privilege(problem, options, ceiling=ceiling.of_principal(PRINCIPAL))
    recommended = answers(StandardAuthorizer.of([acl.binding for acl in answer.acls]), resource_type)
    authorizer = StandardAuthorizer.of(acls, super_users=super_users, allow_everyone_if_no_acl_found=default)
    today = answers(authorizer, resource_type)
    assert [asked for asked, allowed in recommended.items() if allowed and not today[asked]] == []
    lost, opened = decides(problem, answer)
    assert lost == {unserved.use for unserved in answer.unserved}
    assert opened == set(answer.overruled)
    for unserved in answer.unserved:
        use = unserved.use
        if unserved.reason is Unserved.TODAY:
            assert use.name is not None
            assert not today[use.host, use.operation, use.name]
        else:
            assert unserved.reason in {*NO_ACL_CAN, Unserved.PROBE}


@MANY
@given(data=st.data(), problem=odd_problems(), options=OPTIONS, default=st.booleans())
def test_of_odd_values_too_nothing_recorded_is_allowed_beyond_today(
    data: st.DataObject, problem: Problem, options: PrivilegeOptions, default: bool
) -> None:
    acls = list(dict.fromkeys(data.draw(todays(type_of(problem))) + data.draw(literals_of(problem))))
    ceiling = Ceiling(acls, allow_everyone_if_no_acl_found=default).of_principal(PRINCIPAL)
    answer = least_privilege(problem, options, ceiling=ceiling)
    lost, opened = decides(problem, answer)
    assert lost == {unserved.use for unserved in answer.unserved}
    assert opened == set(answer.overruled)
    principal = KafkaPrincipal.parse(PRINCIPAL)
    authorizer = StandardAuthorizer.of(acls, allow_everyone_if_no_acl_found=default)
    for use in set(problem.uses) - lost:
        if use.name is not None:
            session = authorizer.session(principal, use.host)
            assert session.decide(use.operation, use.resource_type, use.name).allowed, use


@MANY
@given(data=st.data(), resource_type=st.sampled_from((ResourceType.TOPIC, ResourceType.CLUSTER)))
def test_of_one_name_and_one_host_the_ceiling_is_what_the_authorizer_says(
    data: st.DataObject, resource_type: ResourceType
) -> None:
    acls, default = data.draw(todays(resource_type)), data.draw(st.booleans())
    ceiling = Ceiling(acls, allow_everyone_if_no_acl_found=default).of_principal(PRINCIPAL)
    today = answers(StandardAuthorizer.of(acls, allow_everyone_if_no_acl_found=default), resource_type)
    for (host, operation, name), allowed in today.items():
        if name == "*":
            continue  # as the name of an ACL it is every name
        beyond = ceiling.beyond(resource_type, name, False, host) & ALLOWS[operation]
        assert (beyond == 0) is allowed, (host, operation, name)


def names_used(names: Sequence[str]) -> Problem:
    return Problem(
        PRINCIPAL, tuple(Use(HOSTS[0], AclOperation.READ, ResourceType.TOPIC, name) for name in names)
    )


def recommended(today: list[AclBinding], names: Sequence[str], **more: object) -> list[tuple[str, str, str]]:
    options = PrivilegeOptions(prefix_members_min=2, over_grant_weight=0, **more)  # type: ignore[arg-type]
    ceiling = Ceiling(today).of_principal(PRINCIPAL)
    found = least_privilege(names_used(names), options, ceiling=ceiling)
    return [
        (acl.binding.pattern.pattern_type.name, acl.binding.pattern.name, acl.binding.entry.host)
        for acl in found.acls
    ]


def acl(name: str, how: PatternType = PatternType.LITERAL, host: str = "*") -> AclBinding:
    entry = AccessControlEntry(PRINCIPAL, host, AclOperation.READ, AclPermissionType.ALLOW)
    return AclBinding(ResourcePattern(ResourceType.TOPIC, name, how), entry)


def test_a_prefix_is_chosen_only_where_todays_reaches_as_far() -> None:
    names = ("pay.in", "pay.out")
    literals = [("LITERAL", name, "*") for name in names]
    assert recommended([acl(name) for name in names], names) == literals
    assert recommended([acl("pay.", PatternType.PREFIXED)], names) == [("PREFIXED", "pay.", "*")]
    assert recommended([acl("pa", PatternType.PREFIXED)], names) == [("PREFIXED", "pay.", "*")]
    assert recommended([acl("*")], names) == [("PREFIXED", "pay.", "*")]
    assert recommended([acl("pay.i", PatternType.PREFIXED), acl("pay.o", PatternType.PREFIXED)], names) == (
        literals
    )


def test_the_wildcard_is_chosen_only_where_todays_is_one() -> None:
    names, earned = tuple(f"t{number}" for number in range(6)), {"wildcard_members_min": 5}
    literals = [("LITERAL", name, "*") for name in names]
    assert recommended([acl(name) for name in names], names, **earned) == literals
    assert recommended([acl("t", PatternType.PREFIXED)], names, **earned) == literals
    assert recommended([acl("*")], names, **earned) == [("LITERAL", "*", "*")]


def test_hosts_reach_no_further_than_todays() -> None:
    names = ("pay.in",)
    assert recommended([acl("pay.in", host=HOSTS[0])], names) == [("LITERAL", "pay.in", HOSTS[0])]
    assert recommended([acl("pay.in", host="10.0.0.0/8")], names) == [("LITERAL", "pay.in", HOSTS[0])]
    assert recommended([acl("pay.in")], names, hosts=HostChoice.EXACT) == [("LITERAL", "pay.in", HOSTS[0])]
    assert recommended([acl("logs")], names) == []
