"""Identity, no IO: SASL server and client machines, mechanisms, JAAS texts, principals."""

from kustos.auth.builders import (
    AuthenticationContext,
    DefaultKafkaPrincipalBuilder,
    KafkaPrincipalBuilder,
    ListenerPrincipals,
    PlaintextAuthenticationContext,
    SaslAuthenticationContext,
    SslAuthenticationContext,
    configured,
)
from kustos.auth.diagram import sasl_server_diagram
from kustos.auth.effects import (
    Authenticated,
    ClientSoftware,
    Close,
    Fail,
    LoginStep,
    RunBeside,
    SaslEffect,
    SendFrame,
)
from kustos.auth.errors import (
    AuthError,
    CredentialsError,
    JaasError,
    MappingRuleError,
    NoMatchingRuleError,
    PrincipalBuilderError,
    SaslAuthenticationError,
    SaslClientError,
    SaslErrorCode,
    SaslMechanismError,
)
from kustos.auth.jaas import (
    ALLOWED_LOGIN_MODULES_CONFIG,
    DISALLOWED_LOGIN_MODULES,
    DISALLOWED_LOGIN_MODULES_CONFIG,
    JaasEntry,
    LoginModulePolicy,
    parse_jaas_config,
    single_jaas_entry,
)
from kustos.auth.mechanisms import MechanismFactory
from kustos.auth.mechanisms.gssapi import (
    GSSAPI,
    GssapiCredentials,
    GssapiServer,
    default_realm,
    require_gssapi,
)
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
from kustos.auth.principals import ANONYMOUS
from kustos.auth.sasl_client import ClientRequest, SaslClientMachine, client_mechanism
from kustos.auth.sasl_server import ApiVersionsBody, SaslServerMachine
from kustos.auth.sasl_table import SASL_SERVER_TRANSITIONS, SaslState
from kustos.auth.settings import (
    DEFAULT_CONNECTION_FAILED_AUTHENTICATION_DELAY_MS,
    DEFAULT_SASL_SERVER_MAX_RECEIVE_SIZE,
    SaslServerSettings,
)

__all__ = [
    "ALLOWED_LOGIN_MODULES_CONFIG",
    "ANONYMOUS",
    "DEFAULT_CONNECTION_FAILED_AUTHENTICATION_DELAY_MS",
    "DEFAULT_SASL_SERVER_MAX_RECEIVE_SIZE",
    "DISALLOWED_LOGIN_MODULES",
    "DISALLOWED_LOGIN_MODULES_CONFIG",
    "GSSAPI",
    "INSUFFICIENT_SCOPE",
    "INVALID_TOKEN",
    "OAUTHBEARER",
    "SASL_SERVER_TRANSITIONS",
    "AcceptedToken",
    "ApiVersionsBody",
    "AuthError",
    "Authenticated",
    "AuthenticationContext",
    "BearerToken",
    "ClientRequest",
    "ClientSoftware",
    "Close",
    "CredentialsError",
    "DefaultKafkaPrincipalBuilder",
    "Fail",
    "FormCount",
    "Forms",
    "GssapiCredentials",
    "GssapiServer",
    "InitialResponseError",
    "JaasEntry",
    "JaasError",
    "KafkaPrincipalBuilder",
    "ListenerPrincipals",
    "LoginModulePolicy",
    "LoginStep",
    "MappingRuleError",
    "MechanismFactory",
    "NoMatchingRuleError",
    "OAuthBearerClient",
    "OAuthBearerServer",
    "PlainServer",
    "PlainUsers",
    "PlaintextAuthenticationContext",
    "PrincipalBuilderError",
    "RefusedToken",
    "RunBeside",
    "SaslAuthenticationContext",
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
    "SslAuthenticationContext",
    "TokenLogin",
    "TokenLookup",
    "TokenValidator",
    "client_mechanism",
    "configured",
    "default_realm",
    "parse_jaas_config",
    "require_gssapi",
    "require_valid_extensions",
    "sasl_server_diagram",
    "single_jaas_entry",
]
