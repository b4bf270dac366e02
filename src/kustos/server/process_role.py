"""The role of a process in a node: the whole node, the owner of its metadata, or a worker."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kustos.client import NodeAddress
from kustos.gateway.listener import Gateway, GatewayParts, ListenerPlan
from kustos.gateway.metrics import GatewayMetrics
from kustos.server.audit import NODE
from kustos.server.http import Details, HttpEndpoint, Readiness
from kustos.server.settings.listeners import ListenerSettings

Waits = Mapping[str, Awaitable[None]] | None
"""Listener name → what it waits for before it opens."""


def _as_they_are(waits: Waits) -> Waits:
    return waits


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePart:
    """A process's role. `owns_metadata`: it sweeps tokens and takes snapshots."""

    owns_metadata: bool = True
    name: str = NODE
    """The name of its audit journal."""
    serves: Callable[[ListenerSettings], bool] = lambda _: True
    make_gateway: Callable[[list[ListenerPlan], GatewayParts, float], Gateway] = Gateway
    make_http: Callable[[NodeAddress, GatewayMetrics, Readiness, Details], HttpEndpoint] = HttpEndpoint
    waits: Callable[[Waits], Waits] = _as_they_are


WHOLE: Final = NodePart()
"""A node in one process."""
