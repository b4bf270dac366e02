"""A run that ends at its n-th change of the disk: it dies, and nothing has an effect later, or it fails."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from deltalake import DeltaTable
from deltalake.table import TableAlterer, TableOptimizer
from pyarrow import parquet

from kustos.pipeline.tables import TablesError, delta

CHANGING: tuple[tuple[type | object, str], ...] = (
    (DeltaTable, "create"),
    (DeltaTable, "create_write_transaction"),
    (DeltaTable, "delete"),
    (DeltaTable, "restore"),
    (DeltaTable, "vacuum"),
    (DeltaTable, "cleanup_metadata"),
    (TableOptimizer, "compact"),
    (TableAlterer, "add_columns"),
    (Path, "mkdir"),
    (Path, "rename"),
    (Path, "unlink"),
    (shutil, "rmtree"),
    (parquet.ParquetWriter, "write_table"),
)
"""All by which a run changes the disk; it dies before each call, which is after the one before."""

FAILING: tuple[tuple[type | object, str], ...] = (
    *CHANGING,
    (DeltaTable, "load_as_version"),
    (delta, "sync_log"),
)
"""What may fail though it changes nothing: steps between a commit and its end."""

MOMENTS_MAX: Final = 1_000
"""Moments of one run of a test: it has some dozens."""


class Died(BaseException):
    """Nobody catches it."""


@contextmanager
def at_each(
    before: Callable[[], None],
    after: Callable[[], None] = lambda: None,
    steps: tuple[tuple[type | object, str], ...] = CHANGING,
) -> Iterator[None]:
    """Call `before` before each step, by default each change of the disk, and `after` after it."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in steps:
            original = getattr(owner, name)

            def step(*args: Any, original: Any = original, **more: Any) -> Any:
                before()
                answer = original(*args, **more)
                after()
                return answer

            # what is bound to the class already, as `create` is, is to stay so
            bound = staticmethod(step) if hasattr(original, "__self__") else step
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


def deaths(first: Path, action: Callable[[Path], object]) -> Iterator[Path]:
    """Yield copies of a folder where something died at its first moment, its second, and so on.

    In the last copy it lived.
    """
    for moment in range(MOMENTS_MAX):
        folder = first.with_name(f"{first.name}-died-{moment}")
        shutil.copytree(first, folder)
        died = died_at(moment, lambda folder=folder: action(folder))  # type: ignore[misc]
        yield folder
        shutil.rmtree(folder)
        if not died:
            return
    raise AssertionError(f"it still dies at its moment {MOMENTS_MAX}")


def failed_at(call: int, action: Callable[[], object], error: BaseException) -> bool:
    """Do something that fails once, at the n-th moment; return whether it did.

    A moment is right after a step: what it did is there and its answer is not. What is done about the error
    has its effect.
    """
    left = [call]

    def tick() -> None:
        left[0] -= 1
        if left[0] == -1:
            raise error

    with at_each(lambda: None, tick, FAILING), suppress(type(error), TablesError):
        action()
    return left[0] < 0
