"""A node of several processes, put together: this one owns the metadata, its workers serve the clients."""

import asyncio
import socket
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import structlog

from kustos.gateway.workers.crew import Crew, CrewSettings
from kustos.gateway.workers.doorstep import outlive_earlier
from kustos.gateway.workers.errors import WorkerStartError
from kustos.gateway.workers.figures import NodeFigures, WatchedCrew
from kustos.gateway.workers.member import Phase
from kustos.gateway.workers.messages import Levels
from kustos.gateway.workers.serving import CrewWriter
from kustos.metadata.log.layout import METADATA_PARTITION
from kustos.server.http import HttpEndpoint
from kustos.server.logs import LOG_LEVELS
from kustos.server.node import Node, embedded_store
from kustos.server.part import NodePart
from kustos.server.settings import KustosSettings

LOG: Final = structlog.get_logger("kustos.server")

DIRECTORY_NAME: Final = "workers"
"""Where the processes meet: beside the segments, where a directory disturbs none of Kafka's own programs."""

WORKER_MODULE: Final = "kustos.server.worker_process"


def workers_directory(settings: KustosSettings) -> Path:
    """Return where the processes of a node meet."""
    return settings.metadata_directory / METADATA_PARTITION / DIRECTORY_NAME


class CrewNode:
    """The writer process of a node with workers. Made inside the event loop by `open`."""

    def __init__(self, node: Node, writer: CrewWriter) -> None:
        self.node: Final = node
        self.crew: Final = writer.crew
        self._writer: Final = writer
        node.metrics.registry.register(WatchedCrew(self.crew.states))
        LOG_LEVELS.on_change = lambda levels: self.crew.tell(Levels(levels))

    @classmethod
    async def open(cls, settings: KustosSettings, properties: Mapping[str, str]) -> "CrewNode":
        """Return it with its metadata loaded; `properties` are the settings as the workers get them.

        Raise what `Node.open` raises, or `WorkerStartError` where workers of an earlier run live.
        """
        directory = workers_directory(settings)
        await outlive_earlier(directory)
        crew_settings = CrewSettings(
            size=settings.workers.count,
            directory=directory,
            apply_timeout_ms=settings.workers.apply_timeout_ms,
            max_connections=settings.max_connections,
            max_connections_per_ip=settings.max_connections_per_ip,
            properties=properties,
            command=lambda index: [sys.executable, "-m", WORKER_MODULE, str(directory), str(index)],
        )
        writer = CrewWriter(embedded_store(settings), lambda store: Crew(crew_settings, store))
        part = NodePart(
            serves=lambda listener: listener.is_controller,
            make_http=lambda listener, metrics, readiness, details: CrewEndpoint(
                listener, metrics, readiness, details, crew=writer.crew
            ),
        )
        return cls(await Node.open(settings, writer, part), writer)

    async def start(self) -> None:
        """Serve; raise what `Node.start` raises, `WorkerStartError` or OSError."""
        _require_free_ports(self.node.settings)
        await self.node.start()
        await self.crew.start(self._writer.submit)

    async def stop(self) -> None:
        """End the workers, then what is open here."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.node.stop)
            stack.push_async_callback(self.crew.stop)


def _require_free_ports(settings: KustosSettings) -> None:
    """Raise OSError where somebody else has a port: the workers could share it with them unawares."""
    for listener in settings.listeners:
        if not listener.is_controller:
            host, port = listener.bind.host, listener.bind.port
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            socket.create_server((host, port), family=family).close()


class CrewEndpoint(HttpEndpoint):
    """Metrics and readiness of all processes of a node."""

    def __init__(self, *parts: object, crew: Crew) -> None:
        super().__init__(*parts)  # type: ignore[arg-type]
        self._crew: Final = crew
        self._figures: Final = NodeFigures()
        crew.on_gone = self._figures.forget

    async def metrics_text(self) -> bytes:
        """Return the metrics of all processes, added up."""
        for member, seen in await self._crew.looks(wants_metrics=True):
            if seen is not None and member.phase is not Phase.GONE:
                self._figures.keep(member, seen.metrics)
        return await asyncio.to_thread(self._figures.text, await super().metrics_text())

    async def readiness(self) -> Mapping[str, bool]:
        """Return what must be ready: what is ready here and in all workers, and that all of them serve."""
        parts = dict(await super().readiness())
        seen = [each for _, each in await self._crew.looks(wants_metrics=False)]
        for each in seen:
            if each is not None:
                for name, is_ready in each.parts.items():
                    parts[name] = parts.get(name, True) and is_ready
        return parts | {"workers": None not in seen and self._crew.is_complete}


async def open_node(settings: KustosSettings, properties: Mapping[str, str]) -> Node | CrewNode:
    """Return the node, of one process or of several; raise what their `open` raises."""
    if settings.workers.count > 1:
        return await CrewNode.open(settings, properties)
    # the workers of an earlier run must not go on where one process serves now
    await outlive_earlier(workers_directory(settings))
    return await Node.open(settings)


__all__ = ["CrewNode", "WorkerStartError", "open_node", "workers_directory"]
