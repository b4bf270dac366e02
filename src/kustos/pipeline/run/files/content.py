"""The content of an input's files, on a disk or in an object store, opened as bytes.

An object store answers each read over the network, so it is read in large parts; its errors are its own, and
never taken for damage of the file.
"""

import io
from pathlib import Path
from typing import IO, Any, Final, cast

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.places import Place, StorePath, native_file, reason_in_store
from kustos.runtime import reason_of

PART_BYTES: Final = 1 << 22
"""Read at a time from an object store: a request takes milliseconds, as long as a megabyte does."""

FIRST_BYTES: Final = 1 << 16
"""Read at a time where only the beginning is wanted, and first of each object."""


def open_bytes(place: Place, part_bytes: int = PART_BYTES) -> IO[bytes]:
    """Return the content of a file.

    Raises FileNotFoundError for a file that is gone, other OSErrors of a local file, and `AuditInputError`
    for what an object store refuses, then or while the content is read.
    """
    if isinstance(place, Path):
        return place.open("rb")
    try:
        native = native_file(place)
    except OSError as error:
        raise _refusal(place, error) from None
    return cast("IO[bytes]", io.BufferedReader(_StoreBytes(place, native), part_bytes))


class _StoreBytes(io.RawIOBase):
    """The content of an object: each read is a request."""

    def __init__(self, place: StorePath, native: Any) -> None:
        self._place: Final = place
        self._native: Final = native

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._native.tell())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._native.seek(offset, whence))

    def readinto(self, buffer: Any) -> int:
        try:
            # of a file that was read as a whole the beginning is wanted again, and no more
            most = len(buffer) if self._native.tell() else FIRST_BYTES
            part = self._native.read(min(most, len(buffer)))
        except OSError as error:
            raise _refusal(self._place, error) from None
        buffer[: len(part)] = part
        return len(part)


def _refusal(place: StorePath, error: OSError) -> Exception:
    """Return the error for a refusal: FileNotFoundError, or `AuditInputError`, which is not damage."""
    number, text = (error.errno, "") if error.errno is not None else reason_in_store(error)
    refused = OSError(number, text, str(place)) if number is not None else OSError(text)
    if isinstance(refused, FileNotFoundError):
        return refused
    return AuditInputError(f"cannot read `{place}`: {reason_of(refused)}")
