"""Runs in one bucket, compared by the driver, and in many, compared by tasks: a test of both ends alike."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

from kustos.pipeline.tables.deduplication import of_runs

LIMITS = {"in one bucket": of_runs.BUCKET_LINES_MAX, "in many buckets": 2}
"""So many lines are a bucket."""


@contextmanager
def compared(way: str) -> Iterator[None]:
    """Have runs within compared in this way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_runs, "BUCKET_LINES_MAX", LIMITS[way])
        yield


def both_ways(test: Any) -> Any:
    """Run a test once in each way."""

    @pytest.mark.parametrize("way", LIMITS)
    @wraps(test)
    def one_way(*, way: str, **fixtures: Any) -> None:
        with compared(way):
            test(**fixtures)

    signature = inspect.signature(test)
    way = inspect.Parameter("way", inspect.Parameter.KEYWORD_ONLY)
    one_way.__signature__ = signature.replace(parameters=[*signature.parameters.values(), way])
    return one_way
