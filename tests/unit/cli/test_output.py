"""What commands print can be searched, split, copied and read back: in pipes and on a terminal."""

import csv
import io
import json
from pathlib import Path

import pytest
import yaml

from kustos.acl import AclOperation, PatternType
from kustos.acl.forms import AclForm, read_acls, write_acls
from kustos.metadata.directory.format import format_directory
from tests.unit.cli.cli_sets import Said, acl
from tests.unit.cli.test_terminal import converse

LONG = "team.payments.settlement.instructions.v3.reconciled-by-region-and-currency.changelog"
DISTINGUISHED = "User:CN=payments service,OU=Platform Engineering,O=Example Corporation,C=CH"
ACLS = [
    acl("orders", operation=AclOperation.WRITE),
    acl("orders", operation=AclOperation.DESCRIBE),
    acl(LONG, who="User:bob"),
    acl("pay-", who=DISTINGUISHED, pattern_type=PatternType.PREFIXED),
    acl("=1+1", who='User:\x1b[2J,\n"quoted"'),
]


@pytest.fixture
def directory(tmp_path: Path) -> str:
    format_directory(tmp_path / "meta", metadata_version=33, acls=ACLS)
    return str(tmp_path / "meta")


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


def test_a_pipe_gets_a_line_for_each_acl(directory: str, said: Said) -> None:
    for output in ("table", "wide"):
        exit_code, out, _ = said.piped("acls", "list", "--metadata-dir", directory, "-o", output)
        assert exit_code == 0
        head, *rows, blank, count = out.splitlines()
        assert head.split()[-2:] == ["permission", "operation"]
        assert (blank, count) == ("", "5 ACLs")
        assert len(rows) == len(ACLS)
        assert sum("orders" in row for row in rows) == 2, "a name is not left out where it stands above"
        assert any(LONG in row for row in rows)
        assert any(DISTINGUISHED in row for row in rows)


def test_csv_has_the_exact_names(directory: str, said: Said) -> None:
    out = said.piped("acls", "list", "--metadata-dir", directory, "-o", "csv")[1]
    found = {(row["resource_name"], row["principal"]) for row in csv.DictReader(io.StringIO(out, newline=""))}
    assert found == {(each.pattern.name, each.entry.principal) for each in ACLS}


@pytest.mark.parametrize("form", [AclForm.CSV, AclForm.JSON, AclForm.YAML])
def test_a_printed_set_of_acls_reads_back_the_same(form: AclForm, directory: str, said: Said) -> None:
    out = said.piped("acls", "list", "--metadata-dir", directory, "-o", form.value)[1]
    assert {each.binding for each in read_acls(out, form, "printed")} == {*ACLS}


def test_names_are_arguments_each_once(directory: str, said: Said) -> None:
    out = said.piped("acls", "list", "--metadata-dir", directory, "-o", "name")[1]
    assert sorted(out.splitlines()) == sorted(
        ["User:alice", "User:bob", DISTINGUISHED, r'User:\x1b[2J,\n"quoted"']
    )


def test_what_can_be_given_on_is_given_on(directory: str, said: Said) -> None:
    names = said.piped(
        "who-can", "--operation", "Read", "--topic", LONG, "--metadata-dir", directory, "-o", "name"
    )[1].split("\n")
    assert names == ["User:bob", ""]
    topics = said.piped("what-can", names[0], "--metadata-dir", directory, "-o", "name")[1]
    assert topics == f"{LONG}\n"


def test_no_name_is_left_out_but_on_a_terminal(tmp_path: Path, said: Said) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    topics = [f"topic-{number:02}" for number in range(30)]
    old.write_text(write_acls([], AclForm.YAML))
    new.write_text(write_acls([acl(topic) for topic in topics], AclForm.YAML))
    every = ("who-can", "--operation", "Read", "--topic", "topic-", "--resource-pattern-type", "prefixed")
    for command in (
        ("what-can", "User:alice", "--acls", str(new)),
        (*every, "--acls", str(new)),
        ("diff", str(old), str(new)),
    ):
        for output in ("table", "wide", "csv"):
            out = said.piped(*command, "-o", output)[1]
            assert all(topic in out for topic in topics), (command, output)
        shown = said(*command)[1]
        assert "more" in shown
        assert topics[-1] not in shown


