"""The progress of a job, reported step by step, and that of Spark: the tasks done of the running stages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from kustos.pipeline.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str], None]
"""Called with the name of each step as it begins."""

LOOK_SECONDS: Final = 0.25
"""How often a classic session is polled; each poll costs it a millisecond."""

Watcher = Callable[[int, int], None]
"""Called with tasks done and tasks in all, of the stages at work."""


def silent(_step: str) -> None:
    """Show nothing."""


@contextmanager
def watched(spark: "SparkSession", watcher: Watcher) -> Iterator[None]:
    """Report the progress of the session's stages to `watcher`, until the block ends.

    A Connect server reports by itself; a thread polls a classic session. An error of the watcher ends the
    reports, not the work.
    """
    if is_connect(spark):
        handler = _handler(watcher)
        spark.registerProgressHandler(handler)
        try:
            yield
        finally:
            spark.removeProgressHandler(handler)
        return
    ended = Event()
    thread = Thread(
        target=_look, args=(spark.sparkContext.statusTracker(), watcher, ended), daemon=True, name="watching"
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _handler(watcher: Watcher) -> Any:
    def report(stages: Any = None, **_: Any) -> None:
        if stages:
            watcher(
                sum(stage.num_completed_tasks for stage in stages), sum(stage.num_tasks for stage in stages)
            )

    return report


def _look(tracker: Any, watcher: Watcher, ended: Event) -> None:
    while not ended.wait(LOOK_SECONDS):
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        if known:
            watcher(sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known))
