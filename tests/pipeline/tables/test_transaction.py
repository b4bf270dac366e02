"""A change of the tables happens or does not, wherever a run dies and whoever writes beside it."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kustos.pipeline.tables import TablesDamagedError, TablesError, TablesInUseError, delta
from kustos.pipeline.tables import transaction as transactions
from kustos.pipeline.tables.runs import RUN, InputFile, read_inputs, read_runs, state_of
from kustos.pipeline.tables.store import Tables
from kustos.pipeline.tables.transaction import Transaction, Write, data_files, transaction
from tests.pipeline.tables.dying import at_each, deaths, died_at

DAYS = ("2026-11-20", "2026-11-21")
SCHEMA = pa.schema([("text", pa.string()), ("day", pa.date32())])
TABLES = ("audit_events", "audit_rollup", "quarantine")
pytestmark = pytest.mark.usefixtures("quick_disk")


def stage(change: Transaction, run: int) -> list[Write]:
    """Add a row to each day of events and to quarantine, and replace the roll-up, as a run does."""
    for table, day in [(table, day) for table in TABLES[:2] for day in DAYS]:
        write_row(change, table, day, f"{table} {day} {run}")
    write_row(change, "quarantine", "2026-11-23", f"junk {run}")
    return [
        Write(table="audit_events", schema=SCHEMA),
        Write(table="audit_rollup", schema=SCHEMA, replaces=DAYS),
        Write(table="quarantine", schema=SCHEMA),
    ]


def write_row(change: Transaction, table: str, day: str, text: str) -> None:
    name = delta.new_name(change.mark, day)
    file = delta.write_file(change.place(table), name, pa.table({"text": [text]}), day)
    change.add(table, [file])


def commit(change: Transaction, run: int) -> None:
    inputs = [InputFile(f"/log/{run}", run, run, 2**63 + run, "log", "")]
    change.commit(f"run-{run}", RUN, stage(change, run), inputs=inputs, summary={"lines": run})


def change_tables(folder: Path, run: int) -> None:
    """Do a run; once, by its id."""
    with transaction(folder) as change:
        if change.state.summary_of(f"run-{run}") is None:
            commit(change, run)


def contents(folder: Path) -> dict[str, Any]:
    """Return what a reader sees."""
    tables = Tables(folder)
    found: dict[str, Any] = {
        table: sorted(
            (file.day, *parquet.read_table(folder / table / file.name, partitioning=None)["text"].to_pylist())
            for file in tables.snapshot(table)
        )
        for table in TABLES
    }
    state = tables.state()
    return found | {"runs": sorted(state.runs), "inputs": sorted(read_inputs(folder, state).files)}


def run_through(folder: Path, *runs: int) -> dict[str, Any]:
    for run in runs:
        change_tables(folder, run)
    return contents(folder)


@pytest.mark.parametrize("dying", [1, 2])
def test_dead_at_every_step_and_run_again_the_tables_are_those_of_an_undisturbed_run(
    tmp_path: Path, dying: int
) -> None:
    first, undisturbed = tmp_path / "first", tmp_path / "undisturbed"
    first.mkdir()
    for run in range(1, dying):
        change_tables(first, run)
    before = contents(first)
    shutil.copytree(first, undisturbed)
    change_tables(undisturbed, dying)
    after = contents(undisturbed)
    assert [len(after[table]) for table in TABLES] == [2 * dying, 2, dying]
    seen = []
    for folder in deaths(first, lambda folder: change_tables(folder, dying)):
        seen.append(contents(folder))
        change_tables(folder, dying)
        assert contents(folder) == after
        assert not list(folder.glob("_staging*"))
        named = {file.name for file in Tables(folder).snapshot("audit_events")}
        assert set(data_files(folder / "audit_events")) == named, "nothing of the dead one is left"
    assert len(seen) > 25
    committed = seen.index(after)
    assert seen == [before] * committed + [after] * (len(seen) - committed), "all of a run or nothing"


def test_dead_at_every_step_of_a_run_that_widens_a_table_its_rows_are_there_once(tmp_path: Path) -> None:
    wider = SCHEMA.append(pa.field("more", pa.string()))

    def widen(folder: Path) -> None:
        with transaction(folder) as change:
            if change.state.summary_of("wider") is None:
                write_row(change, "audit_events", DAYS[0], "of the wider one")
                change.commit("wider", RUN, [Write(table="audit_events", schema=wider)])

    first = tmp_path / "first"
    change_tables(first, 1)
    before = contents(first)
    row = (DAYS[0], "of the wider one")
    after = before | {"runs": ["run-1", "wider"], "audit_events": sorted([*before["audit_events"], row])}
    seen = []
    for folder in deaths(first, widen):
        seen.append(contents(folder))
        widen(folder)
        assert contents(folder) == after
        table = delta.open_table(folder / "audit_events")
        assert table is not None
        assert [field.name for field in table.schema().fields] == ["text", "day", "more"]
    committed = seen.index(after)
    assert seen == [before] * committed + [after] * (len(seen) - committed)


def test_dead_again_and_again_on_the_way_up_it_still_gets_there(tmp_path: Path) -> None:
    wanted = run_through(tmp_path / "undisturbed", 1, 2)
    folder = tmp_path / "tables"
    change_tables(folder, 1)
    steps = 0
    while died_at(steps, lambda: change_tables(folder, 2)):
        steps += 1
    assert contents(folder) == wanted


def test_what_a_task_wrote_twice_counts_once(tmp_path: Path) -> None:
    change_tables(tmp_path, 1)
    before = contents(tmp_path)
    with transaction(tmp_path) as change:
        write_row(change, "audit_events", DAYS[0], "of the attempt that answers")
        name = delta.new_name(change.mark, DAYS[0])
        rows = pa.table({"text": ["of the attempt that was lost"]})
        delta.write_file(change.place("audit_events"), name, rows, DAYS[0])
        change.commit("run-2", RUN, [Write(table="audit_events", schema=SCHEMA)])
    assert set(contents(tmp_path)["audit_events"]) - set(before["audit_events"]) == {
        (DAYS[0], "of the attempt that answers")
    }


def test_two_runs_at_once_are_refused_and_a_failed_one_leaves_nothing(tmp_path: Path) -> None:
    with transaction(tmp_path) as change:
        write_row(change, "audit_events", DAYS[0], "of a run that fails")
        with pytest.raises(TablesInUseError, match="another run is writing"):
            change_tables(tmp_path, 1)
    assert not list(tmp_path.glob("_staging*"))
    assert data_files(tmp_path) == ()
    assert Tables(tmp_path).state().number == 0


@pytest.mark.usefixtures("no_locks")
def test_a_file_system_without_locks_is_refused_by_what_to_take_in_its_place(tmp_path: Path) -> None:
    said = r"no locks available; take a file system with locks, such as .*, or an object store"
    with pytest.raises(TablesError, match=said):
        change_tables(tmp_path, 1)
    assert Tables(tmp_path).state().number == 0


def test_without_the_lock_one_of_two_runs_wins_at_whatever_moment_the_other_comes(tmp_path: Path) -> None:
    """An object store has no lock: the second run comes as a whole between two changes of the first."""
    first = tmp_path / "first"
    change_tables(first, 1)
    wanted = {winner: run_through(tmp_path / f"only-{winner}", 1, winner) for winner in (2, 3)}
    winners, moment = [], 0
    while True:
        folder = tmp_path / f"moment-{moment}"
        shutil.copytree(first, folder)
        came = come_between(folder, moment)
        state = Tables(folder).state()
        (winner,) = (run for run in (2, 3) if state.summary_of(f"run-{run}") is not None)
        assert contents(folder) == wanted[winner]
        winners.append(winner)
        change_tables(folder, 2)
        change_tables(folder, 3)
        after = contents(folder)
        assert after["runs"] == ["run-1", "run-2", "run-3"]
        assert [len(after[table]) for table in TABLES] == [6, 2, 3]
        shutil.rmtree(folder)
        if not came:
            break
        moment += 1
    assert set(winners) == {2, 3}


def come_between(folder: Path, moment: int) -> bool:
    """Do run 2, and at one of its moments all of run 3; return whether the moment came."""
    one, two = Transaction(folder), Transaction(folder)
    left = [moment]

    def tick() -> None:
        left[0] -= 1
        if left[0] == -1:
            with suppress(TablesInUseError):
                commit(two, 3)

    with at_each(tick), suppress(TablesInUseError):
        commit(one, 2)
    for each in (one, two):
        each.end()
    return left[0] < 0


@pytest.mark.parametrize("table", ["runs", "audit_events"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_run_keeps_its_files_at_whatever_moment_another_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, fails: bool
) -> None:
    """An object store has no lock: commits of a clean-up come between those of a run, without conflict."""
    first = tmp_path / "first"
    before, wanted = run_through(first, 1), run_through(tmp_path / "undisturbed", 1, 2)
    seen, came, moment = [], True, 0
    while came:
        folder = tmp_path / f"moment-{moment}"
        shutil.copytree(first, folder)
        with monkeypatch.context() as patch:
            if fails:
                patch.setattr(delta, "sync_log", failing_for_runs)
            came = clean_up_between(folder, table, moment)
        seen.append(contents(folder))
        change_tables(folder, 2)
        assert contents(folder) == wanted, "a run that is done again finds itself"
        moment += 1
    committed = seen.index(wanted)
    assert seen == [before] * committed + [wanted] * (moment - committed), "all of a run or nothing"
    assert moment - committed > 8, "a clean-up changes no row, so a run that has begun to commit goes on"


def clean_up_between(folder: Path, table: str, moment: int) -> bool:
    """Do run 2, and at one of its moments remove what is old in a table; return whether the moment came."""
    change, left = Transaction(folder), [moment]
    stray = folder / table / "of_a_killed_run.parquet"
    stray.touch()
    os.utime(stray, (0, 0))

    def tick() -> None:
        left[0] -= 1
        if left[0] == -1:
            delta.vacuum(folder / table)
            assert not stray.exists()

    with at_each(tick), suppress(TablesError):
        commit(change, 2)
    change.end()
    return left[0] < 0


def failing_for_runs(place: Path, _version: int) -> None:
    if place.name == "runs":
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def with_deletion_vectors(place: Path) -> None:
    table = delta.open_table(place)
    assert table is not None
    table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})


def with_mapped_columns(place: Path) -> None:
    """Commit what Delta's protocol asks for (column mapping, by name); delta-rs itself cannot turn it on."""
    table = delta.open_table(place)
    assert table is not None
    version, fields = table.version(), json.loads(table.schema().to_json())["fields"]
    for number, field in enumerate(fields, 1):
        physical = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
        field["metadata"] |= physical
    metadata = {
        "id": str(table.metadata().id),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": table.metadata().partition_columns,
        "configuration": {
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": str(len(fields)),
        },
    }
    protocol = {"minReaderVersion": 2, "minWriterVersion": 5}
    actions = [json.dumps({"protocol": protocol}), json.dumps({"metaData": metadata})]
    (place / delta.LOG / f"{version + 1:020d}.json").write_text("\n".join(actions))


