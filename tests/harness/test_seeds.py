"""The seed of a run decides what its tests draw."""

import os
import re
import subprocess
import sys
from pathlib import Path

from hypothesis import strategies as st

from testkit.paths import ROOT
from testkit.seeds import VARIABLE, Drawing

DRAWS = """
import hypothesis
from hypothesis import strategies as st

seen = []

@hypothesis.settings(max_examples=5, database=None)
@hypothesis.given(st.integers(0, 2**64))
def test_drawn(number):
    seen.append(number)

def test_told(seed, drawing):
    assert (seen, seed, drawing(st.integers(0, 2**64))) == ()
"""
EXAMPLES = st.lists(st.integers(0, 2**64), max_size=9)


def run(file: Path, seed: str) -> tuple[str, str]:
    """Return what a run drew, and all that it said."""
    file.write_text(DRAWS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.conftest", str(file)]
    done = subprocess.run(
        [*command, "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(file.parent)],
        cwd=ROOT, env={**os.environ, VARIABLE: seed}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    [drawn] = re.findall(r"^E +assert (\(\[.*) == \(\)$", done.stdout, re.MULTILINE)
    return drawn, done.stdout


def test_a_run_with_the_same_seed_draws_the_same_and_one_with_another_does_not(tmp_path: Path) -> None:
    first, said = run(tmp_path / "test_one.py", "7")
    assert f"{VARIABLE}=7\n" in said
    assert f"{VARIABLE}=7 repeats what was drawn" in said
    assert run(tmp_path / "test_one.py", "7")[0] == first
    assert run(tmp_path / "test_one.py", "8")[0] != first


def test_a_drawing_is_not_always_the_smallest_example() -> None:
    drawn = [Drawing(seed)(EXAMPLES) for seed in range(8)]
    assert drawn == [Drawing(seed)(EXAMPLES) for seed in range(8)]
    assert sum(example != [] for example in drawn) > 4
