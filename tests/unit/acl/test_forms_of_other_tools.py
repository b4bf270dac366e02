"""ACL files of other tools, and lists of old releases."""

from pathlib import Path

import pytest

from kustos.acl.forms import AclForm, AclFormatError, detect_form, read_acls

CASES = Path(__file__).parent / "acl_cases"

OLD = [
    "GROUP LITERAL * User:user02 * READ ALLOW",
    "GROUP LITERAL * User:user03 * READ ALLOW",
    "TOPIC PREFIXED shop- User:CN=shop,OU=a,O=Example 10.0.0.7 WRITE ALLOW",
    "TOPIC PREFIXED shop- User:user03 * DELETE DENY",
    "CLUSTER LITERAL kafka-cluster User:user03 * CLUSTER_ACTION ALLOW",
]
CLIENT = "User:CN=client,OU=TEST,O=EXAMPLE,L=Berlin,ST=Be,C=DE"
CLEAN = [
    "GROUP LITERAL relation-81-* User:relation-81 * READ ALLOW",
    "TOPIC LITERAL test-topic User:relation-81 * WRITE ALLOW",
    "TOPIC LITERAL test-topic User:relation-81 * CREATE ALLOW",
]
READ = {
    "kafka-1.1.txt": [
        f"TOPIC LITERAL wikipedia.parsed {CLIENT} * READ ALLOW",
        f"GROUP LITERAL test {CLIENT} * READ ALLOW",
    ],
    "kafka-2.3.txt": OLD,
    "clean.txt": CLEAN,
    "crlf.txt": CLEAN,
    "bom.txt": CLEAN,
    "akhq.csv": [
        "TOPIC LITERAL * User:john * WRITE ALLOW",
        "CLUSTER LITERAL kafka-cluster User:john * IDEMPOTENT_WRITE ALLOW",
        "TRANSACTIONAL_ID PREFIXED kstream-appid User:project-stream * ALL ALLOW",
    ],
    "kafbat.csv": ["TOPIC LITERAL orders User:alice * READ ALLOW"],
    "ksm.csv": [
        "TOPIC LITERAL foo User:alice * READ ALLOW",
        "GROUP PREFIXED bar User:bob 12.34.56.78 WRITE DENY",
        "CLUSTER LITERAL kafka-cluster User:peter * CREATE ALLOW",
    ],
    "show.json": ["TOPIC LITERAL orders User:alice * WRITE ALLOW"],
    "user.yaml": [
        "TOPIC LITERAL my-topic User:CN=my-user * READ ALLOW",
        "TOPIC LITERAL my-topic User:CN=my-user * DESCRIBE ALLOW",
        "TRANSACTIONAL_ID PREFIXED * User:CN=my-user * ALL DENY",
        "CLUSTER LITERAL kafka-cluster User:CN=my-user * CREATE ALLOW",
    ],
    "rpk.txt": [
        "TOPIC LITERAL foo User:bar * READ ALLOW",
        "GROUP PREFIXED g User:bar * READ ALLOW",
    ],
    "rpk.json": ["TOPIC LITERAL foo User:bar * READ ALLOW"],
    "kafka-python.json": ["TOPIC LITERAL * User:Alice * WRITE ALLOW"],
}


def text_of(name: str) -> str:
    return (CASES / name).read_bytes().decode("utf-8-sig")


def acls_of(text: str, name: str = "in") -> list[str]:
    """The ACLs of a text, as one line each."""
    return [
        f"{pattern.resource_type} {pattern.pattern_type} {pattern.name} "
        f"{entry.principal} {entry.host} {entry.operation} {entry.permission_type}"
        for pattern, entry in (
            (each.binding.pattern, each.binding.entry)
            for each in read_acls(text, detect_form(text, name), name)
        )
    ]


@pytest.mark.parametrize("name", READ)
def test_what_other_tools_write_is_read_by_its_extension_and_by_its_text(name: str) -> None:
    text = text_of(name)
    assert acls_of(text, name) == READ[name]
    assert acls_of(text) == READ[name]


