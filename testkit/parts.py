"""A plug-in of pytest that runs one of several parts of the tests: `-p testkit.parts --part=1/2`.

A suite that mostly waits takes half the time in two processes. A file is in exactly one part, as is a folder
in a suite, since its files share what is costly to start. The folders of unit tests share nothing, and tests
of the pipeline all share one Spark session, so these folders are divided too. Every test is in a part.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import pytest

DEPTH: Final = 3
"""What stays together: `tests/SUITE/FILE` or `tests/SUITE/FOLDER`."""

DIVIDED: Final = (Path("tests", "pipeline"), Path("tests", "unit"))
"""Suites whose folders share nothing of their own."""

OPTION: Final = "--part"


@dataclass(frozen=True, slots=True)
class Part:
    """Part `number` of `count`, from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what `1/2` says, or raise `ValueError`."""
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError(f"`{text}` is no part; write it as `1/2`")
        return cls(int(found[1]), int(found[2]))

    def of(self, paths: Sequence[Path]) -> set[Path]:
        """Return those of the paths, relative to the root, that are in this part."""
        units = sorted({_unit(path) for path in paths})
        ours = set(units[self.number - 1 :: self.count])
        return {path for path in paths if _unit(path) in ours}


def _unit(path: Path) -> tuple[str, ...]:
    return path.parts if any(map(path.is_relative_to, DIVIDED)) else path.parts[:DEPTH]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, help="run one of several parts of the tests, as 1/2", metavar="N/M")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other parts."""
    text = config.getoption(OPTION)
    if text is None:
        return
    try:
        part = Part.parse(text)
    except ValueError as error:
        raise pytest.UsageError(f"{OPTION}: {error}") from None
    places = [item.path.relative_to(config.rootpath) for item in items]
    ours = part.of(places)
    left = [item for item, place in zip(items, places, strict=True) if place not in ours]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item, place in zip(items, places, strict=True) if place in ours]
