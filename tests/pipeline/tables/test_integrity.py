"""Readers and runs refuse tables that another program has changed: their answers would lack rows."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from pyarrow import parquet

from kustos.pipeline.tables import TablesDamagedError, integrity, runs
from kustos.pipeline.tables.delta import files_of
from kustos.pipeline.tables.runs import UPKEEP
from kustos.pipeline.tables.store import Tables
from kustos.pipeline.tables.transaction import Write, transaction
from testkit.object_store import ObjectStore
from tests.pipeline.tables.damage import (
    a_commit_emptied,
    a_file_gone,
    a_file_replaced,
    a_foreign_vacuum,
    a_gap_in_the_log,
    a_table_gone,
    an_add_removed,
    an_older_state,
    an_older_state_with_other_commits,
    an_optimize_and_a_vacuum,
    forget,
    unreadable_log,
)
from tests.pipeline.tables.test_transaction import SCHEMA, change_tables, contents, run_through, write_row

pytestmark = pytest.mark.usefixtures("quick_disk")


@pytest.fixture(autouse=True)
def _a_new_process() -> None:
    forget()


DAMAGES: list[Callable[[Path], str]] = [
    an_add_removed,
    a_file_gone,
    a_file_replaced,
    a_foreign_vacuum,
    an_optimize_and_a_vacuum,
    an_older_state,
    an_older_state_with_other_commits,
    a_gap_in_the_log,
    a_commit_emptied,
    a_table_gone,
]


@pytest.mark.parametrize("table", ["audit_events", "audit_rollup", "quarantine"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_table_is_refused_by_readers_and_runs(
    tmp_path: Path, damage: Callable[[Path], str], table: str
) -> None:
    run_through(tmp_path, 1, 2)
    said = damage(tmp_path / table)
    forget()
    with pytest.raises(TablesDamagedError) as caught:
        Tables(tmp_path).snapshot(table)
    assert said in str(caught.value)
    remedy = "run` rebuilds it" if table == "audit_rollup" else "restore it from a backup"
    assert remedy in str(caught.value)
    for _ in range(2):
        with pytest.raises(TablesDamagedError):
            change_tables(tmp_path, 3)
    with pytest.raises(TablesDamagedError):
        Tables(tmp_path).snapshot(table)


def test_the_run_that_wrote_a_lost_file_is_named(tmp_path: Path) -> None:
    run_through(tmp_path, 1, 2, 3)
    table = DeltaTable(str(tmp_path / "audit_events"), version=1)
    (tmp_path / "audit_events" / files_of(table)[0].name).unlink()
    forget()
    with pytest.raises(TablesDamagedError, match=r"part-.* is gone: run `run-1` wrote 1 row into it"):
        change_tables(tmp_path, 4)


@pytest.mark.parametrize("which", ["first", "last"])
def test_a_row_of_runs_that_its_log_lost_is_missed(tmp_path: Path, which: str) -> None:
    run_through(tmp_path, 1, 2, 3)
    commit = next((tmp_path / "runs" / "_delta_log").glob(f"*{1 if which == 'first' else 3}.json"))
    commit.write_text("\n".join(line for line in commit.read_text().splitlines() if '"add"' not in line))
    forget()
    said = r"has 2 rows, but run 3 \(`run-3`\) left 3" if which == "first" else "no row of run 3"
    with pytest.raises(TablesDamagedError, match=said):
        Tables(tmp_path).state()
    with pytest.raises(TablesDamagedError, match=said):
        change_tables(tmp_path, 4)


def test_a_file_of_runs_that_is_gone_is_named(tmp_path: Path) -> None:
    run_through(tmp_path, 1, 2)
    name = a_file_gone(tmp_path / "runs")
    forget()
    with pytest.raises(TablesDamagedError, match=name):
        Tables(tmp_path).snapshot("audit_events")


def test_without_runs_the_other_tables_are_not_taken_for_empty_ones(tmp_path: Path) -> None:
    run_through(tmp_path, 1, 2)
    shutil.rmtree(tmp_path / "runs")
    with pytest.raises(
        TablesDamagedError, match=r"runs` is gone, while `.*audit_events` has a commit of run 2"
    ):
        Tables(tmp_path).snapshot("audit_events")


def test_runs_that_end_too_early_stop_the_next_run(tmp_path: Path) -> None:
    run_through(tmp_path, 1, 2, 3)
    for _ in range(2):
        an_older_state(tmp_path / "runs")
    forget()
    with pytest.raises(TablesDamagedError, match=r"runs` ends at run 1, while `.*` has a commit of run 3"):
        change_tables(tmp_path, 4)


def test_the_rows_of_inputs_are_counted(tmp_path: Path) -> None:
    run_through(tmp_path, 1, 2)
    an_add_removed(tmp_path / "inputs")
    forget()
    with pytest.raises(
        TablesDamagedError, match=r"inputs` has 1 rows by its log, but run 2 \(`run-2`\) left 2"
    ):
        Tables(tmp_path).inputs()
    with pytest.raises(TablesDamagedError, match="inputs` has 1 rows"):
        change_tables(tmp_path, 3)


def test_tables_whose_runs_counted_no_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_tables(tmp_path, 1)
    monkeypatch.setattr(runs, "CONTENTS", "of a later version")
    forget()
    assert len(Tables(tmp_path).snapshot("audit_events")) == 2


def a_checkpoint(table: Path) -> None:
    DeltaTable(str(table)).create_checkpoint()


def a_checkpoint_and_a_clean_up(table: Path) -> None:
    found = DeltaTable(str(table))
    found.create_checkpoint()
    found.cleanup_metadata()
    found.vacuum(dry_run=False)


def an_optimize(table: Path) -> None:
    found = DeltaTable(str(table))
    found.optimize.compact()
    found.create_checkpoint()


@pytest.mark.parametrize("work", [a_checkpoint, a_checkpoint_and_a_clean_up, an_optimize])
def test_what_another_program_may_do_is_accepted(tmp_path: Path, work: Callable[[Path], None]) -> None:
    wanted = run_through(tmp_path / "undisturbed", 1, 2, 3)
    folder = tmp_path / "tables"
    before = run_through(folder, 1, 2)
    for table in ("audit_events", "audit_rollup", "quarantine", "inputs", "runs"):
        if work is not an_optimize or table != "runs":
            work(folder / table)
    forget()
    assert contents(folder) == before
    assert run_through(folder, 3) == wanted


def test_a_commit_of_another_program_that_pretends_to_be_a_run_is_refused(tmp_path: Path) -> None:
    run_through(tmp_path, 1, 2)
    properties = CommitProperties(app_transactions=[Transaction("kustos", 9)])
    DeltaTable(str(tmp_path / "audit_events")).delete(commit_properties=properties)
    for ask in (lambda: contents(tmp_path), lambda: change_tables(tmp_path, 3)):
        with pytest.raises(
            TablesDamagedError, match=r"runs` ends at run 2, while `.*events` has a commit of run 9"
        ):
            ask()


def answer(folder: Path, run: int) -> None:
    """Replace an answer, as the job that gives it does."""
    with transaction(folder) as change:
        write_row(change, "answers", "2026-11-20", f"answer {run}")
        change.commit(f"answer-{run}", UPKEEP, [Write(table="answers", schema=SCHEMA, replaces=None)])


@pytest.mark.parametrize("damage", [*DAMAGES, unreadable_log])
def test_a_damaged_answer_is_refused_to_readers_and_replaced_by_its_job(
    tmp_path: Path, damage: Callable[[Path], str]
) -> None:
    for run in (1, 2):
        change_tables(tmp_path, run)
        answer(tmp_path, run)
    damage(tmp_path / "answers")
    forget()
    with pytest.raises(TablesDamagedError, match="the command that writes this table replaces it"):
        Tables(tmp_path).snapshot("answers")
    change_tables(tmp_path, 3)
    answer(tmp_path, 3)
    forget()
    [file] = Tables(tmp_path).snapshot("answers")
    rows = parquet.read_table(tmp_path / "answers" / file.name, partitioning=None)["text"].to_pylist()
    assert rows == ["answer 3"]
    assert len(contents(tmp_path)["audit_events"]) == 6


def test_files_that_were_checked_are_not_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_tables(tmp_path, 1)
    forget()
    asked: list[str] = []

    honest = integrity._size_on_disk

    def noted_size(path: str) -> int | None:
        asked.append(Path(path).name)
        return honest(path)

    monkeypatch.setattr(integrity, "_size_on_disk", noted_size)
    first = Tables(tmp_path).snapshot("audit_events")
    Tables(tmp_path).snapshot("audit_events")
    assert sorted(asked) == sorted(Path(file.name).name for file in first)
    change_tables(tmp_path, 2)
    asked.clear()
    second = Tables(tmp_path).snapshot("audit_events")
    assert len(asked) == len(second) - len(first)


def test_the_sizes_of_many_objects_are_asked_for_by_a_listing(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Tables.at(store.address("integrity")).folder
    monkeypatch.setattr(integrity, "REQUESTS_MAX", 3)
    for run in (1, 2):
        with transaction(place) as change:
            for number in range(2):
                write_row(change, "audit_events", "2026-11-20", f"{run} {number}")
            change.commit(f"run-{run}", UPKEEP, [Write(table="audit_events", schema=SCHEMA)])
    forget()
    begin = len(store.log.read_text().splitlines())
    files = Tables(place).snapshot("audit_events")
    asked = store.log.read_text().splitlines()[begin:]
    assert len(files) == 4
    assert not [line for line in asked if "HEAD" in line and "audit_events/day" in line]
    gone = store.folder / "integrity" / "audit_events" / files[0].name
    gone.unlink()
    for requests_max in (3, 64):
        monkeypatch.setattr(integrity, "REQUESTS_MAX", requests_max)
        forget()
        with pytest.raises(TablesDamagedError, match=f"{gone.name}` is gone: run 2 .* left it with 1 row"):
            Tables(place).snapshot("audit_events")
