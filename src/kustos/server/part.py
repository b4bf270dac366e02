"""Which part of a node a process is: all of it, the owner of its metadata, or one that serves clients."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kustos.client import NodeAddress
from kustos.gateway.listener import Gateway, GatewayParts, ListenerPlan
from kustos.gateway.metrics import GatewayMetrics
from kustos.server.http import Details, HttpEndpoint, Readiness
from kustos.server.listener_settings import ListenerSettings

Waits = Mapping[str, Awaitable[None]] | None
"""What the listeners of these names wait for before they open."""


def _as_they_are(waits: Waits) -> Waits:
    return waits


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePart:
    """What differs. `owns_metadata`: tokens are swept and snapshots taken here."""

    owns_metadata: bool = True
    serves: Callable[[ListenerSettings], bool] = lambda _: True
    make_gateway: Callable[[list[ListenerPlan], GatewayParts, float], Gateway] = Gateway
    make_http: Callable[[NodeAddress, GatewayMetrics, Readiness, Details], HttpEndpoint] = HttpEndpoint
    waits: Callable[[Waits], Waits] = _as_they_are


WHOLE: Final = NodePart()
"""A node in one process."""
