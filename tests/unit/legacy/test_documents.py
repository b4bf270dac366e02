"""The JSON of ACLs in ZooKeeper: both forms read, the released one written, everything unknown refused."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import AclOperation, AclPermissionType, KafkaPrincipal, PatternType, ResourceType
from kustos.legacy import (
    CLUSTER_RESOURCE,
    Acl,
    LegacyFormatError,
    LegacyRefusalError,
    Resource,
    kip_11_document_of,
    merged,
    path_of,
    read_acls,
    read_tree,
    resource_of,
    singles_of,
    statements,
    write_acls,
    write_tree,
)

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
ALICE, BOB = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "bob")

KIP_11_TEXT = """
{"version": 1, "acls": [
    {"principal": "alice", "permissionType": "ALLOW",
     "operations": ["READ", "EDIT"], "hosts": ["host1", "host2"]},
    {"principal": "*:*", "permissionType": "DENY", "operations": ["REPLICATION"], "hosts": ["*"]}
]}
"""
RELEASED_TEXT = (
    '{"version":1,"acls":['
    '{"principal":"User:alice","permissionType":"Allow","operation":"ClusterAction","host":"*"}]}'
)


def test_kip_11s_example_is_read_with_its_sets_and_words() -> None:
    both = frozenset({AclOperation.READ, AclOperation.ALTER})
    assert read_acls(KIP_11_TEXT) == {
        Acl(ALICE, ALLOW, frozenset({"host1", "host2"}), both),
        Acl.of(KafkaPrincipal("User", "*"), DENY, "*", AclOperation.CLUSTER_ACTION),
    }


def test_a_previews_list_of_principals_is_an_acl_for_each() -> None:
    entry = {"permissionType": "Allow", "operations": ["CLUSTER_ACTION"], "hosts": ["*"]}
    for key in ("principals", "principal"):
        text = json.dumps({"version": 1, "acls": [entry | {key: ["user:alice", "User:bob", "group:ops"]}]})
        assert {acl.principal for acl in read_acls(text)} == {ALICE, BOB, KafkaPrincipal("group", "ops")}


def test_the_released_form_is_read_and_written_to_the_byte() -> None:
    acls = read_acls(RELEASED_TEXT)
    assert acls == {Acl.of(ALICE, ALLOW, "*", AclOperation.CLUSTER_ACTION)}
    assert write_acls(acls) == RELEASED_TEXT


def test_a_node_without_content_has_no_acls() -> None:
    assert read_acls("") == read_acls('{"version":1,"acls":[]}') == frozenset()


def test_an_acl_with_sets_is_told_in_one_sentence() -> None:
    acl = Acl(
        ALICE, DENY, frozenset({"h2", "h1"}), frozenset({AclOperation.WRITE, AclOperation.CLUSTER_ACTION})
    )
    assert str(acl) == "User:alice has Deny permission for operations: ClusterAction,Write from hosts: h1,h2"


def test_in_the_released_form_the_everybody_of_kip_11_is_an_ordinary_name() -> None:
    (acl,) = read_acls(RELEASED_TEXT.replace("User:alice", "*:*"))
    assert acl.principal == KafkaPrincipal("*", "*")
    assert not acl.matches(ALICE, "10.0.0.1", AclOperation.CLUSTER_ACTION)


def released(**changed: object) -> str:
    entry = {"principal": "User:alice", "permissionType": "Allow", "operation": "Read", "host": "*"} | changed
    return json.dumps({"version": 1, "acls": [{k: v for k, v in entry.items() if v is not ...}]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "not JSON: line 1, column 2"),
        (f'{{"version":{"9" * 5000}}}', "too many digits"),
        ("[" * 100_000, "nests too deeply"),
        ("[]", "`version` and `acls`"),
        ('{"version":1}', "`version` and `acls`"),
        ('{"version":1,"acls":[],"more":1}', "`version` and `acls`"),
        ('{"version":2,"acls":[]}', "version `2`"),
        ('{"version":true,"acls":[]}', "version `True`"),
        ('{"version":1,"acls":{}}', "is not a list"),
        ('{"version":1,"acls":[7]}', "ACL 1 of the document: an ACL is an object"),
        ('{"version":1,"version":1,"acls":[]}', "`version` twice"),
        (released(host=...), "`host`"),
        (released(extra="x"), "not `extra`, `host`, `operation`, `permissionType`, `principal`"),
        (released(principal="alice"), "`alice`"),
        (released(principal=7), "`principal` is not a text"),
        (released(permissionType="Maybe"), "`Maybe`"),
        (released(operation="Reading"), "`Reading`"),
        (released(host=""), "no host"),
        (released(host="\ud800"), "`host` is not a text"),
        (KIP_11_TEXT.replace('["*"]', "[]"), "ACL 2 of the document: `hosts`"),
        (KIP_11_TEXT.replace('"*:*"', '""'), "a principal is empty"),
        (KIP_11_TEXT.replace('"*:*"', "[]"), "`principal` is not a list"),
        (KIP_11_TEXT.replace('["*"]', '"*"'), "`hosts` is not a list"),
    ],
)
def test_what_is_not_wholly_understood_is_refused_with_its_place(text: str, expected: str) -> None:
    with pytest.raises(LegacyFormatError) as caught:
        read_acls(text)
    assert expected in str(caught.value)


def test_an_acl_of_too_many_statements_is_refused() -> None:
    hosts = [f"10.0.{number // 256}.{number % 256}" for number in range(5001)]
    text = json.dumps(
        json.loads(KIP_11_TEXT) | {"acls": [json.loads(KIP_11_TEXT)["acls"][0] | {"hosts": hosts}]}
    )
    with pytest.raises(LegacyFormatError, match="more than 10000 statements"):
        read_acls(text)


PATHS = {
    "/kafka-acl/Topic/orders": Resource(ResourceType.TOPIC, "orders"),
    "/kafka-acl/Group/a/b": Resource(ResourceType.GROUP, "a/b"),
    "/kafka-acl/TransactionalId/*": Resource(ResourceType.TRANSACTIONAL_ID, "*"),
    "/kafka-acl-extended/prefixed/Topic/app-": Resource(ResourceType.TOPIC, "app-", PatternType.PREFIXED),
}


def test_paths_name_resources_as_releases_laid_them_out() -> None:
    assert {path: resource_of(path) for path in PATHS} == PATHS
    assert {path_of(resource) for resource in PATHS.values()} == PATHS.keys()


def test_paths_of_previews_and_of_kip_11_are_read() -> None:
    assert resource_of("/kafka-acl/CONSUMER_GROUP/g") == Resource(ResourceType.GROUP, "g")
    assert resource_of("/kafka-acls/orders") == Resource(ResourceType.TOPIC, "orders")
    assert resource_of("/kafka-acls/kafka-cluster") == CLUSTER_RESOURCE


@pytest.mark.parametrize(
    "path",
    ["", "/kafka-acl", "/kafka-acl/Topic", "/kafka-acl/Topic/", "/kafka-acls/", "/kafka-acl/Ship/x", "x"],
)
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(LegacyFormatError):
        resource_of(path)


def test_a_fault_in_a_tree_names_its_path() -> None:
    with pytest.raises(LegacyFormatError, match="ACL 1 of `/kafka-acl/Topic/orders`"):
        read_tree('{"/kafka-acl/Topic/orders": {"version": 1, "acls": [{}]}}')


def test_two_paths_of_one_resource_both_count() -> None:
    tree = {
        "/kafka-acl/Group/g": json.loads(RELEASED_TEXT),
        "/kafka-acl/CONSUMER_GROUP/g": json.loads(KIP_11_TEXT),
    }
    read = read_tree(json.dumps(tree))
    assert read == {Resource(ResourceType.GROUP, "g"): read_acls(RELEASED_TEXT) | read_acls(KIP_11_TEXT)}


def test_kip_11_has_no_place_for_groups_and_prefixes() -> None:
    acls = read_acls(RELEASED_TEXT)
    for resource in (Resource(ResourceType.GROUP, "g"), PATHS["/kafka-acl-extended/prefixed/Topic/app-"]):
        with pytest.raises(LegacyRefusalError, match="KIP-11 has no place"):
            write_tree({resource: acls}, kip_11=True)


KEYS = [
    "principal", "principals", "permissionType", "operation", "operations", "host", "hosts", "version",
    "acls", "/kafka-acl/Topic/t",
]  # fmt: skip

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
principals = st.builds(KafkaPrincipal, st.sampled_from(["User", "Group", ""]), names)
operations = st.sampled_from([operation for operation in AclOperation if operation > AclOperation.ANY])
acls = st.builds(
    Acl,
    principals,
    st.sampled_from([ALLOW, DENY]),
    st.frozensets(st.sampled_from(["*", "10.0.0.1", "::1", "é"]), min_size=1),
    st.frozensets(operations, min_size=1),
)
types = st.sampled_from([kind for kind in ResourceType if kind > ResourceType.ANY])
patterns = st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])
trees = st.dictionaries(
    st.builds(Resource, types, names, patterns), st.frozensets(acls, min_size=1), max_size=4
)


@given(st.frozensets(acls))
def test_sets_written_as_statements_read_back_as_those_statements(some: frozenset[Acl]) -> None:
    assert read_acls(write_acls(some)) == singles_of(some)


@given(st.frozensets(acls))
def test_merging_changes_no_statement_and_is_never_more_acls(some: frozenset[Acl]) -> None:
    assert singles_of(merged(some)) == singles_of(some)
    assert len(merged(some)) <= len(some)


@given(st.frozensets(acls))
def test_kip_11s_form_means_the_same(some: frozenset[Acl]) -> None:
    named = frozenset(acl for acl in some if acl.principal.principal_type)
    assert singles_of(read_acls(write_acls(named, kip_11_document_of))) == singles_of(named)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "*", "User:a", "Read", "Deny"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


@given(st.fixed_dictionaries({"version": st.just(1), "acls": st.lists(anything, max_size=3)}) | anything)
def test_any_json_is_read_or_refused_by_name(document: object) -> None:
    for read in (read_acls, read_tree):
        with suppress(LegacyFormatError):
            read(json.dumps(document))


@given(trees)
def test_a_tree_written_reads_back_as_its_statements(tree: dict[Resource, frozenset[Acl]]) -> None:
    assert read_tree(write_tree(tree)) == statements(tree)
