"""Writes docs/reference/coverage.md, which test covers which behavior: `python scripts/generate_coverage.py`.

The inventory is tests/behaviours.csv; `@pytest.mark.behaviour("B001")` marks a test that covers a row of it.
The script reads the tests and does not run them.
"""

import ast
import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
TESTS: Final = ROOT / "tests"
INVENTORY: Final = TESTS / "behaviours.csv"
PAGE: Final = ROOT / "docs" / "reference" / "coverage.md"
SHOWN_MAX: Final = 3
"""Tests named for a behavior; the rest is only counted, since a reader does not need more names."""


class CoverageError(Exception):
    """A marker or a row of the inventory is wrong; the message names it."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A row of the inventory."""

    behaviour_id: str
    area: str
    text: str
    not_applicable_because: str


def inventory(path: Path = INVENTORY) -> list[Behaviour]:
    """Return the rows, ids rising without a gap."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [Behaviour(*row) for row in list(csv.reader(file))[1:]]
    wanted = [f"B{number:03}" for number in range(1, len(rows) + 1)]
    if [row.behaviour_id for row in rows] != wanted:
        raise CoverageError("ids of the inventory do not run from B001 without a gap")
    return rows


def _texts(arguments: Sequence[ast.expr], where: str) -> Iterator[str]:
    for argument in arguments:
        match argument:
            case ast.Constant(value=str(text)):
                yield text
            case ast.Starred(value=ast.Tuple(elts=elements)):
                yield from _texts(elements, where)
            case _:
                raise CoverageError(f"{where}: a behavior is not a literal text")


def _marks(node: ast.AST) -> Iterator[ast.Call]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("mark.behaviour"):
            yield call


def markers(folder: Path = TESTS) -> dict[str, list[str]]:
    """Return the tests that cover each id, as `tests/unit/test_x.py::test_y`; raise `CoverageError`."""
    carried: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        module = path.relative_to(folder.parent).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        marked = 0
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                test = f"{module}::{node.name}"
                for mark in (mark for decorator in node.decorator_list for mark in _marks(decorator)):
                    marked += 1
                    for behaviour_id in _texts(mark.args, test):
                        carried.setdefault(behaviour_id, []).append(test)
        if marked != sum(1 for _ in _marks(tree)):
            raise CoverageError(f"{module}: a behavior is marked outside of a test function")
    return carried


def check(rows: Sequence[Behaviour], carried: Mapping[str, Sequence[str]]) -> None:
    """Raise `CoverageError` for a marker of an unknown behavior, or of one that does not apply."""
    known = {row.behaviour_id: row for row in rows}
    for behaviour_id, tests in carried.items():
        if behaviour_id not in known:
            raise CoverageError(f"{tests[0]}: `{behaviour_id}` has no row in tests/behaviours.csv")
        if known[behaviour_id].not_applicable_because:
            raise CoverageError(
                f"{tests[0]}: `{behaviour_id}` does not apply according to tests/behaviours.csv"
            )


def state(row: Behaviour, tests: Sequence[str]) -> str:
    """Return the text of the page about a behavior: its tests, or why it has none."""
    if tests:
        names = list(dict.fromkeys(tests))
        shown = "<br>".join(f"`{name.removeprefix('tests/')}`" for name in names[:SHOWN_MAX])
        return shown + (f"<br>and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else "")
    return f"not applicable: {row.not_applicable_because}" if row.not_applicable_because else "**open**"


def table(rows: Sequence[Behaviour], carried: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the lines of one area."""
    lines = ["| Id | Behavior | Tests |", "| --- | --- | --- |"]
    return lines + [
        f"| {row.behaviour_id} | {row.text} | {state(row, carried.get(row.behaviour_id, ()))} |"
        for row in rows
    ]


def counts(rows: Sequence[Behaviour], carried: Mapping[str, Sequence[str]]) -> tuple[int, int, int]:
    """Return how many are covered, not applicable and open."""
    covered = sum(row.behaviour_id in carried for row in rows)
    not_applicable = sum(bool(row.not_applicable_because) for row in rows)
    return covered, not_applicable, len(rows) - covered - not_applicable


def page(rows: Sequence[Behaviour], carried: Mapping[str, Sequence[str]]) -> str:
    """Return the page."""
    areas: dict[str, list[Behaviour]] = {}
    for row in rows:
        areas.setdefault(row.area, []).append(row)
    covered, not_applicable, open_ = counts(rows, carried)
    lines = [
        "# Coverage of Kafka's behaviors",
        "",
        "<!-- made by scripts/generate_coverage.py from the markers of the tests; do not edit -->",
        "",
        "An inventory of the behaviors that Kafka's own security tests check, and the tests of kustos that "
        "cover them. A test counts only if it fails when that one behavior is broken.",
        "",
        f"Of {len(rows)}: **{covered} covered**, {not_applicable} not applicable, {open_} open.",
        "",
        "| Area | Covered | Not applicable | Open |",
        "| --- | --- | --- | --- |",
    ]
    lines += ["| {} | {} | {} | {} |".format(area, *counts(of, carried)) for area, of in areas.items()]
    for area, of in areas.items():
        lines += ["", f"## {area}", "", *table(of, carried)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page, or print what is wrong."""
    try:
        rows, carried = inventory(), markers()
        check(rows, carried)
    except CoverageError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    PAGE.write_text(page(rows, carried), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
