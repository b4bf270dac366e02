"""The rows of the life cycles of links and requests that occur."""

from collections import Counter
from typing import Any

import pytest

from kustos.gateway.life_cycle import LifeCycle, Symbol
from kustos.gateway.upstream import link

Row = tuple[Symbol, Symbol]


def recorded_rows(monkeypatch: pytest.MonkeyPatch) -> Counter[Row]:
    """Return a counter of the rows taken from now on."""
    rows: Counter[Row] = Counter()

    class Recorded(LifeCycle[Any, Any]):
        def __getitem__(self, row: Row) -> Symbol:
            rows[row] += 1
            target: Symbol = super().__getitem__(row)
            return target

    for name in ("LINK_LIFE", "REQUEST_LIFE"):
        life = getattr(link, name)
        recorded = Recorded(life.initial, ((*row, target) for row, target in life.items()))
        monkeypatch.setattr(link, name, recorded)
    return rows
