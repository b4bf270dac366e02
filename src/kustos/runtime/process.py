"""The process: its garbage collector, freed memory, thread switching and file descriptors."""

import atexit
import ctypes
import errno
import gc
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Final

SHORT_SWITCH_INTERVAL_S: Final = 0.0001
"""How long a thread holds the interpreter while the event loop wants it: each system call of the loop may
wait that long, and an import makes hundreds."""

COLLECTED_AFTER: Final = (1_000, 10, 200)
"""How many new objects that stay there are between two runs of the cyclic garbage collector over the youngest
ones, how many such runs between two over those that survived one, and how many of these between two over all:
these 2 million objects are what some 20,000 connections have."""

USUAL_SWITCH_INTERVAL_S: Final = sys.getswitchinterval()

_SHORT: Final[list[None]] = []
"""One entry per active `short_switch_interval`; when the last one ends, the usual interval returns."""

_RESTS: Final[list[None]] = []
"""One entry per active `garbage_collection_paused`."""

_WAS_AWAKE: Final[list[None]] = []
"""Has an entry if the collector was enabled before the first of them."""

OUT_OF_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of a process or machine with too many open files: nothing was done, and a retry may succeed."""

OUT_OF_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a full disk, a used-up quota, and a file of the largest size; a part may have been written."""


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Disable Python's cyclic garbage collector, which would scan a growing heap again and again.

    Several may overlap and end in any order; after the last one the collector is enabled again, if it was
    before the first.
    """
    if gc.isenabled():
        _WAS_AWAKE.append(None)
        gc.disable()
    _RESTS.append(None)
    try:
        yield
    finally:
        _RESTS.pop()
        if not _RESTS and _WAS_AWAKE:
            _WAS_AWAKE.clear()
            gc.enable()


def release_freed_memory() -> None:
    """Give the memory that was freed back to the system, where the C library can (glibc's `malloc_trim`).

    glibc keeps what was freed below anything that is still in use, so the memory of thousands of connections
    would stay for ever. It takes about a third of a millisecond for each megabyte, and all threads wait.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def freeze_objects() -> None:
    """Exclude all current objects, garbage or not, from collection; call before it is enabled again.

    For use after making hundreds of thousands of long-lived objects: the collector would scan them all at
    once, again and again. Objects freed later must not need the collector: those of a client do not, since no
    closed connection is part of a cycle.
    """
    gc.freeze()


def freeze_until_exit() -> None:
    """Do as `freeze_objects`, and free the objects when the process ends: some libraries miss theirs then."""
    freeze_objects()
    _thaw_at_exit()


@cache
def freeze_imports() -> None:
    """Do so once in a process: most of its objects are those that it has imported by then."""
    freeze_until_exit()


@cache
def _thaw_at_exit() -> None:
    atexit.register(gc.unfreeze)


def collect_frozen() -> None:
    """Let the collector look at all objects again, and free what is garbage among them."""
    gc.unfreeze()
    gc.collect()


def collect_seldom() -> None:
    """Let the collector look at young objects as often as always, and at all of them seldom.

    By default it traverses all objects whenever a fourth of them is new, so that with 2,000 connections the
    event loop stood still for 76 ms, again and again. Objects of closed connections and of answered requests
    are freed without the collector.
    """
    gc.set_threshold(*COLLECTED_AFTER)


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Let the event loop get the interpreter quickly while another thread works for long.

    Enter it on the event loop only; several may overlap and end in any order.
    """
    _SHORT.append(None)
    sys.setswitchinterval(SHORT_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        _SHORT.pop()
        if not _SHORT:
            sys.setswitchinterval(USUAL_SWITCH_INTERVAL_S)


def is_out_of_descriptors(error: OSError) -> bool:
    """Return whether an operation failed, before it began, for lack of a file descriptor."""
    return error.errno in OUT_OF_DESCRIPTORS


def is_out_of_room(error: OSError) -> bool:
    """Return whether an operation failed for lack of room: on the disk, in a quota, in a file."""
    return error.errno in OUT_OF_ROOM


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
