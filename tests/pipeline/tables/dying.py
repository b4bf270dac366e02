"""A process that dies at its n-th change of the disk, played in this one: nothing has an effect after it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.table import TableOptimizer
from pyarrow import parquet

CHANGING: tuple[tuple[type | object, str], ...] = (
    (DeltaTable, "create"),
    (DeltaTable, "create_write_transaction"),
    (DeltaTable, "delete"),
    (DeltaTable, "restore"),
    (DeltaTable, "vacuum"),
    (TableOptimizer, "compact"),
    (Path, "mkdir"),
    (Path, "rename"),
    (Path, "unlink"),
    (shutil, "rmtree"),
    (parquet.ParquetWriter, "write_table"),
)
"""All by which a run changes the disk; it dies before each call, which is after the one before."""


class Died(BaseException):
    """Nobody catches it."""


@contextmanager
def at_each(tick: Callable[[], None]) -> Iterator[None]:
    """Call `tick` before each change of the disk."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in CHANGING:
            original = getattr(owner, name)

            def changing(*args: Any, original: Any = original, **more: Any) -> Any:
                tick()
                return original(*args, **more)

            # what is bound to the class already, as `create` is, is to stay so
            bound = staticmethod(changing) if hasattr(original, "__self__") else changing
            patch.setattr(owner, name, bound)
        yield


def died_at(call: int, action: Callable[[], object]) -> bool:
    """Do something, dying at the n-th moment; return whether it died."""
    left = [call]

    def tick() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Died

    try:
        with at_each(tick):
            action()
    except Died:
        return True
    return False
