"""Which ACL decided where the event does not say it, against the authorizer that wrote the whole rule."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import AclBinding, AclOperation, KafkaPrincipal, ResourceType
from kustos.acl.forms import texts_of
from kustos.analysis import Rules
from kustos.authorizer import Decision, StandardAuthorizer
from kustos.pipeline.review.deciders import Deciders, Life, RecordedDecision
from kustos.pipeline.review.matcher import Matcher, Question
from testkit.acls.small_sets import acl_sets, authorizer_of, probes, rules
from testkit.review_rows import acl

named = probes.map(
    lambda probe: Question(probe.principal, probe.host, probe.operation, probe.resource_type, probe.name)
)
by_type = st.builds(
    Question,
    st.sampled_from(["User:alice", "User:bob"]),
    st.sampled_from(["10.0.0.1", "192.168.0.9"]),
    st.sampled_from([AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE]),
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    st.none(),
)
FEW = settings(max_examples=300, deadline=None)
fields = st.sets(st.sampled_from(["operation", "host", "principal", "pattern_type", "resource_name"]))
NOTHING: dict[str, str | None] = {}

READ_PAY = acl("User:alice", "READ", "TOPIC", "pay.", prefixed=True)
READ_IN = acl("User:alice", "READ", "TOPIC", "pay.in")
ALL_IN = acl("User:alice", "ALL", "TOPIC", "pay.in")
DENY_IN = acl("User:*", "READ", "TOPIC", "pay.in", deny=True)
READING = Question("User:alice", "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, "pay.in")


def decision(authorizer: StandardAuthorizer, question: Question) -> Decision:
    session = authorizer.session(KafkaPrincipal.parse(question.principal), question.host)
    if question.name is None:
        return session.decide_by_resource_type(question.operation, question.resource_type)
    return session.decide(question.operation, question.resource_type, question.name)


def deciding(
    acls: Sequence[AclBinding], lives: Sequence[Life] | None, recorded: RecordedDecision
) -> list[AclBinding]:
    return [acls[number] for number in Deciders(Matcher(acls), lives).of(recorded)]


@FEW
@given(acls=acl_sets, settings_=rules, question=named | by_type)
def test_the_rule_worked_out_is_that_of_the_whole_event(
    acls: list[AclBinding], settings_: Rules, question: Question
) -> None:
    decided = decision(authorizer_of(acls, settings_), question)
    recorded = RecordedDecision(question, decided.allowed, 0, 0, NOTHING)
    found = [acls[number] for number in Deciders(Matcher(acls, settings_)).of(recorded)]
    if question.name is not None or decided.rule.binding is None:
        assert found == ([] if decided.rule.binding is None else [decided.rule.binding])
    else:  # for any resource of a type Kafka names one of several
        assert len(found) == 1


@FEW
@given(acls=acl_sets, settings_=rules, question=named, missing=fields)
def test_what_an_event_says_of_its_rule_is_kept(
    acls: list[AclBinding], settings_: Rules, question: Question, missing: set[str]
) -> None:
    decided = decision(authorizer_of(acls, settings_), question)
    rule = decided.rule.binding
    if rule is None:
        return
    said = {name: None if name in missing else text for name, text in texts_of(rule).items()}
    recorded = RecordedDecision(question, decided.allowed, 0, 0, said)
    (found,) = Deciders(Matcher(acls, settings_)).of(recorded)
    assert all(text in (None, texts_of(acls[found])[name]) for name, text in said.items())
    assert missing or acls[found] == rule


def test_the_acls_in_force_at_the_time_decide_and_each_that_did_counts() -> None:
    acls = [READ_PAY, READ_IN, DENY_IN]
    lives = [((0, 100),), ((0, 50), (70, 90)), ((90, 100),)]

    def at(first: int, last: int, *, allowed: bool = True) -> list[AclBinding]:
        return deciding(acls, lives, RecordedDecision(READING, allowed, first, last, NOTHING))

    # Kafka's scan goes on to shorter prefixes and ends with the last ALLOW
    last_of_both = deciding(acls[:2], None, RecordedDecision(READING, True, 0, 0, NOTHING))
    assert at(10, 20) == last_of_both
    assert at(55, 60) == [READ_PAY]
    assert set(at(10, 60)) == {*last_of_both, READ_PAY}
    assert at(91, 95, allowed=False) == [DENY_IN]
    assert set(at(40, 95)) == {*last_of_both, READ_PAY}, "a DENY allows nothing"


def test_where_no_set_agrees_each_acl_that_may_have_decided_counts() -> None:
    acls = [READ_PAY, READ_IN, DENY_IN]
    allowed = RecordedDecision(READING, True, 0, 0, NOTHING)
    assert deciding(acls, None, allowed) == [READ_PAY, READ_IN], "the DENY came later"
    assert deciding(acls[:2], None, allowed._replace(is_allowed=False)) == []
    before_the_history = [((500, 900),), ((500, 900),), ((600, 700),)]
    some = deciding(acls, before_the_history, allowed)
    assert some == [READ_PAY, READ_IN]


def test_a_rule_that_lacks_its_operation_is_one_with_what_it_does_say() -> None:
    said: dict[str, str | None] = {**texts_of(READ_PAY), "operation": None}
    acls = [ALL_IN, READ_IN, READ_PAY]
    assert deciding(acls, None, RecordedDecision(READING, True, 0, 0, said)) == [READ_PAY]
    (one,) = deciding(
        acls, None, RecordedDecision(READING, True, 0, 0, {**texts_of(READ_IN), "operation": None})
    )
    assert one in (ALL_IN, READ_IN)
    gone: dict[str, str | None] = {"resource_name": "elsewhere"}
    assert len(deciding(acls, None, RecordedDecision(READING, True, 0, 0, gone))) == 1


def test_super_users_and_what_is_no_question_are_decided_by_no_acl() -> None:
    root = Rules(super_users=frozenset({"User:alice"}))
    deciders = Deciders(Matcher([READ_IN, DENY_IN], root))
    assert deciders.of(RecordedDecision(READING, True, 0, 0, NOTHING)) == ()
    assert deciders.of(RecordedDecision(READING, False, 0, 0, NOTHING)) == (1,), "it was no super user then"
    assert deciders.of(RecordedDecision(READING._replace(principal="User:*"), True, 0, 0, NOTHING)) == ()


def test_an_acl_that_came_and_went_too_often_counts_with_all_that_match() -> None:
    flickering: Life = tuple((moment, moment + 1) for moment in range(0, 4_000, 2))
    found = deciding(
        [READ_PAY, READ_IN], [((0, 10_000),), flickering], RecordedDecision(READING, True, 0, 5_000, NOTHING)
    )
    assert found == [READ_PAY, READ_IN]
