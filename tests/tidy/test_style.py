"""Style that matters is a test."""

import ast
import subprocess
from functools import cache
from pathlib import Path

import pytest

from testkit.paths import ROOT

MODULE_LINES_MAX = 400
MODULE_LINES_MIN = 60
"""A shorter module is a splinter: its idea belongs into the module, or the face, that it serves."""

SHORT_MODULES = {
    "src/kustos/__main__.py": "what `python -m kustos` runs",
    "src/kustos/extras.py": "beside the rooms, since all of them may need it",
    "src/kustos/acl/forms/csv_form.py": "one form a module",
    "src/kustos/authorizer/legacy/interface.py": "the contract that authorizers of old implement",
    "src/kustos/cli/acls/convert.py": "one command a module",
    "src/kustos/cli/pipeline/convert.py": "one command a module",
    "src/kustos/cli/pipeline/shown.py": "the formats of rows that seven commands share",
    "src/kustos/cli/serve.py": "one command a module",
    "src/kustos/client/versions.py": "`connection`, which it serves, is near its limit",
    "src/kustos/gateway/listener/links.py": "`connection`, which it serves, is near its limit",
    "src/kustos/metadata/control/results.py": "what every request of the folder returns",
    "src/kustos/metadata/errors.py": "the errors of a whole room",
    "src/kustos/pipeline/anomalies/super_users.py": "one kind of anomaly a module",
    "src/kustos/pipeline/anomalies/tails.py": "the statistics that kinds of anomalies share",
    "src/kustos/pipeline/columns/probes.py": "one rule, for Spark and for Arrow, that the analyses share",
    "src/kustos/pipeline/lines/generated_ids.py": "the ids that `lines`, `tables` and `run` share",
    "src/kustos/pipeline/replay/job.py": "the `job` of an analysis, as others have theirs",
    "src/kustos/pipeline/spreadsheet.py": "the cells that commands and `review` share",
    "src/kustos/protocol/codes.py": "a table of Kafka's",
    "src/kustos/runtime/entropy.py": "the only home of randomness",
    "src/kustos/server/oauth.py": "the key sets that listeners share",
    "src/kustos/server/upstream.py": "`node`, which it serves, is near its limit",
    "src/kustos/server/settings/quorum.py": "one theme of the table of settings a module",
    "src/kustos/server/settings/table/workers.py": "one theme of the table of settings a module",
    "src/kustos/server/settings/tls.py": "one theme of the table of settings a module",
    "src/kustos/server/settings/workers.py": "one theme of the table of settings a module",
}
"""Modules that are short for a reason."""

NOUNS_IN_ING = {"ceiling", "encoding", "forwarding", "incoming", "sampling", "staging"}
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


def test_no_module_is_longer_than_its_limit() -> None:
    lengths = {name(path): len(text(path).splitlines()) for path in PYTHON}
    assert len(lengths) > 50
    assert {module: count for module, count in lengths.items() if count > MODULE_LINES_MAX} == {}


def test_no_module_is_a_splinter() -> None:
    short = {
        name(path)
        for path in tracked("src/kustos/*.py")
        if path.name != "__init__.py" and len(text(path).splitlines()) < MODULE_LINES_MIN
    }
    assert short == set(SHORT_MODULES)


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


def test_every_room_says_what_it_knows() -> None:
    rooms = tracked("src/kustos/*/__init__.py")
    assert len(rooms) > 10
    assert [name(room) for room in rooms if not ast.get_docstring(ast.parse(room.read_text()))] == []
