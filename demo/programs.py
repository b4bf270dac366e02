"""Runs the `kustos` command and Kafka's Java tools as a person would, each in a process of its own."""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

from testkit.kafka.java import command as java_command
from testkit.kafka.tools import full_name
from testkit.processes import ChildError, spawn

TIMEOUT_S: Final = 300.0
"""A tool takes 1 or 2 s, Spark some 20 on a small machine; one that takes this long hangs."""

SCRIPTS: Final = {
    "kafka-acls": "AclCommand",
    "kafka-topics": "TopicCommand",
    "kafka-console-producer": "ConsoleProducer",
    "kafka-console-consumer": "ConsoleConsumer",
}
"""The names of Kafka's scripts and the classes that they start."""

NO_ERROR: Final = "no error"
_EXCEPTION: Final = re.compile(r"org\.apache\.kafka\.common\.errors\.(\w+Exception)(: [^\n]+)?")

_running: set[subprocess.Popen[bytes]] = set()
_lock: Final = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """How a program ended and what it printed."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def outcome(self) -> str:
        """The Java exception that the program tells of, its exit code if not 0, or `no error`."""
        error = self.java_error
        if error is not None:
            return error[0]
        if self.exit_code:
            last = (self.stderr or self.stdout).strip().splitlines()[-1:]
            return f"exit code {self.exit_code}: {' '.join(last)}"
        return NO_ERROR

    @property
    def java_error(self) -> tuple[str, str] | None:
        """The first Kafka exception in the output, as (class, `class: message`)."""
        found = _EXCEPTION.search(self.stdout + self.stderr)
        return None if found is None else (found[1], f"{found[1]}{found[2] or ''}")


def run(
    words: Sequence[str],
    *,
    typed: Sequence[str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Said:
    """Run `kustos ...` or one of Kafka's scripts by its name; `ChildError` if it hangs.

    `typed`: lines given to standard input.
    """
    process = spawn(
        _line(words),
        stdin=subprocess.DEVNULL if typed is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        environment=environment,
    )
    with _lock:
        _running.add(process)
    try:
        text = None if typed is None else "".join(f"{line}\n" for line in typed).encode()
        out, err = process.communicate(text, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise ChildError(f"`{words[0]}` did not end within {TIMEOUT_S:g} s") from error
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        with _lock:
            _running.discard(process)
    return Said(
        exit_code=process.returncode,
        stdout=out.decode(errors="replace"),
        stderr=err.decode(errors="replace"),
    )


def end_all() -> None:
    """Kill every program that still runs; whoever waits for it then goes on."""
    with _lock:
        for process in _running:
            process.kill()


def _line(words: Sequence[str]) -> list[str]:
    name, *arguments = words
    if name == "kustos":
        return [sys.executable, "-m", "kustos", *arguments]
    return java_command(full_name(SCRIPTS[name]), *arguments, heap="256m", archive_name="tools")
