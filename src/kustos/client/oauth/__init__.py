"""Requests to OAuth identity providers: their key sets, and tokens for the logins of kustos."""

from kustos.client.oauth.assertion import AssertionSettings
from kustos.client.oauth.http import (
    ALLOWED_FILES_KEY,
    ALLOWED_URLS_KEY,
    EndpointError,
    ProviderEndpoint,
    checked_url,
)
from kustos.client.oauth.keys import (
    JwksSettings,
    RefreshingKeys,
)
from kustos.client.oauth.settings import LOGIN_HANDLER, LOGIN_MODULE, TOKEN_URL_KEY, OAuthClientSettings
from kustos.client.oauth.tokens import TokenSource, token_source

__all__ = [
    "ALLOWED_FILES_KEY",
    "ALLOWED_URLS_KEY",
    "LOGIN_HANDLER",
    "LOGIN_MODULE",
    "TOKEN_URL_KEY",
    "AssertionSettings",
    "EndpointError",
    "JwksSettings",
    "OAuthClientSettings",
    "ProviderEndpoint",
    "RefreshingKeys",
    "TokenSource",
    "checked_url",
    "token_source",
]
