"""Identity, no IO: SASL server and client machines, mechanisms, JAAS texts, principals."""

from kustos.auth.diagram import sasl_server_diagram
from kustos.auth.effects import Authenticated, ClientSoftware, Close, Fail, SaslEffect, SendFrame
from kustos.auth.errors import (
    AuthError,
    JaasError,
    SaslAuthenticationError,
    SaslClientError,
    SaslErrorCode,
    SaslMechanismError,
)
from kustos.auth.jaas import JaasEntry, parse_jaas_config, single_jaas_entry
from kustos.auth.mechanisms import MechanismFactory
from kustos.auth.mechanisms.oauthbearer import (
    INSUFFICIENT_SCOPE,
    INVALID_TOKEN,
    OAUTHBEARER,
    AcceptedToken,
    BearerToken,
    OAuthBearerClient,
    OAuthBearerServer,
    RefusedToken,
    TokenValidator,
)
from kustos.auth.mechanisms.oauthbearer_messages import InitialResponseError, require_valid_extensions
from kustos.auth.mechanisms.plain import PlainServer, PlainUsers
from kustos.auth.mechanisms.scram import ScramServer, TokenLogin, TokenLookup
from kustos.auth.mechanisms.scram_decoys import FormCount, Forms, ScramDecoys
from kustos.auth.mechanisms.scram_keys import ScramHash
from kustos.auth.principals import ANONYMOUS, principal_of_login
from kustos.auth.sasl_client import ClientRequest, SaslClientMachine, client_mechanism
from kustos.auth.sasl_server import ApiVersionsBody, SaslServerMachine
from kustos.auth.sasl_table import SASL_SERVER_TRANSITIONS, SaslState
from kustos.auth.settings import (
    DEFAULT_CONNECTION_FAILED_AUTHENTICATION_DELAY_MS,
    DEFAULT_SASL_SERVER_MAX_RECEIVE_SIZE,
    SaslServerSettings,
)

__all__ = [
    "ANONYMOUS",
    "DEFAULT_CONNECTION_FAILED_AUTHENTICATION_DELAY_MS",
    "DEFAULT_SASL_SERVER_MAX_RECEIVE_SIZE",
    "INSUFFICIENT_SCOPE",
    "INVALID_TOKEN",
    "OAUTHBEARER",
    "SASL_SERVER_TRANSITIONS",
    "AcceptedToken",
    "ApiVersionsBody",
    "AuthError",
    "Authenticated",
    "BearerToken",
    "ClientRequest",
    "ClientSoftware",
    "Close",
    "Fail",
    "FormCount",
    "Forms",
    "InitialResponseError",
    "JaasEntry",
    "JaasError",
    "MechanismFactory",
    "OAuthBearerClient",
    "OAuthBearerServer",
    "PlainServer",
    "PlainUsers",
    "RefusedToken",
    "SaslAuthenticationError",
    "SaslClientError",
    "SaslClientMachine",
    "SaslEffect",
    "SaslErrorCode",
    "SaslMechanismError",
    "SaslServerMachine",
    "SaslServerSettings",
    "SaslState",
    "ScramDecoys",
    "ScramHash",
    "ScramServer",
    "SendFrame",
    "TokenLogin",
    "TokenLookup",
    "TokenValidator",
    "client_mechanism",
    "parse_jaas_config",
    "principal_of_login",
    "require_valid_extensions",
    "sasl_server_diagram",
    "single_jaas_entry",
]
