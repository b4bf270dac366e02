"""Theorems about clients with groups, each for every set of ACLs, every question and every set of groups."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

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
from kustos.auth.groups import GROUPS_MAX
from kustos.authorizer import (
    Action,
    AuthorizableRequestContext,
    AuthorizerSession,
    Decision,
    StandardAuthorizer,
)
from testkit.differential.specification import Spec, visiting_order

GROUPS = ("ops", "dev", "*")
HOSTS = ("10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1")
operations = st.sampled_from([operation for operation in AclOperation if operation > AclOperation.ANY])
names = st.text("ab*é", min_size=1, max_size=4)
kinds = st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP])
bindings = st.builds(
    AclBinding,
    st.builds(ResourcePattern, kinds, names, st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])),
    st.builds(
        AccessControlEntry,
        st.sampled_from(["User:alice", "User:*", "Group:ops", "Group:dev", "Group:*", "User:ops"]),
        st.sampled_from(["*", "*", "10.0.0.1", "10.0.0.0/8"]),
        st.one_of(st.sampled_from([AclOperation.READ, AclOperation.ALL]), operations),
        st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY]),
    ),
)
acl_sets = st.lists(bindings, max_size=30, unique=True)
group_sets = st.lists(st.sampled_from(GROUPS), max_size=3, unique=True).map(tuple)
questions = st.tuples(st.sampled_from(HOSTS), operations, kinds, names)
Question = tuple[str, AclOperation, ResourceType, str]


def authorizer_of(acls: Sequence[AclBinding], *, default: bool = False) -> StandardAuthorizer:
    return StandardAuthorizer.of(
        acls,
        super_users=frozenset({"User:root", "Group:root"}),
        allow_everyone_if_no_acl_found=default,
    )


def alice(groups: tuple[str, ...]) -> KafkaPrincipal:
    return KafkaPrincipal("User", "alice", groups=groups)


def ask(authorizer: StandardAuthorizer, groups: tuple[str, ...], question: Question) -> Decision:
    host, operation, kind, name = question
    return authorizer.session(alice(groups), host).decide(operation, kind, name)


def as_one_principal(acls: Sequence[AclBinding], groups: tuple[str, ...]) -> list[AclBinding]:
    """Return the ACLs that give alice herself what her groups have."""
    texts = {f"Group:{name}" for name in groups}
    given = (
        AclBinding(acl.pattern, replace(acl.entry, principal="User:alice"))
        if acl.entry.principal in texts
        else acl
        for acl in acls
    )
    return list(dict.fromkeys(given))


@given(acl_sets, group_sets, questions, st.booleans())
def test_a_denied_member_is_denied_and_else_an_allowed_member_is_allowed(
    acls: list[AclBinding], groups: tuple[str, ...], question: Question, default: bool
) -> None:
    decision = ask(authorizer_of(acls, default=default), groups, question)
    spec = Spec(acls, default_allow=default)
    alone = [spec.authorize(each, *question) for each in ("User:alice", *(f"Group:{g}" for g in groups))]
    by_acl = [(allowed, rule) for allowed, rule in alone if isinstance(rule, AclBinding)]
    if not by_acl:
        assert {(decision.allowed, decision.rule.kind.value)} == set(alone)
        return
    assert decision.allowed == all(allowed for allowed, _ in by_acl)
    deciding = [rule for allowed, rule in by_acl if allowed == decision.allowed]
    visited = sorted(deciding, key=lambda acl: visiting_order(acl, question[3]))
    assert decision.rule.binding == visited[-1 if decision.allowed else 0]


@given(acl_sets, group_sets, questions, st.booleans())
def test_a_client_has_what_it_had_if_the_acls_of_its_groups_were_its_own(
    acls: list[AclBinding], groups: tuple[str, ...], question: Question, default: bool
) -> None:
    grouped = authorizer_of(acls, default=default)
    spec = Spec(as_one_principal(acls, groups), default_allow=default)
    assert ask(grouped, groups, question).allowed == spec.authorize("User:alice", *question)[0]
    host, operation, kind, _ = question
    by_type = grouped.session(alice(groups), host).decide_by_resource_type(operation, kind)
    assert by_type.allowed == spec.by_resource_type("User:alice", host, operation, kind)


@given(acl_sets, group_sets, questions)
def test_the_order_of_the_groups_changes_nothing(
    acls: list[AclBinding], groups: tuple[str, ...], question: Question
) -> None:
    authorizer = authorizer_of(acls)
    assert ask(authorizer, groups, question) == ask(authorizer, groups[::-1], question)


@given(acl_sets, group_sets, questions)
def test_groups_make_no_super_user_and_take_nothing_from_one(
    acls: list[AclBinding], groups: tuple[str, ...], question: Question
) -> None:
    authorizer = authorizer_of(acls)
    assert ask(authorizer, (*groups, "root"), question) == ask(authorizer, groups, question)
    host, operation, kind, name = question
    root = KafkaPrincipal("User", "root", groups=groups)
    assert authorizer.session(root, host).decide(operation, kind, name).allowed
    assert authorizer.session(root, host).decide_by_resource_type(operation, kind).allowed


@given(
    acl_sets,
    st.lists(group_sets, min_size=2, max_size=3),
    st.lists(st.tuples(questions, bindings), max_size=10),
)
def test_sessions_with_other_groups_stay_apart_whatever_changes(
    acls: list[AclBinding], sets: list[tuple[str, ...]], asked: list[tuple[Question, AclBinding]]
) -> None:
    authorizer = authorizer_of(acls)
    live = {acl: UUID(int=number) for number, acl in enumerate(acls)}
    sessions: dict[tuple[tuple[str, ...], str], AuthorizerSession] = {}
    for number, ((host, operation, kind, name), acl) in enumerate(asked):
        if acl in live:
            authorizer.remove_acl(live.pop(acl))
        else:
            live[acl] = UUID(int=1000 + number)
            authorizer.add_acl(live[acl], acl)
        for groups in sets:
            spec = Spec(as_one_principal(list(live), groups))
            session = sessions.setdefault((groups, host), authorizer.session(alice(groups), host))
            context = AuthorizableRequestContext(alice(groups), host)
            decision = session.decide(operation, kind, name)
            assert decision.allowed == spec.authorize("User:alice", host, operation, kind, name)[0]
            assert authorizer.authorize(context, [Action(kind, name, operation)]) == [decision]
            by_type = session.decide_by_resource_type(operation, kind)
            assert by_type.allowed == spec.by_resource_type("User:alice", host, operation, kind)
            assert authorizer.authorize_by_resource_type(context, operation, kind) == by_type


def test_a_client_in_as_many_groups_as_are_accepted_gets_decisions() -> None:
    groups = tuple(f"g{number}" for number in range(GROUPS_MAX))

    def acl(principal: str, permission: AclPermissionType) -> AclBinding:
        entry = AccessControlEntry(principal, "*", AclOperation.READ, permission)
        return AclBinding(ResourcePattern(ResourceType.TOPIC, "a"), entry)

    acls = [acl(each, AclPermissionType.ALLOW) for each in ("User:alice", "User:*")]
    acls += [acl(f"Group:{name}", AclPermissionType.ALLOW) for name in groups]
    question = ("10.0.0.1", AclOperation.READ, ResourceType.TOPIC, "a")
    assert ask(authorizer_of(acls), groups, question).allowed
    denying = acl(f"Group:{groups[-1]}", AclPermissionType.DENY)
    assert ask(authorizer_of([*acls, denying]), groups, question).rule.binding == denying
