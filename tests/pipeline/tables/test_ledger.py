"""The ledger: what is committed once is known for ever, folded or not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.pipeline.tables import TablesDamagedError, TablesError
from kustos.pipeline.tables.ledger import (
    LEDGER,
    RUN,
    UPKEEP,
    InputFile,
    LedgerEntry,
    State,
    fold,
    read_state,
    split_run_id,
    write_entry,
)

DAYS = st.frozensets(st.sampled_from(["2026-11-20", "2026-11-21", "2026-11-22"]), max_size=2)


def file_of(path: str, size: int) -> InputFile:
    return InputFile(path, size, size * 7, size * 11, f"log-{path}")


@st.composite
def entries(draw: st.DrawFn) -> tuple[LedgerEntry, ...]:
    made = []
    for sequence in range(1, draw(st.integers(0, 8)) + 1):
        stale, fresh = draw(DAYS), draw(DAYS)
        made.append(
            LedgerEntry(
                sequence=sequence,
                run_id=draw(st.sampled_from(["a", "b", "s@1", "s@2", "s@30", "t@2"])),
                kind=draw(st.sampled_from([RUN, UPKEEP])),
                form="parquet",
                staging=f"_staging-{sequence}",
                moves=(("a/x", "b/x"),),
                inputs=tuple(
                    file_of(draw(st.sampled_from("pqr")), draw(st.integers(0, 9))) for _ in range(2)
                ),
                summary={"lines": sequence, "days": ["2026-11-20"]},
                newest_time_ms=draw(st.none() | st.integers(0, 10**15)),
                stale_days=tuple(sorted(stale)),
                fresh_days=tuple(sorted(fresh - stale)),
            )
        )
    return tuple(made)


@given(entries())
def test_entries_and_states_are_read_as_they_were_written(made: tuple[LedgerEntry, ...]) -> None:
    assert tuple(LedgerEntry.from_json(entry.to_json()) for entry in made) == made
    state = State().after(made)
    assert State.from_json(state.to_json()) == state


@given(made=entries(), at=st.integers(0, 8), again=st.integers(0, 8))
def test_folding_anywhere_and_meeting_entries_again_changes_nothing(
    made: tuple[LedgerEntry, ...], at: int, again: int
) -> None:
    whole = State().after(made)
    folded = State.from_json(State().after(made[:at]).to_json())
    assert folded.after(made[min(at, again) :]) == whole


@given(entries())
def test_the_ledger_on_disk_says_what_its_entries_say(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[LedgerEntry, ...]
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    for entry in made:
        write_entry(folder, entry)
    assert read_state(folder) == (State().after(made), made)
    (folder / LEDGER).mkdir(exist_ok=True)
    fold(folder, *read_state(folder))
    assert read_state(folder) == (State().after(made), ())


def test_a_batch_at_or_below_the_last_one_of_its_stream_was_committed() -> None:
    entry = LedgerEntry(sequence=1, run_id="s@7", kind=RUN, form="parquet", staging="x", summary={"lines": 3})
    state = State().after([entry])
    assert state.summary_of("s@7") == state.summary_of("s@6") == {"lines": 3}
    assert state.summary_of("s@8") is None
    assert state.summary_of("t@1") is None
    assert state.summary_of("s") is None


@pytest.mark.parametrize("run_id", ["", "../x", "a b", "a@", "a@x", "a@1@2", "@1", "a\n", "é", "a" * 200])
def test_what_is_no_run_id_is_refused(run_id: str) -> None:
    with pytest.raises(TablesError, match="is not one"):
        split_run_id(run_id)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"version": 2}', '{"version": 1, "sequence": 1}', "\xff"]
)
def test_a_ledger_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / LEDGER).mkdir()
    (tmp_path / LEDGER / "000000000001.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(TablesDamagedError, match=r"000000000001\.json` cannot be read"):
        read_state(tmp_path)
