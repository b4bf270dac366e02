"""One JVM that runs many of Kafka's tools: a start of one costs ten times what most tools do.

The tools are Kafka's own classes, called by their `main` with the same arguments and the same input.
`ToolServer.java` keeps what they print, and the code that they end with.
"""

import atexit
import os
import selectors
import struct
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from testkit.kafka.compiled import java_program
from testkit.processes import ChildError, spawn

SOURCE: Final = Path(__file__).with_name("ToolServer.java")

RUNS_MAX: Final = 200
"""Then a new JVM is started: a tool may leave a client behind that its own JVM would have ended with."""

READ_MAX: Final = 65_536

NOTHING_MORE: Final[Mapping[str, str]] = {}

PATIENCE_S: Final = 1.0
"""How long a tool waits for the one before it: most take much less, but one may wait for what ours does."""


class ToolTimeoutError(ChildError):
    """A tool was killed because it did not end in time."""


class ToolServer:
    """A JVM, started for its first tool and killed with this process; `environment` is added to our own."""

    def __init__(self, environment: Mapping[str, str] = NOTHING_MORE) -> None:
        self._environment: Final = environment
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._runs = 0
        atexit.register(self.stop)

    def run(
        self, main: str, arguments: Sequence[str], timeout_s: float, stdin: bytes = b""
    ) -> tuple[int, bytes, bytes] | None:
        """Return the exit code, standard output and standard error of a tool; None if the JVM is busy.

        Raises `ToolTimeoutError`, or `ChildError` if the JVM ends.
        """
        if not self._lock.acquire(timeout=PATIENCE_S):
            return None
        try:
            return self._run(self._started(), [main, *arguments], stdin, time.monotonic() + timeout_s)
        except BaseException:
            self._kill()
            raise
        finally:
            self._lock.release()

    def stop(self) -> None:
        """Kill the JVM, if there is one, also amid a tool, which then fails with `ChildError`."""
        process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._runs >= RUNS_MAX or (self._process is not None and self._process.poll() is not None):
            self._kill()
        if self._process is None:
            line = java_program(SOURCE, heap="256m")
            self._process = spawn(
                line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, environment=self._environment
            )
            self._runs = 0
        self._runs += 1
        return self._process

    def _run(
        self, process: subprocess.Popen[bytes], words: Sequence[str], stdin: bytes, deadline_s: float
    ) -> tuple[int, bytes, bytes]:
        assert process.stdin is not None
        assert process.stdout is not None
        texts = [os.fsencode(word) for word in words]
        request = b"".join(struct.pack(">i", len(text)) + text for text in texts)
        process.stdin.write(struct.pack(">i", len(stdin)) + stdin + struct.pack(">i", len(texts)) + request)
        process.stdin.flush()
        answers = _Answers(process.stdout.fileno(), deadline_s)
        code, out, err, clients_left = answers.number(), answers.text(), answers.text(), answers.number()
        if clients_left:
            self._kill()  # as the tool's own JVM would have ended
        return code, out, err

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with process:
                process.kill()


class _Answers:
    """Reads a pipe, until a deadline."""

    def __init__(self, descriptor: int, deadline_s: float) -> None:
        self._descriptor, self._deadline_s = descriptor, deadline_s

    def number(self) -> int:
        value: int = struct.unpack(">i", self._read(4))[0]
        return value

    def text(self) -> bytes:
        return self._read(self.number())

    def _read(self, count: int) -> bytes:
        data = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._descriptor, selectors.EVENT_READ)
            while len(data) < count:
                if not selector.select(max(0.0, self._deadline_s - time.monotonic())):
                    raise ToolTimeoutError("a tool did not end in time")
                piece = os.read(self._descriptor, min(READ_MAX, count - len(data)))
                if not piece:
                    raise ChildError("the JVM of Kafka's tools ended")
                data += piece
        return data
