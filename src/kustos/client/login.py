"""Custom login classes: each connection gets its credentials from such a class.

In Kafka, `sasl.login.class` replaces the whole login, and `sasl.login.callback.handler.class` the source of
its credentials. kustos supports only the latter.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from kustos.auth import (
    OAUTHBEARER,
    AuthenticateCallbackHandler,
    BearerToken,
    CallbackError,
    configured_handler,
)
from kustos.client.errors import AuthenticationFailedError, SettingsError
from kustos.client.oauth import LOGIN_HANDLER
from kustos.client.plugins import PluginKind
from kustos.client.refreshed import in_a_thread

HANDLER_KEY: Final = "sasl.login.callback.handler.class"
LOGIN_KEY: Final = "sasl.login.class"
KAFKAS_LOGINS: Final = (
    "org.apache.kafka.common.security.authenticator.DefaultLogin",
    "org.apache.kafka.common.security.kerberos.KerberosLogin",
    "org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerRefreshingLogin",
)
"""Kafka's own classes: kustos needs no class for their function."""

KAFKAS_HANDLERS: Final = (
    "org.apache.kafka.common.security.authenticator.AbstractLogin$DefaultLoginCallbackHandler",
    LOGIN_HANDLER,
)

HANDLERS_MAX: Final = 16
"""The maximum number of handlers in a process: a node has one for each cluster that it logs in to, a command
has one."""


@dataclass(frozen=True, slots=True)
class UserPassword:
    """The credentials of PLAIN and SCRAM."""

    username: str
    password: str = field(repr=False)


class LoginCallbackHandler(AuthenticateCallbackHandler):
    """Gets credentials, for example from a vault; `close` is not called."""

    @abstractmethod
    def credentials(self) -> UserPassword | BearerToken:
        """Return a user and password, or with OAUTHBEARER a token; called for each connection, in a thread.

        It must return within `socket.connection.setup.timeout.ms`. An exception fails the login.
        """


HANDLERS: Final = PluginKind(
    HANDLER_KEY, "kustos.sasl.login.callbacks", LOGIN_HANDLER, (LoginCallbackHandler,)
)


@dataclass(frozen=True, slots=True)
class LoginHandlerSettings:
    """The class and its configuration."""

    handler_class: type[LoginCallbackHandler]
    mechanism: str
    configs: tuple[tuple[str, str], ...] = field(repr=False)
    options: tuple[tuple[str, str], ...] = field(repr=False)


def login_handler_class(properties: Mapping[str, str]) -> type[LoginCallbackHandler] | None:
    """Return the class of these keys, None if it is Kafka's; raise `SettingsError`."""
    login = properties.get(LOGIN_KEY, "").strip()
    if login not in {"", *KAFKAS_LOGINS}:
        raise SettingsError(
            f"`{LOGIN_KEY}` is `{login}`: there is no login to replace here; name the class that gets the "
            f"credentials in `{HANDLER_KEY}`"
        )
    name = properties.get(HANDLER_KEY, "").strip()
    if name in {"", *KAFKAS_HANDLERS}:
        return None
    found: type[LoginCallbackHandler] = HANDLERS.find(name)
    return found


@lru_cache(HANDLERS_MAX)
def _handler_of(settings: LoginHandlerSettings) -> LoginCallbackHandler:
    return configured_handler(
        settings.handler_class, dict(settings.configs), settings.mechanism, dict(settings.options)
    )


def _credentials(settings: LoginHandlerSettings) -> object:
    try:
        # configured in the thread, too: it may have to contact a service
        return _handler_of(settings).credentials()
    except SystemExit:
        # the exception would end this thread silently
        raise CallbackError(f"`{settings.handler_class.__name__}` raised SystemExit") from None


async def credentials_of(settings: LoginHandlerSettings) -> UserPassword | BearerToken:
    """Return the current credentials, validated; raise `AuthenticationFailedError`."""
    name = settings.handler_class.__name__
    try:
        found = await in_a_thread(lambda: _credentials(settings))
    except CallbackError as error:
        raise AuthenticationFailedError(str(error)) from None
    except Exception as error:  # noqa: BLE001 - whatever foreign code raises fails the login
        # only the type: the text may contain a secret
        raise AuthenticationFailedError(f"`{name}` raised {type(error).__name__}") from None
    if settings.mechanism == OAUTHBEARER:
        if type(found) is BearerToken and type(found.value) is str:
            return found
    elif type(found) is UserPassword and type(found.username) is type(found.password) is str:
        return found
    raise AuthenticationFailedError(
        f"`{name}` returned unusable credentials for `{settings.mechanism}`, a `{type(found).__name__}`"
    )
