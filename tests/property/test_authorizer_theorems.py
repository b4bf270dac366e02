"""Theorems about the authorizer, each for every set of ACLs and every question."""

from collections.abc import Sequence
from random import Random
from uuid import UUID

import pytest
from hypothesis import assume, given
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
from kustos.authorizer import (
    Action,
    AuthorizableRequestContext,
    Decision,
    RuleKind,
    StandardAuthorizer,
)
from testkit.differential.specification import Spec

OPERATIONS = [operation for operation in AclOperation if operation > AclOperation.ANY]
operations = st.sampled_from(OPERATIONS)
names = st.text("ab*é", min_size=1, max_size=5)
principals = st.sampled_from(["User:alice", "User:bob", "User:*"])
acl_hosts = st.sampled_from(["*", "*", "10.0.0.1", "10.0.0.0/8", "::/0"])
kinds = st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP])
pattern_types = st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])
permissions = st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY])
bindings = st.builds(
    AclBinding,
    st.builds(ResourcePattern, kinds, names, pattern_types),
    st.builds(AccessControlEntry, principals, acl_hosts, operations, permissions),
)
acl_sets = st.lists(bindings, max_size=25, unique=True)
subjects = st.sampled_from(["User:alice", "User:bob", "Group:ops"])
questions = st.tuples(
    subjects, st.sampled_from(["10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1"]), operations, kinds, names
)
Question = tuple[str, str, AclOperation, ResourceType, str]


def authorizer_of(acls: Sequence[AclBinding], *, default_allow: bool = False) -> StandardAuthorizer:
    return StandardAuthorizer.of(
        acls, super_users=frozenset({"User:root"}), allow_everyone_if_no_acl_found=default_allow
    )


def ask(authorizer: StandardAuthorizer, question: Question) -> Decision:
    principal, host, operation, kind, name = question
    return authorizer.session(KafkaPrincipal.parse(principal), host).decide(operation, kind, name)


def ask_any(authorizer: StandardAuthorizer, question: Question) -> Decision:
    principal, host, operation, kind, _ = question
    session = authorizer.session(KafkaPrincipal.parse(principal), host)
    return session.decide_by_resource_type(operation, kind)


def matching(question: Question, permission: AclPermissionType, length: int) -> AclBinding:
    """Return an ACL that matches a question: literal, or prefixed with `length` characters."""
    principal, host, operation, kind, name = question
    pattern_type = PatternType.PREFIXED if length < len(name) else PatternType.LITERAL
    pattern = ResourcePattern(kind, name[: max(length, 1)], pattern_type)
    return AclBinding(pattern, AccessControlEntry(principal, host, operation, permission))


@given(acl_sets, questions, st.booleans())
def test_authorizer_equals_specification(acls: list[AclBinding], question: Question, default: bool) -> None:
    decision = ask(authorizer_of(acls, default_allow=default), question)
    expected = Spec(acls, default_allow=default).authorize(*question)
    assert (decision.allowed, decision.rule.binding or decision.rule.kind.value) == expected


@given(acl_sets, questions, st.booleans())
def test_by_type_equals_specification(acls: list[AclBinding], question: Question, default: bool) -> None:
    allowed = ask_any(authorizer_of(acls, default_allow=default), question).allowed
    assert allowed == Spec(acls, default_allow=default).by_resource_type(*question[:4])


@pytest.mark.behaviour("B029", "B030")
@given(acl_sets, questions, st.integers(1, 5), st.booleans())
def test_deny_trumps_allow(acls: list[AclBinding], question: Question, length: int, default: bool) -> None:
    deny = matching(question, AclPermissionType.DENY, length)
    assume(deny not in acls)
    decision = ask(authorizer_of([*acls, deny], default_allow=default), question)
    assert not decision.allowed
    assert decision.rule.kind is RuleKind.MATCHING_ACL


@pytest.mark.behaviour("B031", "B032")
@given(acl_sets, questions, st.integers(1, 5))
def test_allow_wins_without_denies(acls: list[AclBinding], question: Question, length: int) -> None:
    allow = matching(question, AclPermissionType.ALLOW, length)
    allowing = [acl for acl in acls if acl.entry.permission_type is AclPermissionType.ALLOW and acl != allow]
    assert ask(authorizer_of([*allowing, allow]), question).allowed


@given(acl_sets, questions)
def test_nothing_is_allowed_without_an_allow(acls: list[AclBinding], question: Question) -> None:
    denying = [acl for acl in acls if acl.entry.permission_type is AclPermissionType.DENY]
    authorizer = authorizer_of(denying)
    assert not ask(authorizer, question).allowed
    assert not ask_any(authorizer, question).allowed


@given(acl_sets, questions)
def test_an_allow_never_removes_and_a_deny_never_grants(acls: list[AclBinding], question: Question) -> None:
    assume(acls)
    fewer, more = authorizer_of(acls[1:]), authorizer_of(acls)
    if acls[0].entry.permission_type is AclPermissionType.ALLOW:
        assert ask(more, question).allowed >= ask(fewer, question).allowed
        assert ask_any(more, question).allowed >= ask_any(fewer, question).allowed
    else:
        assert ask(more, question).allowed <= ask(fewer, question).allowed
        assert ask_any(more, question).allowed <= ask_any(fewer, question).allowed


