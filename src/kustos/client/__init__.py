"""Outgoing Kafka connections that drive the sans-IO machines; `admin` and `quorum` use them."""

from kustos.client.addresses import NodeAddress, parse_address, parse_bootstrap_servers
from kustos.client.connection import ConnectionLimits, KafkaConnection
from kustos.client.errors import (
    NONE,
    RESOURCE_NOT_FOUND,
    SECURITY_DISABLED,
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
from kustos.client.login import (
    KAFKAS_LOGINS,
    LoginCallbackHandler,
    UserPassword,
)
from kustos.client.plugins import PluginKind
from kustos.client.properties import read_properties
from kustos.client.sasl import connect
from kustos.client.settings import ClientSettings, SaslClientSettings
from kustos.client.tls import ENGINE_FACTORIES, ENGINE_FACTORY_KEY, NO_ENGINES, ClientTls
from kustos.client.versions import choose_version

__all__ = [
    "ENGINE_FACTORIES",
    "ENGINE_FACTORY_KEY",
    "KAFKAS_LOGINS",
    "NONE",
    "NO_ENGINES",
    "RESOURCE_NOT_FOUND",
    "SECURITY_DISABLED",
    "AuthenticationFailedError",
    "CannotConnectError",
    "ClientError",
    "ClientSettings",
    "ClientTls",
    "ConnectionClosedError",
    "ConnectionLimits",
    "KafkaConnection",
    "KafkaError",
    "LoginCallbackHandler",
    "NodeAddress",
    "PluginKind",
    "ProtocolViolationError",
    "RequestTimedOutError",
    "SaslClientSettings",
    "SettingsError",
    "UnsupportedVersionError",
    "UserPassword",
    "choose_version",
    "connect",
    "parse_address",
    "parse_bootstrap_servers",
    "read_properties",
]
