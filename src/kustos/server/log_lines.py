"""Writes the log lines of this process to standard error.

Standard error may fail or block at any time: the reader of the pipe exited or hangs, the disk of the file is
full, the terminal is closed. This must not affect callers: many of them log on the event loop before they
act. So a line is only queued, and one daemon thread writes it. If the queue is full or a write fails, the
line is lost and counted. When a write succeeds again, one line reports the number of lost lines.
"""

import atexit
import io
import os
import select
import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Final

STANDARD_ERROR: Final = 2

LINES_MAX: Final = 10_000
"""The maximum number of queued lines. A working reader takes them within milliseconds; a longer queue would
use memory for a log that is not read."""

BYTES_MAX: Final = 4 * 1024 * 1024
"""The maximum size of queued lines, a bound for long lines such as those with a traceback."""

FLUSH_MAX_S: Final = 2.0
"""The time that the end of the process waits for its last lines, shorter than the patience of any
supervisor."""

PARTIAL_MAX: Final = 64 * 1024
"""The number of characters of an incomplete line that `LineStream` keeps before it queues them."""


class LogLines:
    """A bounded queue of lines and the thread that writes them to a file descriptor. For all threads."""

    def __init__(self, descriptor: int = STANDARD_ERROR) -> None:
        self.lost = 0
        """The number of lost lines since the start."""
        self.notice: Callable[[int], bytes] = lambda lost: f"{lost} lines of the log were lost\n".encode()
        """Returns the line that reports the number of lost lines."""
        self._descriptor: Final = descriptor
        self._queue: Final[SimpleQueue[bytes | threading.Event]] = SimpleQueue()
        # a garbage collection within `put` may log, too
        self._lock: Final = threading.RLock()
        self._waiting_bytes = 0
        self._reported = 0
        self._is_torn = False
        self._thread: threading.Thread | None = None

    def put(self, line: bytes) -> None:
        """Queue a line that ends with a line feed, or count it as lost; never waits and never raises."""
        with self._lock:
            is_full = self._queue.qsize() >= LINES_MAX or self._waiting_bytes + len(line) > BYTES_MAX
            if is_full or not self._has_thread():
                self.lost += 1
                return
            self._waiting_bytes += len(line)
        self._queue.put(line)

    def _has_thread(self) -> bool:
        if self._thread is None:
            # with the fields of this process, such as the index of a worker
            run = partial(copy_context().run, self._run)
            thread = threading.Thread(target=run, name="log-lines", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                # no more threads, or the interpreter ends
                return False
            self._thread = thread
            atexit.register(self.flush)
        return True

    def flush(self) -> bool:
        """Return whether all lines so far were written or lost within `FLUSH_MAX_S`."""
        if self._thread is None:
            return True
        reached = threading.Event()
        self._queue.put(reached)
        return reached.wait(FLUSH_MAX_S)

    def _run(self) -> None:
        while True:
            line = self._queue.get()
            if isinstance(line, threading.Event):
                line.set()
                continue
            with self._lock:
                self._waiting_bytes -= len(line)
            try:
                self._write_after_notice(line)
            except Exception:  # noqa: BLE001 - the thread must survive whatever the system or `notice` raises
                with self._lock:
                    self.lost += 1

    def _write_after_notice(self, line: bytes) -> None:
        lost = self.lost
        if lost > self._reported:
            self._write(self.notice(lost - self._reported))
            self._reported = lost
        self._write(line)

    def _write(self, line: bytes) -> None:
        """Write a line with one call, because the processes of a node share the file; raise OSError."""
        # a disk that became full during a write left a partial line
        rest = memoryview(b"\n" + line if self._is_torn else line)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                # another process made the shared pipe non-blocking
                waiting = select.poll()
                waiting.register(self._descriptor, select.POLLOUT)
                waiting.poll()
                continue
            self._is_torn = bool(rest)


LOG_LINES: Final = LogLines()
"""The lines of this process."""


class LineStream(io.TextIOBase):
    """A text stream that queues whole lines: `sys.stderr` of a node.

    Warnings, tracebacks of threads, `logging` without handlers and `print` write there, in any thread.
    """

    def __init__(self, lines: LogLines) -> None:
        self._lines: Final = lines
        self._partial = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the lines."""
        return "utf-8"

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor behind it."""
        return STANDARD_ERROR

    def isatty(self) -> bool:
        """Return whether a terminal shows it."""
        return os.isatty(STANDARD_ERROR)

    def write(self, text: str) -> int:
        """Queue complete lines; the rest waits for its end."""
        whole, end, self._partial = (self._partial + text).rpartition("\n")
        if whole or end:
            self._lines.put(encoded(whole + end))
        if len(self._partial) > PARTIAL_MAX:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Queue an incomplete line, too."""
        partial, self._partial = self._partial, ""
        if partial:
            self._lines.put(encoded(partial))


def encoded(text: str) -> bytes:
    """Return the bytes of a text, with surrogates escaped."""
    return text.encode("utf-8", "backslashreplace")


def take_over_standard_error() -> None:
    """Make `sys.stderr` a `LineStream` of this process's lines.

    Standard descriptors that are closed are opened on the null device first: otherwise a later file or socket
    could get the number of standard error, and the log would be written into it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= STANDARD_ERROR:
        continue
    os.close(descriptor)
    sys.stderr = LineStream(LOG_LINES)
