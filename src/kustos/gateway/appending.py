"""Appends whole pieces to a file: all of a piece is there, or nothing of it."""

import os
from contextlib import suppress


def append_whole(descriptor: int, data: bytes, size_bytes: int) -> None:
    """Write all of `data` at the end of a file of this size, or raise OSError with the file as it was."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        # why it was not written matters more than why it cannot be undone; readers meet half a line then
        with suppress(OSError):
            os.ftruncate(descriptor, size_bytes)
        raise
