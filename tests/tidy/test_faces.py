"""Rooms meet at their faces: a package that exports what others may use, and never a module behind it."""

import ast
import itertools
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOM_ROOT = ROOT / "src" / "kustos"
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


def room_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def behind_a_face(importer: str, module: str, name: str) -> bool:
    """Whether an import names a module of another room, or something that its face does not export."""
    room = room_of(module)
    if room in {importer, ONE_BY_ONE} or module == "kustos":
        return False
    if module == room and not is_package(module):
        # a module beside the rooms is its own face
        return False
    if not is_package(module):
        return True
    return not is_package(f"{module}.{name}") and name not in exported(module)


def test_rooms_import_each_other_by_their_faces() -> None:
    found = [
        f"{path.relative_to(ROOT)}: `{module}` ({name})"
        for path in sorted(ROOM_ROOT.rglob("*.py"))
        for module, name in imported(path)
        if behind_a_face(f"kustos.{path.relative_to(ROOM_ROOT).parts[0].removesuffix('.py')}", module, name)
    ]
    assert not found, "import these from the face of their folder, and export them there:\n" + "\n".join(
        found
    )


def bound(tree: ast.Module) -> set[str]:
    """Return the names that a face imports or defines."""
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


def test_a_face_has_what_it_exports() -> None:
    found = []
    for path in sorted(ROOM_ROOT.rglob("__init__.py")):
        package = ".".join(path.parent.relative_to(ROOM_ROOT.parent).parts)
        tree = ast.parse(path.read_text())
        # `__getattr__` brings what is loaded only when it is needed
        if "__getattr__" not in bound(tree):
            found += [f"{package}.{name}" for name in sorted(exported(package) - bound(tree))]
    assert found == []


def test_a_module_behind_a_face_is_noticed() -> None:
    assert behind_a_face("kustos.cli", "kustos.metadata.store.requests", "CreateAcls")
    assert behind_a_face("kustos.cli", "kustos.metadata", "store_secret")
    assert not behind_a_face("kustos.cli", "kustos.metadata.store", "CreateAcls")
    assert not behind_a_face("kustos.metadata", "kustos.metadata.store.requests", "CreateAcls")


def test_one_class_has_one_name() -> None:
    """Whoever searches for a class finds it once: no name is used for two things, also behind the faces."""
    places: dict[str, list[str]] = {}
    for path in sorted(ROOM_ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert len(places) > 500
    assert not {name: found for name, found in places.items() if len(found) > 1}
