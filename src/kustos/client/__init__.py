"""Outgoing Kafka connections that drive the sans-IO machines: upstreams, quorum, administration."""

from kustos.client.addresses import NodeAddress, parse_address, parse_bootstrap_servers
from kustos.client.connection import ConnectionLimits, KafkaConnection
from kustos.client.errors import (
    AuthenticationFailedError,
    CannotConnectError,
    ClientError,
    ConnectionClosedError,
    KafkaError,
    ProtocolViolationError,
    RequestTimedOutError,
    SettingsError,
    UnsupportedVersionError,
)
from kustos.client.sasl import connect
from kustos.client.settings import ClientSettings, SaslClientSettings
from kustos.client.tls import TlsClientSettings
from kustos.client.versions import choose_version

__all__ = [
    "AuthenticationFailedError",
    "CannotConnectError",
    "ClientError",
    "ClientSettings",
    "ConnectionClosedError",
    "ConnectionLimits",
    "KafkaConnection",
    "KafkaError",
    "NodeAddress",
    "ProtocolViolationError",
    "RequestTimedOutError",
    "SaslClientSettings",
    "SettingsError",
    "TlsClientSettings",
    "UnsupportedVersionError",
    "choose_version",
    "connect",
    "parse_address",
    "parse_bootstrap_servers",
]