def test_a_difference_has_all_regions_in_every_format_but_on_a_terminal(tmp_path: Path, said: Said) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    users = [f"User:app-{number}" for number in range(9)]
    old.write_text(write_acls([], AclForm.YAML))
    new.write_text(write_acls([acl(f"t-{who}", who=who) for who in users], AclForm.YAML))
    difference = ("diff", str(old), str(new))
    assert "not shown: 5 regions gained" in said(*difference)[1]
    lines = said.piped(*difference)[1].splitlines()
    assert lines[0].startswith("User:app-")
    assert sum(line.startswith("gained ") for line in lines) == len(users)
    rows = list(csv.DictReader(io.StringIO(said.piped(*difference, "-o", "csv")[1], newline="")))
    assert sorted(row["principals"] for row in rows) == users
    assert {row["operations"] for row in rows} == {"READ, DESCRIBE"}
    assert sorted(said.piped(*difference, "-o", "name")[1].split()) == users
    document = yaml.safe_load(said.piped(*difference, "-o", "yaml")[1])
    assert document == said.document(*difference)[1]
    assert document["headline"]["gained"]["rest"]["regions"] == len(users) - 3


def test_settings_that_are_not_known_are_told_beside_rows_and_in_documents(
    tmp_path: Path, said: Said
) -> None:
    file = tmp_path / "acls.yaml"
    file.write_text(write_acls([acl("orders")], AclForm.YAML))
    for output in ("table", "wide", "name", "csv", "CSV"):
        assert said.piped("what-can", "User:alice", "--acls", str(file), "-o", output)[2].startswith("note: ")
    for output in ("json", "yaml"):
        _, out, err = said.piped("what-can", "User:alice", "--acls", str(file), "-o", output)
        assert err == ""
        assert yaml.safe_load(out)["settings"]["super.users"]["known"] is False


def test_a_note_fits_the_terminal_and_is_one_line_elsewhere(tmp_path: Path, said: Said) -> None:
    file = tmp_path / "acls.yaml"
    file.write_text(write_acls([acl("orders")], AclForm.YAML))
    command = ["who-can", "--operation", "Read", "--topic", "pii-*", "--acls", str(file)]
    notes = said.piped(*command)[2].splitlines()
    assert len(notes) == 2
    assert all(note.startswith("note: ") and len(note) > 80 for note in notes)
    _, screen = converse(command, [])
    lines = screen.replace("\r\n", "\n").splitlines()
    assert all(len(line) <= 80 for line in lines), lines
    assert " ".join(notes) in " ".join(lines)


def test_an_error_fits_the_terminal_and_breaks_nothing_that_it_quotes() -> None:
    command = ["explain", "--principal", "User:alice", "--operation", "Read", "--topic", "orders"]
    _, screen = converse(command, [])
    lines = screen.replace("\r\n", "\n").splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 80 for line in lines), lines
    assert lines[0].startswith("error: the source of ACLs is missing")
    assert all(line.count("`") % 2 == 0 for line in lines)


def test_levels_of_features_are_rows(directory: str, said: Said) -> None:
    out = said.piped("features", "describe", "-d", directory, "-o", "csv")[1]
    (row,) = [row for row in csv.DictReader(io.StringIO(out)) if row["feature"] == "metadata.version"]
    document = said.document("features", "describe", "-d", directory)[1]
    assert row in document["features"]
    assert "metadata.version" in said.piped("features", "describe", "-d", directory, "-o", "name")[1].split()


def test_a_finding_is_one_line_in_a_pipe(tmp_path: Path, said: Said) -> None:
    file = tmp_path / "acls.yaml"
    file.write_text(write_acls([acl(LONG), acl(LONG, host="10.0.0.1")], AclForm.YAML))
    _, out, _ = said.piped("lint", str(file))
    (finding,) = [line for line in out.splitlines() if "KUS004" in line]
    assert finding.startswith(f"{file}:")
    assert finding.count(LONG) == 2
    assert said.piped("lint", str(file), "-o", "name")[1] == "KUS004\n"


def test_errors_are_objects_for_both_documents(said: Said) -> None:
    for output in ("json", "yaml"):
        exit_code, out, err = said.piped("storage", "info", "-d", "/nowhere", f"-o{output}")
        assert (exit_code, out) == (2, "")
        assert yaml.safe_load(err) == json.loads(err)
        assert json.loads(err)["error"].keys() == {"code", "message"}


@pytest.mark.slow
def test_names_are_whole_and_tame_on_a_terminal(directory: str) -> None:
    for output in ("table", "wide", "csv", "name"):
        exit_code, screen = converse(["acls", "list", "--metadata-dir", directory, "-o", output], [])
        assert exit_code == 0, screen
        assert (LONG in screen) is (output != "name")
        assert DISTINGUISHED in screen
        assert "\x1b" not in screen
        assert r"\x1b[2J" in screen


def test_a_short_table_fits_the_terminal_and_names_a_resource_once(tmp_path: Path) -> None:
    file = tmp_path / "meta"
    operations = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE]
    format_directory(file, metadata_version=33, acls=[acl("orders", operation=each) for each in operations])
    _, screen = converse(["acls", "list", "--metadata-dir", str(file)], [])
    lines = screen.replace("\r\n", "\n").splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[2] == "topic orders  User:alice  *     ALLOW       READ, WRITE, DESCRIBE"
    assert lines[3:] == ["", "3 ACLs"]
