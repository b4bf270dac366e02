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
"""The time that a thread may hold the interpreter while the event loop waits: each system call of the loop
may wait that long, and an import makes hundreds."""

COLLECTED_AFTER: Final = (1_000, 10, 200)
"""The thresholds of the cyclic garbage collector: the number of new objects between two collections of the
youngest generation, the number of these between two collections of the middle generation, and the number of
those between two full collections. Their product, 2 million objects, is the number of objects of some 20,000
connections."""

USUAL_SWITCH_INTERVAL_S: Final = sys.getswitchinterval()

_SHORT: Final[list[None]] = []
"""One entry per active `short_switch_interval`; when the last one ends, the usual interval is restored."""

_RESTS: Final[list[None]] = []
"""One entry per active `garbage_collection_paused`."""

_WAS_AWAKE: Final[list[None]] = []
"""Has an entry if the collector was enabled before the first of them."""

OUT_OF_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of a process or machine with too many open files: nothing was done, and a retry may succeed."""

OUT_OF_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a full disk, a used-up quota, and a file of the largest size; a part may have been written."""


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Disable Python's cyclic garbage collector, which would scan a growing heap repeatedly.

    Several may overlap and end in any order; after the last one, the collector is enabled again if it was
    enabled before the first.
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
    """Return freed memory to the operating system if the C library supports it (glibc's `malloc_trim`).

    glibc keeps freed memory below memory that is still in use, so the process would keep the memory of
    thousands of connections. The call takes about a third of a millisecond for each megabyte, and all threads
    wait.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def freeze_objects() -> None:
    """Exclude all current objects, including garbage, from collection; call it before the collector is
    enabled again.

    Use it after the creation of hundreds of thousands of long-lived objects, which the collector would
    otherwise scan repeatedly. Frozen objects must not need the collector to be freed: objects of clients do
    not, because no closed connection is part of a cycle.
    """
    gc.freeze()


def freeze_until_exit() -> None:
    """Freeze objects as `freeze_objects` does, and unfreeze them at exit, because some libraries need
    this."""
    freeze_objects()
    _thaw_at_exit()


@cache
def freeze_imports() -> None:
    """Call it once in a process: most of its objects are those that it has imported by then."""
    freeze_until_exit()


@cache
def _thaw_at_exit() -> None:
    atexit.register(gc.unfreeze)


def collect_frozen() -> None:
    """Let the collector scan all objects again, and free the garbage among them."""
    gc.unfreeze()
    gc.collect()


def collect_seldom() -> None:
    """Let the collector scan young objects as often as usual, and all objects rarely.

    By default it traverses all objects whenever a fourth of them is new, so with 2,000 connections it
    repeatedly stopped the event loop for 76 ms. Objects of closed connections and of answered requests are
    freed without the collector.
    """
    gc.set_threshold(*COLLECTED_AFTER)


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Let the event loop get the interpreter quickly while another thread has long work.

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


def is_out_of_space(error: OSError) -> bool:
    """Return whether an operation failed because the disk is full, a quota is exhausted, or the file is too
    large."""
    return error.errno in OUT_OF_SPACE


def descriptor_limit() -> int:
    """Return the number of descriptors that the process may have open (the soft RLIMIT_NOFILE)."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_descriptor_limit() -> int:
    """Raise the soft limit to the hard one, also for later child processes; return the former limit.

    The limit does not change if the system refuses (macOS has an infinite hard limit that it does not grant).
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft
