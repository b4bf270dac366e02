"""Keys have numbers by which equal ones are found, and a sieve keeps each one that is wanted."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kustos.pipeline.tables.key_numbers import Sieve, numbers_of_keys

KEYS = st.lists(st.text("ab\x00é", max_size=40), max_size=20)


@given(KEYS, st.integers(0, 5))
def test_a_key_has_one_number_wherever_it_stands(keys: list[str], start: int) -> None:
    numbers = numbers_of_keys(pa.array(keys, pa.string())[start:]).tolist()
    assert numbers == [numbers_of_keys(pa.array([key])).tolist()[0] for key in keys[start:]]


def test_ids_that_differ_at_either_end_or_in_length_have_different_numbers() -> None:
    ids = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(20_000)]
    ids += [f"00000000-0000-4000-8000-{number:012x}" for number in range(1, 20_000)]
    ids += [str(number) for number in range(20_000)]
    ids += ["x" * length for length in range(100)]
    ids += ["\x00" * length for length in range(100) if length]
    assert len(set(numbers_of_keys(pa.array(ids)).tolist())) == len(ids)


@given(KEYS, KEYS)
def test_a_sieve_keeps_what_is_wanted(wanted: list[str], others: list[str]) -> None:
    keys = pa.array([*others, None, *wanted], pa.string())
    kept = Sieve(numbers_of_keys(pa.array(wanted, pa.string()))).kept(keys).to_pylist()
    assert [key for key in kept if key in wanted] == [key for key in keys.to_pylist() if key in wanted]


def test_a_sieve_keeps_little_else() -> None:
    wanted = pa.array([f"{number:08x}-0000-4000-8000-{number:012x}" for number in range(10_000)])
    others = pa.array([f"{number:08x}-0000-4000-8000-{number:012x}" for number in range(10_000, 110_000)])
    assert len(Sieve(numbers_of_keys(wanted)).kept(others)) < 1_000, "0.06 percent of the holes are open"
