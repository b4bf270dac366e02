"""Tuning of the interpreter during bulk work: its garbage collector and its thread switching."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SHORT_SWITCH_INTERVAL_S: Final = 0.0001
"""How long a thread holds the interpreter while the event loop wants it: each system call of the loop may
wait that long, and an import makes hundreds."""

USUAL_SWITCH_INTERVAL_S: Final = sys.getswitchinterval()

_SHORT: Final[list[None]] = []
"""One entry per active `short_switch_interval`; when the last one ends, the usual interval returns."""

_RESTS: Final[list[None]] = []
"""One entry per active `garbage_collection_paused`."""

_WAS_AWAKE: Final[list[None]] = []
"""Has an entry if the collector was enabled before the first of them."""


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


def freeze_objects() -> None:
    """Exclude all current objects, garbage or not, from collection for good; call before it is enabled again.

    For use after making hundreds of thousands of long-lived objects: the collector would scan them all at
    once, again and again. Objects freed later must not need the collector: those of a client do not, since no
    closed connection is part of a cycle.
    """
    gc.freeze()


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
