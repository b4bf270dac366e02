"""Style that matters is a test."""

import ast
import subprocess
from functools import cache
from pathlib import Path

import pytest

from testkit.paths import ROOT

NOUNS_IN_ING = {"ceiling", "encoding", "forwarding", "incoming", "ring", "sampling", "staging"}
"""Words of the field that end like a verb's."""

FUNCTION_LINES_MAX = 70
EXAMPLES_MIN = 3

# in two halves, so that this list does not find itself
UNFINISHED = ("TO" + "DO", "FIX" + "ME", "NotImplemented" + "Error", "mark." + "skip", "mark." + "xfail")
ADDRESSES = ("pypi." + "org", "files.python" + "hosted", "repo." + "maven", "repo1." + "maven", "/wo" + "rk/")


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


PYTHON = tracked("*.py")


@cache
def text(path: Path) -> str:
    return path.read_text(errors="replace")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_modules_are_named_after_things() -> None:
    verbs = {name(path) for path in tracked("src/kustos/*ing.py") if path.stem not in NOUNS_IN_ING}
    assert verbs == set()


def test_no_function_is_longer_than_its_limit() -> None:
    long: dict[str, int] = {}
    for path in PYTHON:
        for node in ast.walk(ast.parse(text(path))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    long[f"{name(path)}:{node.name}"] = lines
    assert long == {}


@pytest.mark.parametrize("word", [*UNFINISHED, *ADDRESSES])
def test_nothing_unfinished_and_no_address_of_a_registry_or_machine(word: str) -> None:
    files = [*PYTHON, *tracked("*.md", "*.txt", "*.toml", "*.xml", "*.yml", "Makefile", "scripts/*", ".ci/*")]
    assert [name(path) for path in files if word in text(path)] == []


def test_tests_never_sleep() -> None:
    sleepers = [
        f"{name(path)}:{node.lineno}"
        for path in tracked("tests/*.py", "testkit/*.py")
        if "sleep" in text(path)
        for node in ast.walk(ast.parse(text(path)))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"time.sleep", "asyncio.sleep"}
        and ast.unparse(node.args[0]) != "0"  # gives the event loop a turn, takes no time
    ]
    assert sleepers == []


def examples_of(path: Path) -> list[tuple[int, int]]:
    """Return each `max_examples` of a module, as a number or by the name of one, with its line."""
    if "max_examples" not in text(path):
        return []
    tree = ast.parse(text(path))
    named = {
        ast.unparse(target): node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    given = [each for node in ast.walk(tree) if isinstance(node, ast.Call) for each in node.keywords]
    found = [
        (each.value.lineno, named.get(ast.unparse(each.value), each.value))
        for each in given
        if each.arg == "max_examples"
    ]
    return [
        (line, value.value)
        for line, value in found
        if isinstance(value, ast.Constant) and isinstance(value.value, int)
    ]


def test_a_property_draws_more_than_the_smallest_examples() -> None:
    """Hypothesis tries the smallest example first: of one or two, nothing is drawn at all.

    Where each example costs a Spark job, `Drawing` or the seed of the run makes many worlds for one job.
    """
    found = {name(path): examples_of(path) for path in tracked("tests/*.py", "testkit/*.py")}
    assert sum(map(len, found.values())) > 50
    too_few = [
        f"{module}:{line}"
        for module, examples in found.items()
        for line, count in examples
        if count < EXAMPLES_MIN
    ]
    assert too_few == []


def test_every_package_has_a_docstring() -> None:
    packages = tracked("src/kustos/*/__init__.py")
    assert len(packages) > 10
    assert [
        name(package) for package in packages if not ast.get_docstring(ast.parse(package.read_text()))
    ] == []
