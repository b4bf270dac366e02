"""Theorems about the forms of ACLs: every form reads back what it wrote, and nothing else."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kustos.acl import (
    AclBinding,
    AclValueError,
)
from kustos.acl.forms import (
    AclForm,
    AclFormatError,
    binding_of_texts,
    detect_form,
    read_acls,
    texts_of,
    write_acls,
)
from kustos.acl.forms.fields import FIELDS
from testkit.acls.strategies import acl_sets, bindings

ENUM_FIELDS = {"resource_type", "pattern_type", "operation", "permission_type"}
every_form = pytest.mark.parametrize("form", AclForm)
ORDERED = [form for form in AclForm if form is not AclForm.KAFKA_ACLS]


def is_expressible(acl: AclBinding) -> bool:
    """Return whether the output of `kafka-acls --list` is unambiguous for this ACL."""
    who = f"{acl.entry.principal}, host={acl.entry.host}"
    return who.count(", host=") == 1 and "\n" not in who + acl.pattern.name


@given(bindings)
def test_the_texts_of_an_acl_make_it_again(acl: AclBinding) -> None:
    assert binding_of_texts({"acl_id": "a row has more", **texts_of(acl)}) == acl


@given(bindings, st.sampled_from(FIELDS))
def test_texts_of_no_acl_make_none(acl: AclBinding, field: str) -> None:
    texts = texts_of(acl)
    lacking = {name: text for name, text in texts.items() if name != field}
    with pytest.raises(AclValueError, match=f"`{field}`"):
        binding_of_texts(lacking)
    for wrong in (None, "ANY", "read") if field in ENUM_FIELDS else (None,):
        with pytest.raises(AclValueError):
            binding_of_texts({**texts, field: wrong})


@pytest.mark.parametrize("form", ORDERED)
@given(acl_sets)
def test_what_is_written_is_read_back(form: AclForm, acls: list[AclBinding]) -> None:
    text = write_acls(acls, form)
    assert [located.binding for located in read_acls(text, form, "x")] == acls


@given(acl_sets)
def test_kafkas_list_is_read_back_or_refused(acls: list[AclBinding]) -> None:
    if not all(is_expressible(acl) for acl in acls):
        with pytest.raises(AclFormatError):
            write_acls(acls, AclForm.KAFKA_ACLS)
        return
    text = write_acls(acls, AclForm.KAFKA_ACLS)
    found = [located.binding for located in read_acls(text, AclForm.KAFKA_ACLS, "x")]
    assert set(found) == set(acls)
    assert len(found) == len(acls)


@every_form
@given(acl_sets.filter(bool))
def test_each_line_is_where_its_acl_begins(form: AclForm, acls: list[AclBinding]) -> None:
    try:
        text = write_acls(acls, form)
    except AclFormatError:
        return
    located = read_acls(text, form, "x")
    lines = [each.line for each in located]
    assert lines == sorted(lines)
    alone = write_acls([located[0].binding], form)
    # the text before the first ACL does not depend on it, except the paragraph that Kafka opens
    assert read_acls(alone, form, "x")[0].line == lines[0]
    rows = text.split("\n")
    marks = {AclForm.JSON: "{", AclForm.YAML: "- resource_type", AclForm.CSV: '"'}
    mark = marks.get(form, '{"resource_type"' if form is AclForm.JSON_LINES else "\t(principal=")
    assert all(rows[line - 1].strip(" ").startswith(mark) for line in lines)


@every_form
@given(st.text(max_size=200))
@example("[" * 100_000)
@example("- " * 2000)
@example("{" * 5000)
def test_any_text_is_acls_or_one_error(form: AclForm, text: str) -> None:
    wrong: AclFormatError | None = None
    try:
        read_acls(text, form, "x")
    except AclFormatError as error:
        wrong = error
    if wrong is not None:
        assert wrong.place is not None
        assert 1 <= wrong.place.line <= sum(text.count(mark) for mark in "\n\r\x85\u2028\u2029") + 1
        assert str(wrong).startswith("x, line ")


@given(acl_sets.filter(bool))
def test_a_form_is_told_from_its_text(acls: list[AclBinding]) -> None:
    for form in AclForm:
        try:
            text = write_acls(acls, form)
        except AclFormatError:
            continue
        told = detect_form(text, "x")
        assert told is form or (form, told) == (AclForm.JSON_LINES, AclForm.JSON)
        assert [each.binding for each in read_acls(text, told, "x")]


@every_form
@given(acl_sets.filter(bool), st.data())
def test_a_cut_text_is_never_read_as_other_acls(
    form: AclForm, acls: list[AclBinding], data: st.DataObject
) -> None:
    try:
        text = write_acls(acls, form)
    except AclFormatError:
        return
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    try:
        found = {located.binding for located in read_acls(cut, form, "x")}
    except AclFormatError:
        return
    assert found <= set(acls)
