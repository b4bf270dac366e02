"""Exact errors of invalid ACL texts: the line, the value, the rule."""

import pytest

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
)
from kustos.acl.forms import AclForm, AclFormatError, Place, detect_form, form_of_name, read_acls, write_acls
from kustos.acl.forms.fields import FIELDS
from kustos.acl.forms.values import VALUE_CHARACTERS_SHOWN_MAX, LineCounter

SIX = (
    '"resource_type":"TOPIC","resource_name":"a","pattern_type":"LITERAL",'
    '"principal":"User:a","host":"*","operation":"READ"'
)
ONE = f'{{{SIX},"permission_type":"ALLOW"}}'
NAMES = ",".join(FIELDS)
RESOURCE = "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=a, patternType=LITERAL)`:\n"
ENTRY = "\t(principal=User:a, host=*, operation=READ, permissionType=ALLOW)\n"
ALONE = "a resource has no ACL below it, the list is not whole"
NO_LINE = (
    "is not a line of kafka-acls' list; remove it if another program wrote it; a name with a line break "
    "needs another form"
)
MISSING = "is missing, an ACL has all seven fields"
NO_FIELD = f"is not a field of an ACL, use {', '.join(FIELDS)}"
TWICE = "occurs twice in one object, give it once"
NO_JSON = "this is not JSON: expecting property name enclosed in double quotes"
DEEP = "values are nested deeper than any ACL is"
NOTHING = "is null in YAML; if field `host` is that text, quote it"

KAFKA_ACLS_ERRORS = [
    (f"{RESOURCE}{ENTRY}nonsense\n", 3, "nonsense", NO_LINE),
    (f"{RESOURCE}{ENTRY} X\n", 3, " X", NO_LINE),
    (ENTRY, 1, ENTRY.strip(), "stands before any resource"),
    (f"{RESOURCE}{RESOURCE}{ENTRY}", 1, "", ALONE),
    (f"{RESOURCE}{ENTRY}{RESOURCE}", 3, "", ALONE),
    *[
        (
            f"{RESOURCE}\t{entry}\n",
            2,
            entry,
            f"has no unique start of the host: `, host=` occurs {times} times",
        )
        for entry, times in (
            ("(principal=User:a, host=*, host=b, operation=READ, permissionType=ALLOW)", 2),
            ("(principal=User:a, operation=READ, permissionType=ALLOW)", 0),
        )
    ],
]
JSON_ERRORS = [
    ("", 1, "", "the text is blank, write `[]` for no ACLs"),
    (" \n", 2, "", "the text is blank, write `[]` for no ACLs"),
    ("[1]", 1, "1", "is not an object, an ACL is one with seven texts"),
    ("[{}]", 1, "resource_type", MISSING),
    (f"\n[\n{{{SIX}}}]", 3, "permission_type", MISSING),
    (f"[{ONE} {ONE}]", 1, "{", "is not expected here: `]` is missing"),
    (f"[{ONE}] x", 1, "x", "is not expected here: nothing follows the last ACL"),
    (f'[{{{SIX},"permission_type":1}}]', 1, "permission_type", "has the value 1, write a text in quotes"),
    (f'{ONE}\n{{{SIX},"permission_type":[]}}', 2, "permission_type",
     "has the value [], write a text in quotes"),
    (f'[{{{SIX},"host":"b"}}]', 1, "host", TWICE),
    (f'[{{{SIX},"permission_type":"ALLOW","more":"x"}}]', 1, "more", NO_FIELD),
    ('{"acls":[],"acls":[]}', 1, "acls", TWICE),
    (f"[\n{ONE},\n{{]", 3, "", NO_JSON),
    ("[" * 100_000, 1, "", DEEP),
]  # fmt: skip
JSON_LINES_ERRORS = [
    (f"{ONE}\n{ONE} {ONE}", 2, f" {ONE}", "follows the object, write one a line"),
    ("\n[]\n", 2, "[]", "is not an object, an ACL is one with seven texts"),
    (f"{ONE}\n{{\n", 2, "", NO_JSON),
    (f"\n\n{'[' * 100_000}", 3, "", DEEP),
    (f'{{{SIX},"permission_type":"MAYBE"}}', 1, "MAYBE", "is not a permission type, use one of DENY, ALLOW"),
    (
        f'{{{SIX},"permission_type":"ANY"}}',
        *(1, "ANY", "is only for filters, an ACL names one permission type in particular"),
    ),
]
CSV_ERRORS = [
    ("", 1, "", f"the first row must be `{NAMES}`"),
    ("a,b\n", 1, "a", NO_FIELD),
    (f"{NAMES}\nTOPIC,a\n", 2, "", "the row has 2 fields where the first row names 7"),
    (f"{NAMES},host\n", 1, "host", "names `host` a second time, give each field once"),
    (f'{NAMES}\nTOPIC,a,LITERAL,"User:a\n', 2, "", "this is not a row of CSV: unexpected end of data"),
    (
        f"{NAMES}\n\nTOPIC,a,LITERAL,alice,*,READ,ALLOW",
        3,
        "alice",
        "is not a principal, write it as `User:name`",
    ),
    (f"{NAMES}\n{'x' * 1_048_577}", 2, "", "the line has more than 1048576 characters, which no ACL needs"),
]
YAML_ERRORS = [
    ("", 1, "", "the text holds no YAML document, write `[]` for no ACLs"),
    ("a", 1, "a", "is not a list of ACLs"),
    ("- 1", 1, "1", "is not a mapping, an ACL is one with seven texts"),
    ("- [a\n", 1, "", "is not a mapping, an ACL is one with seven texts"),
    ("acls: 1", 1, "acls", "is not a list of ACLs"),
    ("a: {b: [c, {d: e}]}\nacls: 1", 2, "acls", "is not a list of ACLs"),
    ("a: 1", 1, "acls", "is missing: write a list of ACLs, or a mapping that has one as `acls`"),
    ("acls: []\nacls: []", 2, "acls", "occurs twice, give it once"),
    ("- host: *x", 1, "*x", "is an alias; write out its value, or quote it"),
    ("- host: !!int 1", 1, "tag:yaml.org,2002:int", "is a tag, write texts, lists and mappings only"),
    ("- host: ~", 1, "~", NOTHING),
    ("- host:", 1, "", NOTHING),
    ("- host: a\n  host: b", 2, "host", "occurs twice in one ACL, give it once"),
    ("- host: [a]", 1, "", "field `host` is not text"),
    ("? [a]\n: b", 1, "", "the name of a member is not text"),
    ("\n- ? [a]\n", 2, "", "the name of a field is not text"),
    ("[]\n---\n[]", 2, "", "a second document begins here, put all ACLs into one list"),
    ("\n- {host: a}", 2, "resource_type", MISSING),
]
ERRORS = [
    (form, *case)
    for form, cases in (
        (AclForm.KAFKA_ACLS, KAFKA_ACLS_ERRORS),
        (AclForm.JSON, JSON_ERRORS),
        (AclForm.JSON_LINES, JSON_LINES_ERRORS),
        (AclForm.CSV, CSV_ERRORS),
        (AclForm.YAML, YAML_ERRORS),
    )
    for case in cases
]


