"""Many decisions at once: what columns may be like, and what stays true between tables."""

import sys
from uuid import UUID

import pyarrow as pa
import pytest

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer import StandardAuthorizer
from kustos.extras import ExtraMissingError
from kustos.pipeline.bulk import (
    BulkAuthorizer,
    QuestionColumnError,
    authorize_many,
)
from kustos.pipeline.bulk.columns import QUESTION_COLUMNS

ROWS = 200
QUESTION = ("User:alice", "10.0.0.1", "READ", "TOPIC", "orders")


def binding(principal: str = "User:alice", host: str = "*", name: str = "orders", **more: str) -> AclBinding:
    pattern = ResourcePattern(ResourceType.TOPIC, name, PatternType[more.get("kind", "LITERAL")])
    permission = AclPermissionType[more.get("permission", "ALLOW")]
    return AclBinding(pattern, AccessControlEntry(principal, host, AclOperation.READ, permission))


def authorizer_of(*bindings: AclBinding) -> StandardAuthorizer:
    return StandardAuthorizer.of(bindings, super_users=frozenset({"User:root"}))


def table_of(*rows: tuple[str | None, ...], times: int = ROWS) -> pa.Table:
    columns = zip(*rows * times, strict=True)
    return pa.table(
        {n: pa.array(column, pa.string()) for n, column in zip(QUESTION_COLUMNS, columns, strict=True)}
    )


def results(authorizer: StandardAuthorizer, columns: object) -> list[str]:
    found: list[str] = authorize_many(authorizer, columns)["result"].to_pylist()
    return found


def test_the_host_matters_to_whom_only_an_acl_of_everybody_names_one() -> None:
    authorizer = authorizer_of(binding(), binding("User:*", "10.0.0.2", permission="DENY"))
    here, there = QUESTION, (QUESTION[0], "10.0.0.2", *QUESTION[2:])
    assert results(authorizer, table_of(here, there)) == ["ALLOWED", "DENIED"] * ROWS


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_texts_may_come_in_any_of_arrows_forms(kind: pa.DataType) -> None:
    table = table_of(QUESTION, (*QUESTION[:4], None), ("User:bob", *QUESTION[1:]), (None, *QUESTION[1:]))
    table = pa.table({name: table[name].cast(kind) for name in table.column_names})
    expected = ["ALLOWED", "ALLOWED", "DENIED", "ERROR"] * ROWS
    assert results(authorizer_of(binding()), table) == expected
    assert results(authorizer_of(binding()), table.slice(1)) == expected[1:]


def test_batches_chunks_and_mappings_are_tables() -> None:
    authorizer, table = authorizer_of(binding()), table_of(QUESTION)
    expected = ["ALLOWED"] * ROWS
    assert results(authorizer, table.to_batches()[0]) == expected
    assert results(authorizer, {name: table[name] for name in table.column_names}) == expected
    assert results(authorizer, pa.concat_tables([table, table])) == expected * 2
    assert (
        results(authorizer, table.append_column("more", table["host"]).select([5, 4, 3, 2, 1, 0])) == expected
    )


def test_no_rows_have_no_answers() -> None:
    answers = authorize_many(authorizer_of(binding()), table_of(QUESTION).slice(0, 0), with_rule=True)
    assert answers.num_rows == 0
    assert answers.column_names == ["result", "rule"]
    assert (
        results(authorizer_of(binding()), {name: pa.nulls(2) for name in QUESTION_COLUMNS}) == ["ERROR"] * 2
    )


def test_rules_are_the_texts_of_the_audit_line() -> None:
    authorizer = authorizer_of(binding(), binding(name="pay", kind="PREFIXED", permission="DENY"))
    table = table_of(
        QUESTION, (*QUESTION[:4], "payments"), (*QUESTION[:4], "else"), ("User:root", *QUESTION[1:])
    )
    rules = authorize_many(authorizer, table, with_rule=True)["rule"]
    assert rules.type == pa.dictionary(pa.int32(), pa.string())
    allowing, denying = (f"MatchingAcl(acl={acl.audit_text()})" for acl in authorizer.acls())
    assert rules.to_pylist() == [allowing, denying, "DefaultDeny", "SuperUser"] * ROWS


def test_a_change_is_in_force_with_the_next_table() -> None:
    authorizer = authorizer_of(binding())
    bulk, table = BulkAuthorizer(authorizer), table_of(QUESTION)
    assert set(bulk.authorize(table)["result"].to_pylist()) == {"ALLOWED"}
    authorizer.remove_acl(UUID(int=0))
    assert set(bulk.authorize(table)["result"].to_pylist()) == {"DENIED"}
    authorizer.reconfigure(super_users=frozenset({"User:alice"}), allow_everyone_if_no_acl_found=False)
    assert set(bulk.authorize(table)["result"].to_pylist()) == {"ALLOWED"}
    authorizer.suspend()
    assert set(bulk.authorize(table_of(("User:bob", *QUESTION[1:])))["result"].to_pylist()) == {"ERROR"}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (table_of(QUESTION).drop_columns(["host"]), "`host`"),
        (table_of(QUESTION).append_column("host", pa.nulls(ROWS)), "`host`"),
        (
            {**dict.fromkeys(QUESTION_COLUMNS, pa.array(["a"])), "host": pa.array([1])},
            "`host` has type `int64`",
        ),
        ({**dict.fromkeys(QUESTION_COLUMNS, pa.array(["a"])), "host": pa.array(["a", "b"])}, "no table"),
        ([QUESTION], "`list`"),
    ],
)
def test_other_columns_are_refused(columns: object, words: str) -> None:
    with pytest.raises(QuestionColumnError, match=words):
        authorize_many(authorizer_of(), columns)


def test_without_arrow_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("kustos.pipeline.bulk")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ExtraMissingError, match="kustos\\[arrow\\]"):
        __import__("kustos.pipeline.bulk")
