"""Theorems about bulk decisions: each row equals the decision of a session."""

import itertools
from collections.abc import Iterable
from random import Random
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    AclValueError,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer import (
    AuthorizerNotReadyError,
    InvalidActionError,
    StandardAuthorizer,
    parse_super_users,
)
from kustos.authorizer.questions import RESOURCE_TYPES
from kustos.pipeline.bulk import BulkAuthorizer, authorize_many
from kustos.pipeline.bulk.classes import NO_NAME, NameClasses
from kustos.pipeline.bulk.table import DecisionTable
from testkit.differential.generator import Shape, WorldMaker
from testkit.differential.worlds import Add, Ask, Configure, Ready, Remove, Snapshot, Start, Step

COLUMNS = ("principal", "host", "operation", "resource_type", "resource_name")
Row = tuple[str | None, str | None, str | None, str | None, str | None]
ODD: list[Row] = [
    ("User:*", "10.0.0.1", "READ", "TOPIC", "a"),
    ("alice", "10.0.0.1", "READ", "TOPIC", "a"),
    (None, "10.0.0.1", "READ", "TOPIC", "a"),
    ("User:alice", None, "READ", "TOPIC", "a"),
    ("User:alice", "10.0.0.1", "ANY", "TOPIC", "a"),
    ("User:alice", "10.0.0.1", "read", "TOPIC", "a"),
    ("User:alice", "10.0.0.1", None, "TOPIC", "a"),
    ("User:alice", "10.0.0.1", "READ", "UNKNOWN", "a"),
    ("User:alice", "10.0.0.1", "READ", None, "a"),
    (":", "", "READ", "TOPIC", ""),
    ("User:nobody-says-anything-of", "10.0.0.0/8", "READ", "TOPIC", "\0"),
]


def expected(authorizer: StandardAuthorizer, row: Row) -> tuple[str, str | None]:
    """Return the result and rule of a new session; the rule is None for an error message."""
    principal, host, operation, resource_type, name = row
    if principal is None or host is None:
        return "ERROR", None
    if operation not in AclOperation.__members__ or resource_type not in ResourceType.__members__:
        return "ERROR", None
    try:
        session = authorizer.session(KafkaPrincipal.parse(principal), host)
        asked = AclOperation[operation or ""], ResourceType[resource_type or ""]
        decision = session.decide_by_resource_type(*asked) if name is None else session.decide(*asked, name)
    except (AclValueError, InvalidActionError, AuthorizerNotReadyError):
        return "ERROR", None
    return decision.result.value, str(decision.rule)


