"""File descriptors: the limit of this process, and the errors that mean it was reached."""

import errno
import resource
from contextlib import suppress
from typing import Final

OUT_OF_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of a process or machine with too many open files: nothing was done, and a retry may succeed."""


def is_out_of_descriptors(error: OSError) -> bool:
    """Return whether an operation failed, before it began, for lack of a file descriptor."""
    return error.errno in OUT_OF_DESCRIPTORS


def descriptor_limit() -> int:
    """Return how many descriptors the process may have open (the soft RLIMIT_NOFILE)."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_descriptor_limit() -> int:
    """Raise the soft limit to the hard one, also for later child processes; return the former limit.

    The limit stays where the system refuses (macOS has an infinite hard limit that it does not grant).
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft
