"""Child processes that cannot outlive the run that started them.

A child requests SIGKILL at its parent's death (prctl(2), PR_SET_PDEATHSIG) through util-linux's `setpriv`, so
it dies with pytest however pytest dies. "Parent" means the *thread* that forked, so one thread that lives as
long as the process starts them all.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from testkit.waiting import DeadlineExceededError, wait_until

TAIL_BYTES = 6_000
"""How much of a child's output an error shows: enough for one Java stack trace."""

FREEZE_TIMEOUT_S = 30.0
"""How long a process may take to stop: each of its threads must have run once."""

_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


class ChildError(Exception):
    """A child process ended or hung unexpectedly; the text has the tail of its output."""


def spawn(
    command: Sequence[str],
    *,
    stdout: IO[bytes] | int = subprocess.DEVNULL,
    stderr: IO[bytes] | int = subprocess.DEVNULL,
    stdin: int = subprocess.DEVNULL,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start `command` so that the kernel kills it when this process ends.

    `environment` is added to this process's own.
    """

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
        )

    return _spawner.submit(start).result()


def unshared(namespace: str) -> list[str]:
    """Return the beginning of a command with a namespace of its own, `mount` or `net`, also for a user."""
    return ["unshare", f"--{namespace}", *(() if os.geteuid() == 0 else ("--map-root-user",))]


def freeze(pid: int) -> None:
    """Stop a process; return when none of its threads runs, some time after the signal."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: _stands_still(pid), timeout_s=FREEZE_TIMEOUT_S, what="the process stands still")


def thaw(pid: int) -> None:
    """Resume a stopped process."""
    os.kill(pid, signal.SIGCONT)


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Keep a process stopped inside the context."""
    freeze(pid)
    try:
        yield
    finally:
        thaw(pid)


def _stands_still(pid: int) -> bool:
    return all(map(_is_stopped, Path(f"/proc/{pid}/task").glob("*/stat")))


def _is_stopped(task: Path) -> bool:
    try:
        stat = task.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True
    # the state follows the name, which is in brackets and may hold any bytes
    return stat.rpartition(b") ")[2].startswith(b"T")


class Server:
    """A child that runs until stopped, with its output in a file."""

    def __init__(
        self, name: str, command: Sequence[str], output: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.output = output
        with output.open("ab") as sink:
            self._process = spawn(command, stdout=sink, stderr=subprocess.STDOUT, environment=environment)

    @property
    def pid(self) -> int:
        """The child's own process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the child has not ended yet."""
        return self._process.poll() is None

    def tail(self) -> str:
        """Return the last lines of the output."""
        return self.output.read_bytes()[-TAIL_BYTES:].decode(errors="replace")

    def wait_ready(self, ready: Callable[[], bool], *, timeout_s: float) -> None:
        """Return once `ready()` is true; `ChildError` with the output's tail if the child ends or hangs."""

        def look() -> bool:
            if not self.running:
                raise ChildError(
                    f"{self.name} ended with {self._process.returncode} before it was ready\n{self.tail()}"
                )
            return ready()

        try:
            wait_until(look, timeout_s=timeout_s, what=f"{self.name} is ready", pause=self._pause)
        except DeadlineExceededError as error:
            self.kill()
            raise ChildError(f"{error}\n{self.tail()}") from error

    def _pause(self, timeout_s: float) -> None:
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return

    def wait(self, *, timeout_s: float) -> int:
        """Return the exit code of a child that ends by itself, or raise `ChildError`."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise ChildError(f"{self.name} did not end within {timeout_s:g} s\n{self.tail()}") from error

    def kill(self) -> None:
        """Kill the child at once, like a power cut; does nothing if it has ended."""
        self._process.kill()
        self._process.wait()

    def terminate(self, *, timeout_s: float) -> int:
        """Terminate the child gracefully and return its exit code; kill it and raise if it does not end."""
        self._process.terminate()
        try:
            return self.wait(timeout_s=timeout_s)
        except ChildError:
            self.kill()
            raise
