"""Top-level packages import each other by public interfaces: what the `__init__` of a package exports."""

import ast
import itertools
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "kustos"
ONE_BY_ONE = "kustos.pipeline"
"""Each of its modules is loaded by the one command that needs it, since most of them load Spark."""


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each import from kustos."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.startswith("kustos."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kustos"):
            yield from ((str(node.module), alias.name) for alias in node.names)


@cache
def exported(package: str) -> set[str]:
    """Return what a package has in its `__all__`."""
    tree = ast.parse((ROOT / "src" / package.replace(".", "/") / "__init__.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


@cache
def is_package(module: str) -> bool:
    return (ROOT / "src" / module.replace(".", "/") / "__init__.py").exists()


def top_level_package(module: str) -> str:
    return ".".join(module.split(".")[:2])


def is_internal(importer: str, module: str, name: str) -> bool:
    """Whether an import names a module of another top-level package, or a name that its package hides."""
    top_level = top_level_package(module)
    if top_level in {importer, ONE_BY_ONE} or module == "kustos":
        return False
    if module == top_level and not is_package(module):
        # a top-level module is its own public interface
        return False
    if not is_package(module):
        return True
    return not is_package(f"{module}.{name}") and name not in exported(module)


def test_packages_import_each_other_by_their_public_interfaces() -> None:
    found = [
        f"{path.relative_to(ROOT)}: `{module}` ({name})"
        for path in sorted(SOURCES.rglob("*.py"))
        for module, name in imported(path)
        if is_internal(f"kustos.{path.relative_to(SOURCES).parts[0].removesuffix('.py')}", module, name)
    ]
    assert not found, "import these from their package, and export them in its `__init__`:\n" + "\n".join(
        found
    )


def bound(tree: ast.Module) -> set[str]:
    """Return the names that an `__init__` imports or defines."""
    names: set[str] = set()
    blocks = [node.body for node in tree.body if isinstance(node, ast.With)]
    for node in itertools.chain(tree.body, *blocks):
        if isinstance(node, ast.ImportFrom | ast.Import):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
    return names


def test_a_package_has_what_it_exports() -> None:
    found = []
    for path in sorted(SOURCES.rglob("__init__.py")):
        package = ".".join(path.parent.relative_to(SOURCES.parent).parts)
        tree = ast.parse(path.read_text())
        # `__getattr__` loads names when they are needed
        if "__getattr__" not in bound(tree):
            found += [f"{package}.{name}" for name in sorted(exported(package) - bound(tree))]
    assert found == []


def test_an_internal_module_is_noticed() -> None:
    assert is_internal("kustos.cli", "kustos.metadata.store.requests", "CreateAcls")
    assert is_internal("kustos.cli", "kustos.metadata", "store_secret")
    assert not is_internal("kustos.cli", "kustos.metadata.store", "CreateAcls")
    assert not is_internal("kustos.metadata", "kustos.metadata.store.requests", "CreateAcls")


def test_one_class_has_one_name() -> None:
    """A search for a class finds one definition: no two classes have one name, internal ones included."""
    places: dict[str, list[str]] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert len(places) > 500
    assert not {name: found for name, found in places.items() if len(found) > 1}
