"""The page of coverage is what the markers say, and no marker names what is not there."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from testkit.paths import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "generate_coverage.py"))
CoverageError: type[Exception] = SCRIPT["CoverageError"]


def test_the_page_is_current_and_every_marker_is_of_the_inventory() -> None:
    rows, carried = SCRIPT["inventory"](), SCRIPT["markers"]()
    SCRIPT["check"](rows, carried)
    assert len(rows) == 359
    assert SCRIPT["PAGE"].read_text() == SCRIPT["page"](rows, carried), (
        "run `python scripts/generate_coverage.py`"
    )


def marked(tmp_path: Path, source: str) -> Any:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_some.py").write_text("import pytest\n" + source)
    return SCRIPT["markers"](tests)


def test_markers_are_found_at_functions_and_methods(tmp_path: Path) -> None:
    source = (
        '@pytest.mark.behaviour("B001", *("B002",))\ndef test_a(): ...\n'
        'class TestB:\n    @pytest.mark.behaviour("B002")\n    async def test_c(self): ...\n'
    )
    assert marked(tmp_path, source) == {
        "B001": ["tests/test_some.py::test_a"],
        "B002": ["tests/test_some.py::test_a", "tests/test_some.py::test_c"],
    }


@pytest.mark.parametrize(
    "source",
    [
        'X = "B001"\n@pytest.mark.behaviour(X)\ndef test_a(): ...\n',
        'pytestmark = pytest.mark.behaviour("B001")\n',
    ],
)
def test_a_marker_that_cannot_be_read_is_an_error(tmp_path: Path, source: str) -> None:
    with pytest.raises(CoverageError):
        marked(tmp_path, source)


@pytest.mark.parametrize("behaviour_id", ["B360", "B1", "B347"])
def test_a_marker_of_no_behaviour_or_of_one_that_does_not_apply_is_an_error(behaviour_id: str) -> None:
    with pytest.raises(CoverageError, match=behaviour_id):
        SCRIPT["check"](SCRIPT["inventory"](), {behaviour_id: ["tests/test_some.py::test_a"]})
