"""The formats of ACLs, and the errors of texts in no known format."""

import json

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
from kustos.acl.forms import (
    FIELD_BYTES_MAX,
    LINE_CHARACTERS_MAX,
    AclForm,
    AclFormatError,
    detect_form,
    form_of_name,
    read_acls,
    write_acls,
)

READ = AclBinding(
    ResourcePattern(ResourceType.TOPIC, "orders"),
    AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW),
)
DENY = AclBinding(
    ResourcePattern(ResourceType.GROUP, "pay-é", PatternType.PREFIXED),
    AccessControlEntry("User:CN=bob,O=x", "10.0.0.0/8", AclOperation.ALL, AclPermissionType.DENY),
)
FIELDS = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission_type": "ALLOW",
}
LINE = json.dumps(FIELDS)
YAML = "- " + "\n  ".join(f"{name}: '{value}'" for name, value in FIELDS.items()) + "\n"
HEAD = ",".join(FIELDS)
ROW = ",".join(FIELDS.values())

KAFKA = """\
Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`:
\t(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)

Current ACLs for resource `ResourcePattern(resourceType=GROUP, name=pay-é, patternType=PREFIXED)`:
\t(principal=User:CN=bob,O=x, host=10.0.0.0/8, operation=ALL, permissionType=DENY)

"""

WRITTEN = {
    AclForm.KAFKA_ACLS: KAFKA,
    AclForm.CSV: f'{HEAD}\n"TOPIC","orders","LITERAL","User:alice","*","READ","ALLOW"\n'
    '"GROUP","pay-é","PREFIXED","User:CN=bob,O=x","10.0.0.0/8","ALL","DENY"\n',
    AclForm.YAML: """\
acls:
  - resource_type: TOPIC
    resource_name: "orders"
    pattern_type: LITERAL
    principal: "User:alice"
    host: "*"
    operation: READ
    permission_type: ALLOW
  - resource_type: GROUP
    resource_name: "pay-é"
    pattern_type: PREFIXED
    principal: "User:CN=bob,O=x"
    host: "10.0.0.0/8"
    operation: ALL
    permission_type: DENY
""",
}


@pytest.mark.parametrize("form", WRITTEN)
def test_a_form_looks_so(form: AclForm) -> None:
    assert write_acls([READ, DENY], form) == WRITTEN[form]
    assert [located.binding for located in read_acls(WRITTEN[form], form, "x")] == [READ, DENY]


@pytest.mark.parametrize(
    ("form", "text", "line"),
    [
        (AclForm.JSON, f"[{LINE}]", 1),
        (AclForm.JSON, f'{{"version": {{"a": [1]}}, "acls": [\n{LINE}\n]}}\n', 2),
        (AclForm.JSON, f'{{\n"a": 1,\n"b": [],\n"acls": [\n{LINE}\n]}}', 5),
        (AclForm.JSON, f"\n\n{LINE}\n", 3),
        (AclForm.JSON_LINES, f"\n  \n{LINE.lower().replace('user:', 'User:')}\r\n", 3),
        (AclForm.YAML, f"---\n# who may\n{YAML}...\n", 3),
        (AclForm.YAML, f"team: {{a: [1, {{b: c}}]}}\nacls: [\n{LINE}]\n", 3),
        (AclForm.CSV, f"\n{HEAD.upper()}\r\n{ROW}\r\n", 3),
        (AclForm.CSV, f"{HEAD}\n{ROW}", 2),
        # as the tool printed it before Kafka 4, and on Windows
        (AclForm.KAFKA_ACLS, KAFKA.split("\n\n", maxsplit=1)[0].replace("`:\n", "`: \n ") + "\n", 2),
        (AclForm.KAFKA_ACLS, "ACLs for principal `User:alice`\n" + KAFKA.split("\n\n", maxsplit=1)[0], 3),
        (AclForm.KAFKA_ACLS, KAFKA.split("\n\n", maxsplit=1)[0].replace("\n", "\r\n") + "\r\n\r\n", 2),
    ],
)
def test_other_spellings_are_read(form: AclForm, text: str, line: int) -> None:
    (located,) = read_acls(text, form, "x")
    assert (located.binding, located.line) == (READ, line)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (AclForm.JSON, "[]"),
        (AclForm.JSON, '{"acls": []}'),
        (AclForm.JSON_LINES, ""),
        (AclForm.YAML, "[]"),
        (AclForm.YAML, "acls: []"),
        (AclForm.CSV, HEAD),
        (AclForm.KAFKA_ACLS, ""),
    ],
)
def test_no_acls_can_be_said(form: AclForm, text: str) -> None:
    assert read_acls(text, form, "x") == []
    assert read_acls(write_acls([], form), form, "x") == []


