"""A worker process: `python -m kustos.server.workers.process <directory> <index>`, started by the writer.

It gets its settings and the metadata from the writer, never reads the log, and ends with the writer.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from kustos.gateway.workers import Service, Welcome, WorkerGateway, WorkerStore, WorkerWriter, hold_lock
from kustos.metadata.log import MetaProperties
from kustos.server.authorization.authorization import StandardAuthorization
from kustos.server.lifecycle import run_node
from kustos.server.log_lines import take_over_standard_error
from kustos.server.logs import LOG_LEVELS, configure_logs
from kustos.server.main import EXIT_FAILED, EXIT_OK, ended_by, on_event_loop
from kustos.server.node import Node
from kustos.server.process import NodePart, Waits
from kustos.server.reload import Reloader
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.workers import worker_name

LOG: Final = structlog.get_logger("kustos.server")

ARGUMENTS: Final = 2


def worker_settings_of(properties: Mapping[str, str], index: int) -> KustosSettings:
    """Return the settings of a worker: those of the node, with audit files of its own, and no HTTP."""
    settings = settings_from(properties, os.environ)
    audit = settings.audit
    if audit.json_directory is not None:
        audit = replace(audit, json_directory=audit.json_directory / worker_name(index))
    return replace(settings, audit=audit, http=None)


class WorkerNode:
    """A node that serves clients and follows the writer. Created inside the event loop by `open`."""

    def __init__(self, node: Node, service: Service, index: int) -> None:
        self.node: Final = node
        self._service: Final = service
        self._index: Final = index
        self._properties: Mapping[str, str] = {}
        self._reloader: Final = Reloader(
            node.settings,
            lambda: worker_settings_of(self._properties, index),
            node.authorization.authorizer,
            node.admin,
            stage=node.staged,
        )
        service.applied = self._applied
        service.drain = node.in_flight.drain
        service.seen = self._seen
        service.on_deny = self._deny
        service.on_reload = self._reload

    @classmethod
    async def open(cls, service: Service, settings: KustosSettings, index: int) -> "WorkerNode":
        """Return the node, once the writer has sent the whole image; raise what prevents that."""
        await service.loaded
        store = service.store
        if store is None:
            raise RuntimeError("the image is complete, but no store received it")
        part = NodePart(
            owns_metadata=False,
            name=worker_name(index),
            serves=lambda listener: not listener.is_controller,
            make_gateway=partial(WorkerGateway, service),
            waits=partial(_waits_for_writer, service, [listener.name for listener in settings.listeners]),
        )
        return cls(await Node.open(settings, WorkerWriter(service, store), part), service, index)

    async def start(self) -> None:
        """Serve, as soon as the writer sends `OpenListeners`."""
        if self._service.reloaded is not None:
            # the reload came before there was anything to reload
            self._reload(self._service.reloaded)
        await self.node.start()
        self._service.report_serving()

    async def stop(self) -> None:
        """End the connections, and write the audit events."""
        await self.node.stop()

    def hurry(self) -> None:
        """End all connections at once."""
        self.node.hurry()

    def _applied(self) -> int:
        authorization = self.node.authorization
        is_standard = isinstance(authorization, StandardAuthorization)
        return authorization.position.offset if is_standard else self.node.store.last_offset

    def _seen(self, wants_metrics: bool) -> tuple[Mapping[str, bool], bytes]:
        return self.node.readiness(), self.node.metrics.text() if wants_metrics else b""

    def _deny(self) -> None:
        authorization = self.node.authorization
        if isinstance(authorization, StandardAuthorization):
            authorization.authorizer.standard.is_ready = False
            authorization.authorizer.standard.version += 1
        self.node.gateway.close()

    def _reload(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._reloader.reload()


def _waits_for_writer(service: Service, listeners: list[str], ready: Waits) -> Waits:
    """Make every listener wait until the authorizer has its ACLs and changes wait for this worker."""

    async def writer_opens() -> None:
        for each in (ready or {}).values():
            await each
        service.begin_reporting()
        await service.serve

    begun = asyncio.ensure_future(writer_opens())

    async def shared() -> None:
        await asyncio.shield(begun)

    waits: dict[str, Awaitable[None]] = {name: asyncio.ensure_future(shared()) for name in listeners}
    return waits


async def _run(directory: Path, index: int) -> int:
    descriptor = hold_lock(directory)
    service = Service(os.getppid(), lambda welcome: _store_of(welcome, index))
    service.on_levels = LOG_LEVELS.take_over
    async with AsyncExitStack() as stack:
        stack.callback(os.close, descriptor)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, service.ended.set)
        await service.connect(directory)
        stack.callback(service.close)
        welcome = await service.welcome
        settings = worker_settings_of(welcome.properties, index)
        await run_node(await WorkerNode.open(service, settings, index), service.ended, service.hurried)
    return EXIT_FAILED if service.ended_badly else EXIT_OK


def _store_of(welcome: Welcome, index: int) -> WorkerStore:
    properties = MetaProperties(welcome.cluster_id, welcome.node_id, welcome.directory_id)
    return WorkerStore(properties, worker_settings_of(welcome.properties, index).token_rules)


def main(arguments: list[str]) -> int:
    """Run a worker until the writer ends it, or is gone; return the exit code."""
    if len(arguments) != ARGUMENTS or not arguments[1].isdigit():
        return EXIT_FAILED
    directory, index = Path(arguments[0]), int(arguments[1])
    # the writer handles these signals: a terminal sends them to every process
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    take_over_standard_error()
    configure_logs()
    structlog.contextvars.bind_contextvars(worker=index)
    return ended_by(lambda: on_event_loop(_run(directory, index)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
