"""How the interpreter shares itself out while much is made: its garbage collector, its turns of threads."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SHORT_TURN_S: Final = 0.0001
"""How long a thread keeps the interpreter while the event loop wants it: each system call of the loop
may have to wait so long, and an import makes hundreds."""

USUAL_TURN_S: Final = sys.getswitchinterval()

_SHORT: Final[list[None]] = []
"""An entry for each that wants short turns now; with the last one the usual ones come back."""


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Keep Python's cyclic garbage collector from walking again and again through what only grows."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def short_turns() -> Iterator[None]:
    """Let the event loop have the interpreter soon after it wants it, while another thread works for long.

    Entered on the event loop only; several at once may end in any order.
    """
    _SHORT.append(None)
    sys.setswitchinterval(SHORT_TURN_S)
    try:
        yield
    finally:
        _SHORT.pop()
        if not _SHORT:
            sys.setswitchinterval(USUAL_TURN_S)
