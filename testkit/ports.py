"""Free loopback ports for servers that must be told their port before they bind it."""

import random
import socket

LOOPBACK = "127.0.0.1"

FIRST_PORT, LAST_PORT = 20_000, 32_000
"""Below Linux's ephemeral range (32768 and up), so no outgoing connection takes one before it is bound."""

ATTEMPTS = 200
"""Far more than a machine that runs a handful of test brokers can need."""

_random = random.SystemRandom()
_given: set[int] = set()


def free_port() -> int:
    """Return a loopback port nobody listens on; one process never gets the same port twice."""
    for _ in range(ATTEMPTS):
        port = _random.randint(FIRST_PORT, LAST_PORT)
        if port not in _given and _bindable(port):
            _given.add(port)
            return port
    raise OSError(f"no free port between {FIRST_PORT} and {LAST_PORT} in {ATTEMPTS} attempts")


def free_port_range(size: int) -> int:
    """Return the first of `size` loopback ports in a row that nobody listens on, none given out before."""
    for _ in range(ATTEMPTS):
        first = _random.randint(FIRST_PORT, LAST_PORT - size)
        ports = range(first, first + size)
        if not _given.intersection(ports) and all(map(_bindable, ports)):
            _given.update(ports)
            return first
    raise OSError(f"no {size} free ports in a row between {FIRST_PORT} and {LAST_PORT}")


def _bindable(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
