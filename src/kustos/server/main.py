"""`kustos serve`: from a properties file to a running node, and its end."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from kustos.auth.errors import AuthError
from kustos.authorizer import AuthorizerError
from kustos.client.errors import ClientError
from kustos.gateway.addresses import NoPortForBrokerError
from kustos.gateway.audit_log import AuditError
from kustos.gateway.cluster import UpstreamUnavailableError
from kustos.metadata.errors import MetadataError
from kustos.server.logs import configure_logs
from kustos.server.node import Node, run_until
from kustos.server.reloading import Reloader
from kustos.server.settings import KustosSettings, load_settings

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
        settings = load_settings(properties)
    except ClientError as error:
        LOG.error("the settings are not usable", reason=str(error))
        return EXIT_USAGE
    try:
        _run(settings, properties)
    except UpstreamUnavailableError as error:
        hint = "see `kustos.upstream.bootstrap.servers`"
        LOG.error("kustos ends: upstream is not reachable", reason=str(error), hint=hint)
        return EXIT_UNREACHABLE
    except (MetadataError, AuthorizerError, AuditError, AuthError, NoPortForBrokerError, OSError) as error:
        LOG.error("kustos ends", reason=str(error))
        return EXIT_FAILED
    return EXIT_OK


def _run(settings: KustosSettings, properties: Path) -> None:
    """Run the node on uvloop where it is present, else on asyncio's own loop."""
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with suppress(ImportError):
        import uvloop

        loop_factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_run_until_told(settings, properties))


async def _run_until_told(settings: KustosSettings, properties: Path) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stopped.set)

    def reload_on_signal(node: Node) -> None:
        reloader = Reloader(
            settings, lambda: load_settings(properties), node.authorization.authorizer, node.admin
        )
        loop.add_signal_handler(signal.SIGHUP, reloader.reload)

    # one that comes before there is anything to reload must not end the process
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    await run_until(settings, stopped, reload_on_signal)
