"""Identity, no IO: SASL server and client machines, mechanisms, JAAS texts, principals."""

from kustos.auth.effects import Authenticated, ClientSoftware, Close, Fail, SaslEffect, SendFrame
from kustos.auth.errors import (
    AuthError,
    JaasError,
    SaslAuthenticationError,
    SaslClientError,
    SaslErrorCode,
    SaslMechanismError,
)
from kustos.auth.mechanisms import MechanismFactory
from kustos.auth.principals import ANONYMOUS, principal_of_login
from kustos.auth.sasl_server import ApiVersionsBody, SaslServerMachine
from kustos.auth.sasl_table import SaslState
from kustos.auth.settings import (
    DEFAULT_CONNECTION_FAILED_AUTHENTICATION_DELAY_MS,
    DEFAULT_SASL_SERVER_MAX_RECEIVE_SIZE,
    SaslServerSettings,
)

__all__ = [
    "ANONYMOUS",
    "DEFAULT_CONNECTION_FAILED_AUTHENTICATION_DELAY_MS",
    "DEFAULT_SASL_SERVER_MAX_RECEIVE_SIZE",
    "ApiVersionsBody",
    "AuthError",
    "Authenticated",
    "ClientSoftware",
    "Close",
    "Fail",
    "JaasError",
    "MechanismFactory",
    "SaslAuthenticationError",
    "SaslClientError",
    "SaslEffect",
    "SaslErrorCode",
    "SaslMechanismError",
    "SaslServerMachine",
    "SaslServerSettings",
    "SaslState",
    "SendFrame",
    "principal_of_login",
]
