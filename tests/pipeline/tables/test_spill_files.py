"""Groups that wait on disk come back, each once, and equal keys together."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.pipeline.tables.rollup.spill_files import BUCKETS, spilled_groups

KEYS = ("principal", "resource_name")
TEXTS = st.sampled_from([None, "", "a", "b", "ab", "User:ä", "*"])
ROWS = st.lists(st.tuples(TEXTS, TEXTS, st.integers(0, 9)), min_size=1, max_size=30)


Row = tuple[str | None, str | None, int]


def table_of(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    texts = [pa.array(column, pa.string()).dictionary_encode() for column in columns[:2]]
    return pa.table([*texts, pa.array(columns[2])], names=[*KEYS, "number"])


def rows_of(table: pa.Table) -> list[Row]:
    return [(row["principal"], row["resource_name"], row["number"]) for row in table.to_pylist()]


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_every_row_comes_back_once_and_equal_keys_in_one_bucket(tables: list[list[Row]]) -> None:
    with spilled_groups(KEYS) as place:
        for rows in tables:
            place.add(table_of(rows))
        found = [[row for table in bucket for row in rows_of(table)] for bucket in place.buckets()]
    put_in = [str(row) for rows in tables for row in rows]
    assert sorted(str(row) for bucket in found for row in bucket) == sorted(put_in)
    keys = [{row[:2] for row in bucket} for bucket in found]
    assert sum(map(len, keys)) == len(set[tuple[str | None, str | None]]().union(*keys))


def test_many_keys_are_spread_alike() -> None:
    count = 4_000
    with spilled_groups(KEYS) as place:
        place.add(table_of([("User:one", f"topic-{number}", number) for number in range(count)]))
        sizes = [sum(table.num_rows for table in bucket) for bucket in place.buckets()]
    assert len(sizes) == BUCKETS
    assert max(sizes) < 2 * count / BUCKETS


def test_what_waits_lies_with_sparks_own_and_goes_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    with spilled_groups(KEYS) as place:
        place.add(table_of([("User:one", "topic", 1)]))
        [folder] = tmp_path.iterdir()
        assert [path.name for path in folder.iterdir()] == ["0.arrow"]
    assert not list(tmp_path.iterdir())
