"""Opens the metadata directory of a stopped node for changes."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kustos.cli.failures import CommandError, ExitCode
from kustos.cli.progress import progress

if TYPE_CHECKING:
    from kustos.metadata.store import MetadataStore


@contextmanager
def opened_store(directory: Path, if_locked: str) -> Iterator["MetadataStore"]:
    """Open a directory with its lock and close it at the end.

    `if_locked` names the alternative if a node has it open. Raises the errors of `MetadataStore.open`.
    """
    from kustos.metadata.store import MetadataStore
    from kustos.runtime import StorageLockedError

    with _warnings_only():
        try:
            with progress(f"opening {directory}"):
                store = MetadataStore.open(directory)
        except StorageLockedError as error:
            raise CommandError(ExitCode.FAILED, "LOCKED", f"{error}; stop it, or {if_locked}") from error
        try:
            yield store
        finally:
            store.close()


@contextmanager
def _warnings_only() -> Iterator[None]:
    """Keep a node's log off standard output, which holds the answer; warnings go to standard error."""
    import structlog

    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)
