"""Free loopback ports for servers that need their port before they bind it.

A port stays reserved for its process until that process ends, also against other test runs on this machine:
by a lock on one byte of a file (fcntl(2)), which the kernel releases however the process ends.
"""

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

LOOPBACK = "127.0.0.1"

FIRST_PORT, LAST_PORT = 20_000, 32_000
"""Below Linux's ephemeral range (32768 and up), so no outgoing connection takes one before it is bound."""

ATTEMPTS = 200
"""Far more ports than a machine with a handful of test brokers needs."""

_random = random.SystemRandom()
_given: set[int] = set()

LOCKS = f"kustos-test-ports-{os.getuid()}"
"""The lock file in the folder of temporary files, one per user: a user cannot lock another user's file."""

_locks = Path(tempfile.gettempdir(), LOCKS).open("ab")  # noqa: SIM115 (closing it would release every lock)


def free_port() -> int:
    """Return a loopback port without a listener; no other call of this process gets it."""
    for _ in range(ATTEMPTS):
        port = _random.randint(FIRST_PORT, LAST_PORT)
        if _claim(port):
            return port
    raise OSError(f"no free port between {FIRST_PORT} and {LAST_PORT} in {ATTEMPTS} attempts")


def free_port_range(size: int) -> int:
    """Return the first of `size` consecutive loopback ports without listeners, none given out before."""
    for _ in range(ATTEMPTS):
        first = _random.randint(FIRST_PORT, LAST_PORT - size + 1)
        ports = range(first, first + size)
        if not _given.intersection(ports) and all(map(_claim, ports)):
            return first
    raise OSError(f"no {size} free ports in a row between {FIRST_PORT} and {LAST_PORT}")


def is_listening(port: int) -> bool:
    """Return whether somebody accepts connections to a port of loopback."""
    try:
        socket.create_connection((LOOPBACK, port), 1).close()
    except OSError:
        return False
    return True


def _claim(port: int) -> bool:
    if port in _given or not _bindable(port):  # a process may lock its own bytes again
        return False
    try:
        fcntl.lockf(_locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except BlockingIOError:
        return False  # another process has reserved it
    _given.add(port)
    return True


def _bindable(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
