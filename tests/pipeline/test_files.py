"""What is in a folder is read, passed over with a word, or refused; nothing is half replaced."""

import os
import tempfile
from pathlib import Path

import pytest

from kustos.pipeline.errors import AuditInputError, ReportOutputError
from kustos.pipeline.files import list_audit_files, publish, staging


def test_all_files_below_the_folder_are_found_and_hidden_ones_told(tmp_path: Path) -> None:
    for name in ("b.log", "a/x.jsonl.1.gz", ".hidden", "_tmp/y"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    found = list_audit_files(tmp_path)
    assert list(map(str, found.files)) == [f"{tmp_path}/{name}" for name in ("b.log", "a/x.jsonl.1.gz")]
    assert len(found.passed_over) == 2


def test_a_missing_or_empty_folder_or_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AuditInputError, match="does not exist"):
        list_audit_files(tmp_path / "no")
    with pytest.raises(AuditInputError, match="holds no audit files"):
        list_audit_files(tmp_path)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(AuditInputError, match="is not a folder"):
        list_audit_files(file)


def test_what_cannot_be_opened_is_refused_by_name() -> None:
    superuser = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "secret.log").touch(mode=0)
        if superuser:
            os.seteuid(65534)  # root may open anything
        try:
            with pytest.raises(
                AuditInputError, match=r"cannot read `.*secret.log`: permission denied, check"
            ):
                list_audit_files(folder)
        finally:
            if superuser:
                os.seteuid(0)


def test_a_pipe_is_refused_before_it_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(AuditInputError, match="not a regular file"):
        list_audit_files(tmp_path)


def test_output_and_audit_lie_apart(tmp_path: Path) -> None:
    for out in (tmp_path / "audit", tmp_path / "audit" / "out", tmp_path):
        with pytest.raises(ReportOutputError, match="must lie apart"), staging(out, tmp_path / "audit"):
            pass


def test_one_run_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    out, audit = tmp_path / "out", tmp_path / "audit"
    with (
        staging(out, audit),
        pytest.raises(ReportOutputError, match="another report is being written"),
        staging(out, audit),
    ):
        pass
    with staging(out, audit) as folder:
        assert folder.is_dir()
    assert not folder.exists()


@pytest.mark.usefixtures("no_locks")
def test_a_report_into_a_file_system_without_locks_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(ReportOutputError, match="no locks available; take a file system with locks"),
        staging(tmp_path / "out", tmp_path / "audit"),
    ):
        pass


def test_what_is_no_finished_table_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "events").mkdir(parents=True)
    (out / "events" / "precious").write_text("mine")
    with staging(out, tmp_path / "audit") as folder:
        (folder / "events").mkdir()
        with pytest.raises(ReportOutputError, match="is not a finished table"):
            publish(folder, out, ("events",), ())
    assert (out / "events" / "precious").read_text() == "mine"
