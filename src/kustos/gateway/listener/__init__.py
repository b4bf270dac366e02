"""The listeners: the bound ports, and each client connection from its login to its end."""

from kustos.gateway.listener.admission import connections_within
from kustos.gateway.listener.drain import DRAIN_TIMEOUT_MS
from kustos.gateway.listener.gateway import Gateway
from kustos.gateway.listener.life_cycle import CONNECTION_LIFE
from kustos.gateway.listener.login_throttle import FailedLoginLimits
from kustos.gateway.listener.plans import (
    AdminParts,
    AuthorizationMode,
    ConnectionSettings,
    ConnectLink,
    GatewayLimits,
    GatewayParts,
    ListenerPlan,
    ListenerTls,
)
from kustos.gateway.listener.port import listening_socket

__all__ = [
    "CONNECTION_LIFE",
    "DRAIN_TIMEOUT_MS",
    "AdminParts",
    "AuthorizationMode",
    "ConnectLink",
    "ConnectionSettings",
    "FailedLoginLimits",
    "Gateway",
    "GatewayLimits",
    "GatewayParts",
    "ListenerPlan",
    "ListenerTls",
    "connections_within",
    "listening_socket",
]
