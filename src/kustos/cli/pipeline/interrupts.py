"""A keyboard interrupt or SIGTERM as an event: finish the work in progress, start nothing new."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType


@contextmanager
def until_interrupted() -> Iterator[Event]:
    """Yield an event that the first interrupt sets; a second one interrupts as usual."""
    stop = Event()

    def first(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        for number, handler in former.items():
            signal.signal(number, handler)

    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in former:
        signal.signal(number, first)
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
