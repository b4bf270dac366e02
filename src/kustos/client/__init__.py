"""Outgoing Kafka connections, which drive the state machines without IO; `admin`, `quorum` and `topics` use
them."""

from kustos.client.connection import ConnectionLimits, KafkaConnection, as_transport
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
    UnreachableError,
    UnsupportedVersionError,
    error_name,
)
from kustos.client.foreign_keys import IN_QUOTES, is_quoted, kafkas_key
from kustos.client.login import (
    KAFKAS_LOGINS,
    LoginCallbackHandler,
    UserPassword,
)
from kustos.client.plugins import PluginKind
from kustos.client.properties import read_properties
from kustos.client.refreshed import Refreshed
from kustos.client.sasl import Identity, connect
from kustos.client.session import SaslSession
from kustos.client.settings import (
    LOGIN_GROUPS,
    LOGIN_MODULES,
    ClientSettings,
    NodeAddress,
    SaslClientSettings,
    parse_address,
    parse_bootstrap_servers,
)
from kustos.client.supervision import FAILURES, callback_failed, failed, one_shot, supervised
from kustos.client.tls import ENGINE_FACTORIES, ENGINE_FACTORY_KEY, NO_ENGINES, ClientTls
from kustos.client.versions import choose_version

__all__ = [
    "ENGINE_FACTORIES",
    "ENGINE_FACTORY_KEY",
    "FAILURES",
    "IN_QUOTES",
    "KAFKAS_LOGINS",
    "LOGIN_GROUPS",
    "LOGIN_MODULES",
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
    "Identity",
    "KafkaConnection",
    "KafkaError",
    "LoginCallbackHandler",
    "NodeAddress",
    "PluginKind",
    "ProtocolViolationError",
    "Refreshed",
    "RequestTimedOutError",
    "SaslClientSettings",
    "SaslSession",
    "SettingsError",
    "UnreachableError",
    "UnsupportedVersionError",
    "UserPassword",
    "as_transport",
    "callback_failed",
    "choose_version",
    "connect",
    "error_name",
    "failed",
    "is_quoted",
    "kafkas_key",
    "one_shot",
    "parse_address",
    "parse_bootstrap_servers",
    "read_properties",
    "supervised",
]
