"""A run in a process of its own, that kills itself at a point it was told: `driver AUDIT TABLES POINT`."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kustos.pipeline.run import run_pipeline
from kustos.pipeline.session import open_session
from kustos.pipeline.tables import Tables, delta
from testkit.spark_quick import INTERPRETED, PLANNED_ONCE, SETTINGS

BEGUN = "begun"
"""Printed once Spark is there and the run begins."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def after(count: int, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, that kills before its n-th call."""
    left = [count]

    def counted(*args: Any, **more: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            die()
        return original(*args, **more)

    return counted


def main(audit: str, tables: str, point: str) -> None:
    with open_session("kustos killed", settings=SETTINGS | INTERPRETED | PLANNED_ONCE) as spark:

        def progress(step: str) -> None:
            if step == point:
                die()

        if point == "committing two tables":
            delta.write = after(2, delta.write)
        print(BEGUN, flush=True)
        run_pipeline(spark, tables=Tables.at(tables), audit=Path(audit), progress=progress)


if __name__ == "__main__":
    main(*sys.argv[1:])
