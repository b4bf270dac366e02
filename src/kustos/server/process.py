"""A process of a node: its role, what it prepares before it serves, and its audit log.

It is the whole node, the owner of its metadata, or a worker. Without preparation the first clients, and the
whole event loop, would wait for their codecs. And a node without free file descriptors cannot import a module
any more.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Final

from kustos.client import NodeAddress
from kustos.gateway.admin import Loggers
from kustos.gateway.audit import AuditEvents, AuditLog, AuditRings, OnFull, open_audit_sinks
from kustos.gateway.listener import Gateway, GatewayParts, ListenerPlan
from kustos.gateway.metrics import GatewayMetrics
from kustos.runtime import SystemEntropy
from kustos.server.http import Details, HttpEndpoint, Readiness
from kustos.server.logs import LOG_LEVELS
from kustos.server.settings.listeners import ListenerSettings
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.workers import worker_name
from kustos.wire import ApiKey, codec_versions, request_codec, response_codec

JOURNALS: Final = "audit-journals"
"""The folder of unwritten audit events, next to the metadata log."""

NODE: Final = "node"
"""The name of the journal of a node in one process, or of the process that starts the workers."""

LATE_MODULES: Final = ("concurrent.futures.thread", "encodings.idna", "encodings.punycode")
"""Modules that the standard library imports on first use: for threads, and for host names."""

FIRST_APIS: Final = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.METADATA)
"""The first requests of every client."""

VERSIONS: Final = 2
"""The number of highest versions to prepare, which today's clients use. Each takes some 10 ms."""

Waits = Mapping[str, Awaitable[None]] | None
"""Listener name → what it waits for before it opens."""


def _as_they_are(waits: Waits) -> Waits:
    return waits


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePart:
    """A process's role."""

    name: str = NODE
    """The name of its audit journal."""
    serves: Callable[[ListenerSettings], bool] = lambda _: True
    make_gateway: Callable[[list[ListenerPlan], GatewayParts, float], Gateway] = Gateway
    make_http: Callable[[NodeAddress, GatewayMetrics, Readiness, Details], HttpEndpoint] = HttpEndpoint
    waits: Callable[[Waits], Waits] = _as_they_are
    drain_others: Callable[[], Awaitable[None]] | None = None
    """Drains the node's other processes of requests that would be denied now."""
    loggers: Loggers = LOG_LEVELS
    """The loggers that the admin listener changes."""


WHOLE: Final = NodePart()
"""A node in one process."""


async def open_audit_log(settings: KustosSettings, name: str, cluster_id: str) -> AuditLog:
    """Return the audit log of the process of this name, its sinks opened; raise `AuditError`.

    `cluster_id` is the cluster id of the metadata and of every event.
    """
    events = AuditEvents.of_node(settings.node_id, SystemEntropy(), cluster_id)
    rings = _rings(settings, name, events)
    try:
        await _finish_files(settings, name)
        sinks = await open_audit_sinks(settings.audit, settings.upstream)
    except BaseException:
        rings.close()
        raise
    return AuditLog(
        events,
        sinks,
        queue_max_events=settings.audit.queue_max_events,
        on_full=settings.audit.on_full,
        allowed_bytes_per_hour=settings.audit.allowed_bytes_per_hour,
        denied_bytes_per_hour=settings.audit.denied_bytes_per_hour,
        rings=rings,
    )


async def _finish_files(settings: KustosSettings, name: str) -> None:
    """Finish the audit files that killed workers left open, if these workers no longer exist."""
    audit = settings.audit
    if name != NODE or audit.json_directory is None:
        return
    for directory in sorted(audit.json_directory.glob("worker-*")):
        if directory.name not in _living(settings) and any(directory.glob("_audit-*.jsonl")):
            left = replace(audit, sinks=("json",), json_directory=directory)
            for sink in await open_audit_sinks(left, settings.upstream):
                await sink.close()


def _living(settings: KustosSettings) -> set[str]:
    """Return the names of the node's processes."""
    count = settings.workers.count if settings.workers.count > 1 else 0
    return {NODE, *(worker_name(index) for index in range(1, count + 1))}


def _rings(settings: KustosSettings, name: str, events: AuditEvents) -> AuditRings:
    """Return the rings of a process; raise `AuditError`.

    A worker does not touch the rings of other processes. The process that starts the workers recovers the
    rings of workers that no longer exist. In mode `drop`, and without sinks, no ring outlives its process.
    """
    if not settings.audit.sinks:
        return AuditRings()
    living = _living(settings) if name == NODE else None
    is_durable = settings.audit.on_full is not OnFull.DROP
    directory = settings.metadata_directory / JOURNALS
    return AuditRings.open(directory, name, living, events, is_durable=is_durable)


def load_late_modules() -> None:
    """Import modules that are otherwise imported on first use."""
    for name in LATE_MODULES:
        import_module(name)


def warm_codecs() -> None:
    """Make the codecs of every connection's first requests, before the event loop serves clients."""
    for api_key in FIRST_APIS:
        lowest, highest = codec_versions(api_key) or (0, -1)
        for version in range(highest, max(lowest, highest - VERSIONS + 1) - 1, -1):
            request_codec(api_key, version)
            response_codec(api_key, version)
