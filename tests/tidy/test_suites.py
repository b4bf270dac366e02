"""A suite of tests stands alone: what several suites share is in `testkit`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from testkit.paths import ROOT

TESTS_IMPORTED = re.compile(r"\b(?:from|import)\b.*\btests\b")
TREES = ("tests", "testkit", "benchmarks", "demo", "fuzz", "scripts", "examples")


def imports_of_tests(text: str) -> Iterator[str]:
    """Yield each module, or name in a module, of `tests` that a Python text imports, with dots."""
    # most texts import none, and a parser takes a hundred times as long as a search
    for node in ast.walk(ast.parse(text)) if TESTS_IMPORTED.search(text) else ():
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "tests")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tests":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def suite_of(path: Path) -> str:
    """Return the folder of `tests` that a file is in, else the tree."""
    tree, *rest = path.parts
    return rest[0] if tree == "tests" else tree


def is_foreign(path: Path, imported: str) -> bool:
    """Whether an import in this file reaches into another suite."""
    return imported.split(".")[1] != suite_of(path)


def test_suites_share_nothing_but_the_testkit() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {imported}"
        for tree in TREES
        for path in sorted((ROOT / tree).rglob("*.py"))
        for imported in imports_of_tests(path.read_text())
        if is_foreign(path.relative_to(ROOT), imported)
    ]
    assert found == [], "move these to `testkit`"


def test_what_reaches_into_another_suite_is_noticed() -> None:
    (imported,) = imports_of_tests("from tests.unit.gateway.sessions import request")
    assert is_foreign(Path("tests/property/test_frames.py"), imported)
    assert is_foreign(Path("benchmarks/loads.py"), imported)
    assert not is_foreign(Path("tests/unit/test_frames.py"), imported)
