"""Nodes of a ZooKeeper become ACLs and users; whatever nobody can be sure of is refused by its place."""

import json
from typing import Any

import pytest

from kustos.acl import AclOperation
from kustos.cli.migrate.plan import MigrationSource
from kustos.cli.migrate.zookeeper_tree import Tree, read_tree
from kustos.metadata.scram import ScramCredential

ENTRY = {"principal": "User:alice", "permissionType": "Allow", "operation": "Read", "host": "*"}
SECRET = "c2VjcmV0LXNhbHQ="
TEXT = f"salt={SECRET},stored_key=c2VjcmV0LXN0b3JlZA==,server_key=c2VjcmV0LXNlcnZlcg==,iterations=4096"


def document(*entries: Any, version: object = 1) -> bytes:
    return json.dumps({"version": version, "acls": entries}).encode()


def config(version: object = 1, **values: object) -> bytes:
    return json.dumps(
        {"version": version, "config": {k.replace("_", "-"): v for k, v in values.items()}}
    ).encode()


def source_of(nodes: dict[str, bytes], *, with_kip_11: bool = False) -> MigrationSource:
    return read_tree("a ZooKeeper", Tree(nodes), with_kip_11=with_kip_11)


def reasons(source: MigrationSource) -> list[tuple[str, str, str]]:
    return [(each.where, each.what, each.reason) for each in source.refused]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/kafka-acl/Topic/orders", "TOPIC LITERAL orders"),
        ("/kafka-acl/Topic/*", "TOPIC LITERAL *"),
        ("/kafka-acl/Group/zoë €", "GROUP LITERAL zoë €"),
        ("/kafka-acl/TransactionalId/a", "TRANSACTIONAL_ID LITERAL a"),
        ("/kafka-acl/DelegationToken/a", "DELEGATION_TOKEN LITERAL a"),
        ("/kafka-acl/User/a", "USER LITERAL a"),
        ("/kafka-acl/Cluster/kafka-cluster", "CLUSTER LITERAL kafka-cluster"),
        ("/kafka-acl-extended/prefixed/Topic/or", "TOPIC PREFIXED or"),
        ("/kafka-acls/orders", "TOPIC LITERAL orders"),
        ("/kafka-acls/kafka-cluster", "CLUSTER LITERAL kafka-cluster"),
    ],
)
def test_a_path_names_a_resource(path: str, shown: str) -> None:
    source = source_of({path: document(ENTRY)})
    assert source.refused == ()
    [(binding, where)] = source.acls.items()
    pattern = binding.pattern
    assert f"{pattern.resource_type.name} {pattern.pattern_type.name} {pattern.name}" == shown
    assert (where, binding.entry.principal, binding.entry.operation) == (
        path,
        "User:alice",
        AclOperation.READ,
    )


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/kafka-acl/Flight/a", "`Flight` is not a resource type"),
        ("/kafka-acl/topic/a", "Kafka never reads it, such ACLs are at `/kafka-acl/Topic/a`"),
        ("/kafka-acl/CONSUMER_GROUP/a", "Kafka never reads it, such ACLs are at `/kafka-acl/Group/a`"),
        ("/kafka-acl/Group/a/b", "Kafka lists one level of names"),
        ("/kafka-acl/Cluster/other", "no request names cluster `other`"),
        ("/kafka-acl-extended/match/Topic/a", "is not a path of ACLs"),
        ("/kafka-acl-extended/prefixed/Topic/a/b", "Kafka lists one level of names"),
        ("/kafka-acls/a/b", "Kafka lists one level of names"),
    ],
)
def test_a_node_at_a_place_that_kafka_does_not_read_is_refused(path: str, reason: str) -> None:
    source = source_of({path: document(ENTRY)})
    assert source.acls == {}
    [(where, _, told)] = reasons(source)
    assert where == path
    assert reason in told


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff", "not text in UTF-8"),
        (b"{", "not JSON: line 1"),
        (b"[]", "the node is not an object with `version` and `acls`"),
        (b'"acls"', "not an object"),
        (document(ENTRY, version=2), "version `2`"),
        (document(ENTRY, version=True), "version `True`"),
        (b'{"version":1,"acls":{}}', "is not a list"),
        (b'{"version":1,"version":1,"acls":[]}', "names `version` twice"),
        (b"[" * 100_000, "nests too deeply"),
    ],
)
def test_a_node_that_nobody_can_read_is_refused_whole(data: bytes, reason: str) -> None:
    path = "/kafka-acl/Topic/a"
    source = source_of({path: data, "/kafka-acl/Topic/b": document(ENTRY)})
    assert len(source.acls) == 1
    [(where, what, told)] = reasons(source)
    assert (where, what) == (path, "the node")
    assert reason in told