def test_the_list_of_the_old_tool_is_that_of_the_new_one() -> None:
    old, new = acls_of(text_of("list-2.8.2.txt")), acls_of(text_of("list-4.3.1.txt"))
    assert len(old) == 7
    assert sorted(old) == sorted(new)


@pytest.mark.parametrize(
    ("name", "line", "value", "rule"),
    [
        ("kubectl.txt", 1, "Defaulted container", "remove it if another program wrote it"),
        ("warn.txt", 1, "[2026-05-26 10:00:00,001] WARN", "remove it if another program wrote it"),
        ("adding.txt", 1, "Adding ACLs for resource", "is the echo of a change"),
        ("acls.tf", 1, "", "give what `terraform show -json` prints"),
    ],
)
def test_what_is_not_a_list_is_refused_with_its_line_and_the_cure(
    name: str, line: int, value: str, rule: str
) -> None:
    with pytest.raises(AclFormatError, match=rule) as raised:
        acls_of(text_of(name))
    assert raised.value.place is not None
    assert raised.value.place.line == line
    assert raised.value.value.startswith(value)


RESOURCE = "Current ACLs for resource `Group:x`: \n"
ENTRY = " \tUser:a has Allow permission for operations: Read from hosts: * \n"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (RESOURCE + ENTRY.replace("User:a", "User:a from hosts: b"), "has no unique start of the host"),
        (
            RESOURCE + ENTRY.replace("User:a", "User:a has Deny permission for operations: x"),
            "has no unique start of the operation",
        ),
        # a group of Kafka 1.1 can have this name
        (RESOURCE + ENTRY + RESOURCE.replace("x", "LITERAL:x") + ENTRY, "of another release"),
        (RESOURCE + ENTRY.replace("Allow", "May"), "`May` is not a permission type"),
    ],
)
def test_an_ambiguous_line_of_an_old_list_is_refused(text: str, rule: str) -> None:
    with pytest.raises(AclFormatError, match=rule):
        acls_of(text)


@pytest.mark.parametrize("name", ["kafka-1.1.txt", "kafka-2.3.txt"])
def test_an_old_list_that_is_cut_off_is_not_read_as_other_acls(name: str) -> None:
    text = text_of(name)
    for end in range(1, len(text)):
        try:
            found = [each.binding for each in read_acls(text[:end], AclForm.KAFKA_ACLS, "in")]
        except AclFormatError:
            continue
        assert found == [each.binding for each in read_acls(text, AclForm.KAFKA_ACLS, "in")][: len(found)]


USER = text_of("user.yaml")


@pytest.mark.parametrize(
    ("authentication", "principal"),
    [
        ("tls", "User:CN=my-user"),
        ("tls-external", "User:CN=my-user"),
        ("scram-sha-512", "User:my-user"),
        (None, "User:my-user"),
    ],
)
def test_the_principal_of_a_strimzi_user_follows_its_authentication(
    authentication: str | None, principal: str
) -> None:
    given = "  authentication:\n    type: tls\n"
    wanted = "" if authentication is None else given.replace("tls", authentication)
    assert {line.split()[3] for line in acls_of(USER.replace(given, wanted))} == {principal}


