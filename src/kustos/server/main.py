"""`kustos serve`: runs a node with the settings of a properties file."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import structlog

from kustos.auth import AuthError
from kustos.authorizer import AuthorizerError
from kustos.client import ClientError, callback_failed, read_properties
from kustos.gateway.audit import AuditError
from kustos.gateway.listener import connections_within
from kustos.gateway.upstream import NoPortForBrokerError, UpstreamUnavailableError
from kustos.gateway.workers import Reload, WorkerStartError
from kustos.metadata import MetadataError
from kustos.runtime import descriptor_limit, raise_descriptor_limit, words_of
from kustos.server.lifecycle import run_node
from kustos.server.log_lines import take_over_standard_error
from kustos.server.logs import configure_logs
from kustos.server.node import Node
from kustos.server.reload import Reloader
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.node_settings import load_settings
from kustos.server.workers.node import WorkerPoolNode, open_node
from kustos.tls import TlsError

LOG: Final = structlog.get_logger("kustos.server")

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_UNREACHABLE: Final = 3


def serve(path: Path) -> int:
    """Run a node until SIGINT or SIGTERM; return the exit code of the process. SIGHUP reloads settings.

    After a second SIGINT or SIGTERM, it no longer waits for answers to clients.

    0 stopped by a signal, 1 failed (metadata directory, port, audit), 2 settings, 3 upstream refuses the
    login.
    """
    take_over_standard_error()
    configure_logs()
    try:
        properties = read_properties(path)
        settings = load_settings(path, properties=properties)
    except ClientError as error:
        LOG.error("the settings are not usable", reason=str(error))
        return EXIT_USAGE
    take_descriptors()
    return ended_by(lambda: on_event_loop(_run_until_stopped(settings, properties, path)))


def take_descriptors() -> None:
    """Raise the limit of file descriptors to the system's maximum, for workers too, and log it."""
    former, limit = raise_descriptor_limit(), descriptor_limit()
    LOG.info("file descriptors", limit=limit, former_limit=former, connections=connections_within(limit))


def ended_by(work: Callable[[], int]) -> int:
    """Return the exit code of the work, or of the error that prevents the start."""
    try:
        return work()
    except UpstreamUnavailableError as error:
        hint = "see `kustos.upstream.bootstrap.servers`"
        LOG.error("kustos ends: upstream is not reachable", reason=str(error), hint=hint)
        return EXIT_UNREACHABLE
    except TlsError as error:
        LOG.error("the settings are not usable", reason=str(error))
        return EXIT_USAGE
    except WorkerStartError as error:
        LOG.error("kustos ends", reason=str(error))
        return EXIT_UNREACHABLE if error.exit_code == EXIT_UNREACHABLE else EXIT_FAILED
    except (MetadataError, AuthorizerError, AuditError, AuthError, NoPortForBrokerError, OSError) as error:
        LOG.error("kustos ends", reason=words_of(error))
        return EXIT_FAILED


def on_event_loop(work: Coroutine[Any, Any, int]) -> int:
    """Run the coroutine on uvloop if it is installed, else on asyncio's own loop."""
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with suppress(ImportError):
        import uvloop

        loop_factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.get_loop().set_exception_handler(callback_failed)
        return runner.run(work)


async def _run_until_stopped(settings: KustosSettings, properties: Mapping[str, str], path: Path) -> int:
    stopped, hurried = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        (hurried if stopped.is_set() else stopped).set()

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop)
    # a signal before the node can reload must not end the process
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    opened = await open_node(settings, properties)
    loop.add_signal_handler(signal.SIGHUP, reload_of(opened, settings, path))
    await run_node(opened, stopped, hurried)
    return EXIT_OK


def reload_of(opened: Node | WorkerPoolNode, settings: KustosSettings, path: Path) -> Callable[[], None]:
    """Return the function that reloads the properties file for all processes of the node."""
    node = opened.node if isinstance(opened, WorkerPoolNode) else opened
    properties: Mapping[str, str] = {}

    def read() -> KustosSettings:
        nonlocal properties
        properties = read_properties(path)
        return load_settings(path, properties=properties)

    reloader = Reloader(
        settings,
        read,
        node.authorization.authorizer,
        node.admin,
        node.settings_reloaded,
        opened.staged,
    )

    def reload() -> None:
        if reloader.reload() and isinstance(opened, WorkerPoolNode):
            opened.followers.broadcast(Reload(properties))

    return reload
