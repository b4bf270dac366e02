"""Where clients' bytes come in: the bound ports, and each connection from login to end."""

from kustos.gateway.listener.gateway import (
    AdminParts,
    ConnectionSettings,
    Gateway,
    GatewayParts,
    ListenerPlan,
    connections_within,
)

__all__ = [
    "AdminParts",
    "ConnectionSettings",
    "Gateway",
    "GatewayParts",
    "ListenerPlan",
    "connections_within",
]
