"""The rows of the life cycles that occur."""

from typing import Any

import pytest

from kustos.gateway.life_cycle import LifeCycle
from kustos.gateway.upstream import link
from kustos.runtime import Symbol

Row = tuple[Any, Any]
"""A state and an event of one of the tables."""


class RecordedLife(LifeCycle[Any, Any]):
    """A table that adds each row that is looked up to `taken`, in order."""

    def __init__(self, life: LifeCycle[Any, Any], taken: list[Row] | None = None) -> None:
        super().__init__(life.initial, ((*row, target) for row, target in life.items()))
        self.taken: list[Row] = [] if taken is None else taken

    def __getitem__(self, row: Row) -> Symbol:
        self.taken.append(row)
        target: Symbol = super().__getitem__(row)
        return target


def recorded_rows(monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    """Return a list of the rows that links and their requests take from now on."""
    rows: list[Row] = []
    for name in ("LINK_LIFE", "REQUEST_LIFE"):
        monkeypatch.setattr(link, name, RecordedLife(getattr(link, name), rows))
    return rows
