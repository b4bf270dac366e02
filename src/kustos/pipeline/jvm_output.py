"""What Spark's JVM says on standard error: kept apart from what a command says, and shown where it may help.

Theory of operation. Not only the JVM writes there: PySpark's daemon and workers print traces of tasks that
Spark has ended, beside the one line in which kustos says why, and whatever their libraries print. The JVM
inherits the descriptor when it starts. So it starts with a pipe in its place, from which a thread keeps the
last words: they tell why a JVM did not start, and come out after a failure of Spark that has no known cause.
A cluster's driver logs warnings there, which its engineers want to see: after its start they pass through.
A JVM is left running for the next session of the process, and so is the thread.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Final

STANDARD_ERROR: Final = 2

KEPT_BYTES: Final = 65_536
"""Of the last words: more than a trace with its causes, and no log."""

END_S: Final = 1.0
"""For the last words of a JVM that has ended, which are in the pipe by then."""


class JvmOutput:
    """The last words of the JVMs that this process has started."""

    def __init__(self) -> None:
        self._lock: Final = Lock()
        self._kept = b""
        self._passes_on = False
        self._listener: Thread | None = None

    @contextmanager
    def of_starting_jvm(self) -> Iterator[None]:
        """Listen to a JVM that starts within the block, to its end; forget what another one said."""
        read_end, write_end = os.pipe()
        with self._lock:
            self._kept = b""
            self._passes_on = False
        self._listener = Thread(target=self._listen, args=(read_end,), daemon=True, name="jvm output")
        self._listener.start()
        kept = os.dup(STANDARD_ERROR)
        try:
            os.dup2(write_end, STANDARD_ERROR)
            os.close(write_end)
            yield
        finally:
            os.dup2(kept, STANDARD_ERROR)
            os.close(kept)

    def pass_on(self) -> None:
        """Write to standard error what the JVM says from now on, and keep none of it."""
        with self._lock:
            self._passes_on = True

    def last_words(self, *, has_ended: bool = False) -> str:
        """Return what is kept; of a JVM that `has_ended` also what it said in the end."""
        if has_ended and self._listener is not None:
            self._listener.join(END_S)
        with self._lock:
            return self._kept.decode(errors="replace")

    def _listen(self, read_end: int) -> None:
        with os.fdopen(read_end, "rb", buffering=0) as pipe:
            while part := pipe.read(KEPT_BYTES):
                with self._lock:
                    if not self._passes_on:
                        self._kept = (self._kept + part)[-KEPT_BYTES:]
                        continue
                sys.stderr.write(part.decode(errors="replace"))


JVM_OUTPUT: Final = JvmOutput()
"""Of this process, as PySpark has one JVM."""