def test_one_bad_entry_is_refused_and_its_neighbours_are_not() -> None:
    bad: list[Any] = [
        ENTRY | {"operation": "Fly"},
        ENTRY | {"permissionType": "Perhaps"},
        ENTRY | {"principal": "alice"},
        ENTRY | {"host": ""},
        ENTRY | {"host": "10.0.0.0/8"},
        ENTRY | {"more": "x"},
        {key: value for key, value in ENTRY.items() if key != "host"},
        ENTRY | {"host": 1},
        "entry",
        None,
    ]
    good = [ENTRY, ENTRY | {"principal": "User:*"}]
    source = source_of({"/kafka-acl/Topic/a": document(good[0], *bad, good[1])})
    assert {binding.entry.principal for binding in source.acls} == {"User:alice", "User:*"}
    named = [what for _, what, _ in reasons(source)]
    assert len(named) == len(bad)
    assert named[0] == "ACL 2"
    assert named[-1] == f"ACL {len(bad) + 1}"
    assert "10.0.0.0/8" in named[4]


def test_sets_of_the_draft_are_taken_one_by_one() -> None:
    entry = {
        "principals": ["user:alice", "bob", "*:*"],
        "permissionType": "DENY",
        "operations": ["READ", "EDIT"],
        "hosts": ["a", "b", "c/8"],
    }
    source = source_of({"/kafka-acls/orders": document(entry)})
    assert {binding.entry.principal for binding in source.acls} == {"User:alice", "User:bob", "User:*"}
    assert {binding.entry.operation for binding in source.acls} == {AclOperation.READ, AclOperation.ALTER}
    assert (len(source.acls), len(source.refused)) == (12, 6)


def test_the_draft_counts_only_where_no_release_has_acls() -> None:
    draft = {"/kafka-acls": b"x", "/kafka-acls/orders": document(ENTRY), "/kafka-acls/empty": b""}
    empty = {"/kafka-acl": b"", "/kafka-acl/Topic": b"", "/kafka-acl/Topic/none": document()}
    assert len(source_of(draft | empty).acls) == 1
    for released in (document(ENTRY), b"broken"):
        both = draft | {"/kafka-acl/Group/g": released}
        source = source_of(both)
        assert [binding.pattern.name for binding in source.acls] == ["g"] * (released != b"broken")
        assert [(each.where, each.count) for each in source.left] == [("/kafka-acls", 1)]
        assert "orders" in [binding.pattern.name for binding in source_of(both, with_kip_11=True).acls]


@pytest.mark.parametrize("kind", ["CONSUMER_GROUP", "GROUP", "group"])
def test_types_by_the_names_of_previews_are_taken_when_asked_for(kind: str) -> None:
    nodes = {f"/kafka-acl/{kind}/g": document(ENTRY), "/kafka-acl/Group/g": document(ENTRY)}
    refused = source_of(nodes)
    assert (len(refused.acls), len(refused.refused)) == (1, 1)
    assert "`--kip-11`" in refused.refused[0].reason
    taken = source_of({f"/kafka-acl/{kind}/g": document(ENTRY)}, with_kip_11=True)
    assert (list(taken.acls), taken.refused) == (list(refused.acls), ())


def test_users_are_named_by_their_decoded_names() -> None:
    names = {"al%2Fice": "al/ice", "zo%C3%AB": "zoë", "a%20b+c": "a b c", "%2a": "*", "plain": "plain"}
    source = source_of({f"/config/users/{node}": config(SCRAM_SHA_256=TEXT) for node in names})
    assert source.refused == ()
    assert set(source.credentials) == {(name, 1) for name in names.values()}
    assert source.credentials["zoë", 1] == ScramCredential(
        b"secret-salt", b"secret-stored", b"secret-server", 4096
    )
    assert "secret" not in repr(source)


