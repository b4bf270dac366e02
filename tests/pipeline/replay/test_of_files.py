"""A replay over files finds what a replay of the same rows finds, and what plain Python finds."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

from kustos.pipeline.columns import file_parts
from kustos.pipeline.deciding import ship
from kustos.pipeline.replay import flips_of_files, flips_of_rows
from kustos.pipeline.schemas import AUDIT_ROLLUP_SCHEMA
from kustos.pipeline.tables import Tables
from tests.pipeline.deciding.worlds import asked_around, made_world
from tests.pipeline.replay.recorded import answered, changed, event_frame, recorded, rollup_frame
from tests.pipeline.replay.test_flips import CANDIDATE, EVENTS, expected_flips, found_flips
from tests.pipeline.tables.filling import fill

Found = dict[tuple[Any, ...], tuple[Any, ...]]


def written(folder: Path, rows: DataFrame, file_count: int, *, without: Sequence[str] = ()) -> list[Path]:
    """Write rows into so many files of small row groups; return their paths."""
    folder.mkdir()
    table = rows.drop(*without).toArrow()
    size = table.num_rows // file_count + 1
    paths = []
    for number in range(file_count):
        path = folder / f"part-{number}.parquet"
        parquet.write_table(table.slice(number * size, size), path, row_group_size=40)
        paths.append(path)
    return paths


def lost_and_gained(found: Found) -> Found:
    return {key: sums for key, sums in found.items() if key[0] != "RULE_CHANGED"}


def without_recorded_rules(found: Found) -> Found:
    """Return expected flips without the recorded rules, which only a replay with rule changes tells."""
    place = 8
    return {(*key[:place], None, *key[place + 1 :]): of for key, of in found.items()}


@pytest.mark.parametrize("nth", range(2))
def test_flips_of_files_are_those_of_plain_python(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int, nth: int
) -> None:
    seed += nth
    tmp_path = tmp_path_factory.mktemp("files")
    today, asks = made_world(seed)
    candidate = changed(today, seed)
    questions = [q for q in asked_around(asks, seed) if q[0] is not None and ":" in q[0]]
    events = recorded(changed(today, seed + 1), questions, 400, seed)
    now = answered(candidate.authorizer(), questions)
    before = answered(today.authorizer(), questions)
    shipped, shipped_today = ship(spark, candidate), ship(spark, today)
    tables = {
        "audit_events": written(tmp_path / "events", event_frame(spark, events), 3),
        "audit_rollup": written(tmp_path / "rollup", rollup_frame(spark, events), 2),
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(file_parts, "PART_BYTES_MAX", 30_000 + seed)
        for table, files in tables.items():
            for known, baseline in ((None, None), (before, shipped_today)):
                wanted = expected_flips(events, now, known)
                with_rules = flips_of_files(spark, table, files, shipped, baseline, rule_changes=True)
                assert found_flips(with_rules) == wanted
                wanted = lost_and_gained(wanted)
                without = found_flips(flips_of_files(spark, table, files, shipped, baseline))
                assert without == (without_recorded_rules(wanted) if baseline is None else wanted)


def test_questions_that_are_none_and_columns_that_are_not_there_are_as_in_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    today, asks = made_world(3)
    events = recorded(changed(today, 4), asked_around(asks, 3), 400, 3)
    rollup = rollup_frame(spark, events)
    candidate = ship(spark, changed(today, 3))
    [old] = written(tmp_path / "old", rollup, 1, without=["access", "reference_count", "sample_event_id"])
    [new] = written(tmp_path / "new", rollup, 1)
    rows = spark.read.schema(AUDIT_ROLLUP_SCHEMA).parquet(str(old), str(new))
    for rule_changes in (False, True):
        by_rows = flips_of_rows(rows, "audit_rollup", candidate, rule_changes=rule_changes)
        by_files = flips_of_files(spark, "audit_rollup", [old, new], candidate, rule_changes=rule_changes)
        assert len(found_flips(by_files)) > 20
        assert found_flips(by_files) == found_flips(by_rows)


def test_without_examples_all_else_is_told(spark: SparkSession, tmp_path: Path) -> None:
    files = written(tmp_path / "rollup", rollup_frame(spark, EVENTS), 1)
    shipped = ship(spark, CANDIDATE)
    with_them = found_flips(flips_of_files(spark, "audit_rollup", files, shipped))
    without = found_flips(flips_of_files(spark, "audit_rollup", files, shipped, with_example=False))
    assert without == {key: (*sums[:-1], None) for key, sums in with_them.items()}
    assert with_them


def test_no_files_flip_nothing(spark: SparkSession) -> None:
    assert flips_of_files(spark, "audit_rollup", [], ship(spark, CANDIDATE)).collect() == []


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    part_bytes=st.integers(1, 30_000),
    seed=st.integers(0, 1000),
)
def test_each_row_group_is_in_one_part(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], part_bytes: int, seed: int
) -> None:
    path = tmp_path_factory.mktemp("parts") / "file.parquet"
    rng, start = Random(seed), 0
    schema = pa.schema([("name", pa.string()), ("number", pa.int64())])
    with parquet.ParquetWriter(path, schema) as writer:
        for size in sizes:
            names = [rng.choice(["a", None, "\u00e9" * rng.randrange(200)]) for _ in range(size)]
            numbers = list(range(start, start + size))
            writer.write_table(pa.table([names, numbers], schema=schema), row_group_size=size)
            start += size
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(file_parts, "PART_BYTES_MAX", part_bytes)
        patched.setattr(file_parts, "CHUNK_ROWS_MAX", 16)
        read: list[dict[str, Any]] = [
            chunk
            for part in file_parts.parts_of([path])
            for chunk in file_parts.chunks([part], ["name"], ["number"])
        ]
    expected = parquet.read_table(path)
    assert [n for chunk in read for n in chunk["number"].to_pylist()] == list(range(start))
    names = [name for chunk in read for name in chunk["name"].decoded().to_pylist()]
    assert names == expected.column("name").to_pylist()


def test_the_files_of_a_table_are_those_of_the_days_asked_for(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    rows = pa.table({"principal": ["User:a"]})
    fill(tables, "audit_rollup", dict.fromkeys(("2026-11-20", "2026-11-21", "2026-11-22"), rows))
    (tmp_path / "audit_rollup" / "day=2026-11-21" / "of_a_killed_run.parquet").touch()

    def days(first: date | None, last: date | None) -> list[str]:
        return [path.parent.name[-2:] for path in tables.files("audit_rollup", first, last)]

    assert days(None, None) == ["20", "21", "22"]
    assert days(date(2026, 11, 21), None) == ["21", "22"]
    assert days(None, date(2026, 11, 21)) == ["20", "21"]
    assert days(date(2026, 11, 23), None) == []
