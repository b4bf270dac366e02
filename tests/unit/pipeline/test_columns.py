"""Columns of codes: what numpy says of the numbers, plain Python says of the texts."""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.pipeline.columns import Coded, codes, combined, grouped, joined
from kustos.pipeline.columns.codes import coded

TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "a:b", "\u00e9"]))
ROWS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=40)
CODES_MAX = st.sampled_from([1 << 62, 20, 1])


def columns_of(rows: list[tuple[str | None, ...]], *, as_dictionary: bool = False) -> list[Coded]:
    arrays = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    return [coded(array.dictionary_encode() if as_dictionary else array) for array in arrays]


@given(rows=ROWS, as_dictionary=st.booleans())
def test_what_is_coded_is_decoded(rows: list[tuple[str | None, ...]], as_dictionary: bool) -> None:
    for column, texts in zip(
        columns_of(rows, as_dictionary=as_dictionary), zip(*rows, strict=True), strict=True
    ):
        assert column.decoded().to_pylist() == list(texts)
        assert column.to_arrow().to_pylist() == list(texts)
        assert column.is_text("a").tolist() == [text == "a" for text in texts]
        last = np.array([len(rows) - 1])
        assert column.take(last).decoded().to_pylist() == [texts[-1]]


def test_a_column_of_nulls_alone_is_nulls() -> None:
    column = coded(pa.nulls(3))
    assert column.decoded().to_pylist() == [None] * 3
    assert column.to_arrow().to_pylist() == [None] * 3
    assert not column.is_text("a").any()


@given(rows=ROWS, codes_max=CODES_MAX)
def test_rows_have_one_number_if_they_are_equal(rows: list[tuple[str | None, ...]], codes_max: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(codes, "_CODES_MAX", codes_max)
        numbers = combined(columns_of(rows)).tolist()
    assert len(set(zip(numbers, rows, strict=True))) == len(set(numbers)) == len(set(rows))


def test_numbers_of_rows_do_not_overflow_where_columns_have_many_texts() -> None:
    count = 70_000
    texts = pa.array(np.arange(count)).cast(pa.string())
    numbers = combined([coded(texts)] * 3)
    last, size = count - 1, count + 1
    assert numbers[-1] == (last * size + last) * size + last


@given(rows=ROWS, repeated=st.integers(1, 5))
def test_joined_texts_are_those_of_python(rows: list[tuple[str | None, ...]], repeated: int) -> None:
    left, right, _ = columns_of(rows * repeated)
    found = joined(left, ":", right)
    expected = [None if a is None or b is None else f"{a}:{b}" for a, b, _ in rows * repeated]
    assert found.decoded().to_pylist() == expected
    assert found.to_arrow().to_pylist() == expected


@given(rows=ROWS, numbers=st.lists(st.one_of(st.none(), st.integers(-(1 << 40), 1 << 40)), min_size=40))
def test_groups_are_summed_as_in_sql(rows: list[tuple[str | None, ...]], numbers: list[int | None]) -> None:
    numbers = numbers[: len(rows)]
    groups: dict[Any, list[int]] = defaultdict(list)
    texts: dict[Any, list[str]] = defaultdict(list)
    for row, number in zip(rows, numbers, strict=True):
        groups[row[:2]] += [] if number is None else [number]
        texts[row[:2]] += [] if row[2] is None else [row[2]]
    keys = columns_of(rows)[:2]
    values, third = pa.array(numbers, pa.int64()), pa.array([row[2] for row in rows], pa.string())
    first, sums = grouped(
        keys,
        {"total": (values, "sum"), "least": (values, "min"), "text": (third, "min"), "n": (values, "count")},
    )
    found = {
        tuple(key.decoded()[row].as_py() for key in keys): tuple(sums[name][place].as_py() for name in sums)
        for place, row in enumerate(first.tolist())
    }
    assert found == {
        key: (
            sum(members) if members else None,
            min(members, default=None),
            min(texts[key], key=str.encode, default=None),
            len(members),
        )
        for key, members in groups.items()
    }
    assert all(rows.index(rows[row]) <= row for row in first.tolist())


IDS = st.one_of(st.none(), st.text("ab\0\u00e9\U0001f600", max_size=12), st.just("same begin and more"))


@given(ids=st.lists(IDS, min_size=1, max_size=30), groups=st.integers(1, 4), skipped=st.integers(0, 3))
def test_the_least_text_of_each_group_is_that_of_python(
    ids: list[str | None], groups: int, skipped: int
) -> None:
    column = pa.array([None] * skipped + ids, pa.string()).slice(skipped)
    keys = coded(pa.array([str(place % groups) for place in range(len(ids))]))
    first, sums = grouped([keys], {"id": (column, "min")})
    found = dict(zip(keys.take(first).decoded().to_pylist(), sums["id"].to_pylist(), strict=True))
    expected = {
        str(group): min(
            (text for text in ids[group::groups] if text is not None), key=str.encode, default=None
        )
        for group in range(min(groups, len(ids)))
    }
    assert found == expected
