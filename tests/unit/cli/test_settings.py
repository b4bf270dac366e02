"""Where the commands learn `super.users` and the default: from where the ACLs are, or they say so."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kustos.acl.forms import AclForm, write_acls
from kustos.cli.failures import ExitCode
from kustos.metadata.control import (
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigRules,
    ResourceChanges,
)
from kustos.metadata.directory.format import format_directory
from kustos.metadata.store.store import MetadataStore
from testkit.gateway.admin_node import ACLS, MODULE, PASSWORD, AdminNode, admin_node
from testkit.ports import LOOPBACK
from tests.unit.cli.cli_sets import Said, acl

SUPER_USERS, ALLOW_EVERYONE = "super.users", "allow.everyone.if.no.acl.found"
WHAT_CAN_ADMIN = ("what-can", "User:admin")
UNKNOWN = "note: super.users and allow.everyone.if.no.acl.found are unknown "
ASSUMED = "; assuming none and false (set --super-users or --config)\n"
REQUESTS = "principal,host,operation,resource_type,resource_name\n"
COMMANDS: dict[str, tuple[str, ...]] = {
    "explain": ("--principal", "User:admin", "--operation", "Write", "--topic", "t"),
    "who-can": ("--operation", "Write", "--topic", "t"),
    "what-can": ("User:admin",),
    "verify": ("policy.yaml",),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "acls.yaml").write_text(write_acls([acl("orders")], AclForm.YAML))
    (tmp_path / "policy.yaml").write_text(
        "version: 1\nstatements:\n  - id: admin\n    always: User:admin WRITE every topic\n"
    )
    (tmp_path / "node.properties").write_text("super.users=User:admin;User:ops\n")
    return tmp_path


@pytest.fixture
def kustos(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


def set_in_log(directory: Path, broker: str, **settings: str) -> None:
    """Do what a node does that is told to change settings."""
    changes = tuple(
        ConfigChange(name.replace("_", "."), ConfigOperation.SET, value) for name, value in settings.items()
    )
    rules = ConfigRules(1, {SUPER_USERS: str, ALLOW_EVERYONE: str}, frozenset())
    store = MetadataStore.open(directory)
    try:
        store.append_many([ConfigAlteration((ResourceChanges(4, broker, changes),), rules, False)])
    finally:
        store.close()


def settings_of(document: Any) -> dict[str, Any]:
    return {name: (each["value"], each["known"]) for name, each in document["settings"].items()}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_acls_leaves_them_unknown_and_every_answer_says_so(
    command: str, here: Path, kustos: Said
) -> None:
    arguments = (command, *COMMANDS[command], "--acls", "acls.yaml")
    _, _, err = kustos(*arguments)
    assert err == f"{UNKNOWN}for a file{ASSUMED}"
    _, document = kustos.document(*arguments)
    assert settings_of(document) == {SUPER_USERS: ([], False), ALLOW_EVERYONE: (False, False)}
    assert document["settings"][SUPER_USERS]["from"] == "unknown for a file"


def test_decide_and_lint_and_minimize_say_so_too(here: Path, kustos: Said) -> None:
    (here / "asked.jsonl").write_text("")
    for arguments in (
        ("decide", "--acls", "acls.yaml", "--requests", "asked.jsonl"),
        ("lint", "acls.yaml"),
        ("minimize", "acls.yaml"),
        ("diff", "acls.yaml", "acls.yaml"),
    ):
        assert kustos(*arguments)[2].count(UNKNOWN) == 1, arguments


@pytest.mark.parametrize("command", COMMANDS)
def test_a_properties_file_tells_and_options_overrule_it(command: str, here: Path, kustos: Said) -> None:
    arguments = (command, *COMMANDS[command], "--acls", "acls.yaml", "-c", "node.properties")
    assert kustos(*arguments)[2] == ""
    _, document = kustos.document(*arguments)
    assert settings_of(document) == {
        SUPER_USERS: (["User:admin", "User:ops"], True),
        ALLOW_EVERYONE: (False, True),
    }
    over = ("--super-users", "User:zoe", "--allow-everyone-if-no-acl-found")
    _, document = kustos.document(*arguments, *over)
    assert settings_of(document) == {SUPER_USERS: (["User:zoe"], True), ALLOW_EVERYONE: (True, True)}
    assert document["settings"][SUPER_USERS]["from"] == "the options"


def test_decide_judges_by_a_properties_file(here: Path, kustos: Said) -> None:
    (here / "asked.csv").write_text(
        "principal,host,operation,resource_type,resource_name\nUser:ops,10.0.0.1,WRITE,TOPIC,t\n"
    )
    arguments = ("decide", "--acls", "acls.yaml", "--requests", "asked.csv", "-c", "node.properties")
    assert kustos(*arguments) == (0, '{"result": "ALLOWED", "rule": "SuperUser"}\n', "")


def test_a_file_may_name_what_stands_elsewhere(
    here: Path, kustos: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "node.properties").write_text("super.users=${env:SUPERS}\nallow.everyone.if.no.acl.found=TRUE\n")
    arguments = (*WHAT_CAN_ADMIN, "--acls", "acls.yaml", "-c", "node.properties")
    assert kustos.document(*arguments)[1]["error"]["code"] == "SETTINGS"
    monkeypatch.setenv("SUPERS", "User:a; User:b")
    _, document = kustos.document(*arguments)
    assert settings_of(document) == {SUPER_USERS: (["User:a", "User:b"], True), ALLOW_EVERYONE: (True, True)}


@pytest.mark.parametrize(
    "line", ["authorizer.class.name=org.example.Own", "kustos.authorization.mode=off"], ids=["other", "off"]
)
def test_a_file_of_a_node_that_judges_otherwise_tells_nothing(line: str, here: Path, kustos: Said) -> None:
    (here / "node.properties").write_text(f"super.users=User:admin\n{line}\n")
    _, out, err = kustos(*WHAT_CAN_ADMIN, "--acls", "acls.yaml", "-c", "node.properties")
    assert out == "User:admin may do nothing\n"
    assert err.startswith(UNKNOWN)
    assert "node.properties" in err


def test_a_value_that_is_none_is_refused(here: Path, kustos: Said) -> None:
    (here / "node.properties").write_text("allow.everyone.if.no.acl.found=maybe\n")
    arguments = (*WHAT_CAN_ADMIN, "--acls", "acls.yaml", "-c", "node.properties")
    assert kustos.document(*arguments)[0] == ExitCode.USAGE


def test_the_log_tells_what_was_changed_the_node_before_the_cluster(here: Path, kustos: Said) -> None:
    format_directory(here / "meta", node_id=1, acls=[acl("orders")])
    asked = (*WHAT_CAN_ADMIN, "--metadata-dir", "meta")
    assert UNKNOWN in kustos(*asked)[2]
    set_in_log(here / "meta", "", super_users="User:cluster", allow_everyone_if_no_acl_found="true")
    _, document = kustos.document(*asked)
    assert settings_of(document) == {SUPER_USERS: (["User:cluster"], True), ALLOW_EVERYONE: (True, True)}
    set_in_log(here / "meta", "1", super_users="User:admin")
    assert kustos(*asked)[2] == ""
    _, document = kustos.document(*asked)
    assert settings_of(document) == {SUPER_USERS: (["User:admin"], True), ALLOW_EVERYONE: (True, True)}
    assert document["settings"][SUPER_USERS]["from"] == "the log in meta"
    _, document = kustos.document(*asked, "-c", "node.properties")
    assert settings_of(document)[SUPER_USERS] == (["User:admin"], True), "the log is in force over the file"


def test_what_the_log_does_not_tell_the_file_does(here: Path, kustos: Said) -> None:
    format_directory(here / "meta", node_id=1)
    set_in_log(here / "meta", "1", allow_everyone_if_no_acl_found="true")
    asked = (*WHAT_CAN_ADMIN, "--metadata-dir", "meta")
    expected = "note: super.users is unknown for meta, whose log holds only settings changed at run time; "
    assert kustos(*asked)[2] == f"{expected}assuming none (set --super-users or --config)\n"
    _, document = kustos.document(*asked, "-c", "node.properties")
    assert settings_of(document) == {
        SUPER_USERS: (["User:admin", "User:ops"], True),
        ALLOW_EVERYONE: (True, True),
    }


def test_a_log_that_kustos_did_not_begin_puts_nothing_in_force(here: Path, kustos: Said) -> None:
    format_directory(here / "meta", node_id=1)
    set_in_log(here / "meta", "", super_users="User:admin")
    (here / "meta" / "kustos.secret").unlink()
    _, document = kustos.document(*WHAT_CAN_ADMIN, "--metadata-dir", "meta")
    assert settings_of(document)[SUPER_USERS] == ([], False)


def test_a_difference_in_time_is_one_of_settings_too(here: Path, kustos: Said) -> None:
    format_directory(here / "meta", node_id=1, acls=[acl("orders")])
    set_in_log(here / "meta", "", super_users="User:admin", allow_everyone_if_no_acl_found="false")
    offset = kustos.document("storage", "info", "-d", "meta")[1]["last_offset"]
    set_in_log(here / "meta", "", super_users="User:admin;User:zoe")
    exit_code, document = kustos.document("diff", "meta", "--at", str(offset), "--exit-code")
    assert exit_code == ExitCode.NO
    assert {tuple(each["principals"]["in"]) for each in document["changes"]} == {("User:zoe",)}
    assert document["settings"]["old"][SUPER_USERS]["value"] == ["User:admin"]
    assert document["settings"]["new"][SUPER_USERS]["value"] == ["User:admin", "User:zoe"]


def test_decide_takes_the_acls_and_settings_of_a_moment(here: Path, kustos: Said) -> None:
    format_directory(here / "meta", node_id=1, acls=[acl("orders")])
    (here / "asked.csv").write_text(REQUESTS + "User:zoe,10.0.0.1,WRITE,TOPIC,t\n")
    set_in_log(here / "meta", "", super_users="User:admin", allow_everyone_if_no_acl_found="false")
    offset = kustos.document("storage", "info", "-d", "meta")[1]["last_offset"]
    set_in_log(here / "meta", "", super_users="User:admin;User:zoe")
    command = ("decide", "--requests", "asked.csv", "--metadata-dir", "meta")
    assert kustos(*command) == (0, '{"result": "ALLOWED", "rule": "SuperUser"}\n', "")
    assert kustos(*command, "--at", str(offset))[1] == '{"result": "DENIED", "rule": "DefaultDeny"}\n'


def test_what_one_side_of_a_difference_knows_holds_for_both(here: Path, kustos: Said) -> None:
    format_directory(here / "meta", node_id=1, acls=[acl("orders")])
    set_in_log(here / "meta", "", super_users="User:admin", allow_everyone_if_no_acl_found="true")
    exit_code, _, err = kustos("diff", "meta", "acls.yaml", "--exit-code")
    assert (exit_code, err) == (ExitCode.OK, "")


async def asked_of(node: AdminNode, here: Path, kustos: Said, user: str, *arguments: str) -> Any:
    """Return what a command answers that asks the node as a user."""
    (here / "client.properties").write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={MODULE} required username="{user}" password="{PASSWORD}";\n'
    )
    where = ("--bootstrap-server", f"{LOOPBACK}:{node.client_port}", "--command-config", "client.properties")
    return await asyncio.to_thread(kustos.document, *arguments, *where)


async def test_a_running_node_tells_who_its_super_users_are(here: Path, kustos: Said) -> None:
    async with admin_node(here) as node:
        exit_code, document = await asked_of(node, here, kustos, "admin", *WHAT_CAN_ADMIN)
        assert exit_code == 0
        assert settings_of(document) == {SUPER_USERS: (["User:admin"], True), ALLOW_EVERYONE: (False, True)}
        every_name = [{"pattern_type": "PREFIXED", "name": ""}]
        assert [grant["names"] for grant in document["grants"] if grant["resource_type"] == "TOPIC"] == [
            every_name
        ]
        exit_code, document = await asked_of(node, here, kustos, "viewer", "explain", *COMMANDS["explain"])
        assert (document["result"], document["rule"]["kind"]) == ("ALLOWED", "SuperUser")


async def test_decide_takes_acls_and_settings_of_a_running_node(here: Path, kustos: Said) -> None:
    asked = ["User:admin,10.0.0.1,WRITE,TOPIC,t", "User:alice,10.0.0.1,READ,TOPIC,orders"]
    (here / "asked.csv").write_text(REQUESTS + "".join(f"{line}\n" for line in asked))
    async with admin_node(here, acls=[*ACLS, acl("orders")]) as node:
        command = ("decide", "--requests", "asked.csv")
        exit_code, document = await asked_of(node, here, kustos, "viewer", *command)
        assert exit_code == 0
        super_user, by_acl = document["answers"]
        assert super_user == {"result": "ALLOWED", "rule": "SuperUser"}
        assert by_acl["rule"].startswith(
            "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=orders"
        )
        over = ("--super-users", "User:zoe", "--exit-code")
        exit_code, document = await asked_of(node, here, kustos, "viewer", *command, *over)
        assert exit_code == ExitCode.NO, "what the options say overrules the node"
        assert document["answers"][0]["result"] == "DENIED"


async def test_decide_says_when_a_node_does_not_show_its_settings(here: Path, kustos: Said) -> None:
    (here / "asked.csv").write_text(REQUESTS + "User:admin,10.0.0.1,WRITE,TOPIC,t\n")
    async with admin_node(
        here, acls=[each for each in ACLS if each.entry.operation.name != "DESCRIBE_CONFIGS"]
    ) as node:
        await asked_of(node, here, kustos, "viewer", *WHAT_CAN_ADMIN)  # writes the login of the viewer
        where = ("--bootstrap-server", f"{LOOPBACK}:{node.client_port}", "--command-config")
        said = await asyncio.to_thread(
            kustos.piped, "decide", "--requests", "asked.csv", *where, "client.properties"
        )
        assert said[:2] == (0, '{"result": "DENIED", "rule": "DefaultDeny"}\n')
        assert said[2].startswith(UNKNOWN)


async def test_who_may_not_describe_configs_is_told_that_they_are_unknown(here: Path, kustos: Said) -> None:
    acls = [each for each in ACLS if each.entry.operation.name != "DESCRIBE_CONFIGS"]
    async with admin_node(here, acls=acls) as node:
        exit_code, document = await asked_of(node, here, kustos, "viewer", *WHAT_CAN_ADMIN)
        assert (exit_code, document["grants"]) == (0, [])
        setting = document["settings"][SUPER_USERS]
        assert not setting["known"]
        assert setting["from"] == "unknown without the permission DESCRIBE_CONFIGS on the cluster"
        exit_code, document = await asked_of(
            node, here, kustos, "viewer", *WHAT_CAN_ADMIN, "-c", "node.properties"
        )
        assert settings_of(document)[SUPER_USERS] == (["User:admin", "User:ops"], True)


async def test_a_running_node_and_a_file_are_compared_by_the_settings_of_the_node(
    here: Path, kustos: Said
) -> None:
    (here / "same.yaml").write_text(write_acls(list(ACLS), AclForm.YAML))
    async with admin_node(here) as node:
        login = ("--command-config", "client.properties")
        await asked_of(node, here, kustos, "admin", *WHAT_CAN_ADMIN)
        cluster = f"kafka://{LOOPBACK}:{node.client_port}"
        exit_code, document = await asyncio.to_thread(kustos.document, "diff", cluster, "same.yaml", *login)
        assert (exit_code, document["same"]) == (0, True)
        assert document["settings"]["new"][SUPER_USERS]["value"] == ["User:admin"]
