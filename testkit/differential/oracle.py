"""Kafka's real StandardAuthorizer as a process that answers lines; built when its sources changed."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from testkit.jars import KAFKA_ORACLE
from testkit.paths import ROOT

PROJECT = ROOT / "oracle"
CACHE = ROOT / ".cache" / "oracle"
MAIN = "kustos.oracle.Oracle"
STUCK = "STUCK"
REPLYING_VERBS = frozenset(
    {"ask", "any", "acls", "new", "fault", "audit", "cidr", "time", "load", "change", "singly", "heap"}
)


class OracleError(Exception):
    """The oracle could not be built or did not answer."""


def _run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OracleError(f"`{command[0]}` failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def build() -> str:
    """Return the class path of an oracle made from today's sources; offline once its jars are there."""
    CACHE.mkdir(parents=True, exist_ok=True)
    # test processes that run side by side build once
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        jars = KAFKA_ORACLE.resolve()
        sources = list((PROJECT / "src").rglob("*.java"))
        classes = CACHE / f"classes-{_digest([*sources, KAFKA_ORACLE.digests])}"
        if not classes.exists():
            fresh = CACHE / "classes-fresh"
            shutil.rmtree(fresh, ignore_errors=True)
            flags = ("--release", "17", "-Xlint:all,-classfile", "-Werror", "-proc:none")
            _run("javac", *flags, "-cp", f"{jars}/*", "-d", fresh, *sources)
            fresh.rename(classes)
    return f"{classes}{os.pathsep}{jars}/*"


class Oracle:
    """A running oracle, with so many megabytes of heap at most; a context manager."""

    def __init__(self, heap_max_mb: int = 2048, *more_options: str) -> None:
        options = (f"-Xmx{heap_max_mb}m", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8", *more_options)
        self._process = subprocess.Popen(
            ["java", *options, "-cp", build(), MAIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def answers(self, lines: Sequence[str]) -> list[str]:
        """Return one reply for each line that asks, in order; after `STUCK` there are no more."""
        return self.asked(lines)()

    def asked(self, lines: Sequence[str]) -> Callable[[], list[str]]:
        """Send the lines and return what waits for the replies, so that both sides can work meanwhile."""
        writer = threading.Thread(target=self._write, args=(lines,))
        writer.start()
        expected = sum(line.split("\t", 1)[0] in REPLYING_VERBS for line in lines)
        return partial(self._replies, writer, expected)

    def _replies(self, writer: threading.Thread, expected: int) -> list[str]:
        replies: list[str] = []
        stdout = self._process.stdout
        if stdout is None:
            raise OracleError("the oracle has no output")
        while len(replies) < expected and STUCK not in replies[-1:]:
            reply = stdout.readline()
            if not reply:
                raise OracleError(f"the oracle ended after {len(replies)} of {expected} replies")
            replies.append(reply.removesuffix("\n"))
        writer.join()
        return replies

    def _write(self, lines: Sequence[str]) -> None:
        stdin = self._process.stdin
        if stdin is None:
            return
        try:
            stdin.writelines(f"{line}\n" for line in lines)
            stdin.flush()
        except BrokenPipeError:
            return  # it got stuck or died, which the reader sees

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()


if __name__ == "__main__":
    os.execvp("java", ["java", "-cp", build(), MAIN])
    sys.exit(1)
