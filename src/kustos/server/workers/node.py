"""A node of several processes: this one owns the metadata, its workers serve the clients."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from kustos.gateway.listener import Gateway, listening_socket
from kustos.gateway.workers import (
    Levels,
    NodeFigures,
    WatchedWorkerPool,
    WorkerPhase,
    WorkerPool,
    WorkerPoolSettings,
    WorkerPoolWriter,
    WorkerStartError,
    outlive_earlier,
)
from kustos.metadata.log import METADATA_PARTITION
from kustos.runtime import naming_the_setting
from kustos.server.http import HttpEndpoint
from kustos.server.logs import LOG_LEVELS
from kustos.server.node import Node, embedded_store
from kustos.server.process import NodePart
from kustos.server.settings.node import KustosSettings

LOG: Final = structlog.get_logger("kustos.server")

DIRECTORY_NAME: Final = "workers"
"""The directory of the workers' socket: beside the segments, where Kafka's own tools ignore directories."""

WORKER_MODULE: Final = "kustos.server.workers.process"


def workers_directory(settings: KustosSettings) -> Path:
    """Return the directory of the workers' socket."""
    return settings.metadata_directory / METADATA_PARTITION / DIRECTORY_NAME


class WorkerPoolNode:
    """The writer process of a node with workers. Created inside the event loop by `open`."""

    def __init__(self, node: Node, writer: WorkerPoolWriter) -> None:
        self.node: Final = node
        self.pool: Final = writer.pool
        self._writer: Final = writer
        node.metrics.registry.register(WatchedWorkerPool(self.pool.states))
        writer.drain = node.in_flight.drain
        self.pool.on_died = node.in_flight.doubt
        self.pool.on_login_failed = node.gateway.admission.login_failed
        LOG_LEVELS.on_change = lambda levels: self.pool.broadcast(Levels(levels))

    @classmethod
    async def open(cls, settings: KustosSettings, properties: Mapping[str, str]) -> "WorkerPoolNode":
        """Return the node with its metadata loaded; `properties` are the settings that the workers get.

        Raise what `Node.open` raises, or `WorkerStartError` if workers of an earlier run still live.
        """
        directory = workers_directory(settings)
        await outlive_earlier(directory)
        pool_settings = WorkerPoolSettings(
            size=settings.workers.count,
            directory=directory,
            apply_timeout_ms=settings.workers.apply_timeout_ms,
            limits=settings.limits,
            properties=properties,
            command=lambda index: [sys.executable, "-m", WORKER_MODULE, str(directory), str(index)],
        )
        writer = WorkerPoolWriter(embedded_store(settings), lambda store: WorkerPool(pool_settings, store))
        part = NodePart(
            serves=lambda listener: listener.is_controller,
            make_gateway=partial(Gateway, on_failed_login=writer.pool.tell_login_failed),
            make_http=lambda listener, metrics, readiness, details: WorkerPoolEndpoint(
                listener, metrics, readiness, details, pool=writer.pool
            ),
        )
        return cls(await Node.open(settings, writer, part), writer)

    def staged(self, settings: KustosSettings) -> Callable[[], None]:
        """Return what puts new settings in force in this process; raise `SettingsError`."""
        commit_here = self.node.staged(settings)

        def commit() -> None:
            commit_here()
            self.pool.connections.change_limits(
                settings.limits.max_connections, settings.limits.max_connections_per_ip
            )

        return commit

    async def start(self) -> None:
        """Serve; raise what `Node.start` raises, `WorkerStartError` or OSError."""
        _require_free_ports(self.node.settings)
        await self.node.start()
        await self.pool.start(self._writer.submit)

    async def stop(self) -> None:
        """Stop the workers, then close everything here; clients get their answers at the same time."""
        try:
            await asyncio.gather(self.pool.stop(), self.node.gateway.drain())
        finally:
            await self.node.stop()

    def hurry(self) -> None:
        """Let all processes wait for no more answers to clients."""
        self.pool.hurry()
        self.node.hurry()


def _require_free_ports(settings: KustosSettings) -> None:
    """Raise OSError if another process has a port: the workers might share it unnoticed."""
    for listener in settings.listeners:
        if not listener.is_controller:
            host, port = listener.bind.host, listener.bind.port
            with naming_the_setting(host, port, "listeners"):
                listening_socket(host, port).close()


class WorkerPoolEndpoint(HttpEndpoint):
    """The metrics and readiness of all processes of a node."""

    def __init__(self, *parts: object, pool: WorkerPool) -> None:
        super().__init__(*parts)  # type: ignore[arg-type]
        self._pool: Final = pool
        self._figures: Final = NodeFigures()
        pool.on_gone = self._figures.forget

    async def metrics_text(self) -> bytes:
        """Return the metrics of all processes, added up."""
        for worker, seen in await self._pool.looks(wants_metrics=True):
            if seen is not None and worker.phase is not WorkerPhase.GONE:
                self._figures.keep(worker, seen.metrics)
        return await asyncio.to_thread(self._figures.text, await super().metrics_text())

    async def readiness(self) -> Mapping[str, bool]:
        """Return the readiness of this process and of all workers, and whether all of them serve."""
        parts = dict(await super().readiness())
        seen = [each for _, each in await self._pool.looks(wants_metrics=False)]
        for each in seen:
            if each is not None:
                for name, is_ready in each.parts.items():
                    parts[name] = parts.get(name, True) and is_ready
        return parts | {"workers": None not in seen and self._pool.is_complete}


async def open_node(settings: KustosSettings, properties: Mapping[str, str]) -> Node | WorkerPoolNode:
    """Return the node, of one process or of several; raise what their `open` raises."""
    if settings.workers.count > 1:
        return await WorkerPoolNode.open(settings, properties)
    # the workers of an earlier run must not go on where one process serves now
    await outlive_earlier(workers_directory(settings))
    return await Node.open(settings)


__all__ = ["WorkerPoolNode", "WorkerStartError", "open_node", "workers_directory"]