@given(acl_sets, bindings, st.lists(questions, min_size=1, max_size=8), st.booleans())
def test_removing_added_acls_restores_the_decisions(
    acls: list[AclBinding], added: AclBinding, asked: list[Question], default: bool
) -> None:
    assume(added not in acls)
    authorizer = authorizer_of(acls, default_allow=default)
    before = [(ask(authorizer, question), ask_any(authorizer, question).allowed) for question in asked]
    authorizer.add_acl(UUID(int=1000), added)
    for question in asked:
        ask(authorizer, question)
    authorizer.remove_acl(UUID(int=1000))
    after = [(ask(authorizer, question), ask_any(authorizer, question).allowed) for question in asked]
    assert after == before


@given(acl_sets, st.lists(questions, min_size=1, max_size=8), st.randoms(), st.booleans())
def test_snapshot_equals_adds_in_any_order(
    acls: list[AclBinding], asked: list[Question], chance: Random, default: bool
) -> None:
    loaded = authorizer_of(acls, default_allow=default)
    added = authorizer_of([], default_allow=default)
    sessions = [added.session(KafkaPrincipal.parse(question[0]), question[1]) for question in asked]
    shuffled = chance.sample(acls, len(acls))
    for number, acl in enumerate(shuffled):
        added.add_acl(UUID(int=number), acl)
        session, (_, _, operation, kind, name) = sessions[number % len(sessions)], asked[number % len(asked)]
        session.decide(operation, kind, name)
    for session, question in zip(sessions, asked, strict=True):
        assert session.decide(*question[2:]) == ask(loaded, question)


@given(acl_sets, st.lists(questions, max_size=12), st.lists(bindings, max_size=12))
def test_session_equals_authorize_whatever_changes(
    acls: list[AclBinding], asked: list[Question], changes: list[AclBinding]
) -> None:
    authorizer = authorizer_of(acls)
    live = {acl: UUID(int=number) for number, acl in enumerate(acls)}
    principal, host = KafkaPrincipal("User", "alice"), "10.0.0.1"
    session = authorizer.session(principal, host)
    context = AuthorizableRequestContext(principal, host)
    for number, (_, _, operation, kind, name) in enumerate(asked * 2):
        if number < len(changes):
            acl = changes[number]
            if acl in live:
                authorizer.remove_acl(live.pop(acl))
            else:
                live[acl] = UUID(int=1000 + number)
                authorizer.add_acl(live[acl], acl)
        [decision] = authorizer.authorize(context, [Action(kind, name, operation)])
        assert session.decide(operation, kind, name) == decision
        fresh = authorizer_of(list(live))
        assert decision == ask(fresh, ("User:alice", host, operation, kind, name))
        by_type = fresh.authorize_by_resource_type(context, operation, kind).allowed
        assert session.decide_by_resource_type(operation, kind).allowed == by_type


@pytest.mark.behaviour("B101")
@given(acl_sets, questions)
def test_super_users_may_do_everything(acls: list[AclBinding], question: Question) -> None:
    as_root = ("User:root", *question[1:])
    authorizer = authorizer_of(acls)
    assert ask(authorizer, as_root).rule.kind is RuleKind.SUPER_USER
    assert ask_any(authorizer, as_root).rule.kind is RuleKind.SUPER_USER


@given(acl_sets, questions, bindings)
def test_acls_of_others_matter_only_for_default_allow(
    acls: list[AclBinding], question: Question, other: AclBinding
) -> None:
    foreign = AclBinding(
        other.pattern,
        AccessControlEntry(
            "User:carol", other.entry.host, other.entry.operation, other.entry.permission_type
        ),
    )
    assert ask(authorizer_of([*acls, foreign]), question) == ask(authorizer_of(acls), question)
    with_default = ask(authorizer_of([*acls, foreign], default_allow=True), question)
    without_foreign = ask(authorizer_of(acls, default_allow=True), question)
    assert with_default.allowed <= without_foreign.allowed


@given(acl_sets, questions)
def test_the_named_rule_alone_explains_the_decision(acls: list[AclBinding], question: Question) -> None:
    decision = ask(authorizer_of(acls), question)
    reason = [] if decision.rule.binding is None else [decision.rule.binding]
    assert ask(authorizer_of(reason), question) == decision


@given(acl_sets, questions)
def test_a_right_by_name_is_a_right_by_type_unless_implied_or_dominated(
    acls: list[AclBinding], question: Question
) -> None:
    allowing = [acl for acl in acls if acl.entry.permission_type is AclPermissionType.ALLOW]
    authorizer = authorizer_of(allowing)
    decision = ask(authorizer, question)
    binding = decision.rule.binding
    if binding is not None and binding.entry.operation in (question[2], AclOperation.ALL):
        assert ask_any(authorizer, question).allowed
