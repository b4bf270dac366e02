"""Threads for login steps that may block, so that the event loop never waits.

At most one step of each connection waits for a thread. The step is cancelled with the connection; otherwise a
client that connects and disconnects repeatedly would fill the queue. A step that never ran reveals nothing.

Steps of kustos itself, such as reading a keytab, share a few threads. Steps that hash for unauthenticated
clients share one other thread, so that they take at most one core and delay no other step. Steps of
third-party code (callback handlers and mechanisms) have a time limit, because nothing can stop a thread that
hangs: at the limit the login is refused, and its thread runs until it returns. Each group of them has its own
threads, so a handler that hangs delays only its own logins, and the process does not wait for these threads
when it exits.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kustos.auth import CallbackError, LoginStep, RunInThread
from kustos.auth.mechanisms import HASHING, BlockingStep, MechanismStep

LOGIN_THREADS: Final = 4
"""The maximum number of concurrent steps of kustos in one process. A step takes less than a millisecond,
unless a disk is slow: then only logins wait."""

CALLBACK_THREADS: Final = 16
"""The maximum number of concurrent steps of one group in one process, including hanging ones; others wait
until their time limit. Each may wait for a directory or a database for milliseconds."""

Resume = Callable[[LoginStep], None]

Cancel = Callable[[], object]
"""Cancels a step that waits. It has no effect on a step that has begun: the step ends and is reported."""


class LoginThreads:
    """Runs steps of logins; threads start on demand."""

    def __init__(self) -> None:
        self._executor: Final = ThreadPoolExecutor(LOGIN_THREADS, thread_name_prefix="login")
        self._hashing: Final = ThreadPoolExecutor(1, thread_name_prefix="login-hashing")
        self._groups: Final[dict[str, CallbackGroup]] = {}
        self._is_closed = False

    def run(self, work: RunInThread, resume: Resume) -> Cancel:
        """Run the step in a thread, then call `resume` on the loop with its result.

        Return a function that cancels the step while it waits for a thread; then `resume` is not called.
        """
        if work.timeout_ms is not None:
            group = self._groups.get(work.group)
            if group is None:
                # the settings name the groups, so there are few
                group = self._groups[work.group] = CallbackGroup(work.group)
            return group.run(work.step, work.timeout_ms, resume)
        executor = self._hashing if work.group == HASHING else self._executor
        waiting = executor.submit(work.step)
        asyncio.wrap_future(waiting).add_done_callback(lambda done: self._ended(done, resume))
        return waiting.cancel

    def _ended(self, done: asyncio.Future[MechanismStep | BlockingStep], resume: Resume) -> None:
        # after `close`, no events of logins are recorded any more
        if not (done.cancelled() or self._is_closed):
            resume(done.result)

    def close(self) -> None:
        """Start no more steps, and report no results."""
        self._is_closed = True
        for executor in (self._executor, self._hashing):
            executor.shutdown(wait=False, cancel_futures=True)
        for group in self._groups.values():
            group.close()


@dataclass(slots=True, eq=False)
class _WaitingStep:
    step: LoginStep
    resume: Resume
    timer: asyncio.TimerHandle


class CallbackGroup:
    """The steps of one callback handler or mechanism. Only the steps run in threads."""

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._loop: Final = asyncio.get_running_loop()
        self._waiting: Final[deque[_WaitingStep]] = deque()
        self._pending: Final[set[_WaitingStep]] = set()
        self._busy = 0

    def run(self, step: LoginStep, timeout_ms: int, resume: Resume) -> Cancel:
        """Run a step, or queue it for a thread; call `resume` once, at the time limit at the latest."""

        def expire() -> None:
            self._pending.discard(work)
            with suppress(ValueError):
                self._waiting.remove(work)
            resume(_no_answer(timeout_ms))

        def cancel() -> None:
            with suppress(ValueError):
                self._waiting.remove(work)
                self._pending.discard(work)
                work.timer.cancel()

        work = _WaitingStep(step, resume, self._loop.call_later(timeout_ms / 1000, expire))
        self._pending.add(work)
        self._waiting.append(work)
        self._begin()
        return cancel

    def _begin(self) -> None:
        while self._waiting and self._busy < CALLBACK_THREADS:
            work = self._waiting.popleft()
            self._busy += 1
            thread = threading.Thread(
                target=self._work, args=(work,), name=f"login {self._name}", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:
                self._loop.call_soon(self._ended, work, _raising(CallbackError(str(error))))

    def _work(self, work: _WaitingStep) -> None:
        outcome = _outcome_of(work.step)
        with suppress(RuntimeError):
            # the loop may be closed
            self._loop.call_soon_threadsafe(self._ended, work, outcome)

    def _ended(self, work: _WaitingStep, outcome: LoginStep) -> None:
        self._busy -= 1
        self._begin()
        if work in self._pending:
            self._pending.discard(work)
            work.timer.cancel()
            work.resume(outcome)

    def close(self) -> None:
        """Start no more steps, and ignore the results of running ones."""
        self._waiting.clear()
        for work in self._pending:
            work.timer.cancel()
        self._pending.clear()


def _outcome_of(step: LoginStep) -> LoginStep:
    """Run a step; return a function that returns or raises its result."""
    try:
        found = step()
    except Exception as error:  # noqa: BLE001 - the machine judges it
        return _raising(error)
    except BaseException as error:  # noqa: BLE001 - even `SystemExit` must end a login rather than leave it waiting
        return _raising(CallbackError(f"a step of the login raised {type(error).__name__}"))
    return lambda: found


def _no_answer(timeout_ms: int) -> LoginStep:
    return _raising(CallbackError(f"no answer within {timeout_ms} ms (`kustos.sasl.callback.timeout.ms`)"))


def _raising(error: Exception) -> LoginStep:
    def outcome() -> None:
        raise error

    return outcome  # type: ignore[return-value]
