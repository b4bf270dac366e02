"""Tables stay small, and lose no version that `runs` names: of tables that nobody wrote to for two days."""

import errno
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kustos.pipeline.tables import delta
from kustos.pipeline.tables.transaction import Transaction
from tests.pipeline.tables.test_transaction import TABLES, change_tables, contents

NAMES = (*TABLES, "inputs", "runs")

pytestmark = pytest.mark.usefixtures("quick_disk")


def age(place: Path) -> None:
    """Make the commits of a table two days old, as those of one that nobody wrote to since."""
    old_s = time.time() - 2 * 86_400
    for path in (place / "_delta_log").glob("*.json"):
        os.utime(path, (old_s, old_s))


def commit_nothing(place: Path, times: int) -> None:
    table = delta.open_table(place)
    assert table is not None
    for _ in range(times):
        delta.write(place, table, [], table.schema(), replaces=(), number=1)


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return tables at version 98, each commit two days old: the next one makes a checkpoint."""
    folder = tmp_path_factory.mktemp("idle") / "tables"
    change_tables(folder, 1)
    older = DeltaTable(str(folder / "audit_rollup"))  # as tables of earlier versions, it lets Delta do it
    older.alter.set_table_properties({"delta.enableExpiredLogCleanup": "true"})
    for name in NAMES:
        commit_nothing(folder / name, 97 - newest(folder / name))
    change_tables(folder, 2)
    assert {newest(folder / name) for name in NAMES} == {98}
    for name in NAMES:
        age(folder / name)
    return folder


@pytest.fixture
def folder(idle: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(idle, tmp_path / "tables"))


def newest(place: Path) -> int:
    return DeltaTable(str(place)).version()


def test_a_run_that_ends_before_its_row_leaves_the_versions_that_runs_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(folder)
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "_add_run", killed)
        with pytest.raises(KeyboardInterrupt):
            change_tables(folder, 3)
    assert {newest(folder / name) for name in TABLES} == {99}
    assert all(list((folder / name / "_delta_log").glob("*99.checkpoint.parquet")) for name in TABLES)
    assert contents(folder) == before
    change_tables(folder, 3)
    assert contents(folder)["runs"] == ["run-1", "run-2", "run-3"]
    assert [len(contents(folder)[table]) for table in TABLES] == [6, 2, 3]


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_old_commits_and_files_go_once_a_run_names_a_later_checkpoint(folder: Path) -> None:
    change_tables(folder, 3)
    for name in NAMES:
        commit_nothing(folder / name, 99)
        age(folder / name)
        leave_a_file(folder / name)
    assert min(len(log_of(folder, name)) for name in NAMES) > 190
    change_tables(folder, 4)
    assert contents(folder)["runs"] == [f"run-{run}" for run in range(1, 5)]
    for name in NAMES:
        assert log_of(folder, name)[:101] == [f"{version:020d}.json" for version in range(99, 200)]
        assert not (folder / name / "of_a_killed_run.parquet").exists()


def leave_a_file(place: Path) -> None:
    stray = place / "of_a_killed_run.parquet"
    stray.touch()
    os.utime(stray, (0, 0))


def test_a_run_whose_clean_up_fails_is_none_that_failed_and_a_later_one_removes_what_is_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    forbidden = {"runs", "audit_events"}

    def unless_forbidden(honest: Callable[..., Any]) -> Callable[..., Any]:
        def clean(table: DeltaTable, *args: Any, **more: Any) -> Any:
            if {name for name in forbidden if f"/{name}/" in f"{table.table_uri}/"}:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return honest(table, *args, **more)

        return clean

    for name in NAMES:
        leave_a_file(folder / name)
    with monkeypatch.context() as patch:
        for step in ("vacuum", "cleanup_metadata"):
            patch.setattr(DeltaTable, step, unless_forbidden(getattr(DeltaTable, step)))
        change_tables(folder, 3)
    left = {name for name in NAMES if (folder / name / "of_a_killed_run.parquet").exists()}
    assert left == forbidden, "other tables are cleaned up"
    said = [record.getMessage() for record in caplog.records if record.name == "kustos.pipeline.tables"]
    assert len(said) == 2 * len(forbidden)
    assert "cannot remove what is old, a later run tries again" in said[0]
    assert f"`{folder / 'runs'}`: permission denied" in said[0]
    assert contents(folder)["runs"] == ["run-1", "run-2", "run-3"]
    for name in NAMES:
        commit_nothing(folder / name, 99)
    change_tables(folder, 4)
    assert not list(folder.glob("*/of_a_killed_run.parquet"))


def log_of(folder: Path, name: str) -> list[str]:
    return sorted(path.name for path in (folder / name / "_delta_log").glob("*.json"))


def test_another_programs_commit_leaves_the_version_that_runs_names(folder: Path) -> None:
    before = contents(folder)
    DeltaTable(str(folder / "audit_events")).delete()
    assert contents(folder) == before
    change_tables(folder, 3)
    assert len(contents(folder)["audit_events"]) == 6
