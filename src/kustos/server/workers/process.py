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
from uuid import UUID

import structlog

from kustos.gateway.quorum import StalenessGate
from kustos.gateway.store import DecidedOffset
from kustos.gateway.workers import Welcome, WorkerGateway, WorkerStore, WriterLink, hold_lock
from kustos.metadata.log import MetaProperties
from kustos.runtime import release_freed_memory
from kustos.server.authorization.authorization import StandardAuthorization
from kustos.server.lifecycle import run_node
from kustos.server.log_lines import take_over_standard_error
from kustos.server.logs import LOG_LEVELS, configure_logs
from kustos.server.main import EXIT_FAILED, EXIT_OK, ended_by, on_event_loop
from kustos.server.node import Node, NodeMetadata
from kustos.server.process import NodePart, Waits
from kustos.server.reload import Reloader
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.workers import worker_name

LOG: Final = structlog.get_logger("kustos.server")

ARGUMENTS: Final = 2


def worker_settings_of(properties: Mapping[str, str], index: int) -> KustosSettings:
    """Return the settings of a worker: the node's settings with separate audit files and without HTTP."""
    settings = settings_from(properties, os.environ)
    audit = settings.audit
    if audit.json_directory is not None:
        audit = replace(audit, json_directory=audit.json_directory / worker_name(index))
    return replace(settings, audit=audit, http=None)


class WorkerNode:
    """A worker from its link to its node, which exists once the writer has sent settings and metadata.

    Created inside the event loop.
    """

    def __init__(self, writer_pid: int, index: int) -> None:
        self.link: Final = WriterLink(writer_pid, self)
        self.node: Node | None = None
        self._index: Final = index
        self._decided: Final = DecidedOffset(self.link.follow)
        self._gate: StalenessGate | None = None
        self._reloader: Reloader | None = None
        self._properties: Mapping[str, str] | None = None
        """The properties since the file was last reloaded; None if it never was."""

    async def open(self) -> None:
        """Make the node, once the writer has sent the whole image; raise what prevents that."""
        settings = worker_settings_of((await self.link.welcome).properties, self._index)
        await self.link.loaded
        names = [listener.name for listener in settings.listeners]
        part = NodePart(
            name=worker_name(self._index),
            serves=lambda listener: not listener.is_controller,
            make_gateway=partial(WorkerGateway, self.link),
            waits=partial(_waits_for_writer, self.link, names),
        )
        metadata = NodeMetadata(source=self.link, decided=self._decided, gate=self._gate)
        self.node = node = await Node.open(settings, metadata, part)
        self._reloader = Reloader(
            settings,
            lambda: worker_settings_of(self._properties or {}, self._index),
            node.authorization.authorizer,
            node.admin,
            stage=node.staged,
        )

    async def start(self) -> None:
        """Serve, as soon as the writer lets the listeners open."""
        if self._properties is not None:
            # the reload came before there was anything to reload
            self.reload(self._properties)
        await self._running().start()
        self.link.report_serving()

    async def stop(self) -> None:
        """End the connections, and write the audit events."""
        await self._running().stop()

    def hurry(self) -> None:
        """End all connections at once."""
        self._running().hurry()

    def _running(self) -> Node:
        if self.node is None:
            raise RuntimeError("the worker has no node yet")
        return self.node

    def welcomed(self, welcome: Welcome) -> WorkerStore:
        """Return the store for the writer's metadata."""
        settings = worker_settings_of(welcome.properties, self._index)
        if settings.quorum is not None:
            self._gate = StalenessGate(settings.quorum.max_staleness_ms, asyncio.get_running_loop())
        directory_id = None if welcome.directory_id is None else UUID(welcome.directory_id)
        properties = MetaProperties(welcome.cluster_id, welcome.node_id, directory_id)
        return WorkerStore(properties, settings.token_rules)

    def applied(self) -> int:
        """Return the offset up to which decisions follow the log."""
        offset = self._decided.offset
        return self.link.store.last_offset if offset is None else offset

    def deny(self) -> None:
        """Decide nothing any more, and close all connections."""
        if self.node is None:
            return
        authorization = self.node.authorization
        if isinstance(authorization, StandardAuthorization):
            authorization.close()
        self.node.gateway.close()

    async def drain(self) -> None:
        """Return when no broker has a request that would be denied now."""
        if self.node is not None:
            await self.node.in_flight.drain()

    def status(self, *, wants_metrics: bool) -> tuple[Mapping[str, bool], bytes]:
        """Return what must be ready and whether it is, and the metrics if they are wanted."""
        if self.node is None:
            return {}, b""
        return self.node.readiness(), self.node.metrics.text() if wants_metrics else b""

    def reload(self, properties: Mapping[str, str]) -> None:
        """Put the settings of the file in force."""
        self._properties = properties
        if self._reloader is not None:
            self._reloader.reload()

    def take_levels(self, levels: Mapping[str, str]) -> None:
        """Take over the log levels of the node."""
        LOG_LEVELS.take_over(levels)

    def close_connection(self, number: int, reason: str) -> None:
        """Close a connection that the node has no room for."""
        if self.node is not None and isinstance(self.node.gateway, WorkerGateway):
            self.node.gateway.close_connection(number, reason)

    def login_failed(self, host: str) -> None:
        """Count a failed login in another process."""
        if self.node is not None:
            self.node.gateway.admission.login_failed(host)

    def current(self, as_of_ms: int) -> None:
        """Record that everything committed by this time has been taken, if it is in force, too."""
        # the authorizer applies the batches before this message in the same turn, before this callback
        asyncio.get_running_loop().call_soon(self._taken, as_of_ms, self.link.store.last_offset)

    def _taken(self, as_of_ms: int, offset: int) -> None:
        if self._gate is not None and self.applied() >= offset:
            self._gate.fresh(as_of_ms)

    def quorum_lost(self) -> None:
        """Record that the metadata can never become current again."""
        if self._gate is not None:
            self._gate.fail()


def _waits_for_writer(link: WriterLink, listeners: list[str], ready: Waits) -> Waits:
    """Make every listener wait until the authorizer has its ACLs and changes wait for this worker."""

    async def writer_opens() -> None:
        for each in (ready or {}).values():
            await each
        await asyncio.to_thread(link.store.complete)
        # before there are clients: all threads wait, a tenth of a second with a million ACLs
        release_freed_memory()
        link.begin_reporting()
        await link.serve

    begun = asyncio.ensure_future(writer_opens())

    async def shared() -> None:
        await asyncio.shield(begun)

    waits: dict[str, Awaitable[None]] = {name: asyncio.ensure_future(shared()) for name in listeners}
    return waits


async def _run(directory: Path, index: int) -> int:
    descriptor = hold_lock(directory)
    worker = WorkerNode(os.getppid(), index)
    link = worker.link
    async with AsyncExitStack() as stack:
        stack.callback(os.close, descriptor)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, link.ended.set)
        await link.connect(directory)
        stack.callback(link.disconnect)
        await worker.open()
        await run_node(worker, link.ended, link.hurried)
    return EXIT_FAILED if link.ended_badly else EXIT_OK


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
