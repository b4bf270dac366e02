"""`kustos lint`, `who-can`, `what-can`, `verify` and `minimize` on files and directories."""

import json
from pathlib import Path

import pytest

from kustos.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.acl.forms import AclForm, write_acls
from kustos.cli.acl_source import AclSource
from kustos.cli.failures import ExitCode
from kustos.cli.reference import DOCUMENTS
from kustos.metadata.directory.format import format_directory
from tests.unit.cli.cli_sets import Said, acl

PREFIXED, ALL, WRITE = PatternType.PREFIXED, AclOperation.ALL, AclOperation.WRITE
SHOP = [
    acl("payments.", who="User:pay-api", operation=WRITE, host="10.0.0.0/8", pattern_type=PREFIXED),
    acl("payments.", who="User:pay-api", operation=AclOperation.DESCRIBE, pattern_type=PREFIXED),
    acl("*", who="User:*"),
    acl("payments.cards", who="User:*", permission=AclPermissionType.DENY),
    acl("payments.cards", who="User:etl", host="::1"),
    acl("payments.", who="User:mallory", operation=ALL, pattern_type=PREFIXED),
]
POLICY = """\
version: 1
statements:
  - id: payments-writers
    never: anyone but User:pay-* WRITE topics under payments.
    reason: money moves there
  - id: pay-api
    always: User:pay-api WRITE topics under payments. from 10.0.0.0/8
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "shop.yaml").write_text(write_acls(SHOP, AclForm.YAML))
    (tmp_path / "good.csv").write_text(write_acls(SHOP[:1], AclForm.CSV))
    (tmp_path / "policy.yaml").write_text(POLICY)
    format_directory(tmp_path / "meta", metadata_version=33, acls=SHOP)
    return tmp_path


@pytest.fixture
def kustos(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


def test_lint_tells_of_each_line(here: Path, kustos: Said) -> None:
    exit_code, out, _ = kustos("lint", "shop.yaml")
    assert exit_code == ExitCode.NO
    assert "shop.yaml:9: warning KUS004\n" in out
    assert "shop.yaml:30: error KUS301\n" in out
    assert "    fix: write `0:0:0:0:0:0:0:1`\n" in out
    assert out.endswith("2 errors, 1 warning in 6 ACLs\n")
    exit_code, document = kustos.document("lint", "shop.yaml")
    assert exit_code == ExitCode.NO
    assert document["counts"] == {"error": 2, "warning": 1, "note": 0}
    assert [(each["code"], each["line"]) for each in document["findings"]] == [
        ("KUS004", 9),
        ("KUS101", 16),
        ("KUS301", 30),
    ]


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (["--fail-on", "error"], ExitCode.NO),
        (["--fail-on", "never"], ExitCode.OK),
        (["--ignore", "KUS101", "--ignore", "KUS301"], ExitCode.OK),
        (["--ignore", "KUS101", "--ignore", "KUS301", "--fail-on", "warning"], ExitCode.NO),
        (
            ["--ignore", "KUS101", "--ignore", "KUS301", "--ignore", "KUS004", "--fail-on", "note"],
            ExitCode.OK,
        ),
        (["--ignore", "KUS999"], ExitCode.USAGE),
    ],
)
def test_lint_fails_by_severity(arguments: list[str], exit_code: ExitCode, here: Path, kustos: Said) -> None:
    assert kustos("lint", "shop.yaml", *arguments)[0] == exit_code


def test_lint_of_a_good_file_finds_nothing(here: Path, kustos: Said) -> None:
    assert kustos("lint", "good.csv", "--fail-on", "note")[:2] == (0, "nothing found in 1 ACL\n")


def test_lint_of_what_has_no_lines(here: Path, kustos: Said) -> None:
    exit_code, document = kustos.document("lint", "meta", "--super-users", "User:etl;User:mallory")
    assert exit_code == ExitCode.NO
    assert {each["line"] for each in document["findings"]} == {None}
    assert "KUS006" in {each["code"] for each in document["findings"]}


def test_lint_knows_what_exists(here: Path, kustos: Said) -> None:
    (here / "topics.txt").write_text("payments.cards\n")
    (here / "groups.txt").write_text("")
    acls = [acl("payments.cards"), acl("gone"), acl("g", kind=ResourceType.GROUP)]
    (here / "x.json").write_text(write_acls(acls, AclForm.JSON))
    _, document = kustos.document("lint", "x.json", "--existing-topics", "topics.txt")
    assert [each["acl"]["resource_name"] for each in document["findings"]] == ["gone"]
    _, document = kustos.document("lint", "x.json", "--existing-groups", "groups.txt")
    assert [each["acl"]["resource_name"] for each in document["findings"]] == ["g"]


def test_lint_writes_sarif_with_places(here: Path, kustos: Said) -> None:
    assert kustos("lint", str(here / "shop.yaml"), "--sarif", "x.sarif")[0] == ExitCode.NO
    (run,) = json.loads((here / "x.sarif").read_text())["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert [place["region"]["startLine"] for place in places] == [9, 16, 30]
    assert {place["artifactLocation"]["uri"] for place in places} == {"shop.yaml"}
    exit_code, out, _ = kustos("lint", "good.csv", "--sarif", "-")
    assert (exit_code, json.loads(out)["runs"][0]["results"]) == (ExitCode.OK, [])


def test_who_can_tells_all_names_from_some(here: Path, kustos: Said) -> None:
    question = ("who-can", "--metadata-dir", "meta", "--operation", "Write")
    _, out, _ = kustos(*question, "--topic", "payments.", "--resource-pattern-type", "prefixed")
    assert out.startswith("WRITE all topics that begin with `payments.`:\n")
    assert ["User:mallory", "anywhere"] in [line.split() for line in out.splitlines()]
    assert ["User:pay-api", "10.0.0.0/8"] in [line.split() for line in out.splitlines()]
    _, out, _ = kustos(*question, "--topic", "*")
    assert out.startswith("WRITE some topics:\n")
    assert kustos(*question, "--topic", "orders")[1] == "no principal may WRITE topic orders\n"
    assert kustos(*question, "--cluster")[1] == "no principal may WRITE the cluster\n"
    exit_code, document = kustos.document(*question, "--topic", "payments.cards")
    assert exit_code == ExitCode.OK
    assert [grant["principals"] for grant in document["grants"]] == [
        {"in": ["User:mallory"]},
        {"in": ["User:pay-api"]},
    ]


def test_what_can_lists_a_principals_rights(here: Path, kustos: Said) -> None:
    _, out, _ = kustos("what-can", "User:mallory", "--acls", "shop.yaml")
    assert "User:mallory may:\n" in out
    rows = [line.split() for line in out.splitlines()]
    assert ["all", "but", "READ", "topic", "`payments.cards`", "anywhere"] in rows
    _, out, _ = kustos("what-can", "User:root", "--acls", "shop.yaml", "--super-users", "User:root")
    assert out.count(" of every name") == 5
    assert kustos("what-can", "User:x", "--acls", "good.csv")[1] == "User:x may do nothing\n"
    _, out, _ = kustos("what-can", "User:*", "--acls", "shop.yaml")
    assert out.startswith("everyone that neither ACLs nor super.users name may:\n")
    exit_code, document = kustos.document("what-can", "User:pay-api", "--acls", "good.csv")
    assert exit_code == ExitCode.OK
    assert [grant["operations"] for grant in document["grants"]] == [["WRITE", "DESCRIBE"]]
    assert kustos("what-can", "alice", "--acls", "good.csv")[0] == ExitCode.USAGE


def test_verify_fails_with_the_acl_that_breaks_a_statement(here: Path, kustos: Said) -> None:
    exit_code, out, _ = kustos("verify", "policy.yaml", "--acls", "shop.yaml")
    assert exit_code == ExitCode.NO
    assert "BROKEN  payments-writers  (policy.yaml:3)\n" in out
    assert "User:mallory may WRITE topic `payments." in out
    assert out.endswith("2 statements: 1 held, 1 broken\n")
    exit_code, document = kustos.document("verify", "policy.yaml", "--metadata-dir", "meta")
    assert (exit_code, document["holds"]) == (ExitCode.NO, False)
    assert [each["holds"] for each in document["statements"]] == [False, True]
    assert kustos("verify", "policy.yaml", "--acls", "good.csv")[0] == ExitCode.OK
    assert kustos("verify", "policy.yaml", "--acls", "shop.yaml", "--super-users", "User:mallory")[0] == 0


def test_verify_names_the_broken_statements_and_takes_their_names(here: Path, kustos: Said) -> None:
    command = ("verify", "policy.yaml", "--acls", "shop.yaml")
    exit_code, names, _ = kustos.piped(*command, "-o", "name")
    assert (exit_code, names) == (ExitCode.NO, "payments-writers\n")
    exit_code, document = kustos.document(*command, "--statement", names.strip())
    assert (exit_code, [each["id"] for each in document["statements"]]) == (ExitCode.NO, ["payments-writers"])
    exit_code, document = kustos.document(*command, "--statement", "pay-api")
    assert (exit_code, [each["id"] for each in document["statements"]]) == (ExitCode.OK, ["pay-api"])
    assert kustos.piped("verify", "policy.yaml", "--acls", "good.csv", "-o", "name")[:2] == (ExitCode.OK, "")
    exit_code, document = kustos.document(*command, "--statement", "pay-api", "--statement", "pay")
    assert exit_code == ExitCode.USAGE
    assert document["error"]["message"] == (
        "`--statement pay` is not an id of the policy, the first is `payments-writers`"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("statements: []", "policy.yaml:1"),
        (POLICY.replace("WRITE", "FLY"), "policy.yaml:4"),
        ("{", "not YAML"),
    ],
)
def test_a_policy_that_means_nothing_is_refused(text: str, words: str, here: Path, kustos: Said) -> None:
    (here / "policy.yaml").write_text(text)
    exit_code, document = kustos.document("verify", "policy.yaml", "--acls", "shop.yaml")
    assert (exit_code, document["error"]["code"]) == (ExitCode.USAGE, "POLICY")
    assert words in document["error"]["message"]


def test_minimize_shows_or_writes_a_smaller_set(here: Path, kustos: Said) -> None:
    exit_code, out, _ = kustos("minimize", "shop.yaml")
    assert exit_code == ExitCode.OK
    assert out.endswith("6 ACLs, 4 would mean the same\n")
    _, document = kustos.document("minimize", "shop.yaml", "small.yaml")
    assert (document["given"], document["left"], document["target"]) == (6, 4, "small.yaml")
    assert set(AclSource(text="small.yaml").load().bindings) == {SHOP[0], SHOP[2], SHOP[3], SHOP[5]}
    assert kustos("diff", "shop.yaml", "small.yaml", "--exit-code")[0] == ExitCode.OK
    assert kustos("minimize", "good.csv")[1] == "found no smaller set than the 1 ACL given\n"
    assert kustos("minimize", "shop.yaml", "small.yaml")[0] == ExitCode.USAGE, "the target exists"
    exit_code, out, _ = kustos("minimize", "shop.yaml", "-", "--to", "csv")
    assert len(out.splitlines()) == 5


@pytest.mark.parametrize(
    "arguments",
    [
        ["who-can", "--operation", "Read", "--topic", "t"],
        ["who-can", "--operation", "Read", "--acls", "shop.yaml"],
        ["who-can", "--operation", "Fly", "--topic", "t", "--acls", "shop.yaml"],
        ["what-can", "User:a", "--acls", "shop.yaml", "--metadata-dir", "meta"],
        ["verify", "-", "--acls", "-"],
        ["minimize", "shop.yaml", "--to", "csv"],
    ],
)
def test_a_question_without_meaning_is_a_usage_error(arguments: list[str], here: Path, kustos: Said) -> None:
    assert kustos.document(*arguments)[1]["error"]["code"] == "USAGE"


def test_documents_hold_what_the_reference_page_says(here: Path, kustos: Said) -> None:
    source = ("--acls", "shop.yaml")
    asked: dict[str, tuple[str, ...]] = {
        "explain": ("--principal", "User:a", "--operation", "Write", "--topic", "t", *source),
        "who-can": ("--operation", "Write", "--topic", "t", *source),
        "what-can": ("User:etl", *source),
        "blast-radius": ("--principal", "User:etl", *source),
        "diff": ("shop.yaml", "good.csv"),
        "lint": ("shop.yaml",),
        "verify": ("policy.yaml", *source),
        "minimize": ("shop.yaml",),
        "acls convert": ("shop.yaml", "x.json"),
        "metadata dump": ("meta",),
    }
    elsewhere = {"acls add", "acls list", "migrate"}
    assert asked.keys() == DOCUMENTS.keys() - elsewhere
    for command, arguments in asked.items():
        document = kustos.document(*command.split(), *arguments)[1]
        assert document.keys() == set(DOCUMENTS[command].split()), command