@pytest.mark.parametrize(
    ("form", "text", "line", "value", "rule"),
    ERRORS,
    ids=[f"{case[0]}-{number}" for number, case in enumerate(ERRORS)],
)
def test_an_error_tells_the_line_the_value_and_the_rule(
    form: AclForm, text: str, line: int, value: str, rule: str
) -> None:
    with pytest.raises(AclFormatError) as raised:
        read_acls(text, form, "in")
    error = raised.value
    assert (error.place, error.value, error.rule) == (Place("in", line), value, rule)
    shown = value if len(value) <= VALUE_CHARACTERS_SHOWN_MAX else value[:VALUE_CHARACTERS_SHOWN_MAX] + "..."
    assert str(error) == (f"in, line {line}: `{shown}` {rule}" if value else f"in, line {line}: {rule}")


@pytest.mark.parametrize(("text", "line"), [("- host: *", 1), ("acls:\n  - {\n", 2), ("- 'a\n\n", 3)])
def test_what_is_no_yaml_is_told_in_its_parsers_words(text: str, line: int) -> None:
    with pytest.raises(AclFormatError, match=r"this is not YAML: \w") as raised:
        read_acls(text, AclForm.YAML, "in")
    assert raised.value.place is not None
    assert abs(raised.value.place.line - line) <= 1
    assert ("in quotes" in str(raised.value)) is (text == "- host: *")


def test_a_line_may_be_as_long_as_its_limit() -> None:
    assert read_acls(f"{' ' * 1_048_576}\n", AclForm.JSON_LINES, "in") == []
    with pytest.raises(AclFormatError, match=r"^in, line 2: the line has more than 1048576 characters"):
        read_acls(f"\n{' ' * 1_048_577}\n", AclForm.JSON_LINES, "in")


def test_an_error_of_what_is_to_be_written_has_no_place() -> None:
    acl = AclBinding(
        ResourcePattern(ResourceType.TOPIC, "a\nb"),
        AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW),
    )
    with pytest.raises(AclFormatError) as raised:
        write_acls([acl], AclForm.KAFKA_ACLS)
    rule = "has a line break, which kafka-acls' list cannot express; use another form"
    assert (raised.value.place, raised.value.value, raised.value.rule) == (None, "a\nb", rule)
    assert str(raised.value) == f"`a\nb` {rule}"


@pytest.mark.parametrize("length", [VALUE_CHARACTERS_SHOWN_MAX, VALUE_CHARACTERS_SHOWN_MAX + 1])
def test_a_long_value_is_shown_in_part(length: int) -> None:
    text = str(AclFormatError(None, "v" * length, "is too long"))
    assert text == f"`{'v' * 200}{'...' if length > 200 else ''}` is too long"


def test_lines_are_counted_there_and_back() -> None:
    lines = LineCounter("a\nb\nc\nd", first_line=5)
    assert [lines.at(position) for position in (0, 2, 4, 6, 3, 0, 1, 2)] == [5, 6, 7, 8, 6, 5, 5, 6]


def test_forms_are_told_from_names_and_texts() -> None:
    assert form_of_name("a/b.JSON") is AclForm.JSON
    assert [form_of_name(name) for name in ("json", "", "a.txt", "a.json.bak")] == [None] * 4
    assert detect_form("ACLs for principal `User:a`\n", "-") is AclForm.KAFKA_ACLS
    assert detect_form(f"  {RESOURCE}", "-") is AclForm.KAFKA_ACLS
    assert detect_form(NAMES.upper(), "-") is AclForm.CSV
    assert detect_form("", "none.yaml") is AclForm.YAML


@pytest.mark.parametrize(
    ("text", "place", "rule"),
    [
        (" \n ", 1, "the text is blank; if that means no ACLs, say its form by an extension or `--form`"),
        ("\nacls for principal `User:a`\n", 2, "begins no form of ACLs"),
        ("[2026-05-26 10:00:00,001] WARN x\n", 1, "begins no form of ACLs"),
    ],
)
def test_a_text_of_no_form_is_refused_with_its_first_line(text: str, place: int, rule: str) -> None:
    with pytest.raises(AclFormatError) as raised:
        detect_form(text, "in")
    assert raised.value.place == Place("in", place)
    assert raised.value.rule.startswith(rule)
