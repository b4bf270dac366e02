"""The walk through time, beside asking the state of each moment again."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import AclBinding, AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.acl.forms import binding_of_texts
from kustos.authorizer import StandardAuthorizer
from kustos.authorizer.questions import Fault, Questioner
from kustos.pipeline.errors import MetadataHistoryError
from kustos.pipeline.history import walk as walking
from kustos.pipeline.history.walk import ADDED, FIRST_ORDER, QUERY, REMOVED, Settings, Walk
from kustos.pipeline.schemas import ACL_SCHEMA, QUESTION_COLUMNS
from kustos.wire import uuid_text
from tests.pipeline.history.worlds import NAMES, PRINCIPALS, World, random_world

HOST = "10.0.0.1"
SCHEMA = pa.schema(
    [
        *[(name, pa.string()) for name in QUESTION_COLUMNS],
        ("recorded_decision", pa.string()),
        ("recorded_rule", pa.struct([(name, pa.string()) for name in ("kind", *ACL_SCHEMA.fieldNames())])),
        ("number", pa.int64()),
        ("lane", pa.int32()),
        ("bucket", pa.int32()),
        ("order", pa.int64()),
        ("step", pa.int32()),
        ("until", pa.int64()),
        ("preset", pa.string()),
        ("acl_id", pa.string()),
        ("acl", pa.struct([(name, pa.string()) for name in ACL_SCHEMA.fieldNames()])),
    ]
)


@dataclass(frozen=True)
class Asked:
    """A question, what was recorded, and from when to when it may have been."""

    question: tuple[str, str, str, str, str]
    recorded: str
    first: int
    last: int


def texts(fields: tuple[Any, ...]) -> dict[str, str]:
    kind, name, pattern, principal, host, operation, permission = fields
    values = (
        ResourceType(kind).name, name, PatternType(pattern).name, principal, host,
        AclOperation(operation).name, AclPermissionType(permission).name,
    )  # fmt: skip
    return dict(zip(ACL_SCHEMA.fieldNames(), values, strict=True))


def bindings(acls: dict[Any, tuple[Any, ...]]) -> list[AclBinding]:
    return [binding_of_texts(texts(fields)) for fields in acls.values()]


def decided(acls: dict[Any, tuple[Any, ...]], settings: Settings, question: tuple[str, ...]) -> str:
    authorizer = StandardAuthorizer.of(
        bindings(acls),
        super_users=settings.super_users,
        allow_everyone_if_no_acl_found=settings.allow_everyone_if_no_acl_found,
    )
    questioner = Questioner(authorizer)
    return questioner.write(questioner.ask(*question))[0]


def questions(random: Random, count: int, last: int) -> list[Asked]:
    made = []
    for _ in range(count):
        first = random.randint(0, last)
        question = (
            random.choice([*PRINCIPALS[:2], "User:s"]), HOST, random.choice(("READ", "DESCRIBE")), "TOPIC",
            random.choice(NAMES[:3]),
        )  # fmt: skip
        recorded = random.choice(("ALLOWED", "DENIED"))
        made.append(Asked(question, recorded, first, min(last, first + random.choice((0, 0, 1, 5)))))
    return made


def rows_of(world: World, asked: list[Asked], since: int) -> Iterator[dict[str, Any]]:
    """The sorted rows of one bucket; `since`: ACLs of this offset come as those of a first snapshot."""
    states = world.states()
    rows: list[tuple[Any, dict[str, Any]]] = []
    for acl_id, acl in states[since].acls.items():
        rows.append(((FIRST_ORDER, 0), row(FIRST_ORDER, ADDED, acl_id=uuid_text(acl_id), acl=texts(acl))))
    for offset in range(since + 1, len(states)):
        before, after = states[offset - 1].acls, states[offset].acls
        for acl_id in before.keys() - after.keys():
            said = row(offset, REMOVED, acl_id=uuid_text(acl_id))
            rows.append(((offset, 0, 0), said))
        for acl_id in after.keys() - before.keys():
            said = row(offset, ADDED, acl_id=uuid_text(acl_id), acl=texts(after[acl_id]))
            rows.append(((offset, 0, 1), said))
    for number, each in enumerate(asked):
        said = row(each.first, QUERY, until=each.last, recorded_decision=each.recorded, number=number)
        rows.append(((each.first, 1), {**said, **dict(zip(QUESTION_COLUMNS, each.question, strict=True))}))
    for _, said in sorted(rows, key=lambda each: each[0]):
        yield said


def row(order: int, step: int, **said: Any) -> dict[str, Any]:
    return {"lane": 0, "bucket": 0, "order": order, "step": step, **said}


def walked(rows: list[dict[str, Any]], settings: Settings, size: int) -> dict[int, dict[str, Any]]:
    batches = pa.Table.from_pylist(rows, SCHEMA).to_batches(max_chunksize=size)
    answers = [each for batch in Walk(settings).judged(iter(batches)) for each in batch.to_pylist()]
    assert len(answers) == len({each["number"] for each in answers})
    return {each["number"]: each for each in answers}


SETTINGS = st.builds(Settings, st.sampled_from([frozenset[str](), frozenset({"User:s"})]), st.booleans())


@given(random=st.randoms(use_true_random=False), settings=SETTINGS, size=st.integers(1, 50))
def test_an_answer_agrees_if_and_only_if_a_state_of_its_time_gives_it(
    random: Random, settings: Settings, size: int
) -> None:
    world = random_world(random)
    states = world.states()
    since = random.randint(0, len(states) - 1)
    asked = [each for each in questions(random, 20, len(states) - 1) if each.first >= since]
    found = walked(list(rows_of(world, asked, since)), settings, size)
    assert sorted(found) == list(range(len(asked)))
    for number, each in enumerate(asked):
        answers = [
            decided(states[offset].acls, settings, each.question)
            for offset in range(each.first, each.last + 1)
        ]
        expected = "AGREES" if each.recorded in answers else "DIFFERS"
        assert (found[number]["verdict"], found[number]["recorded_decision"]) == (expected, each.recorded)
        assert found[number]["decision"] in answers
        assert (found[number]["decision"] == each.recorded) is (expected == "AGREES")
        assert tuple(found[number][name] for name in QUESTION_COLUMNS) == each.question


@given(random=st.randoms(use_true_random=False), size=st.integers(1, 50))
def test_buckets_and_lanes_do_not_meet(random: Random, size: int) -> None:
    worlds = [random_world(random, batches=4) for _ in range(3)]
    apart, together = [], []
    for place, world in enumerate(worlds):
        asked = questions(random, 8, len(world.states()) - 1)
        rows = list(rows_of(world, asked, 0))
        alone = walked(rows, Settings(), size)
        apart += [(place, number, each["verdict"], each["rule"]) for number, each in alone.items()]
        for each in rows:
            number = None if each.get("number") is None else each["number"] + 100 * place
            together.append({**each, "lane": place // 2, "bucket": place, "number": number})
    found = walked(together, Settings(), size)
    assert sorted(apart) == sorted(
        (number // 100, number % 100, each["verdict"], each["rule"]) for number, each in found.items()
    )


ACL = dict(
    zip(ACL_SCHEMA.fieldNames(), ("TOPIC", "a", "LITERAL", "User:p", "*", "READ", "ALLOW"), strict=True)
)
QUESTION = dict(zip(QUESTION_COLUMNS, ("User:p", HOST, "READ", "TOPIC", "a"), strict=True))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"kind": "MatchingAcl", **ACL}, True),
        ({"kind": "MatchingAcl", **ACL, "host": HOST}, False),
        ({"kind": "MatchingAcl", **ACL, "operation": None}, None),
        ({"kind": "MatchingAcl", **ACL, "operation": None, "host": HOST}, False),
        ({"kind": "SuperUser"}, False),
        ({"kind": None}, None),
        (None, None),
    ],
)
def test_the_recorded_rule_is_compared(rule: dict[str, Any] | None, expected: bool | None) -> None:
    added = row(3, ADDED, acl_id="AAAAAAAAAAAAAAAAAAAAAQ", acl=ACL)
    asked = row(3, QUERY, until=3, recorded_decision="ALLOWED", recorded_rule=rule, number=0, **QUESTION)
    answer = walked([added, asked], Settings(), 10)[0]
    assert answer["verdict"] == "AGREES"
    assert answer["is_same_rule"] is expected
    assert answer["rule"].startswith("MatchingAcl(acl=")


def test_what_is_no_question_allows_nothing() -> None:
    asked = [
        {**row(3, QUERY, until=3, recorded_decision=recorded, number=number), **QUESTION, "operation": "FLY"}
        for number, recorded in enumerate(("DENIED", "ALLOWED"))
    ]
    found = walked(asked, Settings(), 10)
    assert [found[number]["verdict"] for number in (0, 1)] == ["AGREES", "DIFFERS"]
    assert found[0]["decision"] == "ERROR"
    assert isinstance(Questioner(StandardAuthorizer.of([])).ask("x", HOST, "READ", "TOPIC", "a"), Fault)


def test_more_open_questions_than_are_held_are_uncertain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "OPEN_QUESTIONS_MAX", 2)
    asked = [
        {**row(3, QUERY, until=9, recorded_decision="ALLOWED", number=number), **QUESTION}
        for number in range(3)
    ]
    added = row(5, ADDED, acl_id="AAAAAAAAAAAAAAAAAAAAAQ", acl=ACL)
    found = walked([*asked, added], Settings(), 10)
    assert [found[number]["verdict"] for number in range(3)] == ["AGREES", "AGREES", "UNCERTAIN"]


def test_a_history_of_no_one_log_is_refused() -> None:
    with pytest.raises(MetadataHistoryError, match="`AAAAAAAAAAAAAAAAAAAAAQ` is not that of one log"):
        walked([row(3, REMOVED, acl_id="AAAAAAAAAAAAAAAAAAAAAQ")], Settings(), 10)
