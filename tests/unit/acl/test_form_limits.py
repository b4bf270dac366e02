"""Limits of the forms of ACLs, and the places and words of their errors."""

import pytest

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
    forms,
)
from kustos.acl.forms import FIELD_BYTES_MAX, AclForm, AclFormatError, form_of_name, read_acls, write_acls
from kustos.acl.forms.values import numbered_lines

GOOD = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission_type": "ALLOW",
}
ACL = AclBinding(
    ResourcePattern(ResourceType.TOPIC, "orders"),
    AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW),
)
WORDS = {
    "resource_type": "a resource type",
    "pattern_type": "a pattern type",
    "operation": "an operation",
    "permission_type": "a permission type",
}


def text_of(form: AclForm, **changed: str) -> str:
    """An ACL in a form, on line 2, with some of its fields as they are given."""
    acl = GOOD | changed
    match form:
        case AclForm.JSON_LINES:
            return "\n{" + ",".join(f'"{name}":"{value}"' for name, value in acl.items()) + "}\n"
        case AclForm.CSV:
            return f"{','.join(acl)}\n{','.join(acl.values())}\n"
        case _:
            return (
                f"\nCurrent ACLs for resource `ResourcePattern(resourceType={acl['resource_type']}, "
                f"name={acl['resource_name']}, patternType={acl['pattern_type']})`:\n"
                f"\t(principal={acl['principal']}, host={acl['host']}, operation={acl['operation']}, "
                f"permissionType={acl['permission_type']})\n"
            )


@pytest.mark.parametrize("form", [AclForm.JSON_LINES, AclForm.CSV, AclForm.KAFKA_ACLS])
@pytest.mark.parametrize("field", WORDS)
def test_a_wrong_word_is_told_with_its_line_and_what_it_should_have_been(form: AclForm, field: str) -> None:
    assert [each.binding for each in read_acls(text_of(form), form, "in")] == [ACL]
    with pytest.raises(AclFormatError) as raised:
        read_acls(text_of(form, **{field: "Nothing"}), form, "in")
    line = 3 if form is AclForm.KAFKA_ACLS and field in {"operation", "permission_type"} else 2
    assert str(raised.value).startswith(f"in, line {line}: `Nothing` is not {WORDS[field]}, use ")


def test_a_text_may_be_as_long_as_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "TEXT_CHARACTERS_MAX", 10)
    assert read_acls(" " * 10, AclForm.JSON_LINES, "in") == []
    with pytest.raises(AclFormatError) as raised:
        read_acls(" " * 11, AclForm.JSON_LINES, "in")
    assert str(raised.value) == "in, line 1: the text has more than 10 characters, split it"
    assert raised.value.value == ""


@pytest.mark.parametrize("form", [AclForm.JSON_LINES, AclForm.CSV, AclForm.KAFKA_ACLS])
def test_a_line_over_its_limit_is_told_by_the_name_of_the_text(form: AclForm) -> None:
    with pytest.raises(AclFormatError) as raised:
        read_acls(f"\n{' ' * 1_048_577}\n", form, "in")
    assert str(raised.value).startswith("in, line 2: the line has more than 1048576 characters")


def test_many_short_lines_are_no_long_one() -> None:
    lines = list(numbered_lines(f"{'a' * 1000}\n" * 1100, "in"))
    assert (len(lines), lines[-1]) == (1100, (1100, "a" * 1000))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", [(1, "")]),
        ("a", [(1, "a")]),
        ("a\n", [(1, "a")]),
        ("a\n\nb", [(1, "a"), (2, ""), (3, "b")]),
        ("a\rb\u2028c\n", [(1, "a\rb\u2028c")]),
    ],
)
def test_a_text_has_as_many_lines_as_line_breaks_end(text: str, lines: list[tuple[int, str]]) -> None:
    assert list(numbered_lines(text, "in")) == lines


@pytest.mark.parametrize("field", ["resource_name", "principal", "host"])
def test_a_text_of_an_acl_may_be_as_long_as_a_record_holds(field: str) -> None:
    for character, size in (("a", 1), ("é", 2)):
        most = "User:" + character * ((FIELD_BYTES_MAX - 5) // size)
        assert len(read_acls(text_of(AclForm.JSON_LINES, **{field: most}), AclForm.JSON_LINES, "in")) == 1
        with pytest.raises(AclFormatError, match=f"has {len((most + character).encode())} bytes of UTF-8"):
            read_acls(text_of(AclForm.JSON_LINES, **{field: most + character}), AclForm.JSON_LINES, "in")


def test_json_needs_no_blanks() -> None:
    one = text_of(AclForm.JSON_LINES).strip()
    for text in (f"[{one},{one}]", f"[ {one} , {one} ]", f'{{"acls":[{one},{one}]}}'):
        assert [each.binding for each in read_acls(text, AclForm.JSON, "in")] == [ACL, ACL]


def test_json_is_written_for_people_too() -> None:
    assert write_acls([ACL], AclForm.JSON).startswith(
        '{\n  "acls": [\n    {\n      "resource_type": "TOPIC",\n'
    )


def test_a_name_that_is_an_extension_alone_says_its_form() -> None:
    assert form_of_name(".json") is AclForm.JSON


@pytest.mark.parametrize("text", ["just words\n", "5\n"])
def test_yaml_that_is_no_list_is_told_so_and_not_in_pythons_words(text: str) -> None:
    with pytest.raises(AclFormatError, match="is not a list of ACLs"):
        read_acls(text, AclForm.YAML, "in")
