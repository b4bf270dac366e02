"""`kustos explain` over hosts and names, and the commands that it proposes."""

import asyncio
import shlex
from pathlib import Path

import pytest

from kustos.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.acl.forms import AclForm, write_acls
from kustos.cli.acls.commands import add_command, refusal_of, remove_command, where_of
from kustos.cli.failures import ExitCode
from testkit.gateway.admin_node import ACLS, MODULE, PASSWORD, admin_node
from testkit.ports import LOOPBACK
from tests.unit.cli.cli_sets import Said, acl

PREFIXED, ALL, DENY = PatternType.PREFIXED, AclOperation.ALL, AclPermissionType.DENY
SHOP = [
    acl("orders", host="10.0.0.0/8"),
    acl("orders", host="10.9.0.0/16", permission=DENY, operation=ALL),
    acl("pii-", pattern_type=PREFIXED),
    acl("pii-secret", who="User:*", permission=DENY),
]
ALICE = ("explain", "--acls", "shop.yaml", "-c", "node.properties", "--principal", "User:alice")
READ = (*ALICE, "--operation", "Read")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "shop.yaml").write_text(write_acls(SHOP, AclForm.YAML))
    (tmp_path / "node.properties").write_text("super.users=User:root\n")
    return tmp_path


@pytest.fixture
def kustos(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


def test_without_a_host_it_answers_for_all_hosts(here: Path, kustos: Said) -> None:
    exit_code, out, err = kustos(*READ, "--topic", "orders")
    assert (exit_code, err) == (ExitCode.OK, "")
    words = " ".join(out.split())
    assert words.startswith(
        "PARTLY: User:alice may READ topic orders from 10.0.0.0-10.8.255.255 or "
        "10.10.0.0-10.255.255.255, denied elsewhere allowed from"
    )
    assert "denied from 10.9.0.0/16: an ACL says DENY ALL to User:alice" in words
    assert "denied from anywhere except 10.0.0.0/8: none of the 2 ACLs on the resource allows it" in words
    _, document = kustos.document(*READ, "--topic", "orders")
    assert [part["result"] for part in document["parts"]] == ["ALLOWED", "DENIED", "DENIED"]
    assert (document["host"], document["change"]["edits"]) == (None, 2)
    assert kustos(*READ, "--topic", "orders", "--exit-code")[0] == ExitCode.NO


def test_the_acls_of_groups_apply_to_their_members(here: Path, kustos: Said) -> None:
    groups = [
        acl("orders", who="Group:sales"),
        acl("orders", who="Group:guests", permission=DENY),
        acl("bills", who="Group:sales"),
    ]
    (here / "shop.yaml").write_text(write_acls([*SHOP, *groups], AclForm.YAML))
    asked = (*READ, "--topic", "orders", "--host", "10.0.0.1")
    for member_of, result in (((), "ALLOWED"), (("sales",), "ALLOWED"), (("sales", "guests"), "DENIED")):
        options = [part for name in member_of for part in ("--member-of", f"Group:{name}")]
        _, document = kustos.document(*asked, *options)
        assert (document["result"], document["groups"]) == (result, list(member_of))
    assert document["rule"]["acl"]["principal"] == "Group:guests"
    assert [each["principal"] for each in document["matching"]] == [
        "Group:guests", "Group:sales", "User:alice",
    ]  # fmt: skip
    _, out, _ = kustos(*READ, "--topic", "bills", "--member-of", "Group:sales")
    assert " ".join(out.split()).startswith(
        "ALLOWED: User:alice in Group:sales may READ topic bills from any"
    )
    _, out, _ = kustos("what-can", "--acls", "shop.yaml", "User:bob", "--member-of", "Group:sales")
    assert "bills" in out
    for wrong in ("sales", "User:alice", "Group:"):
        exit_code, _, err = kustos(*asked, "--member-of", wrong)
        assert exit_code == ExitCode.USAGE
        assert "is not a group, write it as `Group:NAME`" in err
    what_can = ("what-can", "--acls", "shop.yaml", "--principal", "User:*", "--member-of", "Group:sales")
    exit_code, _, err = kustos(*what_can)
    assert (exit_code, "means everybody" in err) == (ExitCode.USAGE, True)


def test_of_one_host_it_answers_as_before(here: Path, kustos: Said) -> None:
    _, out, _ = kustos(*READ, "--topic", "orders", "--host", "10.9.0.1")
    assert out.startswith(
        "DENIED: User:alice may not READ topic orders from 10.9.0.1\nbecause an ACL says DENY"
    )


def test_of_a_prefix_it_answers_for_all_names(here: Path, kustos: Said) -> None:
    asked = (*READ, "--topic", "pii-", "--resource-pattern-type", "prefixed")
    _, out, _ = kustos(*asked)
    assert out.startswith("PARTLY: User:alice may READ topics that begin with `pii-` in part\n")
    _, document = kustos.document(*asked)
    assert [(part["result"], part["names"][0]["name"]) for part in document["parts"]] == [
        ("ALLOWED", "pii-"),
        ("DENIED", "pii-secret"),
    ]
    assert kustos.document(*asked, "--host", "10.0.0.1")[1]["host"] == "10.0.0.1"


def test_a_name_that_ends_in_an_asterisk_is_told_of_as_a_likely_prefix(here: Path, kustos: Said) -> None:
    for asked in ((*READ, "--topic", "new-*"), ("who-can", "--acls", "shop.yaml", "-c", "node.properties")):
        more = ("--operation", "Read", "--topic", "new-*") if asked[0] == "who-can" else ()
        assert kustos(*asked, *more)[2] == (
            "note: `new-*` is taken as one name; for all that begin with `new-` give that name and "
            "`--resource-pattern-type prefixed`\n"
        )
    _, document = kustos.document(*READ, "--topic", "new-*")
    assert (document["likely_prefix"], document["change"]) == ("new-", None)
    assert kustos(*READ, "--topic", "*")[2] == "", "this asks about every name"


def test_what_acls_add_would_refuse_is_not_proposed(here: Path, kustos: Said) -> None:
    _, document = kustos.document(*ALICE, "--operation", "IdempotentWrite", "--topic", "t")
    assert (document["result"], document["change"]) == ("DENIED", None)
    assert document["no_change"].startswith("operation `IDEMPOTENT_WRITE` does not apply to a TOPIC")
    _, document = kustos.document(*READ, "--topic", " blank ")
    assert document["change"] is None


def words_of(command: str) -> list[str]:
    """Return the arguments that a shell reads, which takes out a line break behind a backslash."""
    return shlex.split(command.replace("\\\n", " "))


@pytest.mark.parametrize("name", ["it's", "-x", "a b", 'say "hi"', "$HOME", "back`tick", "a;b", "päyments"])
def test_a_command_says_any_name(name: str) -> None:
    made = acl(name, who=f"User:{name}", host="10.0.0.0/8", pattern_type=PREFIXED)
    command = add_command(made, where_of(None, None))
    assert command is not None
    words = words_of("\n".join(command))
    assert words[:3] == ["kustos", "acls", "add"]
    assert {f"--topic={name}"} <= set(words) or words[words.index("--topic") + 1] == name
    assert words[words.index("--allow-principal") + 1] == f"User:{name}"
    assert words[-2:] == ["--bootstrap-server", "HOST:PORT"]


def test_what_cannot_be_said_has_no_command() -> None:
    where = where_of("h:1", Path("c"))
    assert add_command(acl("two\nlines"), where) is None
    assert add_command(acl(" blank"), where) is None
    assert remove_command(acl("t", operation=AclOperation.IDEMPOTENT_WRITE), where) is None
    assert refusal_of(acl("kafka-cluster", kind=ResourceType.CLUSTER, operation=AclOperation.ALTER)) is None
    assert refusal_of(acl("other", kind=ResourceType.CLUSTER, operation=AclOperation.ALTER)) is not None


async def test_the_proposed_commands_do_what_they_say(here: Path, kustos: Said) -> None:
    acls = [*ACLS, acl("it's", host="10.0.0.9", permission=DENY), acl("it's", who="User:bob")]
    (here / "ops.properties").write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={MODULE} required username="ops" password="{PASSWORD}";\n'
    )
    async with admin_node(here, acls=acls) as node:
        where = ("--bootstrap-server", f"{LOOPBACK}:{node.client_port}", "--command-config", "ops.properties")
        asked = ("explain", "--principal", "User:alice", "--operation", "Read", "--topic", "it's", *where)
        _, document = await asyncio.to_thread(kustos.document, *asked)
        assert (document["result"], document["change"]["edits"]) == ("DENIED", 2)
        for command in document["change"]["commands"]:
            words = words_of(command)
            force = ["--force"] if words[2] == "remove" else []
            assert (await asyncio.to_thread(kustos, *words[1:], *force))[0] == 0
        _, document = await asyncio.to_thread(kustos.document, *asked)
        assert (document["result"], document["change"]) == ("ALLOWED", None)
