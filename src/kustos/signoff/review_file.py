"""The file of a review, which several reviewers change at the same time."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE

from kustos.runtime import FileSystemStorage, TextFileError, read_text_file, reason_of
from kustos.signoff.document import DOCUMENT_CHARACTERS_MAX, Document, read_review, write_review
from kustos.signoff.errors import SignoffError


def change_review_file(path: Path, change: Callable[[Document], Document]) -> Document:
    """Replace the document of a file by what `change` makes of it, and return that.

    Reads, changes and writes under a lock that excludes other processes, for which it waits: so `change` gets
    what the last writer wrote. After an error the file is as it was. Raises `SignoffError`, and what `change`
    raises.
    """
    path = path.resolve()  # reviewers who reach the file by different links take one lock
    with _locked(path) as mode:
        try:
            changed = change(read_review(read_text_file(path, DOCUMENT_CHARACTERS_MAX, "review")))
            # a crash must leave neither half a review nor a decision that was reported and is lost
            FileSystemStorage().write(path, write_review(changed).encode(), mode)
        except TextFileError as error:
            raise SignoffError(str(error)) from error
        except OSError as error:
            raise SignoffError(f"cannot write the review `{path}`: {reason_of(error)}") from error
    return changed


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Hold the lock of the file that has this name, and yield its mode.

    The lock is on the file itself, so that it leaves nothing beside it. A writer replaces the file: a process
    that waited for its lock must take the lock of the new one.
    """
    while True:
        try:
            descriptor = _opened(path)
        except OSError as error:
            raise SignoffError(f"cannot open the review `{path}`: {reason_of(error)}") from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                held, named = os.fstat(descriptor), path.stat()
            except OSError as error:
                raise SignoffError(f"cannot lock the review `{path}`: {reason_of(error)}") from error
            if os.path.samestat(held, named):
                yield S_IMODE(held.st_mode)
                return
        finally:
            os.close(descriptor)


def _opened(path: Path) -> int:
    try:
        # network file systems lock only files that are open for writing
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except PermissionError:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
