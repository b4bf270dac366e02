"""Deciding on several processor cores: batches of lines go out, answers come back in order.

Workers are forks of this process, so they have the ACLs without reading them. All answers in flight are
written before waiting for more input, so that a peer waiting on a pipe has its answers here too.
"""

import gc
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Final, NamedTuple

from kustos.cli.failures import CommandError, ExitCode

BATCHES_PER_WORKER: Final = 3
"""Batches in flight per worker: one being decided, one on its way out, one on its way back."""

WORKERS_MAX: Final = 8
"""One process that splits lines cannot feed more workers."""


class Tally(NamedTuple):
    """What some requests came to: whether all are allowed, whether any was valid, and why one was not."""

    all_allowed: bool = True
    any_valid: bool = False
    first_reason: str = ""

    def then(self, other: "Tally") -> "Tally":
        """Return the tally of these requests and the following ones."""
        return Tally(
            self.all_allowed and other.all_allowed,
            self.any_valid or other.any_valid,
            self.first_reason or other.first_reason,
        )


DecideLines = Callable[[list[str], int], tuple[str, Tally]]
"""Takes lines and the number of the first; returns the answers and their tally."""

_decide: DecideLines | None = None
"""The task of a worker, set before the fork."""


def cores() -> int:
    """Return the number of processor cores this process may use."""
    return min(len(os.sched_getaffinity(0)), WORKERS_MAX)


def _begin() -> None:
    # a keyboard interrupt goes to the parent process; it ends the workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()


def _work(lines: list[str], first: int) -> tuple[str, Tally]:
    if _decide is None:
        raise RuntimeError("a worker process has no task")
    return _decide(lines, first)


@contextmanager
def _pool(decide: DecideLines, workers: int) -> Iterator[ProcessPoolExecutor]:
    global _decide  # noqa: PLW0603 - the fork inherits it
    _decide = decide
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), _begin)
    try:
        yield pool
    except BrokenProcessPool as error:
        raise CommandError(
            ExitCode.FAILED, "WORKER", "a worker process ended early, its requests have no answers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)
        _decide = None


def decide_in_workers(
    batches: Iterator[list[str]],
    first: int,
    decide: DecideLines,
    is_input_ready: Callable[[], bool],
    workers: int,
) -> Iterator[tuple[str, Tally, int]]:
    """Yield, in order, the answers to each batch, their tally, and their number."""
    most = workers * BATCHES_PER_WORKER
    under_way: deque[tuple[Future[tuple[str, Tally]], int]] = deque()
    with _pool(decide, workers) as pool:

        def oldest() -> tuple[str, Tally, int]:
            future, count = under_way.popleft()
            return *future.result(), count

        while True:
            while under_way and (len(under_way) >= most or under_way[0][0].done() or not is_input_ready()):
                yield oldest()
            lines = next(batches, None)
            if lines is None:
                break
            under_way.append((pool.submit(_work, lines, first), len(lines)))
            first += len(lines)
        while under_way:
            yield oldest()
