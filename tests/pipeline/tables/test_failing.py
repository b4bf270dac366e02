"""A run that fails, or is interrupted, and goes on to clean up: its rows are there whole, or not at all."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kustos.pipeline.tables import delta
from kustos.pipeline.tables import transaction as transactions
from kustos.pipeline.tables.store import Tables
from kustos.pipeline.tables.transaction import data_files
from tests.pipeline.tables.dying import failed_at
from tests.pipeline.tables.test_transaction import change_tables, contents, run_through

pytestmark = pytest.mark.usefixtures("quick_disk")


@pytest.mark.parametrize(
    "error_of",
    [lambda: OSError(errno.EIO, os.strerror(errno.EIO)), KeyboardInterrupt],
    ids=["error", "interrupted"],
)
def test_failed_at_every_step_and_run_again_the_tables_are_those_of_an_undisturbed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_of: Callable[[], BaseException]
) -> None:
    # so that the run also puts the files of `runs` and `inputs` together, and removes old ones
    monkeypatch.setattr(transactions, "MAXIMUM_FILES", 1)
    monkeypatch.setattr(delta, "CHECKPOINT_COMMITS", 1)
    first = tmp_path / "first"
    change_tables(first, 1)
    before = contents(first)
    after = run_through(shutil.copytree(first, tmp_path / "undisturbed"), 2)
    seen, moment, failed = [], 0, True
    while failed:
        folder = tmp_path / f"failed-{moment}"
        shutil.copytree(first, folder)
        failed = failed_at(moment, lambda folder=folder: change_tables(folder, 2), error_of())  # type: ignore[misc]
        seen.append(contents(folder))
        change_tables(folder, 2)
        assert contents(folder) == after, f"rows once and whole, after a failure at moment {moment}"
        named = {file.name for file in Tables(folder).snapshot("audit_events")}
        assert set(data_files(folder / "audit_events")) == named, "nothing of the failed one is left"
        assert not list(folder.glob("_staging*"))
        shutil.rmtree(folder)
        moment += 1
    assert moment > 25
    committed = seen.index(after)
    assert seen == [before] * committed + [after] * (len(seen) - committed), "all of a run or nothing"
    assert committed < len(seen) - 3, "it also failed after the commit"


def test_a_commit_whose_checkpoint_cannot_be_written_keeps_its_rows(tmp_path: Path) -> None:
    """The 100th commit of `runs` is there, and Delta fails to write what it writes after it."""
    change_tables(tmp_path, 1)
    place = tmp_path / "runs"
    for _ in range(97):
        table = delta.open_table(place)
        assert table is not None
        delta.write(place, table, [], table.schema(), replaces=(), number=1)
    (place / "_delta_log" / f"{99:020d}.checkpoint.parquet" / "taken").mkdir(parents=True)
    with pytest.raises(Exception, match="runs"):
        change_tables(tmp_path, 2)
    assert contents(tmp_path)["runs"] == ["run-1", "run-2"]
    wanted = run_through(tmp_path / "undisturbed", 1, 2)
    assert contents(tmp_path) == wanted
    change_tables(tmp_path, 2)
    assert contents(tmp_path) == wanted
