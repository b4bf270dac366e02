"""`kustos serve`: from a properties file to a running node, and its end."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import structlog

from kustos.auth.errors import AuthError
from kustos.authorizer import AuthorizerError
from kustos.client.errors import ClientError
from kustos.client.properties import read_properties
from kustos.gateway.addresses import NoPortForBrokerError
from kustos.gateway.audit_log import AuditError
from kustos.gateway.cluster import UpstreamUnavailableError
from kustos.gateway.workers.errors import WorkerStartError
from kustos.gateway.workers.messages import Reload
from kustos.metadata.errors import MetadataError
from kustos.server.logs import configure_logs
from kustos.server.node import Node, run_node
from kustos.server.reloading import Reloader
from kustos.server.settings import KustosSettings, load_settings
from kustos.server.workers import CrewNode, open_node

LOG: Final = structlog.get_logger("kustos.server")

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_UNREACHABLE: Final = 3


def serve(properties: Path) -> int:
    """Run a node until SIGINT or SIGTERM; return the exit code of the process. SIGHUP reloads settings.

    0 ended as told, 1 failed (metadata directory, port, audit), 2 settings, 3 upstream not reachable.
    """
    configure_logs()
    try:
        given = read_properties(properties)
        settings = load_settings(properties, given=given)
    except ClientError as error:
        LOG.error("the settings are not usable", reason=str(error))
        return EXIT_USAGE
    return ended_by(lambda: on_event_loop(_run_until_told(settings, given, properties)))


def ended_by(work: Callable[[], int]) -> int:
    """Return the exit code that the work comes to, also by what keeps a node from running."""
    try:
        return work()
    except UpstreamUnavailableError as error:
        hint = "see `kustos.upstream.bootstrap.servers`"
        LOG.error("kustos ends: upstream is not reachable", reason=str(error), hint=hint)
        return EXIT_UNREACHABLE
    except WorkerStartError as error:
        LOG.error("kustos ends", reason=str(error))
        return EXIT_UNREACHABLE if error.exit_code == EXIT_UNREACHABLE else EXIT_FAILED
    except (MetadataError, AuthorizerError, AuditError, AuthError, NoPortForBrokerError, OSError) as error:
        LOG.error("kustos ends", reason=str(error))
        return EXIT_FAILED


def on_event_loop(work: Coroutine[Any, Any, int]) -> int:
    """Run it on uvloop where that is present, else on asyncio's own loop."""
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with suppress(ImportError):
        import uvloop

        loop_factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(work)


async def _run_until_told(settings: KustosSettings, given: Mapping[str, str], properties: Path) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stopped.set)
    # one that comes before there is anything to reload must not end the process
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    opened = await open_node(settings, given)
    loop.add_signal_handler(signal.SIGHUP, reload_of(opened, settings, properties))
    await run_node(opened, stopped)
    return EXIT_OK


def reload_of(opened: Node | CrewNode, settings: KustosSettings, properties: Path) -> Callable[[], None]:
    """Return what reads the properties file again, for all processes of the node."""
    node = opened.node if isinstance(opened, CrewNode) else opened
    given: Mapping[str, str] = {}

    def read() -> KustosSettings:
        nonlocal given
        given = read_properties(properties)
        return load_settings(properties, given=given)

    reloader = Reloader(settings, read, node.authorization.authorizer, node.admin)

    def reload() -> None:
        if reloader.reload() and isinstance(opened, CrewNode):
            opened.crew.tell(Reload(given))

    return reload
