"""A change of the tables happens or does not, wherever it is killed: the protocol alone, without Spark."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from kustos.pipeline.tables import TablesDamagedError, TablesError, TablesInUseError
from kustos.pipeline.tables.ledger import MAXIMUM_ENTRIES, RUN, read_state
from kustos.pipeline.tables.transaction import (
    Transaction,
    data_files,
    is_unfinished,
    moves_of,
    transaction,
)
from kustos.runtime import FileSystemStorage

DAYS = ("day=2026-11-20", "day=2026-11-21")
CHANGING: tuple[tuple[type | object, str], ...] = (
    (Path, "mkdir"),
    (Path, "rename"),
    (Path, "unlink"),
    (Path, "replace"),
    (Path, "write_text"),
    (os, "fsync"),
    (os, "unlink"),
    (os, "rmdir"),
    (FileSystemStorage, "write"),
)
"""All by which a run changes the disk; a kill is tried before and after each call."""


def nothing(staging: Path, write: object, sequence: int) -> None:
    raise AssertionError("tables of plain files have no writes")


def change_tables(folder: Path, run: int) -> None:
    """Add a file to each day and replace the roll-up, as a run does; once, by its id."""
    with transaction(folder, "parquet", nothing) as change:
        if change.state.summary_of(f"run-{run}") is not None:
            return
        for day in DAYS:
            for table in ("events", "rollup"):
                place = change.stage(table) / day
                place.mkdir(parents=True)
                (place / f"part-{run}").write_text(f"{table} {day} {run}")
        former = [f"rollup/{name}" for name in data_files(folder / "rollup")]
        moves = [move for table in ("events", "rollup") for move in staged(change, table)]
        change.commit(f"run-{run}", RUN, moves=tuple(moves), removes=tuple(former), summary={"lines": run})


def staged(change: Transaction, table: str) -> tuple[tuple[str, str], ...]:
    return moves_of(change.staged_files(table), table, table)


def contents(folder: Path) -> dict[str, str]:
    return {
        f"{table}/{name}": (folder / table / name).read_text()
        for table in ("events", "rollup")
        for name in data_files(folder / table)
    }


def killed_at(call: int, action: Callable[[], None]) -> bool:
    """Run in a child process that is killed at the n-th change of the disk; return whether it was."""
    child = os.fork()
    if child == 0:
        left = [call]

        def tick() -> None:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def counted(original: Callable[..., object]) -> Callable[..., object]:
            def changing(*args: object, **more: object) -> object:
                tick()
                result = original(*args, **more)
                tick()
                return result

            return changing

        for owner, name in CHANGING:
            setattr(owner, name, counted(getattr(owner, name)))
        action()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def undisturbed(folder: Path) -> dict[str, str]:
    for run in (1, 2):
        change_tables(folder, run)
    return contents(folder)


def test_killed_at_every_step_and_run_again_the_tables_are_those_of_an_undisturbed_run(
    tmp_path: Path,
) -> None:
    wanted = undisturbed(tmp_path / "undisturbed")
    assert len(wanted) == 6  # two runs in each day's events, the second alone in its roll-up
    steps = 0
    while True:
        folder = tmp_path / f"killed-{steps}"
        change_tables(folder, 1)
        before = contents(folder)
        was_killed = killed_at(steps, lambda folder=folder: change_tables(folder, 2))  # type: ignore[misc]
        if not is_unfinished(folder):
            assert contents(folder) in (before, wanted)
        change_tables(folder, 2)
        assert contents(folder) == wanted
        assert sorted(path.name for path in folder.iterdir()) == [
            "_ledger",
            "_lock",
            "_place.lock",
            "events",
            "rollup",
        ]
        assert set(read_state(folder)[0].runs) == {"run-1", "run-2"}
        if not was_killed:
            break
        steps += 1
    assert steps > 60


def test_killed_again_and_again_on_the_way_up_it_still_gets_there(tmp_path: Path) -> None:
    wanted = undisturbed(tmp_path / "undisturbed")
    folder = tmp_path / "tables"
    change_tables(folder, 1)
    steps = 0
    while killed_at(steps, lambda: change_tables(folder, 2)):
        steps += 1
    assert contents(folder) == wanted


def test_two_runs_at_once_are_refused_and_a_failed_one_leaves_nothing(tmp_path: Path) -> None:
    with transaction(tmp_path, "parquet", nothing) as change:
        change.stage("events").mkdir()
        with pytest.raises(TablesInUseError, match="another run is writing"):
            change_tables(tmp_path, 1)
    assert not list(tmp_path.glob("_staging*"))
    assert read_state(tmp_path)[1] == ()


@pytest.mark.parametrize("is_there", [False, True])
def test_an_entry_that_failed_to_be_written_counts_if_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    honest = FileSystemStorage.write

    def failing(storage: FileSystemStorage, path: Path, data: bytes) -> None:
        if is_there:
            honest(storage, path, data)
        raise OSError(5, "the directory could not be brought to the disk")

    monkeypatch.setattr(FileSystemStorage, "write", failing)
    with pytest.raises(OSError, match="could not be brought"):
        change_tables(tmp_path, 1)
    monkeypatch.undo()
    assert is_unfinished(tmp_path) == is_there
    assert bool(list(tmp_path.glob("_staging*"))) == is_there
    change_tables(tmp_path, 1)
    assert len(contents(tmp_path)) == 4


def test_tables_keep_their_form_and_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    change_tables(tmp_path, 1)
    with (
        pytest.raises(TablesError, match="are kept as parquet, not as delta"),
        transaction(tmp_path, "delta", nothing),
    ):
        pass
    entry = read_state(tmp_path)[1][0]
    (tmp_path / entry.staging).mkdir()  # as if it had been killed while it moved
    (tmp_path / "events" / DAYS[0] / "part-1").unlink()
    with pytest.raises(TablesDamagedError, match="was committed but is gone"):
        change_tables(tmp_path, 2)


def test_the_ledger_of_a_long_stream_stays_short(tmp_path: Path) -> None:
    for run in range(2 * MAXIMUM_ENTRIES + 5):
        with transaction(tmp_path, "parquet", nothing) as change:
            change.commit(f"stream@{run}", RUN)
        assert len(list((tmp_path / "_ledger").iterdir())) <= MAXIMUM_ENTRIES + 1
    state, _ = read_state(tmp_path)
    assert state.batches == {"stream": (2 * MAXIMUM_ENTRIES + 4, {})}
