"""What delta-rs says when it fails, as errors of kustos: lost to another commit, or impossible."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from deltalake.exceptions import CommitFailedError, DeltaError

from kustos.pipeline.errors import TablesError, TablesInUseError
from kustos.pipeline.places import Place, StorePath, reason_in_store
from kustos.runtime import reason_of

_log = logging.getLogger("kustos.pipeline.tables")

_LOST: Final = re.compile(r"oncurrent|already exists|since last commit|commit transaction: \d+$")
"""What delta-rs says of a commit that another one came before; the last of a restored version."""


@contextmanager
def writing(place: Place) -> Iterator[None]:
    """Raise `TablesInUseError` for a commit that lost to another, `TablesError` for any other failure."""
    try:
        yield
    except CommitFailedError as error:
        if _LOST.search(str(error)):
            raise TablesInUseError(f"another run has written to `{place}` meanwhile, run again") from error
        raise TablesError(f"cannot write to `{place}`: {reason(place, error)}") from cause(place, error)
    except (DeltaError, OSError) as error:
        raise TablesError(f"cannot write to `{place}`: {reason(place, error)}") from cause(place, error)


@contextmanager
def cleaning(place: Place) -> Iterator[None]:
    """Log what keeps old files and commits from being removed, in place of raising it.

    What was written before is committed and whole, so the run did not fail, and what stays harms nobody.
    """
    try:
        with writing(place):
            yield
    except TablesError as error:
        _log.warning("cannot remove what is old, a later run tries again: %s", error)


def cause(place: Place, error: Exception) -> Exception | None:
    """Return the error, or None if it may quote a request to an object store."""
    return error if isinstance(place, Path) else None


def reason(place: Place, error: Exception) -> str:
    """Return in a few words why something failed, without a request to an object store."""
    if isinstance(error, OSError) and error.errno is not None:
        return reason_of(error)
    if isinstance(place, StorePath) and not isinstance(error, ValueError):
        number, text = reason_in_store(error)
        return reason_of(OSError(number, text))
    text = str(error)
    if "ermission denied" in text:
        return reason_of(PermissionError(13, "permission denied"))
    return text.splitlines()[0] if text else type(error).__name__
