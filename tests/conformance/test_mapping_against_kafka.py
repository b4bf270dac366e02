"""Our rules for names of principals against Kafka's own classes, over drawn rules and names."""

from kustos.auth.mapping import rfc2253_of_der
from testkit.seeds import seed_of_run
from tests.conformance.mapping_probe import (
    GOLDEN_COUNT,
    GOLDEN_SEED,
    NONE,
    RULES,
    differences,
    draw,
    kafkas_answers,
    our_answer,
)


def test_drawn_rules_and_names_are_mapped_alike() -> None:
    questions = draw(seed_of_run(), 2000)
    theirs = kafkas_answers(questions)
    assert differences(questions, theirs)[:5] == []
    refused = [question for question, answers in zip(questions, theirs, strict=True) if answers == [RULES]]
    assert all(our_answer(question) == [RULES] for question in refused)
    given = [name for answers in theirs for name in answers if not name.startswith("!")]
    assert len(given) > 3000


def test_the_recorded_questions_are_those_that_are_drawn() -> None:
    import json

    from tests.conformance.mapping_probe import GOLDEN

    recorded = [question for question, _ in json.loads(GOLDEN.read_text(encoding="utf-8"))]
    assert recorded == draw(GOLDEN_SEED, GOLDEN_COUNT)


def test_an_unreadable_name_is_refused_where_java_replaces_it() -> None:
    question = ["x500", bytes.fromhex("300c310a300806035504030c01c3").decode("latin-1")]
    assert kafkas_answers([question]) == [["CN=\N{REPLACEMENT CHARACTER}"]]
    assert our_answer(question) == [NONE]
    assert rfc2253_of_der(bytes.fromhex("300c310a300806035504030c0141")) == "CN=A"
