"""No file of `src` imports itself through others, so each can be read, tested and moved without the rest.

Import-linter holds the order of packages; this holds that of the files inside them. Every import counts, also
in a function or under `TYPE_CHECKING`: a reader has to follow it. A name that a package exports counts as an
import of the file that defines it, since the `__init__` of a package only names what others may use.
"""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from testkit.paths import ROOT

Graph = Mapping[str, set[str]]
"""The modules that each module imports."""


class Sources:
    """The modules below a folder, and what each imports."""

    def __init__(self, folder: Path) -> None:
        self.trees: dict[str, ast.Module] = {}
        self.exports: dict[str, dict[str, tuple[str, str]]] = {}
        """Of each package: the names that it imports, and from where."""
        for path in sorted(folder.rglob("*.py")):
            name = ".".join(path.relative_to(folder).with_suffix("").parts)
            module = name.removesuffix(".__init__")
            self.trees[module] = ast.parse(path.read_text())
            if module != name:
                self.exports[module] = {
                    alias.asname or alias.name: (str(node.module), alias.name)
                    for node in ast.walk(self.trees[module])
                    if isinstance(node, ast.ImportFrom)
                    for alias in node.names
                }

    def graph(self) -> Graph:
        return {module: set(self.imports(module)) - {module} for module in self.trees}

    def imports(self, module: str) -> Iterator[str]:
        for node in ast.walk(self.trees[module]):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.trees)
            elif isinstance(node, ast.ImportFrom):
                found = (self.defining(str(node.module), alias.name) for alias in node.names)
                yield from (each for each in found if each in self.trees)

    def defining(self, module: str, name: str) -> str:
        """Return the module that `from module import name` is about."""
        while f"{module}.{name}" not in self.trees and name in self.exports.get(module, ()):
            module, name = self.exports[module][name]
        inner = f"{module}.{name}"
        return inner if inner in self.trees else module


def circles(graph: Graph) -> list[str]:
    """Return circles until none is left: each is broken at one import, as whoever repairs it would."""
    left = {module: set(imported) for module, imported in graph.items()}
    found = []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # each module is imported by the next one
            circle = error.args[1]
            found.append(" -> ".join(reversed(circle)))
            left[circle[1]].discard(circle[0])
        else:
            return found


def test_no_file_imports_itself_through_others() -> None:
    graph = Sources(ROOT / "src").graph()
    assert len(graph) > 700
    assert circles(graph) == []


def test_a_circle_is_noticed_wherever_the_import_is_and_by_whatever_package(tmp_path: Path) -> None:
    files = {
        "one/__init__.py": "from one.first import First\nfrom one.second import Second\n",
        "one/first.py": "if TYPE_CHECKING:\n    from two import Third\nclass First: ...\n",
        "one/second.py": "from one import First\nclass Second: ...\n",
        "two/__init__.py": "from two.third import Third\n",
        "two/third.py": "def second():\n    from one import Second\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (found,) = circles(Sources(tmp_path).graph())
    assert set(found.split(" -> ")) == {"one.first", "one.second", "two.third"}
    (tmp_path / "two" / "third.py").write_text("import one.other\n")
    assert circles(Sources(tmp_path).graph()) == []
