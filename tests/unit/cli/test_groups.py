"""Commands on sets with ACLs of groups, which may apply to clients in addition to their own."""

from pathlib import Path

import pytest

from kustos.acl import AclPermissionType
from kustos.acl.forms import AclForm, write_acls
from kustos.cli.failures import ExitCode
from tests.unit.cli.cli_sets import Said, acl

DENY = AclPermissionType.DENY


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    denied, allowed = acl("a", who="User:bob", permission=DENY), acl("a", who="Group:sales")
    for name, acls in (("old", [denied, allowed]), ("new", [allowed]), ("plain", [denied]), ("none", [])):
        (tmp_path / f"{name}.yaml").write_text(write_acls(acls, AclForm.YAML))
    return tmp_path


@pytest.fixture
def kustos(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


@pytest.mark.usefixtures("here")
def test_a_difference_that_matters_only_to_clients_with_groups_is_reported(kustos: Said) -> None:
    exit_code, _, err = kustos("diff", "old.yaml", "new.yaml", "--exit-code")
    assert exit_code == ExitCode.NO
    assert "the effect of DENYs changes, which matters to clients that have groups" in " ".join(err.split())
    assert "User:bob" in err
    exit_code, _, err = kustos("diff", "plain.yaml", "none.yaml", "--exit-code")
    assert (exit_code, "groups" in err) == (ExitCode.OK, False)


@pytest.mark.usefixtures("here")
def test_lint_and_minimize_keep_a_deny_that_may_deny_what_a_group_has(kustos: Said) -> None:
    for name, needless in (("old", 0), ("plain", 1)):
        _, document = kustos.document("lint", f"{name}.yaml")
        codes = [each["code"] for each in document["findings"]]
        assert codes.count("KUS005") == needless
        _, document = kustos.document("minimize", f"{name}.yaml")
        assert len(document["removed"]) == needless
