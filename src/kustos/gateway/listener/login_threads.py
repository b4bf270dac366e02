"""Threads for the steps of logins that may block, such as reading a keytab, so that the loop never waits."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from kustos.auth import LoginStep

LOGIN_THREADS: Final = 4
"""How many steps run at once in one process. A step takes less than a millisecond, unless a disk is slow:
then logins wait for each other, and nothing else does. At most one step of each connection waits."""


class LoginThreads:
    """Runs steps of logins; threads are started when they are needed."""

    def __init__(self) -> None:
        self._executor: Final = ThreadPoolExecutor(LOGIN_THREADS, thread_name_prefix="login")

    def run(self, step: LoginStep, resume: Callable[[LoginStep], None]) -> None:
        """Run the step in a thread; then, on the loop, call `resume` with what returns or raises its end."""
        future = asyncio.get_running_loop().run_in_executor(self._executor, step)
        future.add_done_callback(lambda done: None if done.cancelled() else resume(done.result))

    def close(self) -> None:
        """Start no more steps."""
        self._executor.shutdown(wait=False, cancel_futures=True)
