"""Background tasks: all work that no caller awaits is started by this module.

By default an exception would end such a task silently: asyncio reports it only when the task is
garbage-collected. This module counts each failure by the name of the task, logs it, and runs the task again
after a pause. A task that must not run twice has a failure handler instead.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import structlog

LOG: Final = structlog.get_logger("kustos")

R = TypeVar("R")

FIRST_RESTART_S: Final = 0.1
LAST_RESTART_S: Final = 10.0
"""The pause before a failed task runs again; it doubles from the first to the last value. After a run that
was longer than the last value, the pause is the first value again."""

CALLBACK: Final = "callback"
"""The name of failures in callbacks of the event loop, such as timers."""

FAILURES: Final = Counter({CALLBACK: 0})
"""Name of a task → the number of its failures since the start of the process."""


def supervised(name: str, body: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    """Run `body` in a task until it returns or the task is cancelled; after an exception run it again.

    `body` must be able to start again after any failure.
    """
    return asyncio.get_running_loop().create_task(_run_again(name, body), name=name)


async def _run_again(name: str, body: Callable[[], Awaitable[None]]) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    pause_s = FIRST_RESTART_S
    while True:
        begun_s = loop.time()
        try:
            await body()
        except asyncio.CancelledError as error:
            if task is None or task.cancelling():
                raise
            # a future that the body awaited was cancelled, not the task
            failed(name, error)
        except Exception as error:  # noqa: BLE001 - the boundary where any fault must not end the task
            failed(name, error)
        else:
            return
        if loop.time() - begun_s > LAST_RESTART_S:
            pause_s = FIRST_RESTART_S
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LAST_RESTART_S)


def one_shot(
    name: str, work: Coroutine[Any, Any, R], on_failure: Callable[[BaseException], object] = lambda _: None
) -> asyncio.Task[R]:
    """Run work that must not run twice in a task; after an exception call `on_failure` with it."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    task.add_done_callback(partial(_ended, name, on_failure))
    return task


def _ended(name: str, on_failure: Callable[[BaseException], object], task: asyncio.Task[Any]) -> None:
    error: BaseException | None
    if task.cancelled():
        # unless the task itself was cancelled, a future that the work awaited was
        error = None if task.cancelling() else asyncio.CancelledError()
    else:
        error = task.exception()
    if error is not None:
        failed(name, error)
        on_failure(error)


def failed(name: str, error: BaseException) -> None:
    """Count and log a failure of a background task; never raise."""
    FAILURES[name] += 1
    with suppress(Exception):
        LOG.error("a background task failed", task=name, reason=type(error).__name__, exc_info=error)


def callback_failed(_: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """Count and log a failure of a callback: the exception handler of the event loop of a node."""
    FAILURES[CALLBACK] += 1
    with suppress(Exception):
        error = context.get("exception")
        # the loop's message also contains the arguments of the callback, such as bytes of a client
        reason = context.get("message") if error is None else type(error).__name__
        LOG.error("a callback of the event loop failed", reason=reason, exc_info=error)
