"""The two ways in which a run is settled: a test that goes both must end alike."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any

import pytest

INGEST = import_module("kustos.pipeline.tables.ingest")
"""The module; in the package its name is that of the function."""

LIMITS = {"by the driver": INGEST.SHORT_LINES_MAX, "by Spark": -1}
"""So many lines are settled by the driver."""


@contextmanager
def settled(way: str) -> Iterator[None]:
    """Have runs within settled in this way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(INGEST, "SHORT_LINES_MAX", LIMITS[way])
        yield


def both_ways(test: Any) -> Any:
    """Run a test once in each way."""

    @pytest.mark.parametrize("way", LIMITS)
    @wraps(test)
    def one_way(*, way: str, **fixtures: Any) -> None:
        with settled(way):
            test(**fixtures)

    signature = inspect.signature(test)
    way = inspect.Parameter("way", inspect.Parameter.KEYWORD_ONLY)
    one_way.__signature__ = signature.replace(parameters=[*signature.parameters.values(), way])
    return one_way