@pytest.mark.parametrize("hide_rows", [with_deletion_vectors, with_mapped_columns])
def test_a_table_that_is_gone_or_written_in_ways_that_hide_rows_is_named(
    tmp_path: Path, hide_rows: Callable[[Path], None]
) -> None:
    change_tables(tmp_path, 1)
    (tmp_path / "audit_events").rename(tmp_path / "elsewhere")
    with pytest.raises(TablesDamagedError, match="audit_events` was committed but is gone"):
        contents(tmp_path)
    (tmp_path / "elsewhere").rename(tmp_path / "audit_events")
    hide_rows(tmp_path / "audit_events")
    with pytest.raises(
        TablesError, match=r"turned on deletion vectors or column mapping in `.*audit_events`"
    ):
        change_tables(tmp_path, 2)
    assert contents(tmp_path)["runs"] == ["run-1"], "the version that was committed has none"


def test_tables_without_their_runs_are_not_taken_for_those_of_a_killed_run(tmp_path: Path) -> None:
    run_through(tmp_path, 1, 2)
    shutil.rmtree(tmp_path / "runs")
    with pytest.raises(TablesDamagedError, match="runs` is gone, while"):
        change_tables(tmp_path, 3)


@pytest.mark.parametrize("name", ["a%41", "a\\b", "a#b", "a\nb"])
def test_a_folder_that_delta_would_take_for_another_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TablesError, match="take a folder without"):
        change_tables(tmp_path / name, 1)


