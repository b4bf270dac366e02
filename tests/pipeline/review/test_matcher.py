"""What a decision rests on, against the authorizer asked again without the ACLs in question."""

from collections.abc import Iterable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import AclBinding, AclOperation, KafkaPrincipal, ResourceType, host_matches
from kustos.analysis import Probe, Rules
from kustos.analysis.explain import names
from kustos.authorizer import Decision, StandardAuthorizer
from kustos.authorizer.index.cells import ALLOWS, DENIES, binding_mask
from kustos.pipeline.review.matcher import NOBODY, Matcher, Question
from testkit.acls.small_sets import acl_sets, authorizer_of, probes, rules, subjects

questions = probes.map(
    lambda probe: Question(probe.principal, probe.host, probe.operation, probe.resource_type, probe.name)
)
by_type = st.builds(
    Question,
    st.sampled_from(subjects),
    st.sampled_from(["10.0.0.1", "192.168.0.9"]),
    st.sampled_from([AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE]),
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    st.none(),
)
any_questions = questions | by_type
FEW = settings(max_examples=300, deadline=None)


def decision(authorizer: StandardAuthorizer, question: Question) -> Decision:
    session = authorizer.session(KafkaPrincipal.parse(question.principal), question.host)
    if question.name is None:
        return session.decide_by_resource_type(question.operation, question.resource_type)
    return session.decide(question.operation, question.resource_type, question.name)


def without(acls: Sequence[AclBinding], gone: Iterable[int]) -> list[AclBinding]:
    taken = set(gone)
    return [acl for number, acl in enumerate(acls) if number not in taken]


@FEW
@given(acls=acl_sets, settings_=rules, question=any_questions)
def test_the_basis_is_the_kind_of_rule_that_allows(
    acls: list[AclBinding], settings_: Rules, question: Question
) -> None:
    found = Matcher(acls, settings_).matching(question)
    decided = decision(authorizer_of(acls, settings_), question)
    assert found.basis == (decided.rule.kind.value if decided.allowed else NOBODY)


@FEW
@given(acls=acl_sets, settings_=rules, question=questions)
def test_the_acls_that_match_are_those_that_speak_of_the_question(
    acls: list[AclBinding], settings_: Rules, question: Question
) -> None:
    found = Matcher(acls, settings_).matching(question)
    if question.principal in settings_.super_users:
        assert (found.allows, found.denies) == ((), ())
        return
    probe = Probe(*question[:4], question.name or "")
    speaking = [
        number
        for number, acl in enumerate(acls)
        if acl.entry.principal in (question.principal, "User:*")
        and host_matches(acl.entry.host, question.host)
        and names(acl.pattern, probe)
    ]
    for bits, told in ((ALLOWS, found.allows), (DENIES, found.denies)):
        bit = bits[question.operation]
        assert list(told) == [number for number in speaking if binding_mask(acls[number]) & bit]


@FEW
@given(acls=acl_sets, settings_=rules, question=any_questions)
def test_needed_are_exactly_those_acls_without_which_alone_the_decision_changes(
    acls: list[AclBinding], settings_: Rules, question: Question
) -> None:
    now = decision(authorizer_of(acls, settings_), question).allowed
    turning = [
        number
        for number in range(len(acls))
        if decision(authorizer_of(without(acls, [number]), settings_), question).allowed is not now
    ]
    assert list(Matcher(acls, settings_).matching(question).needed) == turning


@FEW
@given(acls=acl_sets, settings_=rules, question=any_questions, data=st.data())
def test_nothing_changes_while_one_of_each_resting_set_stays(
    acls: list[AclBinding], settings_: Rules, question: Question, data: st.DataObject
) -> None:
    found = Matcher(acls, settings_).matching(question)
    gone = data.draw(st.sets(st.integers(0, max(0, len(acls) - 1))))
    for some in found.resting:
        if gone.issuperset(some):
            gone.discard(data.draw(st.sampled_from(some)))
    now = decision(authorizer_of(acls, settings_), question).allowed
    assert decision(authorizer_of(without(acls, gone), settings_), question).allowed is now


@FEW
@given(acls=acl_sets, settings_=rules, some=st.lists(by_type, max_size=4))
def test_questions_by_type_leave_the_matcher_as_it_was(
    acls: list[AclBinding], settings_: Rules, some: list[Question]
) -> None:
    matcher = Matcher(acls, settings_)
    first = [matcher.matching(question) for question in some]
    assert [matcher.matching(question) for question in some] == first


def test_what_is_no_question_rests_on_nothing() -> None:
    matcher = Matcher([], Rules(allow_everyone_if_no_acl_found=True))
    for texts in (
        ("User:a", "10.0.0.1", "FLY", "TOPIC", "a"),
        ("User:a", "10.0.0.1", "READ", "PLANET", "a"),
        ("User:*", "10.0.0.1", "READ", "TOPIC", "a"),
        ("nobody", "10.0.0.1", "READ", "TOPIC", None),
    ):
        assert matcher.matching(Question.of_texts(*texts)).basis == NOBODY
