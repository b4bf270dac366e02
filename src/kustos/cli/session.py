"""What a command opens to do its work: a cluster, a quorum, or the metadata directory of a stopped node."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

from kustos.cli.failures import CommandError, ExitCode
from kustos.cli.terminal import progress
from kustos.client import ClientSettings, ConnectionClosedError
from kustos.client.admin import AdminClient

if TYPE_CHECKING:
    from kustos.metadata.image import MetadataImage
    from kustos.metadata.store import MetadataStore

T = TypeVar("T")


def query_cluster(
    bootstrap_server: str,
    command_config: Path | None,
    query: Callable[[AdminClient], Awaitable[T]],
    doing: str,
    config_option: str = "--command-config",
) -> T:
    """Return the result of `query` on an admin client for this cluster; errors propagate.

    `config_option` is the option that named `command_config`.
    """
    settings = ClientSettings.from_file(bootstrap_server, command_config)

    async def run() -> T:
        async with AdminClient(settings) as admin:
            return await query(admin)

    with progress(f"{doing} at {bootstrap_server}"), _login_hint(config_option):
        return asyncio.run(run())


@contextmanager
def _login_hint(config_option: str) -> Iterator[None]:
    """Say where a login is set if the cluster closes a connection: a listener that needs one does so."""
    try:
        yield
    except ConnectionClosedError as error:
        if type(error) is not ConnectionClosedError:
            raise
        raise CommandError(
            ExitCode.UNREACHABLE,
            "CONNECTION_CLOSED",
            f"{error}; if its listener requires a login or TLS, set that in `{config_option}`",
        ) from error


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


class QuorumSource:
    """A live quorum as a source of images, queried each time: an image holds what is committed then."""

    def __init__(self, controllers: str, command_config: Path | None) -> None:
        from kustos.client.quorum import QuorumReader
        from kustos.runtime import SystemEntropy

        self.name: Final = f"the quorum at {controllers}"
        self._reader: Final = QuorumReader(
            ClientSettings.from_file(controllers, command_config), SystemEntropy()
        )
        # the connection lives as long as its event loop
        self._runner: Final = asyncio.Runner()

    def image(self) -> "MetadataImage":
        """Return the image committed now; raise `ClientError` or `MetadataError`."""
        with _login_hint("--command-config"):
            return self._runner.run(self._reader.catch_up())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._runner.close()