BROKEN_JSON = {
    "": "the text is blank",
    "[": "this is not JSON",
    f"[{LINE}": "`]` is missing",
    f"[{LINE},]": "this is not JSON",
    f"[{LINE}] {LINE}": "nothing follows",
    f'{{"acls": [{LINE}], "acls": []}}': "`acls` occurs twice",
    '{"acls": 5}': "`acls` is not a field of an ACL",
    "[5]": "`5` is not an object",
    LINE.replace('"*"', "null"): "`host` has the value null",
    LINE.replace('"host"', '"operation"'): "`operation` occurs twice",
    LINE.replace('"host"', '"hosts"'): "`hosts` is not a field of an ACL",
    LINE.replace('"host": "*", ', ""): "`host` is missing",
    LINE.replace("READ", "FLY"): "`FLY` is not an operation, use one of ALL, READ",
    LINE.replace("READ", "ANY"): "`ANY` is only for filters, an ACL names one operation in particular",
    LINE.replace("LITERAL", "MATCH"): "`MATCH` is only for filters",
    LINE.replace("User:alice", "alice"): "`alice` is not a principal, write it as `User:name`",
    LINE.replace("orders", "\\ud800"): "half of a surrogate pair",
    LINE.replace("orders", "é" * FIELD_BYTES_MAX): "bytes of UTF-8",
    "[" * 100_000: "",
}
BROKEN_YAML = {
    "": "holds no YAML document",
    "orders": "`orders` is not a list of ACLs",
    "team: x": "`acls` is missing",
    f"acls: []\nacls:\n{YAML}": "`acls` occurs twice",
    f"---\n{YAML}---\n{YAML}": "a second document",
    YAML.replace("'*'", "*"): "in quotes",
    YAML.replace("'*'", "*all"): "`*all` is an alias",
    YAML.replace("'*'", ""): "is null in YAML",
    YAML.replace("'*'", "~"): "`~` is null in YAML",
    YAML.replace("'*'", "!!python/name:os.system ''"): "is a tag",
    YAML.replace("'*'", "[a]"): "field `host` is not text",
    YAML.replace("host", "principal"): "`principal` occurs twice in one ACL",
    "- [a]": "is not a mapping",
    "a: &a [x]\nb: &b [*a, *a]\n" + YAML: "`*a` is an alias",
    "\t- x": "this is not YAML",
}
BROKEN_CSV = {
    "": "the first row must be",
    ROW: "`TOPIC` is not a field of an ACL",
    f"{HEAD}\n{ROW},x": "has 8 fields",
    f"{HEAD},host\n": "`host` names `host` a second time",
    f'{HEAD}\nTOPIC,"orders': "this is not a row of CSV",
}
BROKEN_LISTS = {
    "Current ACLs": "is not a line of kafka-acls' list",
    KAFKA.split("\n")[1]: "stands before any resource",
    KAFKA.split("\n", maxsplit=1)[0]: "the list is not whole",
    KAFKA.replace("name=orders", "name=or\nders"): "a name with a line break needs another form",
    KAFKA.replace("User:alice", "User:a, host=b"): "has no unique start of the host",
    KAFKA.replace("TOPIC", "PLANET"): "`PLANET` is not a resource type",
    KAFKA.replace("READ", "FLY"): "`FLY` is not an operation",
}
BROKEN = [
    *((AclForm.JSON, text, rule) for text, rule in BROKEN_JSON.items()),
    *((AclForm.YAML, text, rule) for text, rule in BROKEN_YAML.items()),
    *((AclForm.CSV, text, rule) for text, rule in BROKEN_CSV.items()),
    *((AclForm.KAFKA_ACLS, text, rule) for text, rule in BROKEN_LISTS.items()),
    (AclForm.JSON_LINES, f"{LINE} {LINE}", "follows the object, write one a line"),
    (AclForm.JSON_LINES, f"{LINE}\n{LINE[:-1]}\n", "x, line 2: this is not JSON"),
    (AclForm.JSON_LINES, " " * (LINE_CHARACTERS_MAX + 1), "the line has more than 1048576 characters"),
]


@pytest.mark.parametrize(("form", "text", "rule"), BROKEN, ids=range(len(BROKEN)))
def test_what_is_wrong_is_told_with_its_place(form: AclForm, text: str, rule: str) -> None:
    with pytest.raises(AclFormatError) as caught:
        read_acls(text, form, "x")
    message = str(caught.value)
    assert rule in message
    assert message.startswith("x, line ")
    assert len(message) < 500
    assert not message.endswith(".")


@pytest.mark.parametrize(
    ("acl", "rule"),
    [
        (AclBinding(ResourcePattern(ResourceType.TOPIC, "\ud800"), READ.entry), "half of a surrogate pair"),
        (AclBinding(ResourcePattern(ResourceType.TOPIC, "a" * 32_768), READ.entry), "at most 32767"),
        (
            AclBinding(
                READ.pattern, AccessControlEntry("bob", "*", AclOperation.READ, AclPermissionType.ALLOW)
            ),
            "`bob` is not a principal",
        ),
    ],
)
@pytest.mark.parametrize("form", AclForm)
def test_what_could_not_be_read_back_is_not_written(form: AclForm, acl: AclBinding, rule: str) -> None:
    with pytest.raises(AclFormatError, match=rule) as caught:
        write_acls([READ, acl], form)
    assert caught.value.place is None


def test_a_form_is_told_from_a_name_or_a_text() -> None:
    names = ["acls.json", "a.b/acls.JSONL", "acls.ndjson", "acls.yml", "acls.csv", "acls.txt", "acls", "-"]
    forms = [AclForm.JSON, AclForm.JSON_LINES, AclForm.JSON_LINES, AclForm.YAML, AclForm.CSV]
    assert [form_of_name(name) for name in names] == [*forms, None, None, None]
    texts = [f"\n {LINE}", f"[{LINE}]", f"{HEAD}\n", f'"{HEAD.replace(",", chr(34) + "," + chr(34))}"\n']
    forms = [AclForm.JSON, AclForm.JSON, AclForm.CSV, AclForm.CSV, AclForm.YAML, AclForm.KAFKA_ACLS]
    assert [detect_form(text, "-") for text in (*texts, YAML, KAFKA)] == forms
    with pytest.raises(AclFormatError, match="the text is blank"):
        detect_form(" \n", "-")