def test_the_state_of_a_long_stream_stays_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MAXIMUM_FILES", files_max := 8)
    for run in range(2 * files_max + 5):
        with transaction(tmp_path) as change:
            files = [InputFile(f"/log/{run % 3}", run, 0, 0, "log", "")]
            change.commit(f"stream@{run}", RUN, [], inputs=files)
    for table in ("runs", "inputs"):
        opened = delta.open_table(tmp_path / table)
        assert opened is not None
        assert len(delta.files_of(opened)) <= files_max
    state = state_of(tmp_path, read_runs(tmp_path)[1])
    assert {name: number for name, (number, _) in state.batches.items()} == {
        "stream": (last := 2 * files_max + 4)
    }
    found = read_inputs(tmp_path, state)
    assert {one.path: one.size_bytes for one in found.files.values()} == {
        f"/log/{run % 3}": run for run in range(last - 2, last + 1)
    }


def test_a_commit_is_found_below_those_of_others(tmp_path: Path) -> None:
    change_tables(tmp_path, 1)
    place = tmp_path / "audit_events"
    table = delta.open_table(place)
    assert table is not None
    honest: Callable[..., Any] = table.create_write_transaction

    def and_another(*args: Any, **more: Any) -> None:
        honest(*args, **more)
        other = delta.open_table(place)
        assert other is not None
        other.restore(1)

    table.create_write_transaction = and_another  # type: ignore[method-assign]
    assert delta.write(place, table, [], table.schema(), replaces=(DAYS[0],), number=2) == 2
    newest = delta.open_table(place)
    assert newest is not None
    assert newest.version() == 3


@pytest.mark.parametrize("is_after", [False, True])
def test_an_append_that_lands_on_rows_of_another_run_is_refused(tmp_path: Path, is_after: bool) -> None:
    """Delta takes both; and its history then gives our commit the number of another's."""
    change_tables(tmp_path, 1)
    place = tmp_path / "audit_events"
    table, other = delta.open_table(place), delta.open_table(place)
    assert table is not None
    assert other is not None
    honest: Callable[..., Any] = table.create_write_transaction

    def between(*args: Any, **more: Any) -> None:
        delta.write(place, other, [], other.schema(), replaces=(), number=7)
        honest(*args, **more)
        if is_after:
            newest = delta.open_table(place)
            assert newest is not None
            delta.write(place, newest, [], newest.schema(), replaces=(), number=8)

    table.create_write_transaction = between  # type: ignore[method-assign]
    with pytest.raises(TablesInUseError, match="meanwhile, run again"):
        delta.write(place, table, [], table.schema(), replaces=(), number=2)
