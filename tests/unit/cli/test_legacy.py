"""`kustos legacy`: KIP-11's words at the command line, over a file."""

import json
from pathlib import Path

import pytest

from kustos.cli.run import run

TOPIC = "/kafka-acl/Topic/orders"


def legacy(*arguments: object) -> int:
    return run(["legacy", *map(str, arguments)])


def entries(file: Path, path: str) -> set[tuple[str, str, str, str]]:
    tree = json.loads(file.read_text())
    return {
        (acl["principal"], acl["permissionType"], acl["operation"], acl["host"])
        for acl in tree.get(path, {"acls": []})["acls"]
    }


def test_a_grant_is_every_principal_operation_and_host(tmp_path: Path) -> None:
    file = tmp_path / "acls.json"
    listed = ("--grantprincipal", "user:alice,bob", "--granthost", "h1,h2", "--action", "READ,EDIT")
    assert legacy("grant", file, "--topic", "orders", *listed) == 0
    assert entries(file, TOPIC) == {
        (principal, "Allow", operation, host)
        for principal in ("User:alice", "User:bob")
        for operation in ("Read", "Alter")
        for host in ("h1", "h2")
    }


def test_nothing_said_means_all_operations_from_all_hosts_and_everybody_is_two_stars(tmp_path: Path) -> None:
    file = tmp_path / "acls.json"
    assert legacy("grant", file, "--cluster", "--denyprincipals", "*:*") == 0
    assert entries(file, "/kafka-acl/Cluster/kafka-cluster") == {("User:*", "Deny", "All", "*")}


def test_producers_and_consumers_get_the_bundles_of_kafka_0_9(tmp_path: Path) -> None:
    file = tmp_path / "acls.json"
    who = ("--allowprincipals", "user:app")
    assert legacy("grant", file, "--topic", "orders", "--producer", *who) == 0
    assert {operation for _, _, operation, _ in entries(file, TOPIC)} == {"Write", "Describe"}
    assert entries(file, "/kafka-acl/Cluster/kafka-cluster") == {("User:app", "Allow", "Create", "*")}
    assert legacy("grant", file, "--topic", "in", "--group", "g", "--consumer", *who) == 0
    assert {operation for _, _, operation, _ in entries(file, "/kafka-acl/Topic/in")} == {"Read", "Describe"}
    assert entries(file, "/kafka-acl/Group/g") == {("User:app", "Allow", "Read", "*")}


def test_a_revocation_removes_exactly_what_it_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "acls.json"
    assert legacy("grant", file, "--topic", "orders", "--allowprincipals", "a,b", "--operations", "READ") == 0
    assert legacy("revoke", file, "--topic", "orders", "--revokeprincipal", "a", "--action", "READ") == 0
    assert entries(file, TOPIC) == {("User:b", "Allow", "Read", "*")}
    capsys.readouterr()
    assert legacy("revoke", file, "--topic", "orders", "--revokeprincipal", "a", "--action", "READ") == 0
    assert capsys.readouterr().out == "no ACL matched, nothing was removed\n"


def test_all_acls_of_a_resource_go_only_when_that_is_confirmed(tmp_path: Path) -> None:
    file = tmp_path / "acls.json"
    for topic in ("orders", "other"):
        assert legacy("grant", file, "--topic", topic, "--allowprincipals", "a") == 0
    assert legacy("revoke", file, "--topic", "orders") == 2
    assert entries(file, TOPIC)
    assert legacy("revoke", file, "--topic", "orders", "--force") == 0
    assert json.loads(file.read_text()).keys() == {"/kafka-acl/Topic/other"}


def test_what_is_converted_is_what_todays_commands_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "acls.json"
    assert (
        legacy("grant", file, "--topic", "orders", "--allowprincipals", "user:alice", "--action", "READ") == 0
    )
    capsys.readouterr()
    assert legacy("convert", file) == 0
    (acl,) = json.loads(capsys.readouterr().out)["acls"]
    assert acl == {
        "resource_type": "TOPIC", "resource_name": "orders", "pattern_type": "LITERAL",
        "principal": "User:alice", "host": "*", "operation": "READ", "permission_type": "ALLOW",
    }  # fmt: skip
    assert (
        legacy("grant", file, "--topic", "orders", "--allowprincipals", "a", "--allowhosts", "10.0.0.0/8")
        == 0
    )
    capsys.readouterr()
    assert legacy("convert", file) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "`10.0.0.0/8`" in said.err


def test_lists_show_sets_or_the_files_own_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "acls.json"
    for resource in (("--topic", "orders"), ("--group", "g")):
        assert (
            legacy("grant", file, *resource, "--allowprincipals", "a", "--operations", "READ,DESCRIBE") == 0
        )
    capsys.readouterr()
    assert legacy("list", file) == 0
    said = capsys.readouterr().out
    assert "Describe, Read" in said
    assert "4 statements" in said
    assert legacy("list", file, "--topic", "orders", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out).keys() == {TOPIC}
    assert legacy("list", file, "--topic", "none") == 0
    assert capsys.readouterr().out == "no ACL\n"
    for action in ("list", "convert"):
        assert legacy(action, file, "--allowprincipals", "a") == 2
        assert f"`{action}` takes no principals" in capsys.readouterr().err
        assert legacy(action, file, "--topic", "orders", "--producer") == 2
        assert f"do not apply to `{action}`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--allowprincipals", "a"), "`--topic`"),
        (("--topic", "orders"), "name the principals"),
        (("--topic", " ", "--allowprincipals", "a"), "empty"),
        (("--topic", "o", "--allowprincipals", "a,,b"), "empty value"),
        (("--topic", "o", "--allowprincipals", "a", "--denyhosts", "h"), "without principals"),
        (("--topic", "o", "--allowprincipals", "a", "--action", "FLY"), "`FLY`"),
        (("--group", "g", "--allowprincipals", "a", "--action", "WRITE"), "does not apply to"),
        (("--group", "g", "--allowprincipals", "a", "--producer"), "need `--topic`"),
        (("--topic", "o", "--allowprincipals", "a", "--consumer"), "needs `--group`"),
        (
            ("--topic", "o", "--group", "g", "--cluster", "--allowprincipals", "a", "--consumer"),
            "`--cluster`",
        ),
        (("--topic", "o", "--allowprincipals", "a", "--producer", "--action", "READ"), "neither"),
        (("--topic", "o", "--denyprincipals", "a", "--producer"), "neither"),
    ],
)
def test_arguments_that_mean_nothing_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    file = tmp_path / "acls.json"
    assert legacy("grant", file, *arguments) == 2
    assert told in capsys.readouterr().err
    assert not file.exists()


def test_a_revocation_never_takes_more_than_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "acls.json"
    assert legacy("revoke", file, "--topic", "orders", "--force") == 2
    assert "does not exist; `kustos legacy grant` creates it" in capsys.readouterr().err
    assert legacy("grant", file, "--topic", "orders", "--allowprincipals", "a") == 0
    assert legacy("revoke", file, "--topic", "orders", "--action", "READ", "--force") == 2
    assert entries(file, TOPIC)
    file.write_text("{")
    assert legacy("list", file) == 1
    assert "acls.json" in capsys.readouterr().err
