"""Parts of the tests: each test is in exactly one, and what files of a folder share is started once."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.parts import Part

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
PATHS = st.builds(
    lambda suite, folder, name: Path("tests", suite, *folder, f"test_{name}.py"),
    NAMES,
    st.lists(NAMES, max_size=2),
    NAMES,
)


@given(st.lists(PATHS, unique=True), st.integers(1, 5))
def test_each_file_is_in_exactly_one_part(paths: list[Path], count: int) -> None:
    parts = [Part(number, count).of(paths) for number in range(1, count + 1)]
    assert sorted(path for part in parts for path in part) == sorted(paths)


@given(st.lists(PATHS, unique=True), st.integers(1, 5))
def test_the_files_of_a_folder_in_a_suite_stay_together(paths: list[Path], count: int) -> None:
    parts = [Part(number, count).of(paths) for number in range(1, count + 1)]
    for path in paths:
        [home] = [part for part in parts if path in part]
        assert {each for each in paths if each.parts[:3] == path.parts[:3]} <= home


@pytest.mark.parametrize("folder", ["pipeline/tables", "unit/gateway"])
def test_two_parts_share_the_files_of_a_folder_that_shares_nothing(folder: str) -> None:
    paths = [Path("tests", folder, f"test_{number}.py") for number in range(9)]
    assert [len(Part(number, 2).of(paths)) for number in (1, 2)] == [5, 4]


def test_two_parts_share_the_files_of_a_suite() -> None:
    paths = [Path("tests", "e2e", f"test_{number}.py") for number in range(9)]
    assert [len(Part(number, 2).of(paths)) for number in (1, 2)] == [5, 4]


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "-1/2", "1/0", "1/2/3"])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no part; write it as `1/2`"):
        Part.parse(text)
