"""Where clients' bytes come in: the bound ports, and each connection from login to end."""

from kustos.gateway.listener.gateway import Gateway, connections_within
from kustos.gateway.listener.plans import (
    AdminParts,
    ConnectionSettings,
    ConnectLink,
    GatewayParts,
    ListenerPlan,
)
from kustos.gateway.listener.proxy_protocol import ProxyAddresses
from kustos.gateway.listener.tls import ListenerTls

__all__ = [
    "AdminParts",
    "ConnectLink",
    "ConnectionSettings",
    "Gateway",
    "GatewayParts",
    "ListenerPlan",
    "ListenerTls",
    "ProxyAddresses",
    "connections_within",
]
