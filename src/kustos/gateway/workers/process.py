"""A worker's process, seen from the writer: started, watched, ended. Needs Linux (pidfd_open(2))."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Final


class WorkerProcess:
    """A child. `exited` comes to its exit code (negative: the signal) once it is gone.

    The kernel lets nobody know of an exit before it has closed the files and sockets of the process: what
    was not read from a client by then is never read.
    """

    def __init__(self, command: Sequence[str]) -> None:
        loop = asyncio.get_running_loop()
        self.exited: Final[asyncio.Future[int]] = loop.create_future()
        # the command is our own: this interpreter, a module, numbers and a directory
        self._process: Final = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603
        self._descriptor: Final = os.pidfd_open(self._process.pid)
        self._loop: Final = loop
        loop.add_reader(self._descriptor, self._reap)

    @property
    def pid(self) -> int:
        """The process id; nobody else's before `exited` is done."""
        return self._process.pid

    def kill(self) -> None:
        """End it at once; a stopped one, too."""
        if not self.exited.done():
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def _reap(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        code = self._process.wait()
        if not self.exited.done():
            self.exited.set_result(code)
