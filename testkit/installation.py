"""An installation of kustos with some of its extras, assembled from the packages installed here: no network.

It is a folder of links to the packages that `pyproject.toml` requires, and their own requirements. A Python
without `site-packages` finds in this folder what pip would install.
"""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from testkit.paths import ROOT

PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAME: Final = canonicalize_name(PROJECT["name"])

Wanted = tuple[str, str]
"""The name of a distribution, and one of its extras or an empty string."""


def requirements(name: str, extra: str = "") -> list[Requirement]:
    """Return the requirements of a distribution or one extra on this machine; ours from `pyproject.toml`."""
    if name == NAME:
        texts = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    else:
        texts = distribution(name).requires or []
    found = [Requirement(text) for text in texts]
    return [each for each in found if each.marker is None or each.marker.evaluate({"extra": extra})]


def closure(extras: Iterable[str] = ()) -> set[str]:
    """Return the distributions that kustos installs with these extras, except itself."""
    seen: set[Wanted] = set()
    waiting: list[Wanted] = [(NAME, ""), *((NAME, extra) for extra in extras)]
    while waiting:
        wanted = waiting.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        for requirement in requirements(*wanted):
            name = canonicalize_name(requirement.name)
            waiting += [(name, ""), *((name, extra) for extra in requirement.extras)]
    return {name for name, _ in seen} - {NAME}


class Installation:
    """kustos and its dependencies in their own folder."""

    def __init__(self, folder: Path, extras: Iterable[str] = ()) -> None:
        self._folder: Final = folder
        folder.mkdir()
        for name in closure(extras):
            found = distribution(name)
            tops = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
            for top in tops:
                link = folder / top
                if not link.exists():
                    link.symlink_to(Path(str(found.locate_file(top))))

    def python(self, program: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
        """Run a program in a Python with this installation and no other package."""
        paths = os.pathsep.join((str(self._folder), str(ROOT / "src")))
        return subprocess.run(
            [sys.executable, "-S", "-c", program, *arguments],
            env={**os.environ, "PYTHONPATH": paths},
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
        )

    def kustos(self, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
        """Run the `kustos` command."""
        return self.python("from kustos.cli import main; main()", *arguments, cwd=cwd)
