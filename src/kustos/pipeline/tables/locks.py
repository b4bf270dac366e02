"""The lock that refuses a second run at once on a disk."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kustos.pipeline.errors import TablesError, TablesInUseError
from kustos.pipeline.places import Place, StorePath
from kustos.runtime import reason_of

_RUN_LOCK: Final = "_lock"


@contextmanager
def run_lock(folder: Place) -> Iterator[None]:
    """Lock the tables against other runs, or raise `TablesInUseError` at once; a store has no locks.

    Raises `TablesError` for a folder that cannot be written or locked: on a disk what a killed run left is
    removed at once, and without the lock it could be what another run writes.
    """
    if isinstance(folder, StorePath):
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / _RUN_LOCK).open("w")
    except OSError as error:
        raise TablesError(f"cannot write to `{folder}`: {reason_of(error)}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TablesInUseError(
                f"another run is writing to the tables in `{folder}`, wait for it"
            ) from error
        except OSError as error:  # such as ENOLCK, of network file systems without a lock daemon
            raise TablesError(
                f"cannot lock the tables in `{folder}`: {reason_of(error)}; take a file system with locks, "
                "such as a disk of this machine, or an object store"
            ) from error
        yield