def test_several_strimzi_users_are_read_from_documents_and_from_a_list() -> None:
    other = USER.replace("my-user", "other")
    both = [*READ["user.yaml"], *[line.replace("my-user", "other") for line in READ["user.yaml"]]]
    assert acls_of(f"{USER}---\n{other}") == both
    items = [f"- {user.replace(chr(10), chr(10) + '  ').rstrip()}\n" for user in (USER, other)]
    assert acls_of(f"apiVersion: v1\nitems:\n{''.join(items)}kind: List\n") == both


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("type: tls", "type: oauth", "line 8: `oauth` is not a type of authentication"),
        ("type: simple", "type: opa", "`opa` is not the authorization by ACLs"),
        ("kind: KafkaUser", "kind: KafkaTopic", "`acls` is missing"),
        ("operations: [All]", "operation: Fly", "`Fly` is not an operation"),
        ("operations: [All]", "operation: [All]", "an operation is not text"),
        ("operations: [All]", "operation-s: [All]", "`operation-s` is not known"),
        ("        operations: [All]\n", "", "`operations` is missing"),
        ("patternType: prefix", "patternType: match", "`match` is not a pattern type of Strimzi"),
        ("name: my-topic", "nam: my-topic", "`nam` is not known"),
        ("type: deny", "type: maybe", "`maybe` is not a permission type"),
        ("spec:", "specs:", "`spec` is missing"),
        ("name: my-user", "name: [x]", "`name` is not text"),
        ("acls:", "acls: {a: b}\n    rules:", "`acls` is not a list"),
        ("name: my-user", f"name: {'[' * 60}{']' * 60}", "nested deeper than 50"),
    ],
)
def test_what_is_wrong_in_a_strimzi_user_is_named(old: str, new: str, rule: str) -> None:
    with pytest.raises(AclFormatError, match=r"^in, line \d+: ") as raised:
        acls_of(USER.replace(old, new))
    assert rule in str(raised.value)


STATE = text_of("show.json")


def test_the_modules_of_a_terraform_state_are_read() -> None:
    resources = STATE[STATE.index('"resources"') : STATE.rindex("]") + 1]
    below = resources.replace("orders", "pay")
    text = STATE.replace(resources, f'{resources}, "child_modules": [{{"address": "module.x", {below}}}]')
    assert acls_of(text) == [
        "TOPIC LITERAL orders User:alice * WRITE ALLOW",
        "TOPIC LITERAL pay User:alice * WRITE ALLOW",
    ]


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("kafka_acl", "kafka_topic", "`kafka_acl` is the type of no resource here"),
        ("managed", "data", "`kafka_acl` is the type of no resource here"),
        ('"kafka_acl"', '"confluent_kafka_acl"', "`confluent_kafka_acl` is a type of ACLs that is not read"),
        (
            '"values": {\n  "root',
            '"planned_values": {\n  "root',
            "`kafka_acl` is the type of no resource here",
        ),
        ('"acl_host"', '"acl_hosts"', "`acl_hosts` is not a field of an ACL"),
        ('"*"', "null", "`acl_host` has the value null"),
        ('"address"', '"values": 5, "address"', "`values` occurs twice"),
    ],
)
def test_what_is_wrong_in_a_terraform_state_is_named(old: str, new: str, rule: str) -> None:
    with pytest.raises(AclFormatError) as raised:
        acls_of(STATE.replace(old, new))
    assert rule in str(raised.value)


def test_modules_of_a_terraform_state_are_not_nested_without_end() -> None:
    text = '{"format_version": "1.0", "values": {"root_module": ' + '{"child_modules": [' * 60
    with pytest.raises(AclFormatError, match="nested deeper than 50"):
        acls_of(text)


TABLE = text_of("rpk.txt")


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("ALLOW       \n", "ALLOW       timed out\n", "`timed out` is an error that the tool reports"),
        ("foo            LITERAL", "foo              LITERAL", "does not begin below its heading"),
        ("foo            LITERAL", "foo          LITERAL", "does not begin below its heading"),
        ("OPERATION", "PERMISSION", "names `permission_type` a second time"),
        ("HOST", "MOST", "`MOST` is not a field of an ACL"),
    ],
)
def test_what_is_wrong_in_a_table_of_rpk_is_named(old: str, new: str, rule: str) -> None:
    with pytest.raises(AclFormatError, match=r"^in, line \d: ") as raised:
        [*read_acls(TABLE.replace(old, new, 1), AclForm.CSV, "in")]
    assert rule in str(raised.value)


def test_an_object_of_kubernetes_in_json_is_told_the_form_that_is_read() -> None:
    with pytest.raises(AclFormatError, match="kubectl get -o yaml"):
        acls_of('{"apiVersion": "kafka.strimzi.io/v1beta2", "kind": "KafkaUser"}')
