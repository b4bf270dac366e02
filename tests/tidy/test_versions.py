"""Releases of Kafka are named in one place, `testkit/versions.py`: the next one is a change of one line."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit import versions
from testkit.jars import labels
from testkit.paths import MAVEN_PROJECTS, ROOT

FOLDERS = ("benchmarks", "demo", "fuzz", "oracle", "scripts", "testkit", "tests")
PLACES = {Path("testkit", "versions.py"), Path("tests", "tidy", "test_versions.py")}
CODE = {".java", ".mjs", ".properties", ".sh", ".toml", ".xml", ".yaml"}
NAMED = re.compile(
    r"(?<![\d.])(" + "|".join(map(re.escape, {*versions.CHOICES.values(), versions.WHOLE})) + r")(?![\d.])"
)
OTHERS = re.compile(r"list-[0-9.]+\.txt|spark-delta-[0-9.]+")
"""A file that a release wrote, and Delta Lake, which counts like Kafka."""


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the strings of a Python file that are no documentation."""
    tree = ast.parse(path.read_text())
    documentation = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documentation:
            yield node.lineno, node.value


def texts(path: Path) -> Iterator[tuple[int, str]]:
    if path.suffix == ".py":
        yield from strings(path)
    elif path.suffix in CODE and not path.name.startswith("spark-"):
        yield from enumerate(path.read_text().splitlines(), 1)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_other_place_names_a_release(folder: str) -> None:
    files = sorted(path for path in (ROOT / folder).rglob("*") if path.is_file())
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.strip()[:80]}"
        for path in files
        if path.relative_to(ROOT) not in PLACES and "__pycache__" not in path.parts
        for line, text in texts(path)
        if NAMED.search(OTHERS.sub("", text))
    ]
    assert found == []


def test_each_set_of_jars_is_of_a_release_that_is_used() -> None:
    names = {label.rpartition("-")[2] for label in labels() if label.startswith("kafka")}
    assert names == {*versions.CHOICES.values(), versions.WHOLE, versions.LEGACY}


def test_each_set_of_jars_has_its_project() -> None:
    projects = {path.stem for path in MAVEN_PROJECTS.glob("*.xml")}
    assert {label if label in projects else label.rpartition("-")[0] for label in labels()} == projects


def test_another_choice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(versions.VARIABLE, "oldest")
    assert versions.chosen() == versions.OLDEST
    monkeypatch.setenv(versions.VARIABLE, "newest")
    with pytest.raises(ValueError, match="no release `newest`; use reference, previous, oldest"):
        versions.chosen()