def table_of(rows: Iterable[Row]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(
        {name: pa.array(column, pa.string()) for name, column in zip(COLUMNS, columns, strict=True)}
    )


def apply(authorizer: StandardAuthorizer, step: Step) -> None:
    match step:
        case Ready():
            authorizer.complete_initial_load()
        case Configure(super_users, default_allow):
            users = parse_super_users(super_users)
            authorizer.reconfigure(super_users=users, allow_everyone_if_no_acl_found=default_allow)
        case Add(number, binding):
            authorizer.add_acl(UUID(int=number), binding)
        case Remove(number):
            authorizer.remove_acl(UUID(int=number))
        case Snapshot(acls):
            authorizer.load_snapshot((UUID(int=acl.number), acl.binding) for acl in acls)


def asked_around(asks: list[Ask], rng: Random) -> list[Row]:
    """Return the questions of a world, crossed: every subject with many names."""
    subjects = rng.sample(asks, min(len(asks), 6))
    names = [ask.name for ask in asks]
    names += [f"{name}{end}" for name, end in itertools.product(names[:20], ["", "\0", "*", "é"])]
    kinds = rng.choices(list(RESOURCE_TYPES), k=2) + [str(ask.resource_type) for ask in subjects]
    crossed = itertools.product(subjects, names)
    rows: list[Row] = [
        (who.principal, who.host, str(rng.choice(subjects).operation), rng.choice(kinds), name)
        for who, name in crossed
    ]
    rows += ODD
    rng.shuffle(rows)
    return rows


def check(bulk: BulkAuthorizer, authorizer: StandardAuthorizer, rows: list[Row], table: pa.Table) -> None:
    answers = bulk.authorize(table)
    results, rules = answers["result"].to_pylist(), answers["rule"].to_pylist()
    for row, result, rule in zip(rows, results, rules, strict=True):
        result_expected, rule_expected = expected(authorizer, row)
        assert (row, result) == (row, result_expected)
        assert rule.startswith("Error(") if rule_expected is None else rule == rule_expected
    assert authorize_many(authorizer, table)["result"].to_pylist() == results


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.slow
def test_each_row_says_what_a_session_says(seed: int) -> None:
    rng = Random(seed)
    steps = list(WorldMaker(seed, Shape(acl_count=60, question_count=60, low_names=seed % 2 == 0)).steps())
    rows = asked_around([step for step in steps if isinstance(step, Ask)], rng)
    plain = table_of(rows)
    encoded = pa.table({name: plain[name].dictionary_encode() for name in COLUMNS})
    authorizer, bulk = StandardAuthorizer(), BulkAuthorizer(StandardAuthorizer(), with_rule=True)
    for number, step in enumerate(steps):
        if isinstance(step, Start):
            users = parse_super_users(step.super_users)
            authorizer = StandardAuthorizer(
                super_users=users, allow_everyone_if_no_acl_found=step.default_allow
            )
            bulk = BulkAuthorizer(authorizer, with_rule=True)
            if step.ready:
                authorizer.complete_initial_load()
        apply(authorizer, step)
        if number % 97 == 50:
            check(bulk, authorizer, rows, encoded if number % 2 else plain)
    check(bulk, authorizer, rows, plain)
    check(bulk, authorizer, rows, encoded)


def narrow_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit tables to two rows."""
    made = DecisionTable.__init__

    def narrow(table: DecisionTable, *args: object, **more: object) -> None:
        made(table, *args, **more)  # type: ignore[arg-type]
        object.__setattr__(table, "rows_max", 2)

    monkeypatch.setattr(DecisionTable, "__init__", narrow)


def test_a_row_of_the_table_that_another_subject_gets_names_no_rule_of_the_former(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    narrow_tables(monkeypatch)
    authorizer = StandardAuthorizer()
    subjects = [f"User:{number}" for number in range(7)]
    pattern = ResourcePattern(ResourceType.TOPIC, "t", PatternType.LITERAL)
    for number, subject in enumerate(subjects):
        entry = AccessControlEntry(subject, "*", AclOperation.READ, AclPermissionType.ALLOW)
        authorizer.add_acl(UUID(int=number), AclBinding(pattern, entry))
    authorizer.complete_initial_load()
    bulk = BulkAuthorizer(authorizer, with_rule=True)
    for subject in [*subjects, *subjects[::-1], *subjects[::2]]:
        rows: list[Row] = [(subject, "h", "READ", "TOPIC", "t")] * 100
        check(bulk, authorizer, rows, table_of(rows))


@pytest.mark.parametrize("limit", ["rows_max", "BLOCK_ROWS", "GRID_WORDS_MAX", "COUNTED_SUBJECTS_MAX"])
@pytest.mark.slow
def test_no_limit_changes_an_answer(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if limit == "rows_max":
        narrow_tables(monkeypatch)
    elif limit == "BLOCK_ROWS":
        monkeypatch.setattr("kustos.pipeline.bulk.blocks.BLOCK_ROWS", 7)
    elif limit == "GRID_WORDS_MAX":
        monkeypatch.setattr("kustos.pipeline.bulk.classes.GRID_WORDS_MAX", 0)
    else:
        monkeypatch.setattr("kustos.pipeline.bulk.subjects.COUNTED_SUBJECTS_MAX", 0)
    for seed in range(5):
        test_each_row_says_what_a_session_says(seed)


names = st.text("ab*é\0\U0001d518", max_size=12)


@given(literals=st.sets(names, max_size=12), prefixes=st.sets(names, max_size=12), asked=st.lists(names))
def test_names_of_one_class_meet_the_same_patterns(
    literals: set[str], prefixes: set[str], asked: list[str]
) -> None:
    classes = NameClasses(literals, prefixes)
    asked += [*literals, *prefixes, ""]
    numbers = classes.of(pa.array([*asked, None])).tolist()
    assert numbers.pop() == NO_NAME
    for name, number in zip(asked, numbers, strict=True):
        met = {prefix for prefix in prefixes if name.startswith(prefix)}
        assert met == {p for p in prefixes if classes.ranges[p][0] <= number < classes.ranges[p][1]}
        assert classes.literals.get(name, number) == number
        assert (number in classes.literals.values()) == (name in {*literals, "*"})
        assert bool(classes.starred[number]) == (name[:1] == "*")
        # the example of a class belongs to it
        assert classes.of(pa.array([classes.example(number)])).tolist() == [number]
