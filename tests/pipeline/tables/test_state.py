"""The table `runs`: what is committed once is known for ever, whichever rows are dropped."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from kustos.pipeline.tables import InputFile, TablesDamagedError, TablesError, delta
from kustos.pipeline.tables import runs as runs_module
from kustos.pipeline.tables.layout import RUNS
from kustos.pipeline.tables.runs import (
    RUN,
    RUNS_SCHEMA,
    UPKEEP,
    Row,
    State,
    add_rows,
    input_rows,
    kept_rows,
    latest_inputs,
    read_runs,
    read_state,
    split_run_id,
    state_of,
)

DAYS = st.lists(st.sampled_from(["2026-11-20", "2026-11-21", "2026-11-22"]), max_size=2, unique=True)


def row(number: int, run_id: str, kind: str = RUN, **more: object) -> Row:
    return {
        "number": number,
        "run_id": run_id,
        "kind": kind,
        "summary": json.dumps({"lines": number, "days": ["2026-11-20"]}),
        "newest_time_ms": None,
        "stale_days": [],
        "closed_before": None,
        "versions": json.dumps({"audit_events": number}),
        **more,
    }


@st.composite
def runs(draw: st.DrawFn) -> list[Row]:
    return [
        row(
            number,
            draw(st.sampled_from(["a", "b", "s@1", "s@2", "s@30", "t@2"])),
            draw(st.sampled_from([RUN, UPKEEP])),
            newest_time_ms=draw(st.none() | st.integers(0, 10**15)),
            stale_days=draw(DAYS),
            closed_before=draw(st.none() | st.just("2026-11-20")),
        )
        for number in range(1, draw(st.integers(0, 8)) + 1)
    ]


@given(made=runs(), at=st.integers(0, 8))
def test_dropping_rows_at_any_time_and_reading_them_in_any_order_changes_no_state(
    made: list[Row], at: int
) -> None:
    rows = [*made[at:], *kept_rows(made[:at])]
    assert State.of(rows) == State.of(made)
    assert len(kept_rows(made)) <= 6, "of four runs and streams each once, and the last row"


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = [row(2, "b", stale_days=["2026-11-20"], newest_time_ms=7), row(1, "s@1")]
    table = delta.create_table(tmp_path / RUNS, RUNS_SCHEMA, has_days=False)
    add_rows(tmp_path / RUNS, table, rows, RUNS_SCHEMA, replaces_all=False, number=1)
    assert read_runs(tmp_path)[1] == rows
    state = state_of(tmp_path, rows)
    assert (state.number, state.versions, state.newest_time_ms) == (2, {"audit_events": 2}, 7)


@given(st.lists(st.tuples(st.sampled_from("pqr"), st.sampled_from("abcd")), max_size=12), st.integers(0, 12))
def test_of_each_input_and_log_the_latest_is_known_whichever_were_put_together_before(
    read: list[tuple[str, str]], at: int
) -> None:
    files = [InputFile(path, n * 3, n * 7, 2**63 + n, log, "") for n, (path, log) in enumerate(read)]
    rows = [row for number, file in enumerate(files) for row in input_rows([file], number)]
    together = input_rows(latest_inputs(rows[:at]).all(), at - 1)
    found = latest_inputs(rows)
    again = latest_inputs([*rows[at:], *together])
    assert (again.files, {*again.former}) == (found.files, {*found.former})
    assert found.files == {file.path: file for file in files}
    # of each log that no path has any more, the state that gave way last
    gave_way = [
        (next(n for n in range(number + 1, len(files)) if files[n].path == file.path), file)
        for number, file in enumerate(files)
        if file != found.files[file.path]
    ]
    present = {file.log for file in found.files.values()}
    last = {file.log: file for _, file in sorted(gave_way, key=lambda each: each[0])}
    assert {file.log: file for file in found.former} == {
        log: file for log, file in last.items() if log not in present
    }


def test_only_the_latest_of_logs_that_gave_way_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "MAXIMUM_FORMER", 2)
    files = [InputFile("p", size, 0, 0, f"log-{size}", "") for size in range(5)]
    found = latest_inputs([row for number, file in enumerate(files) for row in input_rows([file], number)])
    assert ([one.log for one in found.all()], len(found.files)) == (["log-2", "log-3", "log-4"], 1)


def test_a_batch_at_or_below_the_last_one_of_its_stream_was_committed() -> None:
    state = State.of([row(3, "s@7")])
    summary = {"lines": 3, "days": ["2026-11-20"]}
    assert state.summary_of("s@7") == state.summary_of("s@6") == summary
    assert state.summary_of("s@8") is None
    assert state.summary_of("t@1") is None
    assert state.summary_of("s") is None


@pytest.mark.parametrize("run_id", ["", "../x", "a b", "a@", "a@x", "a@1@2", "@1", "a\n", "é", "a" * 200])
def test_what_is_no_run_id_is_refused(run_id: str) -> None:
    with pytest.raises(TablesError, match="is not one"):
        split_run_id(run_id)


def test_a_state_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    place = tmp_path / RUNS
    table = delta.create_table(place, RUNS_SCHEMA, has_days=False)
    add_rows(place, table, [row(1, "a", versions="{")], RUNS_SCHEMA, replaces_all=False, number=1)
    with pytest.raises(TablesDamagedError, match=r"runs` cannot be read"):
        state_of(tmp_path, read_runs(tmp_path)[1])
    (name,) = (file.name for file in delta.files_of(table))
    (place / name).rename(place / "elsewhere.parquet")
    parquet.write_table(pa.table({"x": [1]}), place / name)
    (tmp_path / "other").mkdir()
    place.rename(tmp_path / "other" / RUNS)  # under another name it was not read before
    (tmp_path / "other" / RUNS / name).write_bytes(b"PAR1")
    with pytest.raises(TablesDamagedError, match=rf"cannot read `.*{name}`"):
        read_runs(tmp_path / "other")
    log = tmp_path / "other" / RUNS / "_delta_log" / "00000000000000000000.json"
    log.write_bytes(b"{\xff")
    with pytest.raises(TablesDamagedError, match=r"cannot read the table `.*runs`"):
        read_runs(tmp_path / "other")


def test_tables_of_an_earlier_version_are_refused(tmp_path: Path) -> None:
    (tmp_path / "_ledger").mkdir()
    for look in (read_state, read_runs):
        with pytest.raises(TablesError, match="of an earlier version, read the audit into a new folder"):
            look(tmp_path)