@pytest.mark.parametrize(
    ("node", "data", "what", "reason"),
    [
        ("a%2", config(SCRAM_SHA_256=TEXT), "SCRAM-SHA-256", "two hexadecimal digits"),
        ("a%ff", config(SCRAM_SHA_256=TEXT), "SCRAM-SHA-256", "not UTF-8"),
        ("<default>", config(SCRAM_SHA_256=TEXT), "SCRAM-SHA-256", "of one user, here Kafka never reads it"),
        ("a/clients/c", config(SCRAM_SHA_512=TEXT), "SCRAM-SHA-512", "of one user"),
        ("a", config(version=2, SCRAM_SHA_256=TEXT), "the node", "another version"),
        ("a", config(SCRAM_SHA_256=1), "the node", "not a text"),
        ("a", b'{"version":1}', "the node", "not an object with"),
        ("a", b"[]", "the node", "not an object with"),
        ("a", b"\xff", "the node", "not text in UTF-8"),
        ("a", config(SCRAM_SHA_256=""), "SCRAM-SHA-256", "not written as `salt=..,stored_key=..,server_key"),
        ("a", config(SCRAM_SHA_256=TEXT + ",salt=x"), "SCRAM-SHA-256", "each once"),
        ("a", config(SCRAM_SHA_256=TEXT + ",pepper=x"), "SCRAM-SHA-256", "each once"),
        ("a", config(SCRAM_SHA_256=TEXT.partition(",")[2]), "SCRAM-SHA-256", "has no `salt`"),
        ("a", config(SCRAM_SHA_256=TEXT.replace("4096", "many")), "SCRAM-SHA-256", "not a number"),
        ("a", config(SCRAM_SHA_256=TEXT.replace("4096", "٤")), "SCRAM-SHA-256", "not a number"),
        ("a", config(SCRAM_SHA_256=TEXT.replace("=,", "!,", 1)), "SCRAM-SHA-256", "`salt` is not Base64"),
        ("a", config(SCRAM_SHA_256=TEXT.replace("salt=", "salt=!")), "SCRAM-SHA-256", "`salt` is not Base64"),
    ],
)
def test_a_credential_that_kafka_did_not_write_is_refused_and_not_shown(
    node: str, data: bytes, what: str, reason: str
) -> None:
    path = f"/config/users/{node}"
    source = source_of({path: data})
    assert source.credentials == {}
    [(where, told, why)] = reasons(source)
    assert (where, told) == (path, what)
    assert reason in why
    assert source.refused[0].is_user
    assert SECRET.rstrip("=") not in why


def test_two_nodes_of_one_user_are_both_refused() -> None:
    nodes = {
        "/config/users/a%2Fb": config(SCRAM_SHA_256=TEXT),
        "/config/users/a%2fb": config(SCRAM_SHA_256=TEXT.replace("4096", "5000"), SCRAM_SHA_512=TEXT),
    }
    source = source_of(nodes)
    assert set(source.credentials) == {("a/b", 2)}
    assert [(where, what) for where, what, _ in reasons(source)] == [
        (path, "SCRAM-SHA-256") for path in sorted(nodes)
    ]


def test_what_is_not_for_this_command_is_named_and_counted() -> None:
    nodes = {
        "/config/users/a": config(producer_byte_rate="1", consumer_byte_rate="1"),
        "/config/users/a/clients": b"",
        "/config/users/a/clients/c": config(consumer_byte_rate="1"),
        "/config/users/none": b"",
    }
    tree = Tree(nodes, {"/config/topics": 3, "/config/ips": 0, "/delegation_token/tokens": 2})
    source = read_tree("z", tree)
    assert {(each.where, each.what): each.count for each in source.left} == {
        ("/config/users", "settings `producer-byte-rate`"): 1,
        ("/config/users", "settings `consumer-byte-rate`"): 2,
        ("/config/topics", "topics with settings"): 3,
        ("/delegation_token/tokens", "delegation tokens"): 2,
    }
