"""A node of several processes: this one owns the metadata, its workers serve the clients."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from kustos.client import NodeAddress
from kustos.gateway.listener import listening_socket
from kustos.gateway.metrics import GatewayMetrics
from kustos.gateway.workers import (
    Levels,
    NodeFigures,
    WatchedWorkerPool,
    WorkerFollowers,
    WorkerHandle,
    WorkerPhase,
    WorkerPool,
    WorkerPoolSettings,
    WorkerStartError,
    WriterGateway,
    await_earlier_workers,
)
from kustos.metadata.log import METADATA_PARTITION
from kustos.runtime import naming_the_setting
from kustos.server.http import Details, HttpEndpoint, Readiness
from kustos.server.logs import LOG_LEVELS
from kustos.server.node import Node, NodeMetadata
from kustos.server.process import NodePart
from kustos.server.settings.node import KustosSettings

LOG: Final = structlog.get_logger("kustos.server")

DIRECTORY_NAME: Final = "workers"
"""The directory of the workers' socket, next to the segments, where Kafka's own tools ignore directories."""

WORKER_MODULE: Final = "kustos.server.workers.process"


def workers_directory(settings: KustosSettings) -> Path:
    """Return the directory of the workers' socket."""
    return settings.metadata_directory / METADATA_PARTITION / DIRECTORY_NAME


class WriterLevels:
    """The log levels of all processes of a node; an implementation of `Loggers`."""

    def __init__(self, followers: WorkerFollowers) -> None:
        self._followers: Final = followers

    def levels(self) -> Mapping[str, str]:
        """Return every logger with its own or inherited level."""
        return LOG_LEVELS.levels()

    def set_level(self, name: str, level: str) -> None:
        """Give a logger a level of its own; raise KeyError if it is none of Kafka's names."""
        LOG_LEVELS.set_level(name, level)
        self._followers.broadcast(Levels(LOG_LEVELS.own))

    def unset_level(self, name: str) -> None:
        """Let a logger inherit its parent's level."""
        LOG_LEVELS.unset_level(name)
        self._followers.broadcast(Levels(LOG_LEVELS.own))


class WorkerPoolNode:
    """The writer process of a node with workers, and the owner of its pool.

    Created inside the event loop by `open`.
    """

    def __init__(
        self, node: Node, followers: WorkerFollowers, figures: NodeFigures, properties: Mapping[str, str]
    ) -> None:
        settings = node.settings
        directory = workers_directory(settings)
        self.node: Final = node
        self.followers: Final = followers
        self._figures: Final = figures
        self.pool: Final = WorkerPool(
            WorkerPoolSettings(
                size=settings.workers.count,
                directory=directory,
                limits=settings.limits,
                properties=properties,
                command=lambda index: [sys.executable, "-m", WORKER_MODULE, str(directory), str(index)],
            ),
            node.source,
            followers,
            self,
        )
        node.metrics.registry.register(WatchedWorkerPool(self.pool.states))

    @classmethod
    async def open(cls, settings: KustosSettings, properties: Mapping[str, str]) -> "WorkerPoolNode":
        """Return the node with its metadata loaded; `properties` are the settings that the workers get.

        Raise what `Node.open` raises, or `WorkerStartError` if workers of an earlier run still live.
        """
        await await_earlier_workers(workers_directory(settings))
        workers, figures = settings.workers, NodeFigures()
        followers = WorkerFollowers(workers.count, workers.apply_timeout_ms)
        metadata = NodeMetadata.open(settings, followers)
        metadata.source.store.add_publisher(followers)
        part = NodePart(
            serves=lambda listener: listener.is_controller,
            make_gateway=partial(WriterGateway, followers),
            make_http=partial(WorkerPoolEndpoint, followers, figures),
            drain_others=followers.drain,
            loggers=WriterLevels(followers),
        )
        return cls(await Node.open(settings, metadata, part), followers, figures, properties)

    def worker_died(self) -> None:
        """Record that brokers may have requests of a worker that ended."""
        self.node.in_flight.doubt()

    def worker_gone(self, worker: WorkerHandle) -> None:
        """Keep what a worker has counted."""
        self._figures.forget(worker)

    def login_failed(self, host: str) -> None:
        """Count a failed login in a worker."""
        self.node.gateway.admission.login_failed(host)

    async def drain(self) -> None:
        """Return when no broker has a request of a worker that died; raise `RequestsInFlightError`."""
        await self.node.in_flight.drain_own()

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
        if self.node.quorum is not None:
            # before that there is no image to begin with
            await self.node.quorum.begun()
        await self.pool.start()

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

    def __init__(
        self,
        followers: WorkerFollowers,
        figures: NodeFigures,
        listener: NodeAddress,
        metrics: GatewayMetrics,
        readiness: Readiness,
        details: Details,
    ) -> None:
        super().__init__(listener, metrics, readiness, details)
        self._followers: Final = followers
        self._figures: Final = figures

    async def metrics_text(self) -> bytes:
        """Return the metrics of all processes, added up."""
        for worker, seen in await self._followers.looks(wants_metrics=True):
            if seen is not None and worker.phase is not WorkerPhase.GONE:
                self._figures.keep(worker, seen.payload)
        return await asyncio.to_thread(self._figures.text, await super().metrics_text())

    async def readiness(self) -> Mapping[str, bool]:
        """Return the readiness of this process and of all workers, and whether all of them serve."""
        parts = dict(await super().readiness())
        seen = [each for _, each in await self._followers.looks(wants_metrics=False)]
        for each in seen:
            if each is not None:
                for name, is_ready in each.parts.items():
                    parts[name] = parts.get(name, True) and is_ready
        return parts | {"workers": None not in seen and self._followers.is_complete}


async def open_node(settings: KustosSettings, properties: Mapping[str, str]) -> Node | WorkerPoolNode:
    """Return the node, of one process or of several; raise what their `open` raises."""
    if settings.workers.count > 1:
        return await WorkerPoolNode.open(settings, properties)
    # the workers of an earlier run must not go on where one process serves now
    await await_earlier_workers(workers_directory(settings))
    return await Node.open(settings)


__all__ = ["WorkerPoolNode", "WorkerStartError", "open_node", "workers_directory"]
